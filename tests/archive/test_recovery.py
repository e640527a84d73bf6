"""Opening after a crash: docs/archive-format.md, "Recovery"."""

import errno
from pathlib import Path

import pytest

from fanlight_archive import Archive, ArchiveError, Gone, Loss, Missing, Writer
from fanlight_archive.files import DiskFile
from fanlight_archive.manifest import NAME, parse
from tests.archive.disks import FailingDisk
from tests.archive.messages import batch, numbers_of, offsets_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def killed(folder: Path, batches: int = 3, **options: object) -> Path:
    """An archive whose writer was killed; the open segment."""
    writer = Writer(folder, boot="one", **options)  # type: ignore[arg-type]
    for number in range(batches):
        writer.append(batch(10 * number, 10))
    writer.abandon()
    (path,) = folder.glob("*.open")
    return path


def test_a_killed_writer_has_lost_nothing_that_it_wrote(folder: Path) -> None:
    killed(folder)
    writer = Writer(folder, boot="one")
    assert (writer.end, writer.epoch, writer.recovered.cut_bytes) == (30, 1, 0)
    assert not writer.recovered.new_epoch
    writer.append(batch(30, 10))
    writer.close()
    with Archive(folder) as archive:
        assert numbers_of(archive.read()) == offsets_of(archive.read()) == list(range(40))


def test_a_torn_tail_is_cut_off_behind_the_last_whole_batch(folder: Path) -> None:
    path = killed(folder)
    data = path.read_bytes()
    third = len(data) - (len(data) - path.stat().st_size)
    with Archive(folder) as archive:
        assert archive._tail is not None
        third = archive._tail.places[-1].at
    for length in [third + 1, third + 8, third + 9, (third + len(data)) // 2, len(data) - 1]:
        path.write_bytes(data[:length])
        for leftover in folder.glob("*.arrows"):
            leftover.unlink()
        (folder / NAME).unlink()
        writer = Writer(folder, boot="one")
        assert writer.end == 20
        assert writer.recovered.cut_bytes == length - third
        assert any("cut off" in sentence for sentence in writer.recovered.sentences())
        writer.close()
        with Archive(folder) as archive:
            assert numbers_of(archive.read()) == list(range(20))


def test_a_tail_of_which_only_the_length_reached_the_disk_is_cut_off_too(folder: Path) -> None:
    path = killed(folder)
    data = path.read_bytes()
    path.write_bytes(data[:-200] + bytes(200))
    with Archive(folder) as archive:
        assert archive.end == 20
    writer = Writer(folder, boot="one")
    assert writer.end == 20
    writer.close()


def test_an_open_segment_without_a_whole_batch_is_removed(folder: Path) -> None:
    path = killed(folder, 1)
    path.write_bytes(path.read_bytes()[:-1])
    writer = Writer(folder, boot="one")
    assert writer.recovered.removed == [path.name]
    assert (writer.end, writer.segments) == (0, 0)
    writer.close()


def test_after_a_restart_of_the_machine_offsets_are_given_in_a_new_epoch(folder: Path) -> None:
    path = killed(folder)
    with Archive(folder) as reader:
        reader.check(1, 30)  # this was shown
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 10])  # and lost
    writer = Writer(folder, boot="two")
    assert (writer.end, writer.epoch) == (20, 2)
    assert any("epoch 2 begins at offset 20" in sentence for sentence in writer.recovered.sentences())
    writer.append(batch(100, 10))
    with Archive(folder) as reader:
        reader.check(1, 20)
        reader.check(2, 30)
        with pytest.raises(Gone, match="20 to 29 are gone"):
            reader.check(1, 30)
        with pytest.raises(ArchiveError, match="epoch 3"):
            reader.check(3, 0)
    writer.close()


def test_a_machine_that_does_not_tell_its_boot_is_taken_for_restarted(folder: Path) -> None:
    writer = Writer(folder, boot="")
    writer.append(batch(0, 1))
    writer.abandon()
    writer = Writer(folder, boot="")
    assert writer.epoch == 2
    writer.close()


