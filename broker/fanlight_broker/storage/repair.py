"""Makes a damaged store sound: what is lost stays lost, and what refers to it is dropped.

    gaps      in place of the damaged bytes come entries with the missing sequences that say nothing
    headers   a damaged copy is written again from the whole one
    indexes   are made again
    copies    of messages that cannot be read: an entry behind the end of the log says that they are done with

No damaged file is written to: a copy of it is mended, and takes its name once it is synced. The file itself stays in
damaged/. So a repair may be interrupted at any moment, and repeated.
"""

import os
import shutil
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from struct import Struct
from typing import Any, Final

from fanlight_broker.storage import records
from fanlight_broker.storage.checking import Findings
from fanlight_broker.storage.crc32c import crc32c
from fanlight_broker.storage.folder_lock import FolderLock
from fanlight_broker.storage.folders import sync_folder
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.log_reader import Damage
from fanlight_broker.storage.segment_header import (
    COPY_BYTES,
    HEADER_BYTES,
    HeaderPage,
    header_of,
    read_page,
    with_generation,
)
from fanlight_broker.storage.segment_index import make_index
from fanlight_broker.storage.segment_walk import Gap, walk
from fanlight_broker.storage.segments import NAME

_ENTRY: Final = Struct("<IIQQQ")
_NOTHING: Final = bytes([records.ENDED, 0])  # a record that ends no message
ENTRY_HEADER: Final = 32
FILLER_BYTES: Final = 40
DAMAGED: Final = "damaged"  # the folder


class RepairError(Exception):
    """The store cannot be repaired: says why."""


def plan(findings: Findings) -> Iterator[str]:
    """What a repair does, in words."""
    for path in sorted({damage.path for damage in findings.gaps if not damage.last}):
        yield f"{path.name} is moved to {DAMAGED}/"
    for damage in findings.gaps:
        if damage.last:
            count = damage.last - damage.first + 1
            yield f"{count} {'entry is' if count == 1 else 'entries are'} given up, beginning with {damage.first}"
    for path in findings.headers:
        yield f"{path.name} gets its header again"
    for path in findings.indexes:
        yield f"{path.name} gets its index again"
    if findings.dangling:
        count = len(findings.dangling)
        yield f"{count} {'copy' if count == 1 else 'copies'} of messages that are lost or unreadable: dropped"
    if findings.older:
        yield f"{len(findings.older)} damaged places of older entries are left out; messages that wait are not in them"


def repair(findings: Findings, **options: Any) -> None:
    """Do it: `findings` are those of a check just now. options: of the log. Raises RepairError, LogError, OSError."""
    folder = Path(findings.folder)
    lock = FolderLock(folder, read_only=True)
    try:
        _Files(folder, findings).mend()
    finally:
        lock.close()
    if findings.dangling:
        _drop(folder, findings, options)


# -- files ------------------------------------------------------------------------------------------------------------


