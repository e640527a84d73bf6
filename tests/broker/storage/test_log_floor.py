"""The floor: what is before it is never replayed, whatever files still have it."""

from pathlib import Path

import pytest

from fanlight_broker.storage.crc32c import crc32c
from fanlight_broker.storage.disk import PythonDisk
from fanlight_broker.storage.waiting_numbers import WaitingNumbers
from tests.broker.storage.logs import OpenLog, opened, read, reopened
from tests.broker.storage.test_log_damage import flip

SMALL = 8192  # a header and 4 KiB of entries
BODY = bytes(1500)  # two entries fill a segment


def filled(folder: Path, messages: int) -> OpenLog:
    """A log with an entry for each message, numbered from 1; two entries a segment, and one a group."""
    one = opened(folder, segment_bytes=SMALL)
    one.log.number_from(1)
    one.log.reclaim()
    for number in range(1, messages + 1):
        one.log.append(1, b"%04d" % number + BODY)
        one.log.number += 1
        one.log.seal()
        one.work()
    return one


def again(one: OpenLog) -> OpenLog:
    return reopened(one, segment_bytes=SMALL)


def sequences(one: OpenLog) -> list[int]:
    return [sequence for sequence, _, _ in one.found]


def old_bytes(folder: Path) -> list[bytes]:
    """Numbers of the messages that are in the files, in whatever use of them."""
    found = (path.read_bytes() for path in folder.glob("log-*"))
    return [b"%04d" % number for octets in found for number in range(1, 100) if b"%04d\0" % number in octets]


def test_the_replay_begins_at_the_floor(tmp_path: Path) -> None:
    one = filled(tmp_path, 5)
    assert one.log.floor == 0
    one.log.raise_floor(4)
    assert one.log.floor == 4
    one.write(b"a")
    two = again(one)
    assert (two.log.floor, sequences(two)) == (4, [4, 5, 6])
    two.log.close()


def test_a_floor_is_synced_and_never_lower_than_before(tmp_path: Path) -> None:
    one = filled(tmp_path, 5)
    one.entry(b"a")
    with pytest.raises(ValueError, match="entry 5 is synced: it cannot be 6"):
        one.log.raise_floor(6)
    one.log.raise_floor(4)
    one.log.raise_floor(4)
    with pytest.raises(ValueError, match="the floor is 4"):
        one.log.raise_floor(3)
    one.log.close()


def test_what_was_given_back_and_is_not_used_again_does_not_come_back(tmp_path: Path) -> None:
    """Its files are whole, and one in their midst is another's by now: a gap behind entries that nobody may see."""
    one = filled(tmp_path, 10)
    one.raise_floor(9)
    assert [lot.first for lot in one.log.lots] == [9, 11, 12]
    assert {b"0001", b"0003", b"0005"} <= set(old_bytes(tmp_path))
    one.write(BODY, BODY, BODY)
    for _ in range(3):
        one = again(one)
        assert sequences(one)[0] == 9
        assert one.log.damage == []
        one.write(BODY)
    assert old_bytes(tmp_path)[:1] < [b"0009"]
    one.log.close()


def test_a_floor_that_no_header_says_is_not_known_any_more_and_no_file_is_given_back_for_it(tmp_path: Path) -> None:
    one = filled(tmp_path, 6)
    one.log.raise_floor(5)
    assert one.log.reclaim() == 0
    two = again(one)
    assert (two.log.floor, sequences(two)) == (0, [1, 2, 3, 4, 5, 6])
    two.log.close()


def test_files_are_given_back_once_two_headers_say_what_the_floor_is(tmp_path: Path) -> None:
    one = filled(tmp_path, 6)
    one.log.raise_floor(5)
    one.write(b"a")
    assert [lot.first for lot in one.log.lots] == [1, 3, 5, 7]
    two = again(one)
    two.log.reclaim()
    assert [lot.first for lot in two.log.lots] == [1, 3, 5, 7, 8]
    two.write(b"b")
    assert [lot.first for lot in two.log.lots] == [5, 7, 8]
    two.log.close()