def test_a_writer_that_closed_needs_no_new_epoch(folder: Path) -> None:
    for boot in ("one", "two", "three"):
        writer = Writer(folder, boot=boot)
        writer.append(batch(0, 1))
        writer.close()
    writer = Writer(folder, boot="four")
    assert (writer.epoch, writer.end) == (1, 3)
    writer.close()


def test_a_segment_that_the_manifest_does_not_know_is_entered(folder: Path) -> None:
    writer = Writer(folder, boot="one")
    writer.append(batch(0, 10))
    before = (folder / NAME).read_bytes()
    writer.close()
    (folder / NAME).write_bytes(before)
    with Archive(folder) as archive:
        assert archive.end == 10
    writer = Writer(folder, boot="one")
    assert writer.recovered.adopted == ["00000000000000000000.arrows"]
    assert (writer.end, writer.epoch) == (10, 1)
    writer.close()


def test_a_removed_manifest_is_made_again_from_the_segments_in_a_new_epoch(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=1)
    for number in range(4):
        writer.append(batch(number, 1))
    name = writer.manifest.archive
    writer.close()
    (folder / NAME).unlink()
    writer = Writer(folder)
    assert (writer.manifest.archive, writer.end, writer.epoch) == (name, 4, 2)
    writer.close()
    with Archive(folder) as archive:
        assert offsets_of(archive.read()) == [0, 1, 2, 3]


def test_a_retention_that_was_interrupted_is_finished(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=1)
    for number in range(4):
        writer.append(batch(10 * number, 10))
    writer.close()
    with (folder / NAME).open("ab") as file:
        file.write(b'{"start":20}\n')
    with Archive(folder) as archive:
        assert (archive.start, archive.end) == (20, 40)
    writer = Writer(folder)
    assert (writer.start, writer.end) == (20, 40)
    assert not (folder / "00000000000000000000.arrows").exists()
    writer.close()


def test_segments_that_somebody_took_away_are_told_and_their_offsets_never_given_again(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=1)
    for number in range(4):
        writer.append(batch(10 * number, 10))
    writer.close()
    for first in (10, 30):
        (folder / f"{first:020d}.arrows").unlink()
    writer = Writer(folder)
    assert writer.recovered.missing == [(10, 20), (30, 40)]
    assert writer.end == 40
    writer.append(batch(40, 1))
    writer.close()
    with Archive(folder) as archive:
        assert archive.missing(0, 41) == [(10, 20), (30, 40)]
        assert archive.missing(12, 35) == [(12, 20), (30, 35)]
        with pytest.raises(Missing, match="10 to 19 are gone"):
            list(archive.read())
        lost: list[Loss] = []
        assert offsets_of(archive.read(lost=lost.append)) == [*range(10), *range(20, 30), 40]
        assert [(loss.first, loss.end) for loss in lost] == [(10, 20), (30, 40)]


def test_a_torn_last_line_of_the_manifest_is_as_if_it_was_not_there(folder: Path) -> None:
    writer = Writer(folder, segment_bytes=1)
    for number in range(3):
        writer.append(batch(number, 1))
    writer.close()
    text = (folder / NAME).read_bytes()
    lines = text.splitlines(keepends=True)
    last = len(text) - len(lines[-1])
    for length in range(last, len(text)):
        assert parse(text[:length]).closed is None
    assert parse(text[: last + 3] + b"\0" * 5 + b"\n").closed is None
    assert parse(text).closed == 3


def test_a_writer_that_an_error_has_left_broken_does_nothing_until_it_is_recovered(folder: Path) -> None:
    folder.mkdir()
    disk = FailingDisk(folder)
    writer = Writer(folder, files=disk)
    writer.append(batch(0, 10))
    disk.rotten = True
    with pytest.raises(OSError, match="Input/output error"):
        writer.sync()
    assert (writer.broken, writer.lost) == (True, 10)
    for attempt in (writer.sync, writer.remove_old, lambda: writer.append(batch(10, 10))):
        with pytest.raises(OSError, match="recover"):
            attempt()
    disk.rotten = False
    writer.recover()
    assert (writer.broken, writer.end, writer.epoch) == (False, 0, 2)
    assert writer.append(batch(10, 10)) == 0
    writer.close()


