"""Compaction: what is left of sparse files is copied into one, and nothing is lost on the way."""

import errno
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fanlight_broker.storage.disk import Disk, PythonDisk
from fanlight_broker.storage.message_reader import MessageReader
from tests.broker.storage.disks import FaultyDisk, Nth
from tests.broker.storage.logs import OpenLog, bitmap, opened, reopened
from tests.broker.storage.test_log_damage import flip

SMALL = 8192  # a header and 4 KiB of entries
FOUR = bytes(900)  # as many of such messages fill a segment
LIVE = {2, 7, 9, 10, 11, 14, 27}  # 1, 1, 3, 1, 0, 0 and 1 of the four in a segment


def message(number: int) -> bytes:
    return number.to_bytes(8, "little") + b"%04d" % number + FOUR


def filled(folder: Path, messages: int = 28, live: Iterable[int] = LIVE, **options: object) -> OpenLog:
    """Messages numbered from 1, one an entry, of which some are live; and the floor behind them."""
    one = opened(folder, segment_bytes=SMALL, **options)
    one.log.number_from(1)
    for number in range(1, messages + 1):
        one.log.append(1, message(number))
        one.log.number += 1
        one.log.append(2, b"a record that is needed no more")
        one.log.seal()
        one.work()
    for number in live:
        one.log.live(number, 1)
    one.write(bytes(4000), b"round")
    one.raise_floor(messages + 2)
    one.log.reclaim()
    return one


def again(one: OpenLog, live: Iterable[int] = LIVE, disk: Disk | None = None) -> OpenLog:
    two = reopened(one, segment_bytes=SMALL, disk=disk)
    for number in live:
        two.log.live(number, 1)
    two.log.reclaim()
    return two


def compact(one: OpenLog, live: Iterable[int] = LIVE) -> tuple[int, int] | None:
    """What `sparse` names, by hand."""
    found = one.log.sparse()
    if found is not None:
        assert one.log.compact(*found, bitmap(*found, live))
        one.log.prepare()
    return found


def all_there(one: OpenLog, live: Iterable[int] = LIVE) -> bool:
    reader = MessageReader(one.log)
    return reader.read(live) == {number: message(number) for number in live} and reader.damage == []


def lots(one: OpenLog) -> list[tuple[int, int]]:
    return [(lot.first_number, lot.live) for lot in one.log.lots if lot.live]


def used_bytes(one: OpenLog) -> int:
    return sum(segment.capacity for segment in one.log.files()[0])


def test_what_is_left_of_sparse_files_is_copied_into_one(tmp_path: Path) -> None:
    one = filled(tmp_path)
    assert lots(one) == [(1, 1), (5, 1), (9, 3), (13, 1), (25, 1)]
    before = used_bytes(one)
    assert compact(one) == (1, 9)
    assert lots(one) == [(1, 2), (9, 3), (13, 1), (25, 1)]
    assert compact(one) == (13, 29)  # what was in between has nothing live
    assert lots(one) == [(1, 2), (9, 3), (13, 2)]
    assert one.log.sparse() is None
    assert (one.log.compactions, one.log.compactions_given_up, one.log.body_segments) == (2, 0, 3)
    assert all_there(one)
    assert used_bytes(one) < before - 2 * SMALL
    one.log.close()


def test_after_a_restart_messages_are_found_where_they_were_put(tmp_path: Path) -> None:
    one = filled(tmp_path)
    while compact(one):
        pass
    found = lots(one)
    for _ in range(2):
        one = again(one)
        assert lots(one) == found
        assert [sequence for sequence, _, _ in one.found][:1] == [30]
        assert one.log.damage == []
        assert all_there(one)
    one.log.live(2, -1)
    one.log.live(7, -1)
    one.write(b"a")
    assert lots(one) == found[1:]
    assert one.log.sparse() is None
    one.log.close()


def test_a_file_that_was_compacted_is_compacted_again(tmp_path: Path) -> None:
    live = {number for number in range(1, 81) if number % 4 == 0}
    one = filled(tmp_path, 80, live)
    assert compact(one, live) == (1, 81)
    for number in live - {8, 12}:
        one.log.live(number, -1)
    live = {8, 12}
    assert compact(one, live) == (1, 81)
    assert lots(one) == [(1, 2)]
    one = again(one, live)
    assert lots(one) == [(1, 2)]
    assert all_there(one, live)
    one.log.close()


