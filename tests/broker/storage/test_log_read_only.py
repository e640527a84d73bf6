"""A log that is opened to be read only: nothing on the disk changes, and a broker that has it is not disturbed."""

from pathlib import Path

import pytest

from fanlight_broker.storage.log import Log
from fanlight_broker.storage.segments import LogError
from tests.broker.storage.logs import opened

SMALL = 8192


def read_only(folder: Path) -> Log:
    return Log(folder, lambda: None, segment_bytes=SMALL, threaded=False, read_only=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_written_is_read_and_no_byte_changes(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    bodies = [bytes([number]) * 1200 for number in range(1, 10)]
    one.write(*bodies)
    one.log.close()
    before = contents(tmp_path)
    log = read_only(tmp_path)
    assert [body for _, _, _, body in log.scan()] == bodies
    assert len(log.files()[0]) == 3
    with pytest.raises(LogError, match="closed, or was not replayed"):
        log.append(1, b"x")
    log.close()
    assert contents(tmp_path) == before


def test_a_disk_that_is_read_only_refuses_each_change(tmp_path: Path) -> None:
    opened(tmp_path, segment_bytes=SMALL).log.close()
    log = read_only(tmp_path)
    with pytest.raises(OSError, match="Read-only file system"):
        log.prepare()
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_log_that_a_broker_has_is_refused_and_two_may_read_one(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    with pytest.raises(LogError, match=r"in use by another broker \(process \d+\): stop it"):
        read_only(tmp_path)
    one.log.close()
    first, second = read_only(tmp_path), read_only(tmp_path)
    with pytest.raises(LogError, match="in use"):
        opened(tmp_path, segment_bytes=SMALL)
    first.close()
    second.close()


def test_a_folder_that_is_missing_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="is no folder"):
        read_only(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_groups_and_syncs_are_counted_by_size_and_time(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    one.write(b"alone")
    for _ in range(3):
        one.entry(b"together")
    one.work()
    log = one.log
    assert [(bound, count) for bound, count in log.group_entries.counted() if count] == [(1, 1), (4, 1)]
    assert log.group_entries.sum == 4
    assert log.group_bytes.sum == log.bytes_written
    assert sum(count for _, count in log.sync_seconds.counted()) == log.groups == 2
    assert log.sync_seconds.sum > 0
    log.close()
