"""The index of a segment is read from its file in place of a walk; whatever it has, messages are what they are."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.storage.crc32c import crc32c
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.segment_header import header_of, read_page
from fanlight_broker.storage.segment_index import index_fault, index_path
from tests.broker.storage.disks import FaultyDisk, Nth
from tests.broker.storage.logs import OpenLog, bitmap, opened
from tests.broker.storage.test_log_damage import flip

SEGMENT = 64 << 10
Sizes = list[list[int]]  # of the bodies of messages, by entry


def body(number: int, size: int) -> bytes:
    return number.to_bytes(8, "little") + Random(number).randbytes(size)


def filled(folder: Path, sizes: Sizes, **options: object) -> tuple[OpenLog, dict[int, bytes]]:
    """Messages that all are live, in segments before the floor; two more entries."""
    one = opened(folder, segment_bytes=SEGMENT, **options)
    one.log.number_from(1)
    bodies: dict[int, bytes] = {}
    for entry in sizes:
        for size in entry:
            bodies[one.log.number] = body(one.log.number, size)
            one.log.append(1, bodies[one.log.number])
            one.log.live(one.log.number, 1)
            one.log.number += 1
        one.log.seal()
        one.work()
    one.write(bytes(SEGMENT))  # begins a segment
    one.log.raise_floor(one.log.synced)
    one.write(bytes(3000), bytes(SEGMENT), bytes(SEGMENT))  # two headers have the floor
    one.log.reclaim()
    one.log.prepare()
    return one, bodies


def some(count: int = 90) -> Sizes:
    return [[Random(n).randrange(4000) for _ in range(n % 3 + 1)] for n in range(count)]


def before_floor(one: OpenLog | Log) -> Iterator[Path]:
    log = one if isinstance(one, Log) else one.log
    for segment in log.files()[0]:
        if segment.bodies or (segment.first_number and segment.first < log.floor):
            yield segment.path


def places(folder: Path) -> tuple[dict[Path, list[tuple[int, int, int]]], int, int]:
    """What a log that was just opened has noted of what it does not replay; how many indexes were read, and made."""
    log = Log(folder, lambda: None, threaded=False, segment_bytes=SEGMENT, read_only=True)
    for _ in log.scan():
        pass
    paths = set(before_floor(log))
    for segment in log.files()[0]:
        if segment.path in paths:
            log.locate(segment.range_first if segment.bodies else segment.first_number)
    found = {segment.path: segment.places for segment in log.files()[0] if segment.path in paths}
    assert log.index_faults == []
    log.close()
    return found, log.indexes_read, log.indexes_walked


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9_000), min_size=1, max_size=5), min_size=1, max_size=60), st.data())
def test_what_is_read_is_what_a_walk_finds(
    tmp_path_factory: pytest.TempPathFactory, sizes: Sizes, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    one, bodies = filled(folder, sizes)
    noted = {segment.path: segment.places for segment in one.log.files()[0]}
    one.log.close()
    read, count, walked = places(folder)
    assert read
    assert (count, walked) == (len(read), 0)
    for path in read:
        assert index_fault(path) is None
        index_path(path).unlink()
    assert places(folder) == (read, 0, len(read))
    assert {path: noted[path] for path in read} == read
    again = opened(folder, segment_bytes=SEGMENT)
    wanted = data.draw(st.lists(st.sampled_from(sorted(bodies)), max_size=20, unique=True))
    assert MessageReader(again.log).read(wanted) == {number: bodies[number] for number in sorted(wanted)}
    again.log.close()


def test_a_file_of_bodies_has_an_index(tmp_path: Path) -> None:
    one, bodies = filled(tmp_path, some())
    live = {number for number in bodies if number % 9 == 0}
    for number in bodies.keys() - live:
        one.log.live(number, -1)
    one.write(b"they have ended")
    found = one.log.sparse()
    assert found is not None
    assert one.log.compact(*found, bitmap(*found, live))
    one.log.prepare()
    assert one.log.compactions == 1
    (made,) = (segment for segment in one.log.files()[0] if segment.bodies)
    noted = made.places
    assert len(noted) > 1
    one.log.close()
    read, _, walked = places(tmp_path)
    assert read[made.path] == noted
    assert walked == 0
    index_path(made.path).unlink()
    again, _, walked = places(tmp_path)
    assert again == read
    assert walked == 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, bytes]]:
    folder = tmp_path_factory.mktemp("whole")
    one, bodies = filled(folder, some())
    one.log.close()
    return folder, bodies


def all_there(folder: Path, bodies: dict[int, bytes]) -> list[str]:
    """All messages are what they are. Returns what was wrong with indexes, which are right afterwards."""
    one = opened(folder, segment_bytes=SEGMENT)
    reader = MessageReader(one.log)
    assert reader.read(bodies) == bodies
    assert reader.damage == []
    faults = list(one.log.index_faults)
    one.log.prepare()
    assert one.log.unindexed is None
    assert all(index_path(path).exists() and index_fault(path) is None for path in before_floor(one))
    one.log.close()
    two = opened(folder, segment_bytes=SEGMENT)
    assert MessageReader(two.log).read(bodies) == bodies
    assert (two.log.indexes_walked, two.log.index_faults) == (0, [])
    two.log.close()
    return faults


def test_a_flipped_bit_is_found_and_the_segment_is_walked(whole: tuple[Path, dict[int, bytes]], tmp_path: Path) -> None:
    folder, bodies = whole
    path = folder / "index-00000001"
    chance = Random(7)
    for offset in [*range(0, 72, 5), *chance.sample(range(512, path.stat().st_size), 10)]:
        copy = Path(shutil.copytree(folder, tmp_path / f"{offset}"))
        flip(copy / path.name, offset)
        fault = index_fault(copy / "log-00000001")
        assert fault is not None
        assert fault.path == copy / path.name
        assert (0 if offset < 512 else 512) <= fault.offset <= offset
        assert str(fault).startswith(f"{copy / path.name}: damaged at byte ")
        (said,) = all_there(copy, bodies)
        assert said.startswith(f"{copy / path.name}: damaged at byte ")


@pytest.mark.parametrize("size", [0, 30, 512, 530])
def test_a_file_that_was_cut_off_is_made_again(
    whole: tuple[Path, dict[int, bytes]], tmp_path: Path, size: int
) -> None:
    folder, bodies = whole
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    path = copy / "index-00000001"
    path.write_bytes(path.read_bytes()[:size])
    assert len(all_there(copy, bodies)) == (size > 0)


def test_a_store_without_indexes_opens_and_gets_them(whole: tuple[Path, dict[int, bytes]], tmp_path: Path) -> None:
    folder, bodies = whole
    copy = Path(shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("index-*")))
    assert all_there(copy, bodies) == []


def test_an_index_of_another_use_of_the_file_is_passed_over(
    whole: tuple[Path, dict[int, bytes]], tmp_path: Path
) -> None:
    folder, bodies = whole
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    shutil.copyfile(copy / "index-00000003", copy / "index-00000001")
    assert index_fault(copy / "log-00000001") is None
    assert all_there(copy, bodies) == []


@pytest.mark.parametrize("change", [(0, 3, 0), (0, 0, 200), (40, 0, 0), (0, 0, 1)])
def test_an_index_that_is_wrong_with_right_checksums_serves_no_wrong_message(
    whole: tuple[Path, dict[int, bytes]], tmp_path: Path, change: tuple[int, int, int]
) -> None:
    folder, bodies = whole
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    page = header_of(read_page(copy / "log-00000001"))
    assert page is not None
    path = copy / "index-00000001"
    octets = bytearray(path.read_bytes())
    at = 515  # the second place: the first is where the segment begins
    values, end = [], at
    for _ in range(3):
        value, end = read_varint(octets, end)
        values.append(value)
    octets[at:end] = b"".join(varint(value + by) for value, by in zip(values, change, strict=True))
    octets[60:64] = (len(octets) - 512).to_bytes(4, "little")
    octets[64:68] = crc32c(bytes(octets[512:]), crc32c(page.whole[16:32])).to_bytes(4, "little")
    octets[12:16] = crc32c(bytes(octets[16:72])).to_bytes(4, "little")
    path.write_bytes(octets)
    fault = index_fault(copy / "log-00000001")
    assert fault is not None
    assert fault.offset == at
    one = opened(copy, segment_bytes=SEGMENT)
    for number, expected in bodies.items():
        assert MessageReader(one.log).read([number]) == {number: expected}
    one.log.close()


def varint(value: int) -> bytes:
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def read_varint(octets: bytes | bytearray, at: int) -> tuple[int, int]:
    value = shift = 0
    while octets[at] & 0x80:
        value |= (octets[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | octets[at] << shift, at + 1


def test_indexes_past_the_bound_are_dropped_and_read_again(
    whole: tuple[Path, dict[int, bytes]], tmp_path: Path
) -> None:
    folder, bodies = whole
    one = opened(Path(shutil.copytree(folder, tmp_path / "copy")), segment_bytes=SEGMENT)
    one.log.prepare()
    one.log.index_bytes_max = 0
    reader = MessageReader(one.log)
    for _ in range(2):
        for number, expected in bodies.items():
            assert reader.read([number]) == {number: expected}
        one.log.locate(1)
        files = set(before_floor(one))
        assert sum(segment.index_bytes > 0 for segment in one.log.files()[0] if segment.path in files) == 1
    assert one.log.indexes_read > 2 * len(files) - 2
    assert one.log.indexes_walked == 0
    one.log.close()


def test_an_index_goes_with_its_segment(tmp_path: Path) -> None:
    one, bodies = filled(tmp_path, some(300))  # more files than are kept for their next use
    files = list(before_floor(one))
    assert all(index_path(path).exists() for path in files)
    for number in bodies:
        one.log.live(number, -1)
    one.write(b"they have ended")
    one.log.prepare()
    left = {path.name for path in tmp_path.glob("log-*")}
    assert not {path.name for path in files} <= left
    assert {path.name.replace("index", "log") for path in tmp_path.glob("index-*")} <= left
    one.log.close()
    (tmp_path / "index-00000099").write_bytes(b"x")
    two = opened(tmp_path, segment_bytes=SEGMENT)
    two.log.prepare()
    assert not (tmp_path / "index-00000099").exists()
    two.log.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_index_that_cannot_be_written_costs_nothing(
    whole: tuple[Path, dict[int, bytes]], tmp_path: Path, error: int
) -> None:
    folder, bodies = whole
    bare = Path(shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("index-*")))
    failures, most = 0, 5 * len(places(bare)[0])  # create, write, sync, header, sync
    while True:
        disk = FaultyDisk()
        one = opened(Path(shutil.copytree(bare, tmp_path / f"{failures}")), segment_bytes=SEGMENT, disk=disk)
        one.log.prepare()
        reader = MessageReader(one.log)
        assert reader.read(bodies) == bodies
        written = one.log.indexes_written
        disk.fails = Nth(failures, 1, error)
        one.log.prepare()
        if not disk.failed:
            break
        failures += 1
        assert one.log.unindexed is not None
        assert one.log.unindexed.errno == error
        disk.fails = Nth(0, 0)
        assert reader.read(bodies) == bodies
        one.log.prepare()
        assert one.log.unindexed is None
        assert one.log.indexes_written > written or failures == most
        assert all(index_path(path).exists() and index_fault(path) is None for path in before_floor(one))
        one.log.close()
    assert failures == most
    one.log.close()
