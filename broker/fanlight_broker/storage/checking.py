"""Checks a store and changes nothing: every checksum, and whether all that waits still has its message.

    Log.scan --records--> Image: numbers, no bodies --copies--> MessageReader, a few bodies at a time

Memory: about 200 bytes for each copy that waits or is in flight, and the retained messages.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from fanlight_broker.storage import records
from fanlight_broker.storage.image import Image, type_name
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.log_reader import Damage
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.message_records import read_message, read_retained
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.storage.segment_header import header_of, read_page
from fanlight_broker.storage.segment_index import index_fault
from fanlight_broker.storage.segment_walk import Gap, walk
from fanlight_broker.storage.segments import LogError, Segment
from fanlight_broker.storage.stored_state import StoredQueue

TOGETHER: Final = 64  # messages whose bodies are in memory at once
DANGLING_NAMED: Final = 20  # copies without a message that are problems of their own; the rest is one together


COUNTS: Final = (
    "sessions", "subscriptions", "queues", "waiting", "in_flight", "delayed", "retained", "marks", "entries",
    "records", "segments", "spare_files", "bytes",
)


class CheckError(Exception):
    """The store cannot be checked: says why."""


class Copy(NamedTuple):
    """A message that waits in a queue, or is in flight."""

    queue: int  # 0: it is a delayed message
    number: int
    fault: str  # of its references; "": none


class StoreFault(NamedTuple):
    file: str  # its name; "": found by references
    offset: int
    what: str
    lost: str

    def __str__(self) -> str:
        place = f"{self.file}, byte {self.offset}: " if self.file else ""
        return f"{place}{self.what}; lost: {self.lost}"


@dataclass
class Findings:
    """What a check has found."""

    folder: str
    sessions: int = 0
    subscriptions: int = 0
    queues: int = 0  # of groups and named queues
    waiting: int = 0
    in_flight: int = 0
    delayed: int = 0
    retained: int = 0
    marks: int = 0
    entries: int = 0
    records: int = 0
    segments: int = 0
    spare_files: int = 0
    bytes: int = 0
    problems: list[StoreFault] = field(default_factory=list)
    # For repair.
    files: list[Segment] = field(default_factory=list)  # of the log, by generation, with what they have
    last_number: int = 0  # of a message
    gaps: list[Damage] = field(default_factory=list)
    headers: list[Path] = field(default_factory=list)  # files with one copy of their header only
    older: list[tuple[Path, Gap]] = field(default_factory=list)  # damage that a restart does not read
    indexes: list[Path] = field(default_factory=list)  # segments whose index is damaged
    dangling: list[tuple[int, int]] = field(default_factory=list)  # (queue, number) of copies without a message

    @property
    def sound(self) -> bool:
        return not self.problems

    def view(self) -> dict[str, Any]:
        """For JSON."""
        counts = {name: getattr(self, name) for name in COUNTS}
        problems = [each._asdict() for each in self.problems]
        return {"folder": self.folder, "sound": self.sound, **counts, "problems": problems}


def check(folder: Path, formats: Mapping[str, Any]) -> Findings:
    """Check the store in `folder`. formats: of each family, by name. Raises CheckError."""
    try:
        log = Log(folder, lambda: None, threaded=False, read_only=True)
    except (LogError, OSError) as error:
        raise CheckError(_reason(error)) from error
    try:
        return _StoreCheck(log, formats).run()
    except BadRecord as error:
        raise CheckError(f"{error}: it was written by another version of Fanlight, or by a fault") from error
    except (LogError, OSError) as error:
        raise CheckError(_reason(error)) from error
    finally:
        log.close()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return str(error)


class _StoreCheck:
    def __init__(self, log: Log, formats: Mapping[str, Any]) -> None:
        self.log, self.formats = log, formats
        self.findings = Findings(os.fspath(log.folder))
        self.image = Image()
        self._lost: dict[int, tuple[int, int]] = {}  # sequence behind a gap -> the numbers that are missing

    def run(self) -> Findings:
        used, spare = self.log.files()
        if not used and not spare and not self.log.damage:
            raise CheckError(f"{self.log.folder} is no store: it has no file of a log")
        found = self.findings
        found.segments, found.spare_files = len(used), len(spare)
        found.bytes = sum(segment.capacity for segment in [*used, *spare])
        self._read()
        self._files()
        self._facts()
        self._copies()
        return found

    # -- the log ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Every entry that a restart would read."""
        image, found = self.image, self.findings
        last = number = 0
        for sequence, _, type, body in self.log.scan():
            if sequence != last:
                found.entries += 1
            if type == records.MESSAGE:
                following = int.from_bytes(body[:8], "little")
                if last and sequence > last + 1 and following > number + 1:
                    self._lost[sequence] = number + 1, following - 1
                number = following
            last = sequence
            try:
                image.apply(type, body)
            except BadRecord as error:
                raise BadRecord(f"entry {sequence}, {type_name(type)}: {error}") from error
        found.records, found.last_number, found.files = image.applied, image.last_number, self.log.files()[0]
        found.gaps = self.log.damage
        found.problems += [self._gap(damage) for damage in found.gaps]

    def _gap(self, damage: Damage) -> StoreFault:
        name = damage.path.name
        if not damage.last:
            return StoreFault(name, 0, "both copies of the header are damaged", "every entry of the file, named below")
        what = f"entries {damage.first} to {damage.last} are damaged or missing"
        lost = "what changed in these turns"
        numbers = next((pair for after, pair in sorted(self._lost.items()) if after > damage.last), None)
        if numbers is not None:
            lost += f", up to {numbers[1] - numbers[0] + 1} messages among it (numbers {numbers[0]} to {numbers[1]})"
        return StoreFault(name, damage.offset, what, lost)

    def _files(self) -> None:
        """Both copies of each header; the entries that a restart does not read, but for bodies; and indexes."""
        for segment in self.log.files()[0]:
            header = header_of(read_page(segment.path))
            if header is not None and None in header.copies:
                at = header.copies.index(None)
                name = ("first", "second")[at]
                self.findings.headers.append(segment.path)
                self.findings.problems.append(
                    StoreFault(segment.path.name, at * 2048, f"the {name} copy of the header is damaged", "nothing")
                )
            if segment.last == 0:
                self._older(segment.path)
            fault = index_fault(segment.path)
            if fault is not None:
                self.findings.indexes.append(segment.path)
                what = f"the index of {segment.path.name} is damaged: {fault.what}"
                self.findings.problems.append(StoreFault(fault.path.name, fault.offset, what, "nothing"))

    def _older(self, path: Path) -> None:
        found = walk(path)
        for gap in found.gaps if found is not None else ():
            self.findings.older.append((path, gap))
            what = f"{gap.end - gap.offset} bytes of older entries are damaged"
            lost = "messages, if any of them waits: named below"
            self.findings.problems.append(StoreFault(path.name, gap.offset, what, lost))

    # -- what the records amount to -----------------------------------------------------------------------------------

    def _facts(self) -> None:
        image, found = self.image, self.findings
        found.sessions, found.queues = len(image.sessions), len(image.groups) + len(image.named)
        found.retained, found.marks = len(image.retained), len(image.marks)
        for session in image.sessions.values():
            found.subscriptions += len(session.subscriptions)
            if session.fact.family not in self.formats:
                raise BadRecord(f"session {session.fact.name!r}: of {session.fact.family!r}, which is not spoken here")
            if session.fact.will is not None:
                read_message(session.fact.will[0], self.formats, 0.0)
        for body in image.retained.values():
            read_retained(body, self.formats, 0.0)

    def _copies(self) -> None:
        """Each copy has what it refers to, and its message can be read."""
        numbers: set[int] = set()
        faults: list[tuple[Copy, str]] = []
        for copy in self._all_copies():
            numbers.add(copy.number)
            if copy.fault:
                faults.append((copy, copy.fault))
        bad = dict(self._unreadable(sorted(numbers)))
        if bad:
            faults += [(copy, bad[copy.number]) for copy in self._all_copies() if copy.number in bad and not copy.fault]
        self._report(faults)

    def _all_copies(self) -> Iterator[Copy]:
        found = self.findings
        found.waiting = found.in_flight = 0
        found.delayed = len(self.image.delayed)
        for number, _, _, _ in self.image.delayed:
            yield Copy(0, number, "")
        for queue in self.image.queues.values():
            found.waiting += len(queue.waiting)
            found.in_flight += len(queue.flights)
            of_session = queue.id in self.image.sessions
            for number, slot in queue.waiting.items():
                yield Copy(queue.id, number, self._slot_fault(slot, queue) if of_session else "")
            for (origin, number), flight in queue.flights.items():
                yield Copy(origin, number, self._slot_fault(flight.slot, queue))

    def _slot_fault(self, slot: int, queue: StoredQueue) -> str:
        fact = self.image.slots.get(slot)
        if fact is None or fact.queue != queue.id or fact.variant is None:
            return f"how it is to be delivered (slot {slot}) is unknown"
        return ""

    def _unreadable(self, numbers: list[int]) -> Iterator[tuple[int, str]]:
        reader = MessageReader(self.log)
        for at in range(0, len(numbers), TOGETHER):
            bodies = reader.read(numbers[at : at + TOGETHER])
            yield from reader.damage
            for number, body in bodies.items():
                try:
                    read_message(body, self.formats, 0.0)
                except BadRecord as error:
                    yield number, str(error)

    def _report(self, faults: list[tuple[Copy, str]]) -> None:
        found = self.findings
        found.dangling = [(copy.queue, copy.number) for copy, _ in faults]
        for copy, why in faults[:DANGLING_NAMED]:
            what = f"message {copy.number} of {self._owner(copy.queue)}: {why}"
            found.problems.append(StoreFault("", 0, what, "this copy of it"))
        if len(faults) > DANGLING_NAMED:
            more = len(faults) - DANGLING_NAMED
            found.problems.append(StoreFault("", 0, f"{more} more of this kind", "these copies"))

    def _owner(self, queue: int) -> str:
        if queue == 0:
            return "no queue, which is delayed"
        session = self.image.sessions.get(queue)
        if session is not None:
            return f"session {session.fact.name!r}"
        group, named = self.image.groups.get(queue), self.image.named.get(queue)
        if group is not None:
            return f"the queue of group {group.name!r}"
        return f"queue {named.name!r}" if named is not None else f"a queue that has no name ({queue})"
