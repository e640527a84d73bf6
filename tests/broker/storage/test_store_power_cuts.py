"""Power cuts of a whole store: sessions, a group and a named queue, with rounds, files given back and compactions.

Each state is what a disk with a cache may have after a step. It is opened by the real recovery and compared with what
was promised: what was acknowledged to publishers is there, and what consumers had acknowledged in a turn that was
synced is not. Here are some; 2,000 and more:

    FANLIGHT_STORE_CUT_SEEDS=10 python -m pytest -s tests/broker/storage/test_store_power_cuts.py
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.broker.storage.power_cuts import RecordingDisk, cuts, restored, stored
from tests.broker.storage.test_live_marking import Run, many_steps
from tests.broker.storage.test_log_power_cuts import digest

SEEDS = int(os.environ.get("FANLIGHT_STORE_CUT_SEEDS", "0"))  # 0: one, and not all of its states
LIVES = 2
STEPS = 120  # of a life
SOME = 60  # states of a life

Sets = dict[str, set[bytes]]


@dataclass(frozen=True)
class Promised:
    """What was synced when the last turn ended, and what is there now: more was published, and some acknowledged."""

    synced: Sets
    now: Sets
    published: int


def copied(sets: Sets) -> Sets:
    return {name: set(each) for name, each in sets.items()}


class Life:
    """A broker over a store until the power fails."""

    def __init__(self, folder: Path, published: int) -> None:
        (folder / "0").mkdir(exist_ok=True)
        self.before = stored(folder / "0")
        self.run: Run | None = None
        self.disk = RecordingDisk(self.promise, lambda: False)
        self.run = Run(folder, disk=self.disk, published=published)
        self.synced = copied(self.run.expected)
        self.first = len(self.disk.steps)  # before, there is nobody whom something was promised

    def promise(self) -> Promised | None:
        if self.run is None:
            return None
        return Promised(self.synced, copied(self.run.expected), self.run.published)

    def live(self, steps: list[tuple[str, int, int]]) -> None:
        assert self.run is not None
        for what, who, count in steps:
            if what != "restart":
                self.run.act(what, who, count)
                self.synced = copied(self.run.expected)

    def end(self) -> None:
        assert self.run is not None
        self.run.world.log.close()


def check(folder: Path, files: dict[str, bytes], promised: Promised) -> tuple[int, int]:
    """Open what a power cut has left. Returns how many rounds and messages were lost, at most."""
    folder.mkdir()
    restored(folder / "0", files)
    one = Run(folder, published=promised.published)
    assert one.world.log.damage == []
    for name, found in one.expected.items():
        synced, now = promised.synced[name], promised.now[name]
        assert found >= synced & now, f"{name} has lost {sorted(each[:6] for each in (synced & now) - found)}"
        assert found <= synced | now, f"{name} has again {sorted(each[:6] for each in found - synced - now)}"
    assert one.world.store.pager is not None
    assert not one.world.store.pager.unreadable
    lost = sum(len(now - one.expected[name]) for name, now in promised.now.items())
    one.publish("s", 1)
    one.restart()  # it goes on
    floor = one.world.log.floor
    one.world.log.close()
    return floor, lost


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: hundreds of stores are made in it."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_what_was_acknowledged_survives_each_power_cut(quick_folder: Path) -> None:
    states = set[bytes]()
    floors = set[int]()
    compactions = lost = 0
    for seed in range(max(SEEDS, 1)):
        chance = Random(seed)
        folder, published = quick_folder / f"{seed}", 0
        folder.mkdir()
        for life in range(LIVES):
            lived = Life(folder, published)
            lived.live(many_steps(chance.randrange(1 << 30), STEPS))
            assert lived.run is not None
            compactions += lived.run.world.log.compactions
            steps = list(lived.disk.steps)
            possible = [each for each in cuts(lived.before, steps, chance, 1) if each[0] > lived.first]
            lived.end()
            if not SEEDS:
                possible = chance.sample(possible, SOME)
            for number, (done, files) in enumerate(possible):
                state = digest(files)
                if state in states:
                    continue
                states.add(state)
                promised = steps[done - 1].reported
                assert isinstance(promised, Promised)
                place = quick_folder / f"{seed}-{life}-{number}"
                floor, gone = check(place, files, promised)
                floors.add(floor)
                lost += gone
                shutil.rmtree(place)
            _, files = chance.choice(possible)
            published = lived.run.published
            folder = quick_folder / f"{seed} {life}"
            folder.mkdir()
            restored(folder / "0", files)
    assert len(states) >= max(SEEDS * 200, LIVES * SOME // 2)
    assert len(floors) > 3, "rounds were to be met"
    assert compactions > 0
    assert lost > 0, "nothing was torn"
    print(f"{len(states)} states, {len(floors)} floors, {compactions} compactions, {lost} messages not synced")
