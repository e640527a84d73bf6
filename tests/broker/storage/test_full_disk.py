"""A full disk takes acknowledgements: publishers are refused in time, consumers drain, and files are free again."""

from pathlib import Path

from tests.broker.storage.disks import Broken, FaultyDisk
from tests.broker.storage.full_disk import AT_ONCE, SEGMENT, FullDisk, consumers_drain_a_full_disk
from tests.broker.storage.logs import opened, reopened

SMALL = 8192


def test_consumers_drain_a_full_disk_and_publishers_go_on(tmp_path: Path) -> None:
    consumers_drain_a_full_disk(tmp_path)


def test_what_was_acknowledged_on_a_full_disk_does_not_come_again_after_a_kill(tmp_path: Path) -> None:
    full = FullDisk(tmp_path)
    accepted = full.fill()
    peer = full.reader()
    got = full.read(peer, AT_ONCE)
    full.work()
    assert full.refuses
    full.world.crash()
    assert full.world.store.failure is None
    assert full.read(full.reader()) == accepted[len(got) :]
    assert not full.refuses


def test_publishers_go_on_when_somebody_else_has_made_room(tmp_path: Path) -> None:
    full = FullDisk(tmp_path)
    full.fill()
    full.disk.room += 2 * SEGMENT
    full.work()
    assert not full.refuses
    assert full.fill()


def test_the_log_goes_on_with_its_reserve_while_no_file_can_be_made(tmp_path: Path) -> None:
    broken = Broken()
    one = opened(tmp_path, disk=FaultyDisk(broken), segment_bytes=SMALL, spares=1, reserves=2)
    one.log.prepare()
    assert len(one.log.files()[1]) == 3
    broken.names = ("create",)
    written = 0
    while one.log.trouble is None:
        one.write(bytes(3_000))
        written += one.log.trouble is None
    assert written == 3
    assert len(one.log.files()[0]) == 3
    broken.names = ()
    one.log.retry()
    one.work()
    assert one.log.trouble is None
    assert len(reopened(one, segment_bytes=SMALL).found) == written + 1