def test_a_segment_is_filled_first_if_its_floor_frees_nothing(tmp_path: Path) -> None:
    """With a backlog that only grows, the rest of a segment was lost with each round."""
    one = opened(tmp_path, segment_bytes=65536)
    one.log.number_from(1)
    one.log.reclaim()
    for number in range(1, 7):  # four a segment
        one.log.append(1, b"%04d" % number + bytes(15_000))
        one.log.live(number, 1)
        one.log.number += 1
        one.log.seal()
        one.work()
    one.log.raise_floor(6)
    one.write(b"a")
    assert [lot.first for lot in one.log.lots] == [1, 5]
    for number in range(1, 5):
        one.log.live(number, -1)
    one.write(b"they have ended", b"and that is synced")
    assert [lot.first for lot in one.log.lots] == [1, 5, 9], "a header gets the floor: a file is free"
    one.write(b"b")
    assert [lot.first for lot in one.log.lots] == [1, 5, 9]
    one.log.close()


def test_little_of_a_segment_is_lost_to_have_the_floor_in_a_header(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=65536)
    one.log.reclaim()
    one.write(bytes(30_000))
    one.log.raise_floor(1)
    one.write(bytes(28_000))
    assert len(one.log.lots) == 1
    one.log.raise_floor(2)
    one.write(b"a")
    assert len(one.log.lots) == 2
    one.log.close()


def test_a_file_is_given_back_once_it_is_synced_that_its_last_message_has_ended(tmp_path: Path) -> None:
    """Else the log has it after a kill, and says that it waits, and its file is another's by now."""
    one = filled(tmp_path, 6)
    one.log.live(1, 1)
    one.raise_floor(5)
    assert [lot.first for lot in one.log.lots] == [1, 5, 7, 8]
    one.log.live(1, -1)
    assert one.log.reclaim() == 0
    one.entry(b"1 has ended")
    one.log.collect()
    assert one.log.reclaim() == 0
    assert read(one, 1) == b"0001" + BODY
    one.work()
    assert [lot.first for lot in one.log.lots] == [5, 7, 8]
    one.log.close()


def test_what_had_ended_before_a_restart_is_synced(tmp_path: Path) -> None:
    one = filled(tmp_path, 6)
    one.log.live(1, 1)
    one.raise_floor(5)
    two = again(one)
    two.log.live(1, 1)
    two.log.live(1, -1)
    two.log.reclaim()
    assert two.log.lots[0].first == 5
    two.log.close()


@pytest.mark.parametrize("lost", [7, 8])
def test_one_header_that_cannot_be_read_takes_no_floor_away(tmp_path: Path, lost: int) -> None:
    one = filled(tmp_path, 6)
    one.raise_floor(5)  # files 1 and 2 were given back, the entries 7 and 8 have a file each
    one.log.close()
    (path,) = [path for path in tmp_path.glob("log-*") if path.read_bytes()[4096 + 8] == lost]
    for copy in (0, 2048):
        flip(path, copy + 32)
    two = opened(tmp_path, segment_bytes=SMALL)
    assert two.log.floor == 5
    assert sequences(two) == [each for each in (5, 6, 7, 8) if each != lost]
    assert "both copies of the header" in str(two.log.damage[0])
    two.log.close()


def test_if_the_only_header_with_the_floor_cannot_be_read_everything_is_still_there(tmp_path: Path) -> None:
    one = filled(tmp_path, 6)
    one.raise_floor(3)
    one.log.raise_floor(5)
    one.write(b"a")
    one.log.close()
    (path,) = [path for path in tmp_path.glob("log-*") if path.read_bytes()[32] == 5]
    for copy in (0, 2048):
        flip(path, copy + 12)
    two = opened(tmp_path, segment_bytes=SMALL)
    assert (two.log.floor, sequences(two)) == (3, [3, 4, 5, 6, 7, 8])
    assert [str(each) for each in two.log.damage] == [f"{path}: damaged at byte 0: both copies of the header"]
    two.log.close()


@pytest.mark.parametrize("group", [False, True])
def test_that_the_floor_is_missing_is_damage(tmp_path: Path, group: bool) -> None:
    """Even if the entries behind it cannot prove that it was synced: the header does."""
    one = filled(tmp_path, 4)
    for _ in range(2):
        one.entry(b"round" + BODY)
        if not group:
            one.work()
    one.work()
    one.log.raise_floor(5)
    one.write(b"a")
    one.log.close()
    (path,) = [path for path in tmp_path.glob("log-*") if path.read_bytes()[4096 + 8] == 5]
    flip(path, 4096 + 40)
    two = opened(tmp_path, segment_bytes=SMALL)
    assert [(each.path, each.first, each.last) for each in two.log.damage] == [(path, 5, 5)]
    assert sequences(two) == [6, 7]
    two.log.close()