def test_a_batch_that_a_full_disk_refused_leaves_nothing_and_is_appended_when_there_is_room(folder: Path) -> None:
    folder.mkdir()
    disk = FailingDisk(folder)
    writer = Writer(folder, files=disk)
    writer.append(batch(0, 10))
    disk.full = True
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            writer.append(batch(10, 10))
    assert not writer.broken
    disk.full = False
    assert writer.append(batch(10, 10)) == 10
    writer.close()
    with Archive(folder) as archive:
        assert numbers_of(archive.read()) == list(range(20))
        assert archive.epoch == 1


def test_epochs_of_which_nothing_is_left_are_not_kept_and_their_positions_are_still_judged(folder: Path) -> None:
    """A disk that stays rotten is tried again for hours: the manifest must not grow by each attempt."""
    folder.mkdir()
    disk = FailingDisk(folder)
    writer = Writer(folder, files=disk)
    writer.append(batch(0, 10))
    writer.sync()
    for _ in range(5):
        writer.append(batch(10, 10))
        disk.rotten = True
        with pytest.raises(OSError, match="Input/output error"):
            writer.sync()
        disk.rotten = False
        writer.recover()
    assert [(epoch.number, epoch.first) for epoch in writer.manifest.epochs] == [(1, 0), (6, 10)]
    writer.append(batch(10, 10))
    writer.close()
    with Archive(folder) as archive:
        for epoch in range(1, 6):
            archive.check(epoch, 10)
            with pytest.raises(Gone):
                archive.check(epoch, 20)
        archive.check(6, 20)
        for epoch in (0, 7):
            with pytest.raises(ArchiveError, match=f"epoch {epoch}"):
                archive.check(epoch, 0)


def test_a_sync_that_fails_while_the_archive_is_opened_again_is_not_believed_the_second_time(folder: Path) -> None:
    folder.mkdir()
    disk = FailingDisk(folder)
    writer = Writer(folder, files=disk)
    writer.append(batch(0, 10))
    writer._break()  # as a write does that cannot be taken back
    disk.rotten = True
    with pytest.raises(OSError, match="Input/output error"):
        writer.recover()
    disk.rotten = False
    writer.recover()
    assert (writer.end, writer.epoch, writer.lost) == (0, 2, 10)
    writer.close()


def test_what_is_found_after_an_error_is_not_counted_as_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    writer = Writer(folder)
    writer.append(batch(0, 10))
    writer._break()

    def full(name: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer.files, "create", full)  # the segment is closed by then, and the manifest is not written
        with pytest.raises(OSError, match="No space left"):
            writer.recover()
    writer.recover()
    assert (writer.end, writer.lost) == (10, 0)
    writer.close()


def test_a_close_that_fails_is_an_error_like_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS has them: the descriptor is gone all the same."""
    writer = Writer(folder)
    writer.append(batch(0, 10))
    close = DiskFile.close

    def failing(file: DiskFile) -> None:
        close(file)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(DiskFile, "close", failing)
        with pytest.raises(OSError, match="Input/output error"):
            writer.roll()
    writer.recover()
    assert (writer.end, writer.lost) == (10, 0)
    writer.append(batch(10, 10))
    writer.close()
    with Archive(folder) as archive:
        assert numbers_of(archive.read()) == list(range(20))


@pytest.mark.parametrize("fact", ["a segment was closed", "older ones are removed", "marks moved up"])
def test_a_line_that_makes_the_manifest_too_long_is_in_the_one_that_is_written_anew(folder: Path, fact: str) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 3))
    writer.roll()
    writer.append(batch(3, 3))
    writer.manifest.lines = 10_000
    if fact == "a segment was closed":
        writer.roll()
    elif fact == "older ones are removed":
        assert len(writer.remove_old(size=0)) == 1
    else:
        writer.append_marks([("", "p", 0, 1)])
    found = parse((folder / NAME).read_bytes())
    assert (found.spans, found.start, found.marks) == (
        writer.manifest.spans, writer.manifest.start, writer.manifest.marks,
    )
    assert writer.manifest.lines < 10
