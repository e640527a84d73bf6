"""A backup beside a log that goes on: whatever happens between two reads, the copy is a store as after a power cut."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fanlight_broker.storage import backup as module
from fanlight_broker.storage.backup import BackupError, backup, finish
from tests.broker.storage.logs import opened
from tests.broker.storage.test_log_damage import flip

SMALL = 8192
BODY = bytes(1200)  # three entries fill a segment


def copied(folder: Path, target: Path) -> list[bytes]:
    """What a log that is opened on the backup has."""
    finish(backup(folder, target), target)
    one = opened(target, segment_bytes=SMALL)
    assert one.log.damage == []
    one.log.close()
    return [body for _, _, body in one.found]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number + BODY for number in range(first, last + 1)]


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Call `act` with a number before each block that a backup reads."""
    reads = 0
    read_page = module.read_page

    def counted(path: Path) -> bytes:
        nonlocal reads
        reads += 1
        act(reads)
        return read_page(path)

    monkeypatch.setattr(module, "read_page", counted)


def test_all_that_was_synced_is_in_a_backup(tmp_path: Path) -> None:
    one = opened(tmp_path / "store", segment_bytes=SMALL)
    one.write(*numbered(1, 10))
    assert copied(tmp_path / "store", tmp_path / "copy") == numbered(1, 10)
    one.log.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_log_that_goes_on_is_copied_up_to_some_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    one = opened(tmp_path / "store", segment_bytes=SMALL)
    one.write(*numbered(1, 10))
    written = 10

    def goes_on(read: int) -> None:
        nonlocal written
        if read < 20 and (read + seed) % 3 == 0:
            one.write(*numbered(written + 1, written + 1 + seed))
            written += 1 + seed

    between(monkeypatch, goes_on)
    found = copied(tmp_path / "store", tmp_path / "copy")
    assert 10 <= len(found) <= written
    assert found == numbered(1, len(found))
    one.log.close()


@pytest.mark.parametrize("seed", range(4))
def test_files_that_are_used_again_meanwhile_are_taken_as_they_are_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    one = opened(tmp_path / "store", segment_bytes=SMALL)
    one.write(*numbered(1, 10))
    written = 10

    def goes_on(read: int) -> None:
        nonlocal written
        if read < 40 and (read + seed) % 3 == 0:
            one.log.raise_floor(one.log.synced)
            one.write(*numbered(written + 1, written + 4))
            written += 4
            one.log.reclaim()
            one.log.prepare()

    between(monkeypatch, goes_on)
    found = copied(tmp_path / "store", tmp_path / "copy")
    last = int(found[-1][:4])
    assert 10 <= last <= written
    assert found == numbered(last - len(found) + 1, last)
    assert len(found) < last
    one.log.close()


def test_a_file_that_is_gone_meanwhile_is_not_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = opened(tmp_path / "store", segment_bytes=SMALL)
    one.write(*numbered(1, 10))

    def unlink(read: int) -> None:
        if read == 9:
            (tmp_path / "store" / "log-00000001").unlink()

    between(monkeypatch, unlink)
    target = tmp_path / "copy"
    finish(backup(tmp_path / "store", target), target)
    assert sorted(path.name for path in target.iterdir()) == ["log-00000002", "log-00000003", "log-00000004"]
    one.log.close()


def test_a_store_that_never_rests_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PASSES_MAX", 3)
    one = opened(tmp_path / "store", segment_bytes=SMALL)
    one.write(*numbered(1, 3))
    number = 3

    def goes_on(_: int) -> None:
        nonlocal number
        number += 1
        one.write(*numbered(number, number))

    between(monkeypatch, goes_on)
    with pytest.raises(BackupError, match="has changed in each of 3 passes"):
        backup(tmp_path / "store", tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    one.log.close()


def test_a_target_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    opened(tmp_path / "store").log.close()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").touch()
    with pytest.raises(BackupError, match="exists and is not empty"):
        backup(tmp_path / "store", tmp_path / "copy")
    with pytest.raises(BackupError, match="is no folder"):
        backup(tmp_path / "none", tmp_path / "other")
    with pytest.raises(BackupError, match="is no store"):
        backup(tmp_path / "copy", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "store"]


def test_damage_is_copied_as_it_is_and_a_file_without_a_header_is_named(tmp_path: Path) -> None:
    one = opened(tmp_path / "store", segment_bytes=SMALL)
    one.write(*numbered(1, 10))
    one.log.close()
    flip(tmp_path / "store" / "log-00000002", 4096 + 1300)
    target = tmp_path / "copy"
    finish(backup(tmp_path / "store", target), target)
    again = opened(target, segment_bytes=SMALL)
    assert [(each.first, each.last) for each in again.log.damage] == [(5, 5)]
    again.log.close()
    for copy in (0, 2048):
        flip(tmp_path / "store" / "log-00000002", copy + 16)
    with pytest.raises(BackupError, match=r"log-00000002: both copies of its header are damaged"):
        backup(tmp_path / "store", tmp_path / "other")
