"""The folder of an archive, removed while it is written: it is made again, and no offset is given twice."""

import shutil
from pathlib import Path

import pytest

from fanlight_archive import Archive, Gone, InUse, Writer
from tests.archive.messages import batch, numbers_of, offsets_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def test_a_folder_that_was_removed_is_noticed_by_the_next_sync_and_made_again(folder: Path) -> None:
    writer = Writer(folder, boot="one")
    writer.append(batch(0, 10), [("ann", "p", 1, 9)])
    writer.roll()
    writer.append(batch(10, 10), [("ann", "p", 1, 19)])
    writer.sync()
    writer.append(batch(20, 10))
    name = writer.manifest.archive
    shutil.rmtree(folder)
    with pytest.raises(OSError, match="was removed"):
        writer.sync()
    assert (writer.broken, writer.lost) == (True, 10)  # what is not synced; what was is not there either
    done = writer.recover()
    assert (done.made_again, done.end, done.whole, writer.epoch) == (True, 20, 20, 2)
    assert any("was removed and is made again" in sentence for sentence in done.sentences())
    assert writer.append(batch(20, 10)) == 20
    writer.sync()
    with Archive(folder) as archive:
        assert (archive.id, archive.start, archive.end) == (name, 20, 30)
        assert numbers_of(archive.read()) == list(range(20, 30))
        archive.check(1, 20)
        with pytest.raises(Gone):
            archive.check(1, 30)  # of the epoch that ended
        with pytest.raises(Gone, match="0 to 19 are gone"):
            list(archive.read(0))
    assert writer.marks == [["ann", "p", 1, 19]]
    writer.close()
    again = Writer(folder, boot="one")
    assert (again.epoch, again.end, again.marks) == (2, 30, [["ann", "p", 1, 19]])
    again.close()


@pytest.mark.parametrize("step", ["roll", "must_be_there", "close"])
def test_whatever_comes_next_notices_that_the_folder_is_not_there(folder: Path, step: str) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 10))
    shutil.rmtree(folder)
    with pytest.raises(OSError, match="was removed"):
        getattr(writer, step)()
    assert writer.lost == 10


def test_an_open_segment_that_was_removed_by_itself_is_noticed_too(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 10))
    writer.sync()
    (path,) = folder.glob("*.open")
    path.unlink()
    with pytest.raises(OSError, match="was removed"):
        writer.sync()
    writer.recover()
    assert (writer.epoch, writer.end) == (2, 0)
    writer.append(batch(0, 5))
    writer.close()
    with Archive(folder) as archive:
        assert offsets_of(archive.read()) == [0, 1, 2, 3, 4]


def test_two_writers_never_share_a_folder_that_was_made_again(folder: Path) -> None:
    writer = Writer(folder)
    writer.append(batch(0, 10))
    shutil.rmtree(folder)
    other = Writer(folder)
    with pytest.raises(OSError, match="was removed"):
        writer.sync()
    with pytest.raises(InUse):
        writer.recover()
    other.append(batch(50, 5))
    other.close()
    writer.recover()
    assert (writer.manifest.archive, writer.end) == (other.manifest.archive, 5)
    writer.close()