def test_that_nothing_is_at_the_floor_or_behind_it_is_damage_and_older_messages_are_kept(tmp_path: Path) -> None:
    one = filled(tmp_path, 4)
    one.log.live(2, 1)
    one.log.raise_floor(4)
    one.write(BODY)
    one.log.close()
    flip(tmp_path / "log-00000002", 4096 + 1536 + 40)  # entry 4
    flip(tmp_path / "log-00000003", 4096 + 33)  # entry 5
    two = opened(tmp_path, segment_bytes=SMALL)
    assert [(each.first, each.last) for each in two.log.damage] == [(4, 4)]
    assert two.found == []
    two.log.live(2, 1)
    two.log.reclaim()
    assert read(two, 2) == b"0002" + BODY
    assert two.entry(b"new") == 4
    two.log.close()


class Counting(PythonDisk):
    """Counts the bytes that are read of each file."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.read: dict[str, int] = {}

    def opened(self, path: bytes, fd: int) -> None:
        self.names[fd] = Path(path.decode()).name

    def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
        if name == "read" and isinstance(path, int) and isinstance(data, int):
            self.read[self.names[path]] = self.read.get(self.names[path], 0) + data


def test_segments_before_the_floor_are_not_read_until_a_message_is_asked_for(tmp_path: Path) -> None:
    one = filled(tmp_path, 8)
    for number in range(1, 9):
        one.log.live(number, 1)
    one.raise_floor(7)
    one.log.close()
    disk = Counting()
    two = opened(tmp_path, segment_bytes=SMALL, disk=disk)
    for name in ("log-00000001", "log-00000002", "log-00000003"):
        assert disk.read[name] == 2 * 4096  # the header, and the first entry
    assert read(two, 4) == b"0004" + BODY
    assert disk.read["log-00000001"] == disk.read["log-00000003"] == 2 * 4096
    assert [read(two, number)[:4] for number in range(1, 9)] == [b"%04d" % number for number in range(1, 9)]
    two.log.close()


def test_of_a_segment_before_the_floor_with_a_damaged_beginning_the_rest_is_found(tmp_path: Path) -> None:
    one = filled(tmp_path, 8)
    one.log.live(4, 1)
    one.raise_floor(7)
    one.log.close()
    flip(tmp_path / "log-00000002", 4096 + 100)
    two = opened(tmp_path, segment_bytes=SMALL)
    assert two.log.damage == []  # of entries that are not replayed
    assert read(two, 4) == b"0004" + BODY
    two.log.close()


def test_numbers_go_on_where_they_were_if_nothing_behind_the_floor_has_one(tmp_path: Path) -> None:
    one = filled(tmp_path, 5)
    one.write(b"round")
    one.raise_floor(6)
    two = again(one)
    two.log.number_from(1)
    assert two.log.number == 6
    two.log.number_from(9)
    assert two.log.number == 9
    two.log.close()


def test_a_folder_from_before_there_were_floors_is_read(tmp_path: Path) -> None:
    one = filled(tmp_path, 3)
    one.log.close()
    for path in tmp_path.glob("log-*"):
        octets = bytearray(path.read_bytes())
        octets[12:16] = crc32c(bytes(octets[:12] + octets[16:32])).to_bytes(4, "little")
        octets[2048:4096] = octets[:2048]
        path.write_bytes(octets)
    two = opened(tmp_path, segment_bytes=SMALL)
    assert (two.log.floor, sequences(two), two.log.damage) == (0, [1, 2, 3], [])
    two.log.close()


def test_what_waits_is_counted_as_if_each_number_were_counted_alone(tmp_path: Path) -> None:
    """Runs within one lot, over several, and of the last, to which the next message goes."""
    waiting, alone = WaitingNumbers(), filled(tmp_path / "alone", 7)
    for number in (1, 3, 4, 5, 7):
        waiting.add(number, 1, 10)
        alone.log.live(number, 1)
    whole = filled(tmp_path / "whole", 7)
    waiting.count_live(whole.log)
    assert [lot.live for lot in whole.log.lots] == [lot.live for lot in alone.log.lots] == [1, 2, 1, 1]