def test_files_with_little_in_them_are_merged(tmp_path: Path) -> None:
    full = {number for number in range(1, 41) if (number - 1) // 4 % 2}
    live = {1, 9, 17, 25, 33}
    one = filled(tmp_path, 40, full | live)
    for first in sorted(live):
        assert compact(one, full | live) == (first, first + 4)
    assert one.log.sparse() is None
    for number in full:
        one.log.live(number, -1)
    one.write(b"they have ended")
    assert lots(one) == [(first, 1) for first in sorted(live)]
    assert compact(one, live) == (1, 41)
    assert lots(one) == [(1, 5)]
    assert one.log.sparse() is None
    assert all_there(one, live)
    one.log.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_compaction_that_fails_at_any_step_is_given_up_and_tried_again_later(
    tmp_path_factory: pytest.TempPathFactory, error: int
) -> None:
    failures = 0
    while True:
        disk = FaultyDisk()
        one = filled(tmp_path_factory.mktemp("log"), disk=disk)
        one.log.prepare()
        before = lots(one)
        found = one.log.sparse()
        assert found is not None
        assert one.log.compact(*found, bitmap(*found, LIVE))
        disk.fails = Nth(failures, 1, error)
        try:
            one.log.prepare()
        except OSError:
            raise AssertionError("a compaction has failed, and it was said to be the files made ahead") from None
        if not disk.failed or one.log.unindexed is not None:
            break  # the file is there, perhaps without an index: test_segment_index.py
        failures += 1
        disk.fails = Nth(0, 0)
        assert one.log.compactions_given_up == 1
        assert isinstance(one.log.uncompacted, OSError)
        assert lots(one) == before
        assert one.log.sparse() is None  # not at once
        assert all_there(one)
        one.log.prepare()
        one = again(one, disk=disk)
        assert lots(one) == before
        assert all_there(one)
        assert compact(one) == found
        assert one.log.compactions == 1
        assert all_there(again(one))
    assert failures >= 5  # create, write, sync, names, header, sync
    assert one.log.compactions == 1


def test_it_is_tried_again_once_a_segment_begins(tmp_path: Path) -> None:
    one = filled(tmp_path)
    flip(tmp_path / "log-00000001", 4096 + 980 + 60)  # message 2
    assert compact(one) == (1, 9)
    assert str(one.log.uncompacted) == "of 2 messages only 1 are whole"
    assert one.log.sparse() is None
    assert all_there(one, LIVE - {2})
    one.log.live(2, -1)  # it was reported and dropped
    one.write(bytes(3000))
    assert compact(one, LIVE - {2}) is not None
    assert (one.log.compactions, one.log.compactions_given_up) == (1, 1)
    assert all_there(one, LIVE - {2})
    one.log.close()


class Hooked(PythonDisk):
    """Calls `hook` before the next read."""

    hook: Callable[[], object] | None = None

    def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
        if name == "read" and self.hook is not None:
            hook, self.hook = self.hook, None
            hook()


def test_what_is_read_while_its_file_is_replaced_and_used_again_is_found_in_the_new_one(tmp_path: Path) -> None:
    disk = Hooked()
    one = filled(tmp_path, disk=disk)
    found = one.log.sparse()
    assert found is not None
    one.log.compact(*found, bitmap(*found, LIVE))

    def replace() -> None:
        one.log.prepare()
        assert one.log.compactions == 1
        one.write(*(bytes(3000) for _ in range(4)))

    disk.hook = replace
    assert all_there(one)
    one.log.close()


def test_closing_the_log_ends_a_compaction(tmp_path: Path) -> None:
    disk = Hooked()
    one = filled(tmp_path, disk=disk)
    found = one.log.sparse()
    assert found is not None
    one.log.compact(*found, bitmap(*found, LIVE))
    compaction = one.log.compaction
    assert compaction is not None

    def stop() -> None:
        compaction.stopping = True

    disk.hook = stop
    one.log.prepare()
    assert str(one.log.uncompacted) == "the log is closed"
    one = again(one)
    assert all_there(one)
    assert compact(one) == found
    one.log.close()


def test_what_ends_while_it_is_copied_is_counted(tmp_path: Path) -> None:
    one = filled(tmp_path)
    found = one.log.sparse()
    assert found is not None
    assert one.log.compact(*found, bitmap(*found, LIVE))
    assert one.log.sparse() is None
    assert not one.log.compact(*found, bitmap(*found, LIVE))
    for number in (2, 7):
        one.log.live(number, -1)
    assert one.log.reclaim() == 0  # their files are being read
    one.log.prepare()
    assert lots(one) == [(9, 3), (13, 1), (25, 1)]
    one.log.close()


def test_it_begins_once_it_is_synced_that_the_others_have_ended(tmp_path: Path) -> None:
    """Else the log has them after a kill, and says that they wait, and they were not copied."""
    one = filled(tmp_path)
    found = one.log.sparse()
    assert found == (1, 9)
    one.log.live(7, -1)
    assert one.log.compact(*found, bitmap(*found, {2}))
    one.entry(b"7 has ended")
    one.log.prepare()
    assert one.log.compactions == 0
    assert all_there(one, {2, 7})
    one.work()
    one.log.prepare()
    assert one.log.compactions == 1
    assert all_there(one, {2})
    assert not all_there(one, {7})
    one.log.close()


def test_what_ended_before_it_begins_is_no_compaction(tmp_path: Path) -> None:
    one = filled(tmp_path)
    found = one.log.sparse()
    assert found == (1, 9)
    for number in (2, 7):
        one.log.live(number, -1)
    assert one.log.compact(1, 9, bytes(1)) is False
    one.write(b"they have ended")
    assert one.log.compact(1, 9, bytes(1)) is False
    assert lots(one) == [(9, 3), (13, 1), (25, 1)]
    assert one.log.lots[0].first_number == 9
    one.log.close()


@pytest.mark.parametrize(("first", "end", "octets"), [(1, 8, 1), (2, 9, 1), (1, 13, 2), (1, 9, 0), (1, 9, 2)])
def test_a_range_that_is_not_sparse_is_refused(tmp_path: Path, first: int, end: int, octets: int) -> None:
    one = filled(tmp_path)
    assert one.log.sparse() == (1, 9)
    with pytest.raises(ValueError, match=r"\(1, 9\) is sparse"):
        one.log.compact(first, end, bytes(octets))
    assert all_there(one)
    one.log.close()


def test_the_thread_that_prepares_files_does_it(tmp_path: Path) -> None:
    one = filled(tmp_path, threaded=False)
    one.log.close()
    two = opened(tmp_path, segment_bytes=SMALL, threaded=True)
    for number in LIVE:
        two.log.live(number, 1)
    two.log.reclaim()
    two.wait(two.entry(bytes(3000)))
    found = two.log.sparse()
    assert found is not None
    assert two.log.compact(*found, bitmap(*found, LIVE))
    while two.log.compaction is not None:
        two.turn()
    assert two.log.compactions == 1
    assert all_there(two)
    two.log.close()
