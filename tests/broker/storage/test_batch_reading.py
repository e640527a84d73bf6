"""Many messages are read in few pieces, and each is what it is, whatever is damaged around it."""

import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.storage.disk import PythonDisk
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.wanted import Wanted
from tests.broker.storage.logs import opened
from tests.broker.storage.test_log_damage import flip
from tests.broker.storage.test_segment_index import SEGMENT, filled

MANY = [[200] * 20 for _ in range(150)]  # 3,000 messages in entries of about 4 KiB: 11 files


class CountingDisk(PythonDisk):
    """Counts what is read, once `reads` is a list: (descriptor, offset, bytes)."""

    reads: list[tuple[int, int, int]] | None = None

    def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
        if name == "read" and self.reads is not None and isinstance(path, int) and isinstance(data, int):
            self.reads.append((path, offset, data))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, bytes]]:
    folder = tmp_path_factory.mktemp("many")
    one, bodies = filled(folder, MANY)
    one.log.close()
    return folder, bodies


@pytest.mark.parametrize(
    ("numbers", "reads", "octets"),
    [
        (range(1, 3001), 11, 700_000),  # one for each file
        (range(1, 3001, 11), 11, 700_000),
        (range(1, 3001, 20), 11, 700_000),
        (range(1, 3001, 300), 10, 60_000),  # an entry each
        ([1500], 1, 6_000),
        ([], 0, 0),
    ],
)
def test_what_lies_together_is_read_at_once(
    many: tuple[Path, dict[int, bytes]], tmp_path: Path, numbers: range, reads: int, octets: int
) -> None:
    folder, bodies = many
    disk = CountingDisk()
    one = opened(Path(shutil.copytree(folder, tmp_path / "copy")), segment_bytes=SEGMENT, disk=disk)
    reader = MessageReader(one.log)
    reader.read(numbers)  # which reads the indexes, too
    disk.reads = []
    assert reader.read(numbers) == {number: bodies[number] for number in numbers}
    assert reader.damage == []
    assert len(disk.reads) == reads
    assert sum(size for _, _, size in disk.reads) <= octets
    one.log.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3020), max_size=40), st.lists(st.integers(4096, SEGMENT - 1), max_size=6))
def test_together_is_the_same_as_one_after_another(
    many: tuple[Path, dict[int, bytes]], tmp_path_factory: pytest.TempPathFactory, numbers: list[int], flips: list[int]
) -> None:
    folder, bodies = many
    copy = Path(shutil.copytree(folder, tmp_path_factory.mktemp("copies") / "copy"))
    for at, offset in enumerate(flips):
        flip(copy / f"log-0000000{at % 9 + 1}", offset)
    one = opened(copy, segment_bytes=SEGMENT)
    together, alone = MessageReader(one.log), MessageReader(one.log)
    found = together.read(set(numbers))
    lost = dict(together.damage)
    assert found.keys() | lost.keys() == set(numbers)
    assert list(found) == sorted(found)
    for number in set(numbers):
        assert alone.read([number]) == ({number: bodies[number]} if number in found else {})
        assert bool(alone.damage) == (number in lost)
    assert flips or lost.keys() == {number for number in numbers if number not in bodies}
    one.log.close()


def test_messages_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    sizes = [[Random(n).choice([100, 70_000, 3 << 20])] for n in range(12)] + [[5 << 20], [100]]
    one, bodies = filled(tmp_path, sizes)
    reader = MessageReader(one.log)
    assert reader.read(bodies) == bodies
    assert reader.damage == []
    one.log.close()


def test_what_is_wanted_next_is_announced_and_not_read(many: tuple[Path, dict[int, bytes]], tmp_path: Path) -> None:
    folder, bodies = many
    disk = CountingDisk()
    one = opened(Path(shutil.copytree(folder, tmp_path / "copy")), segment_bytes=SEGMENT, disk=disk)
    reader = MessageReader(one.log)
    reader.read(bodies)  # which reads the indexes, too
    disk.reads = []
    wanted, soon = Wanted([3, 1, 3, 2000]), Wanted([2500, 2501, 4000, 2600])
    reader.messages(wanted, {}, 0.0, soon)
    assert len(disk.reads) == 2
    assert [number for number, _ in reader.damage] == [1, 3, 2000], "bodies that are no messages"
    assert soon.length == 4
    assert soon.message(2500) is None
    one.log.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(4_000, 2**63) | st.integers(4_000, 4_300), max_size=60))
def test_what_is_wanted_is_read_in_order_and_each_once(
    many: tuple[Path, dict[int, bytes]], tmp_path_factory: pytest.TempPathFactory, numbers: list[int]
) -> None:
    one = opened(Path(shutil.copytree(many[0], tmp_path_factory.mktemp("copies") / "copy")), segment_bytes=SEGMENT)
    reader, wanted = MessageReader(one.log), Wanted(numbers)
    assert wanted.first(len(numbers)) == numbers
    reader.messages(wanted, {}, 0.0)
    assert [number for number, _ in reader.damage] == sorted(set(numbers)), "the log has none of them"
    assert wanted.length == len(set(numbers))
    one.log.close()
