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
from tests.broker.storage.logs import OpenLog, opened, reopened
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
    checkpoint: int = 0  # entries up to it are not needed any more


class Life:
    """A log that is filled until the power fails. `known`: the bodies of its entries, by sequence."""

    def __init__(
        self, folder: Path, known: dict[int, bytes], before: Reported, mark: bytes, chance: random.Random
    ) -> None:
        self.chance = chance
        self.before = stored(folder)
        self.known = dict(known)
        self.mark = mark
        self.checkpoint = before.checkpoint
        self.one: OpenLog | None = None
        self.first = before
        self.disk = RecordingDisk(self.report, self.fails)
        self.one = opened(folder, disk=self.disk, segment_bytes=SMALL, spares=1, after=before.checkpoint)

    def report(self) -> Reported:
        if self.one is None:
            return self.first
        return Reported(self.one.log.synced, self.one.log.appended, self.checkpoint)

    def fails(self) -> bool:
        return self.one is not None and self.chance.random() < FAILING

    def run(self, steps: int) -> None:
        assert self.one is not None
        one, chance = self.one, self.chance
        for _ in range(steps):
            match chance.randrange(8):
                case 0:
                    one.log.retry()
                    with contextlib.suppress(OSError):
                        one.log.prepare()
                case 1:
                    self.checkpoint = chance.randint(self.checkpoint, one.log.synced)
                    one.log.release_before(self.checkpoint + 1)
                case 2 | 3 | 4:
                    one.work()
                case _:
                    for _ in range(chance.randint(1, 6)):
                        self.append(chance.choice([24, 200, 1500]))

    def append(self, size: int) -> None:
        assert self.one is not None
        body = self.mark + b" %d " % (self.one.log.appended + 1)
        # The lengths are the same in each life, so that entries of the last one may fit behind those of this one.
        body = body.ljust(size, b"\0")
        self.known[self.one.entry(body)] = body


def check(folder: Path, reported: Reported, known: dict[int, bytes], disk: Disk | None = None) -> OpenLog:
    """Open what a power cut has left."""
    one = opened(folder, after=reported.checkpoint, segment_bytes=SMALL, spares=1, disk=disk)
    assert one.log.damage == []
    sequences = [sequence for sequence, _, _ in one.found]
    assert sequences == list(range(reported.checkpoint + 1, one.log.appended + 1))
    assert reported.synced <= one.log.appended <= reported.appended
    for sequence, _, body in one.found:
        assert body == known[sequence]
    return one


def check_again(one: OpenLog, reported: Reported) -> None:
    """What is appended to it now follows what was found, and nothing of the last life does."""
    found = one.found
    one.write(b"new")
    for _ in range(2):
        one = reopened(one, after=reported.checkpoint, segment_bytes=SMALL, spares=1)
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
    torn = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        known: dict[int, bytes] = {}
        reported = Reported()
        folder = restored(quick_folder / f"{seed}", {})
        for life in range(LIVES):
            lived = Life(folder, known, reported, b"life %d" % life, chance)
            lived.run(25)
            steps = list(lived.disk.steps)
            all_cuts = list(cuts(lived.before, steps, chance, 2))
            for number, (done, files) in enumerate(all_cuts):
                state = digest(files)
                if state in states:
                    continue
                states.add(state)
                now = promised(steps, done)
                one = check(restored(quick_folder / f"{seed}-{life}-{number}", files), now, lived.known)
                torn += one.log.appended < now.appended
                check_again(one, now)
                shutil.rmtree(one.log.folder)
            done, files = chance.choice(all_cuts)
            reported = promised(steps, done)
            folder = restored(quick_folder / f"{seed} {life}", files)
            one = check(folder, reported, lived.known)
            # This opening is a life, too: what it has found counts from now on.
            reported = Reported(one.log.appended, one.log.appended, reported.checkpoint)
            known = {sequence: body for sequence, _, body in one.found}
            one.log.close()
            assert lived.one is not None
            lived.one.log.close()
    assert len(states) >= STATES
    assert torn > STATES // 10


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
