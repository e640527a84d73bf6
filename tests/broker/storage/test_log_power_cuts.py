"""Power cuts at each step of a load, over several lives: what was reported as synced is there, whole and in order."""

import contextlib
import hashlib
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fanlight_broker.storage.disk import Disk
from tests.broker.storage.logs import OpenLog, bitmap, opened, read, reopened
from tests.broker.storage.power_cuts import RecordingDisk, Step, cuts, restored, stored

SMALL = 8192
SEEDS = int(os.environ.get("FANLIGHT_CUT_SEEDS", "28"))
LIVES = 3
FAILING = 0.05  # of the writes and syncs
STATES = 2000  # that are opened, at least, and differ


@dataclass(frozen=True)
class Reported:
    """What the log had promised at a moment."""

    synced: int = 0
    appended: int = 0
    floors: frozenset[int] = frozenset({0})  # all that were raised
    live: frozenset[int] = frozenset()  # messages, one in each entry, with its sequence as their number


class Life:
    """A log that is filled until the power fails. `known`: the bodies of its entries, by sequence."""

    def __init__(
        self, folder: Path, known: dict[int, bytes], before: Reported, mark: bytes, chance: random.Random
    ) -> None:
        self.chance = chance
        self.before = stored(folder)
        self.known = dict(known)
        self.mark = mark
        self.floors = before.floors
        self.live = before.live
        self.one: OpenLog | None = None
        self.first = before
        self.disk = RecordingDisk(self.report, self.fails)
        self.one = one = opened(folder, disk=self.disk, segment_bytes=SMALL, spares=1)
        one.log.number_from(one.log.appended + 1)
        for number in self.live:
            one.log.live(number, 1)
        one.log.reclaim()

    def report(self) -> Reported:
        if self.one is None:
            return self.first
        return Reported(self.one.log.synced, self.one.log.appended, self.floors, self.live)

    def fails(self) -> bool:
        return self.one is not None and self.chance.random() < FAILING

    def run(self, steps: int) -> None:
        assert self.one is not None
        one, chance = self.one, self.chance
        for _ in range(steps):
            match chance.randrange(9):
                case 0:
                    one.log.retry()
                    if (found := one.log.sparse()) is not None:
                        one.log.compact(*found, bitmap(*found, self.live))
                    with contextlib.suppress(OSError):
                        one.log.prepare()
                case 1:
                    floor = chance.randint(max(one.log.floor, one.log.synced - 8), one.log.synced)
                    one.log.raise_floor(floor)
                    self.floors |= {floor}
                case 2:
                    self.end(chance.sample(sorted(self.live), len(self.live) // 2))
                case 3 | 4 | 5:
                    one.work()
                case _:
                    for _ in range(chance.randint(1, 6)):
                        self.append(chance.choice([24, 200, 1500]))

    def append(self, size: int) -> None:
        assert self.one is not None
        number = self.one.log.appended + 1
        body = number.to_bytes(8, "little") + self.mark + b" %d " % number
        # The lengths are the same in each life, so that entries of the last one may fit behind those of this one.
        body = body.ljust(size, b"\0")
        self.one.log.append(1, body)
        self.one.log.number += 1
        assert self.one.log.appended == number
        self.known[number] = body
        if self.chance.random() < 0.3:
            self.one.log.live(number, 1)
            self.live |= {number}
        self.one.log.seal()

    def end(self, numbers: list[int]) -> None:
        assert self.one is not None
        self.live -= set(numbers)
        for number in numbers:
            self.one.log.live(number, -1)


def check(folder: Path, reported: Reported, known: dict[int, bytes], disk: Disk | None = None) -> OpenLog:
    """Open what a power cut has left."""
    one = opened(folder, segment_bytes=SMALL, spares=1, disk=disk)
    assert one.log.damage == []
    assert one.log.floor in reported.floors
    sequences = [sequence for sequence, _, _ in one.found]
    assert sequences == list(range(max(one.log.floor, 1), one.log.appended + 1))
    assert reported.synced <= one.log.appended <= reported.appended
    for sequence, _, body in one.found:
        assert body == known[sequence]
    for number in reported.live:
        if number <= reported.synced:
            assert read(one, number) == known[number]
    assert one.log.index_faults == []  # an index is there as a whole, or not at all
    return one


def check_again(one: OpenLog) -> None:
    """What is appended to it now follows what was found, and nothing of the last life does."""
    found = one.found
    one.write(b"new")
    for _ in range(2):
        one = reopened(one, segment_bytes=SMALL, spares=1)
        assert one.found[: len(found)] == found
        assert [body for _, _, body in one.found[len(found) :]] == [b"new"]
        assert one.log.damage == []
    one.log.close()


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: thousands of logs are made in it."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_what_was_synced_survives_each_power_cut(quick_folder: Path) -> None:
    states = set[bytes]()
    torn = compactions = given_up = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        known: dict[int, bytes] = {}
        reported = Reported()
        folder = restored(quick_folder / f"{seed}", {})
        for life in range(LIVES):
            lived = Life(folder, known, reported, b"life %d" % life, chance)
            lived.run(25)
            steps = list(lived.disk.steps)
            assert lived.one is not None
            compactions += lived.one.log.compactions
            given_up += lived.one.log.compactions_given_up
            all_cuts = list(cuts(lived.before, steps, chance, 2))
            for number, (done, files) in enumerate(all_cuts):
                state = digest(files)
                if state in states:
                    continue
                states.add(state)
                now = promised(steps, done)
                one = check(restored(quick_folder / f"{seed}-{life}-{number}", files), now, lived.known)
                torn += one.log.appended < now.appended
                check_again(one)
                shutil.rmtree(one.log.folder)
            done, files = chance.choice(all_cuts)
            reported = promised(steps, done)
            folder = restored(quick_folder / f"{seed} {life}", files)
            one = check(folder, reported, lived.known)
            # This opening is a life, too: what it has found counts from now on.
            live = frozenset(number for number in reported.live if number <= one.log.appended)
            reported = Reported(one.log.appended, one.log.appended, reported.floors, live)
            known = {number: body for number, body in lived.known.items() if number <= one.log.appended}
            one.log.close()
            lived.one.log.close()
    assert len(states) >= STATES
    assert torn > STATES // 10
    assert compactions >= 10
    assert given_up >= 1


def promised(steps: list[Step], done: int) -> Reported:
    """What the log had reported when the power failed after so many steps; of the last, all may be on the disk."""
    promise = steps[done - 1].reported
    assert isinstance(promise, Reported)
    return promise


def digest(files: dict[str, bytes]) -> bytes:
    found = hashlib.sha256()
    for name, content in sorted(files.items()):
        found.update(b"%s %d " % (name.encode(), len(content)))
        found.update(content)
    return found.digest()