class _Files:
    def __init__(self, folder: Path, findings: Findings) -> None:
        self.folder, self.findings = folder, findings
        self.edits: dict[Path, list[tuple[int, bytes]]] = {}
        self.made: dict[int, tuple[bytes, bytes]] = {}  # generation of a new file -> its header and entries

    def mend(self) -> None:
        for damage in self.findings.gaps:
            if damage.last:
                self._fill(damage)
        for path in self.findings.headers:
            self._edit(path, 0, header_of_file(path).whole * (HEADER_BYTES // COPY_BYTES))
        for path, gap in self.findings.older:
            self._leave_out(path, gap)
        self._put()
        for path in {*self.edits, *self.findings.indexes}:
            make_index(path)

    def _put(self) -> None:
        """Mended copies and new files into their places."""
        if not self.edits and not self.made and not self.findings.gaps:
            return
        aside = self.folder / DAMAGED
        aside.mkdir(exist_ok=True)
        for damage in self.findings.gaps:
            if not damage.last:
                os.rename(damage.path, aside / f"{damage.path.name}-{os.urandom(4).hex()}")
        for path, edits in self.edits.items():
            self._replace(path, edits, aside)
        for page, entries in self.made.values():
            self._make(page + entries)
        sync_folder(aside)
        sync_folder(self.folder)

    def _fill(self, damage: Damage) -> None:
        """Put entries that say nothing where the log's reader looks for those that are lost."""
        path, offset, count = damage.path, damage.offset, damage.last - damage.first + 1
        found = walk(path)
        if found is None:
            raise RepairError(f"{path} has changed since it was checked")
        gap = next((each for each in found.gaps if each.offset == offset), None)
        number = gap.number if gap is not None else self._number_behind(damage)
        fits = gap is not None and gap.end - offset >= count * FILLER_BYTES
        before = next((each for each in self.findings.files if each.last and each.last == damage.first - 1), None)
        if fits or offset >= found.end:
            self._edit(path, offset, _fillers(header_of_file(path).whole, damage, number))
        elif before is not None:  # the damage is in two files: there is room behind the last entry before it
            self._edit(before.path, before.end, _fillers(header_of_file(before.path).whole, damage, number))
        else:
            self._begin(path, damage, number)

    def _edit(self, path: Path, offset: int, octets: bytes) -> None:
        self.edits.setdefault(path, []).append((offset, octets))

    def _begin(self, path: Path, damage: Damage, number: int) -> None:
        """The first file of the log is missing: make one."""
        header = header_of_file(path)
        generation = header.generation - 1
        if generation < 1 or any(each.generation == generation for each in self.findings.files):
            raise RepairError(f"{path}: there is no place before it for entries {damage.first} to {damage.last}")
        page = with_generation(header.whole, generation)
        self.made[generation] = page, _fillers(page, damage, number)

    def _number_behind(self, damage: Damage) -> int:
        """The number of the next message behind the gap: so no message before it is looked for there."""
        for each in self.findings.files:
            if each.first == damage.last + 1:
                return each.first_number
        return self.findings.last_number + 1

    def _leave_out(self, path: Path, gap: Gap) -> None:
        """Older entries are read for messages only: one that has none stands in place of those that are damaged."""
        room = gap.end - gap.offset - ENTRY_HEADER
        body = bytes([records.ENDED]) + _varint(room - 6, 5) + bytes(room - 6)
        seed = crc32c(header_of_file(path).whole[16:32])
        self._edit(path, gap.offset, _entry(seed, max(1, gap.sequence - 1), gap.number, body))

    def _replace(self, path: Path, edits: list[tuple[int, bytes]], aside: Path) -> None:
        """A mended copy takes the place of a file, which stays aside."""
        generation = header_of_file(path).generation
        mended = path.with_name(f"{path.name}.mended")
        shutil.copyfile(path, mended)
        with mended.open("r+b") as file:
            for offset, octets in edits:
                file.seek(offset)
                file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        kept = aside / f"{path.name}-{generation}"
        if kept.exists() and not kept.samefile(path):
            kept = kept.with_name(f"{kept.name}-{os.urandom(4).hex()}")
        if not kept.exists():
            os.link(path, kept)
        sync_folder(aside)
        os.replace(mended, path)

    def _make(self, octets: bytes) -> None:
        numbers = [int(match[1]) for path in self.folder.iterdir() if (match := NAME.fullmatch(path.name))]
        path = self.folder / f"log-{max(numbers, default=0) + 1:08}"
        mended = path.with_name(f"{path.name}.mended")
        with mended.open("wb") as file:
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        os.rename(mended, path)


def header_of_file(path: Path) -> HeaderPage:
    found = header_of(read_page(path))
    if found is None:
        raise RepairError(f"{path} has changed since it was checked")
    return found


def _fillers(header: bytes, damage: Damage, number: int) -> bytes:
    """Entries that say nothing, for a segment with this header."""
    seed = crc32c(header[16:32])
    return b"".join(_entry(seed, each, number, _NOTHING) for each in range(damage.first, damage.last + 1))


def _entry(seed: int, sequence: int, number: int, body: bytes) -> bytes:
    """seed: the checksum of its segment's generation and salt."""
    when = int(time.time() * 1000) << 16
    rest = _ENTRY.pack(0, len(body), sequence, number, when)[4:] + body
    size = (ENTRY_HEADER + len(body) + 7) & ~7
    return (crc32c(rest, seed).to_bytes(4, "little") + rest).ljust(size, b"\0")


# -- copies -----------------------------------------------------------------------------------------------------------


def _drop(folder: Path, findings: Findings, options: dict[str, Any]) -> None:
    """An entry behind the end says that these copies are done with."""
    log = Log(folder, lambda: None, threaded=False, **options)
    try:
        for _ in log.replay():
            pass
        log.number_from(findings.last_number + 1)
        log.append(records.ENDED, ended_record(findings.dangling))
        sequence = log.appended
        log.seal()
        while log.write_group():
            pass
        if log.synced < sequence:
            raise RepairError(log.trouble or f"{folder}: the end of the log could not be written")
    finally:
        log.close()


def ended_record(copies: list[tuple[int, int]]) -> bytes:
    """An ENDED record of (queue, number) of each copy: docs/store-format.md."""
    octets = bytearray()
    last = 0
    for queue, group in groupby(sorted(copies), key=lambda copy: copy[0]):
        octets += _varint(queue << 1 | 1)
        for _, number in group:
            difference = (number - last) << 1 if number >= last else (last - number) << 1 | 1
            octets += _varint(difference << 2)
            last = number
    return bytes(octets)


def _varint(value: int, size: int = 1) -> bytes:
    """In `size` bytes or more."""
    octets = bytearray()
    while value >= 0x80 or len(octets) + 1 < size:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
