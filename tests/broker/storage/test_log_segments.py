"""Segments: made ahead of time, given back when nothing in them is live, used again; and entries read by position."""

from pathlib import Path

import pytest

from fanlight_broker.storage.segments import LogError
from tests.broker.storage.disks import Broken, FaultyDisk
from tests.broker.storage.logs import FILLING, OpenLog, opened, reopened

SMALL = 8192  # a header and 4 KiB of entries
BODY = bytes(1500)  # two entries fill a segment


def files(one: OpenLog) -> list[str]:
    return sorted(path.name for path in one.log.folder.glob("log-*"))


def filled(folder: Path, messages: int, **options: object) -> OpenLog:
    """A log with an entry for each message, numbered from 1; two entries a segment."""
    one = opened(folder, segment_bytes=SMALL, **options)
    one.log.number_from(1)
    for number in range(1, messages + 1):
        one.log.append(1, b"%04d" % number + BODY)
        one.log.number += 1
        one.log.seal()
        one.work()
    return one


def test_files_are_made_ahead_of_time_and_used(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    assert files(one) == []
    one.log.prepare()
    assert len(files(one)) == 2
    assert all((tmp_path / name).read_bytes() == bytes(SMALL) for name in files(one))
    one.write(b"a")
    assert len(files(one)) == 2
    one.log.prepare()
    assert len(files(one)) == 3
    two = reopened(one, segment_bytes=SMALL)
    assert [body for _, _, body in two.found] == [b"a"]
    two.write(b"b")
    assert len(files(two)) == 3
    two.log.close()


def test_a_file_with_nothing_live_is_used_again_once_it_is_before_the_floor(tmp_path: Path) -> None:
    one = filled(tmp_path, 7)
    assert [(lot.first, lot.first_number) for lot in one.log.lots] == [(1, 1), (3, 3), (5, 5), (7, 7)]
    for number in (1, 3, 4, 5, 6, 7):
        one.log.live(number, 1)
    assert [lot.live for lot in one.log.lots] == [1, 2, 2, 1]
    one.log.live(3, -1)
    one.log.live(4, -1)
    assert one.log.reclaim() == 0
    one.raise_floor(4)
    assert one.log.reclaim() == 0  # the file has an entry that is replayed
    one.raise_floor(5)
    assert [lot.first for lot in one.log.lots] == [1, 5, 7, 8, 9, 10, 11]
    before = files(one)
    one.write(BODY, BODY)
    assert files(one) == before
    two = reopened(one, segment_bytes=SMALL)
    assert two.log.floor == 5
    assert [sequence for sequence, _, _ in two.found] == [5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert two.log.damage == []
    assert [lot.first for lot in two.log.lots] == [1, 5, 7, 8, 9, 10, 11, 12, 14]
    two.log.close()


def test_the_segment_that_is_written_is_never_given_back(tmp_path: Path) -> None:
    one = filled(tmp_path, 4)
    one.log.reclaim()
    one.log.raise_floor(4)
    one.write(BODY)  # a segment of its own
    one.raise_floor(5)
    assert [lot.first for lot in one.log.lots] == [5, 6, 7]
    one.log.raise_floor(7)
    one.entry(b"a")  # of the next lot, not written yet
    assert one.log.reclaim() == 0
    assert [lot.first for lot in one.log.lots] == [5, 6, 7, 8]
    one.work()
    one.write(bytes(FILLING), bytes(FILLING))
    assert [lot.first for lot in one.log.lots] == [7, 8, 10]
    two = reopened(one, segment_bytes=SMALL)
    assert [sequence for sequence, _, _ in two.found] == [7, 8, 9, 10]
    two.log.close()


def test_files_are_given_back_before_anything_was_written_and_while_the_disk_fails(tmp_path: Path) -> None:
    """The writer has no segment then."""
    one = filled(tmp_path, 6)
    one.raise_floor(5)
    broken = Broken()
    two = reopened(one, segment_bytes=SMALL, disk=FaultyDisk(broken))
    two.log.live(3, 1)
    assert two.log.reclaim() == 1
    broken.names = ("write",)
    two.entry(BODY)
    two.work()
    assert two.log.trouble is not None
    two.log.live(3, -1)
    assert two.log.reclaim() == 0  # what says that it has ended is not synced
    broken.names = ()
    two.entry(b"3 has ended")
    two.log.retry()
    two.work()
    assert two.log.trouble is None
    assert two.log.lots[0].first == 5
    two.log.close()
    assert [sequence for sequence, _, _ in opened(tmp_path, segment_bytes=SMALL).found] == [5, 6, 7, 8, 9, 10]


def test_a_message_of_the_open_entry_is_counted_where_the_entry_goes(tmp_path: Path) -> None:
    one = filled(tmp_path, 2)
    one.log.append(1, BODY)
    one.log.number += 1
    one.log.live(3, 2)
    assert [lot.live for lot in one.log.lots] == [0]
    one.log.seal()
    one.log.live(3, -1)
    one.log.live(2, 1)
    assert [lot.live for lot in one.log.lots] == [1, 1]
    one.log.close()


def test_old_entries_of_a_file_that_is_used_again_are_not_found(tmp_path: Path) -> None:
    one = filled(tmp_path, 3)
    one.log.reclaim()
    one.raise_floor(3)
    count = len(files(one))
    one.write(BODY)  # where a longer entry was: behind it, another of the old use is whole
    assert len(files(one)) == count
    two = reopened(one, segment_bytes=SMALL)
    assert [body[:5] for _, _, body in two.found] == [b"0003\0", bytes(5), bytes(5), bytes(5)]
    assert two.log.damage == []
    two.log.close()


def test_few_files_are_kept_for_later_and_the_others_removed(tmp_path: Path) -> None:
    one = filled(tmp_path, 40, spares=1)
    assert len(files(one)) == 20
    one.log.reclaim()
    one.raise_floor(40)
    one.log.prepare()
    assert len(files(one)) == 3 + 8 + 1  # in use; for as many entries again, but eight at most; and the spare one
    one.log.close()


def test_what_a_floor_gives_back_is_enough_until_the_next(tmp_path: Path) -> None:
    one = filled(tmp_path, 12, spares=1)
    one.log.reclaim()
    made = []
    for _ in range(5):
        one.raise_floor(one.log.synced)
        one.log.prepare()
        made.append(files(one))
        for _ in range(3):
            one.write(BODY, BODY)
            one.log.prepare()
    assert made[2] == made[3] == made[4]  # no file was made or removed
    one.log.close()


def test_a_longer_file_is_not_used_again(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    one.log.reclaim()
    one.write(bytes(20_000), b"a")
    one.raise_floor(2)
    one.log.prepare()
    assert {path.stat().st_size for path in tmp_path.glob("log-*")} == {SMALL}
    one.log.close()


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("floor", [None, 5, 6])
def test_a_message_is_found_by_its_number_and_an_entry_by_its_sequence(
    tmp_path: Path, reopen: bool, floor: int | None
) -> None:
    one = filled(tmp_path, 9)
    if floor is not None:
        one.raise_floor(floor)
    if reopen:
        one = reopened(one, segment_bytes=SMALL)
    reader = one.log.reader()
    for number in range(1, 10):
        for position in (one.log.locate(number), one.log.locate_entry(number)):
            reader.seek(position)
            while reader.next_entry() and reader.number != number:
                pass
            assert reader.sequence == number
            assert reader.records() == [(1, b"%04d" % number + BODY)]
            reader.seek(reader.position)
            assert reader.next_entry()
            assert reader.sequence == number
    one.log.close()


def test_small_entries_are_found_within_a_page(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=1 << 20)
    one.log.number_from(1)
    for _ in range(2000):
        one.log.append(1, b"12345")
        one.log.number += 1
        one.log.seal()
    one.work()
    reader = one.log.reader(4096)
    for number in range(1, 2001):
        reader.seek(one.log.locate(number))
        steps = 0
        while reader.next_entry() and reader.number != number:
            steps += 1
        assert reader.number == number
        assert steps <= 4096 // 40 + 1
    one.log.close()


def test_a_position_of_a_file_that_was_given_back_is_refused(tmp_path: Path) -> None:
    one = filled(tmp_path, 3)
    position = one.log.locate(1)
    reader = one.log.reader()
    reader.seek(position)
    one.log.reclaim()
    one.raise_floor(3)
    with pytest.raises(LogError, match="generation 1"):
        one.log.reader().seek(position)
    with pytest.raises(LogError, match="does not go back so far"):
        one.log.locate(1)
    one.log.close()


def test_a_damaged_entry_is_not_read(tmp_path: Path) -> None:
    one = filled(tmp_path, 2)
    path = tmp_path / "log-00000001"
    octets = bytearray(path.read_bytes())
    octets[4096 + 100] ^= 1
    path.write_bytes(octets)
    reader = one.log.reader()
    reader.seek(one.log.locate(1))
    with pytest.raises(LogError, match=r"log-00000001: damaged at byte 4096"):
        reader.next_entry()
    one.log.close()


def test_threads_make_files_and_use_them_again(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL, threaded=True)
    one.log.reclaim()
    for number in range(60):
        one.wait(one.entry(b"%d" % number + BODY))
        one.log.raise_floor(one.log.synced)
    assert len(files(one)) < 20
    two = reopened(one, segment_bytes=SMALL)
    assert [sequence for sequence, _, _ in two.found] == [59, 60]
    two.log.close()
