"""Logs for tests: opened and replayed, small, without a thread unless a test is about it."""

import select
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanlight_broker.storage.log import Log

FILLING = 3000  # more than half of the smallest segment

Record = tuple[int, int, bytes]  # sequence, type, body


@dataclass
class OpenLog:
    """A log, and what it had when it was opened."""

    log: Log
    found: list[Record]
    reports: list[tuple[int, str | None]] = field(default_factory=list)

    def entry(self, *bodies: bytes, type: int = 1) -> int:
        """Append an entry; its sequence."""
        for body in bodies:
            self.log.append(type, body)
        self.log.seal()
        return self.log.appended

    def work(self) -> None:
        """Write all that can be written."""
        while self.log.write_group():
            pass
        self.log.collect()

    def write(self, *bodies: bytes) -> None:
        """An entry for each body, all synced: one group for each."""
        for body in bodies:
            self.entry(body)
            self.work()

    def raise_floor(self, sequence: int) -> None:
        """And write two entries that fill a segment each: their headers say it."""
        self.log.raise_floor(sequence)
        self.write(bytes(FILLING), bytes(FILLING))

    def wait(self, sequence: int) -> None:
        """Until the writer thread has synced this entry."""
        while self.log.synced < sequence:
            self.turn()

    def turn(self) -> None:
        """Until a thread has something to say."""
        poll = select.poll()
        poll.register(self.log.fileno(), select.POLLIN)
        poll.poll()
        self.log.collect()


def opened(folder: Path, *, after: int = 0, threaded: bool = False, **options: Any) -> OpenLog:
    """Open and replay."""
    options = {"segment_bytes": 16384, "salt": 1, **options}
    log = Log(folder, lambda: opened.reports.append((log.synced, log.trouble)), threaded=threaded, **options)
    opened = OpenLog(log, [])
    opened.found = [(sequence, type, body) for sequence, _, type, body in log.replay(after)]
    return opened


def reopened(before: OpenLog, **options: Any) -> OpenLog:
    before.log.close()
    return opened(before.log.folder, **options)


def read(one: OpenLog, number: int) -> bytes:
    """The first record of the entry whose first message has this number."""
    reader = one.log.reader()
    reader.seek(one.log.locate(number))
    while reader.next_entry():
        if reader.number == number:
            return reader.records()[0][1]
    raise AssertionError(f"{number} is not there")


def bitmap(first: int, end: int, live: Iterable[int]) -> bytes:
    """As Log.compact takes it."""
    bits = sum(1 << number - first for number in live if first <= number < end)
    return bits.to_bytes((end - first + 7) // 8, "little")
