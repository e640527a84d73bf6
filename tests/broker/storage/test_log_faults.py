"""A disk that fails: nothing is reported as synced that is not, and the log goes on when the disk does."""

import contextlib
import errno
import os
from itertools import islice
from pathlib import Path

import pytest

from fanlight_broker.storage.log import Log
from tests.broker.storage.disks import Broken, FaultyDisk, Nth, numbers
from tests.broker.storage.logs import OpenLog, opened, reopened

BODIES = list(islice(numbers(), 27))
SMALL = 8192


def load(one: OpenLog, bodies: list[bytes] = BODIES) -> None:
    """Groups of three entries, files made ahead of time; a disk that fails is tried again."""
    for number, body in enumerate(bodies):
        one.entry(body)
        if number % 3 == 2:
            work(one)
        if number % 9 == 0:
            with contextlib.suppress(OSError):  # it is the writer that has the trouble
                one.log.prepare()
    work(one)


def work(one: OpenLog) -> None:
    one.work()
    while one.log.trouble is not None:
        before = one.log.synced
        one.log.retry()
        one.work()
        assert one.log.synced >= before


def operations(folder: Path) -> int:
    """How many a load takes without a fault."""
    disk = FaultyDisk()
    one = opened(folder, disk=disk, segment_bytes=SMALL)
    load(one)
    one.log.close()
    return len(disk.operations)


def test_there_are_operations_to_fail(tmp_path: Path) -> None:
    assert operations(tmp_path) > 40


@pytest.mark.parametrize(("error", "count"), [(errno.EIO, 1), (errno.ENOSPC, 1), (errno.ENOSPC, 3)])
def test_each_operation_fails_once_or_more(tmp_path_factory: pytest.TempPathFactory, error: int, count: int) -> None:
    for first in range(operations(tmp_path_factory.mktemp("whole"))):
        disk = FaultyDisk(Nth(first, count, error))
        one = opened(tmp_path_factory.mktemp("log"), disk=disk, segment_bytes=SMALL)
        load(one)
        assert one.log.synced == len(BODIES)
        assert one.log.trouble is None
        assert disk.failed
        two = reopened(one, segment_bytes=SMALL)
        assert [body for _, _, body in two.found] == BODIES
        assert two.log.damage == []
        two.entry(b"more")
        two.work()
        assert [body for _, _, body in reopened(two, segment_bytes=SMALL).found] == [*BODIES, b"more"]


@pytest.mark.parametrize("name", ["write", "sync"])
def test_a_file_is_not_written_or_synced_again_after_a_failure(tmp_path: Path, name: str) -> None:
    broken = Broken()
    disk = FaultyDisk(broken)
    one = opened(tmp_path, disk=disk, segment_bytes=SMALL)
    one.write(b"a")
    used = disk.operations[-1].path
    one.log.prepare()
    broken.names = (name,)
    broken.error = errno.EIO
    one.entry(b"b")
    disk.fails = Nth(0)
    start = len(disk.operations)
    one.work()
    assert (one.log.synced, one.log.trouble) == (2, None)
    assert [each.path for each in disk.failed] == [used]
    assert [each.name for each in disk.operations[start:] if each.path == used] == ["write"]
    assert [body for _, _, body in reopened(one, segment_bytes=SMALL).found] == [b"a", b"b"]


@pytest.mark.parametrize("threaded", [False, True])
def test_a_full_disk_is_reported_and_the_log_goes_on_when_it_is_not_full_any_more(
    tmp_path: Path, threaded: bool
) -> None:
    broken = Broken("write")
    one = opened(tmp_path, disk=FaultyDisk(broken), segment_bytes=SMALL, threaded=threaded)
    one.entry(b"a")
    if not threaded:
        one.work()
    while one.log.trouble is None:
        os.sched_yield()
        one.log.collect()
    assert one.log.trouble == f"No space left on device: {tmp_path}"
    assert one.reports[-1] == (0, one.log.trouble)
    one.entry(b"b")
    assert one.log.synced == 0
    one.log.retry()
    if not threaded:
        one.work()
        assert one.log.synced == 0
    broken.error = 0
    one.log.retry()
    if threaded:
        one.wait(2)
    one.work()
    assert (one.log.synced, one.log.trouble) == (2, None)
    assert [body for _, _, body in reopened(one).found] == [b"a", b"b"]


def test_what_waits_for_a_broken_disk_is_bounded_by_full(tmp_path: Path) -> None:
    broken = Broken("sync")
    one = opened(tmp_path, disk=FaultyDisk(broken), buffer_bytes_max=5000)
    while not one.log.full:
        one.entry(bytes(1000))
    one.work()
    assert one.log.full
    assert 5000 < one.log.buffered < 7000
    broken.error = 0
    one.log.retry()
    one.work()
    assert not one.log.full
    assert one.log.buffered == 0
    one.log.close()


def test_a_log_whose_disk_stays_broken_closes_and_says_what_is_not_synced(tmp_path: Path) -> None:
    broken = Broken()
    one = opened(tmp_path, disk=FaultyDisk(broken), segment_bytes=SMALL, threaded=True)
    one.wait(one.entry(b"a"))
    broken.names = ("write", "create")
    one.entry(b"b")
    one.log.close()
    assert (one.log.appended, one.log.synced) == (2, 1)
    assert one.log.trouble is not None
    assert [body for _, _, body in opened(tmp_path).found] == [b"a"]


def test_without_a_sync_for_each_group_synced_stands_still_until_it_is_asked_for(tmp_path: Path) -> None:
    disk = FaultyDisk()
    one = opened(tmp_path, disk=disk)
    one.log.syncing = False
    one.write(b"a")
    start = len(disk.operations)
    one.write(b"b", b"c")
    assert (one.log.written, one.log.synced) == (3, 0)
    assert [each.name for each in disk.operations[start:]] == ["write", "write"]
    one.log.sync()
    one.work()
    assert (one.log.written, one.log.synced) == (3, 3)
    one.write(b"d")
    two = reopened(one)
    assert one.log.synced == 4
    assert [body for _, _, body in two.found] == [b"a", b"b", b"c", b"d"]
    two.log.close()


def test_a_sync_that_fails_late_counts_what_a_power_cut_may_lose(tmp_path: Path) -> None:
    broken = Broken()
    one = opened(tmp_path, disk=FaultyDisk(broken))
    one.log.syncing = False
    one.write(b"a", b"b")
    broken.names = ("sync",)
    one.log.sync()
    one.work()
    assert one.log.unsure == 2
    broken.names = ()
    one.write(b"c")
    assert one.log.trouble is None
    assert [body for _, _, body in reopened(one).found] == [b"a", b"b", b"c"]


def test_the_loop_can_wait_for_what_is_written_and_not_synced(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    class Watching(FaultyDisk):
        def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
            if name == "sync" and seen_by:
                seen_by[0].collect()
                seen.append((seen_by[0].written, seen_by[0].synced))

    seen_by: list[Log] = []
    one = opened(tmp_path, disk=Watching())
    one.write(b"a")
    one.log.wakes_early = True
    seen_by.append(one.log)
    one.write(b"b")
    assert seen == [(2, 1)]
    assert one.log.synced == 2
    one.log.close()
