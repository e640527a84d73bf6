"""Damage: bytes of an archive that are not what was written. docs/archive-format.md, "Damage"."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import Archive, ArchiveError, Corrupt, Gone, Loss, Missing, Writer
from fanlight_archive.damage import KEPT_MAX
from fanlight_archive.files import Disk, File
from fanlight_archive.segment import Place
from tests.archive.crashes import Careless
from tests.archive.messages import batch, numbers_of, offsets_of

ROWS = 3
BATCHES = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def open_segment(folder: Path, *, batches: int = BATCHES, rows: int = ROWS) -> tuple[Path, list[Place]]:
    """The open segment of a killed writer, all of it synced, and where its batches are."""
    folder.mkdir()
    writer = Writer(folder, files=Careless(folder), boot="one")
    for number in range(batches):
        writer.append(batch(rows * number, rows))
    writer.sync()
    writer.abandon()
    (path,) = folder.glob("*.open")
    with Archive(folder) as archive:
        assert archive._tail is not None
        return path, archive._tail.places


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def read_all(archive: Archive) -> tuple[dict[int, int], list[tuple[int, int]]]:
    """(the number of each offset, what is lost)."""
    lost: list[Loss] = []
    batches = list(archive.read(lost=lost.append))
    return dict(zip(offsets_of(batches), numbers_of(batches), strict=True)), [(one.first, one.end) for one in lost]


def damaged_at(folder: Path, path: Path, data: bytes, at: int, bit: int) -> Writer:
    """The writer that opens the archive when one bit of the open segment is wrong."""
    for name in [*folder.glob("0*"), *folder.glob("manifest*")]:
        name.unlink()
    shutil.copy(folder.parent / "manifest.jsonl", folder)
    path.write_bytes(flipped(data, at, bit))
    return Writer(folder, files=Careless(folder), boot="one")


def test_damage_at_any_position_of_the_open_segment_gives_no_offset_twice_in_an_epoch(folder: Path) -> None:
    """One bit of each byte of a batch in turn, and of bytes in the others. What is whole stays, what is cut is kept.

    Nobody reads past the loss without being told.
    """
    path, places = open_segment(folder)
    shutil.copy(folder / "manifest.jsonl", folder.parent)
    data = path.read_bytes()
    shown = ROWS * BATCHES
    of_a_batch = range(places[1].at, places[2].at)
    for at in sorted({*range(places[0].at, len(data), 11), *of_a_batch, len(data) - 1}):
        hit = next(number for number, place in enumerate(places) if at < place.at + place.size)
        writer = damaged_at(folder, path, data, at, at % 8)
        (cut,) = writer.recovered.cut
        begin = places[hit].at if hit else 0  # of the file, if no batch is left before it
        assert (cut.first, cut.at, cut.size) == (hit * ROWS, begin, len(data) - begin), at
        assert (folder / cut.kept).read_bytes() == flipped(data, at, at % 8)[begin:]
        assert cut.batches == BATCHES - hit - 1, at
        assert (writer.epoch, writer.end) == (2, shown if cut.batches else cut.first), at
        writer.append(batch(100, ROWS))
        writer.abandon()
        with Archive(folder) as archive:
            if cut.batches:
                archive.check(1, shown)  # what comes now has other offsets
            else:
                with pytest.raises(Gone):
                    archive.check(1, shown)
            found, lost = read_all(archive)
            assert {offset: number for offset, number in found.items() if number < 100} == {
                offset: offset for offset in range(cut.first)
            }, at
            assert sorted(found.values())[-ROWS:] == [100, 101, 102]
            assert lost == ([(cut.first, shown)] if cut.batches and hit else [])
            assert archive.start == (0 if hit else writer.end - ROWS)


def test_damage_in_the_schema_of_the_open_segment_is_kept_or_refused_and_never_read_wrongly(folder: Path) -> None:
    path, places = open_segment(folder, batches=2)
    shutil.copy(folder / "manifest.jsonl", folder.parent)
    data = path.read_bytes()
    outcomes = set()
    for at in range(places[0].at):
        try:
            writer = damaged_at(folder, path, data, at, at % 8)
        except ArchiveError:
            outcomes.add("refused")
            assert path.read_bytes() == flipped(data, at, at % 8)
            continue
        writer.abandon()
        with Archive(folder) as archive:
            found, _ = read_all(archive)
        if writer.recovered.cut:
            outcomes.add("kept")
            assert (found, writer.epoch) == ({}, 2)
            assert (folder / writer.recovered.cut[0].kept).read_bytes() == flipped(data, at, at % 8)
        else:
            outcomes.add("harmless")
            assert found == {offset: offset for offset in range(2 * ROWS)}, at
    assert outcomes == {"refused", "kept", "harmless"}


def test_the_log_says_what_was_lost_and_where_it_is_kept(folder: Path) -> None:
    path, places = open_segment(folder)
    data = path.read_bytes()
    path.write_bytes(flipped(data, places[1].at + 500))
    writer = Writer(folder, boot="one")
    name = "00000000000000000000-00000000000000000003.damaged"
    size = len(data) - places[1].at
    assert writer.recovered.sentences()[:1] == [
        f"{path.name}, byte {places[1].at} is damaged: messages 3 to 11 are lost; cut off {size} bytes, "
        f"among them 2 whole batches; the bytes are in {name}"
    ]
    assert "epoch 2 begins at offset 12: later messages may have been lost" in writer.recovered.sentences()
    writer.close()


def test_a_batch_that_was_not_written_to_its_end_is_told_apart_from_damage(folder: Path) -> None:
    path, places = open_segment(folder)
    data = path.read_bytes()
    shutil.copy(folder / "manifest.jsonl", folder.parent)
    for length in (places[3].at + 1, places[3].at + 7, places[3].at + 8, places[3].at + 100, len(data) - 1):
        for name in folder.glob("0*"):
            name.unlink()
        shutil.copy(folder.parent / "manifest.jsonl", folder)
        path.write_bytes(data[:length])
        writer = Writer(folder, files=Careless(folder), boot="one")
        (cut,) = writer.recovered.cut
        assert (cut.torn, cut.size, writer.end, writer.epoch) == (True, length - places[3].at, 3 * ROWS, 2), length
        writer.abandon()


def test_zeros_of_which_only_the_length_reached_the_disk_are_not_kept(folder: Path) -> None:
    path, places = open_segment(folder)
    data = path.read_bytes()
    path.write_bytes(data[: places[2].at] + bytes(len(data) - places[2].at))
    writer = Writer(folder, boot="one")
    (cut,) = writer.recovered.cut
    assert (cut.torn, cut.kept, writer.epoch) == (True, "", 2)
    assert not list(folder.glob("*.damaged"))
    writer.close()


class Stopping(Disk):
    """A disk that fails for good after so many things that it was asked for."""

    def __init__(self, folder: Path, deeds: int) -> None:
        super().__init__(folder)
        self.left = deeds

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.EIO, "Input/output error")

    def create(self, name: str) -> File:
        self.count()
        return super().create(name)

    def open(self, name: str) -> File:
        self.count()
        return super().open(name)

    def rename(self, old: str, new: str) -> None:
        self.count()
        super().rename(old, new)

    def remove(self, name: str) -> None:
        self.count()
        super().remove(name)

    def sync_names(self) -> None:
        self.count()
        super().sync_names()


def stopped(folder: Path) -> Iterator[None]:
    """Open the archive on a disk that stops, later each time, until it does not."""
    for deeds in range(100):
        try:
            writer = Writer(folder, files=Stopping(folder, deeds), boot="one")
        except OSError:
            yield
        else:
            writer.abandon()
            return
    pytest.fail("the archive cannot be opened")


def test_a_crash_at_any_step_of_recovery_from_damage_loses_no_more(folder: Path, tmp_path: Path) -> None:
    path, places = open_segment(folder)
    data = path.read_bytes()
    path.write_bytes(flipped(data, places[1].at + 500))
    shutil.copytree(folder, tmp_path / "before")
    steps = 0
    for _ in stopped(folder):
        steps += 1
        writer = Writer(folder, files=Careless(folder), boot="one")
        assert writer.epoch >= 2
        assert writer.end == ROWS * BATCHES
        writer.append(batch(100, ROWS))
        writer.abandon()
        (kept,) = folder.glob("*.damaged")
        assert kept.read_bytes() == flipped(data, places[1].at + 500)[places[1].at :]
        with Archive(folder) as archive:
            assert read_all(archive) == ({0: 0, 1: 1, 2: 2, 12: 100, 13: 101, 14: 102}, [(3, 12)])
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)
    assert steps > 8


def test_of_damage_the_last_files_are_kept(folder: Path) -> None:
    for number in range(KEPT_MAX + 3):
        writer = Writer(folder, files=Careless(folder), boot="one")
        writer.append(batch(number, 1))
        writer.append(batch(number, 1))
        writer.abandon()
        (path,) = folder.glob("*.open")
        path.write_bytes(path.read_bytes()[:-1] + b"\1")
    Writer(folder, files=Careless(folder), boot="one").close()
    kept = sorted(path.name for path in folder.glob("*.damaged"))
    assert len(kept) == KEPT_MAX
    assert kept[-1].startswith(f"{KEPT_MAX + 2:020d}-")


def test_a_payload_that_looks_like_a_batch_moves_no_offset_far(folder: Path) -> None:
    """What a publisher sends is inside of a damaged batch."""
    other = folder.parent / "other"
    writer = Writer(other)
    writer.manifest.begin_epoch(9, 10**15)
    writer.end = 10**15
    writer.append(batch(0, 1))
    writer.abandon()
    (path,) = other.glob("*.open")
    evil = path.read_bytes()
    column = batch(0, 1)
    at = column.schema.get_field_index("value")
    folder.mkdir()
    writer = Writer(folder, boot="one")
    writer.append(batch(0, 1))
    writer.append(column.set_column(at, column.schema.field(at), pa.array([evil], pa.binary())))
    writer.abandon()
    (path,) = folder.glob("*.open")
    data = path.read_bytes()
    path.write_bytes(flipped(data, data.index(evil) - 100))
    writer = Writer(folder, boot="one")
    (cut,) = writer.recovered.cut
    assert (cut.batches, writer.end, writer.epoch) == (0, 1, 2)
    writer.close()


@pytest.mark.parametrize("where", ["head", "rows", "body"])
def test_of_a_damaged_closed_segment_all_other_batches_are_read(folder: Path, where: str) -> None:
    writer = Writer(folder, files=Careless(folder))
    for number in range(BATCHES):
        writer.append(batch(ROWS * number, ROWS))
    writer.roll()
    writer.append(batch(ROWS * BATCHES, ROWS))
    (path,) = folder.glob("*.arrows")
    with Archive(folder) as archive:
        places = archive._segment(archive.spans[0]).places
    data = path.read_bytes()
    second = places[1]
    at = {"head": second.at + 4, "body": second.at + second.size - 20}.get(where)
    if at is None:
        head = data[second.at : second.at + second.size]
        at = second.at + head.index(ROWS.to_bytes(8, "little"))
    path.write_bytes(flipped(data, at))
    with Archive(folder) as archive:
        with pytest.raises(Corrupt, match=path.name):
            list(archive.read())
        expected = [*range(ROWS), *range(2 * ROWS, ROWS * (BATCHES + 1))]
        found, lost = read_all(archive)
        assert (list(found), lost) == (expected, [(ROWS, 2 * ROWS)])
        lost_there: list[Loss] = []
        assert offsets_of(archive.read(4, 8, lost=lost_there.append)) == [6, 7]
        assert [(one.first, one.end) for one in lost_there] == [(4, 6)]
        assert archive.places(0, archive.end)[-1] == (12, 15)
    writer.close()


def test_retention_in_the_middle_of_reading_is_a_loss_like_others(folder: Path) -> None:
    writer = Writer(folder, files=Careless(folder), segment_bytes=1)
    for number in range(4):
        writer.append(batch(10 * number, 10))
    with Archive(folder) as archive:
        lost: list[Loss] = []
        reading = archive.read(lost=lost.append)
        assert offsets_of([next(reading)]) == [*range(10)]
        writer.remove_old(since=25_000_000)
        assert offsets_of(reading) == [*range(20, 40)]
        assert [(one.first, one.end, type(one.error)) for one in lost] == [(10, 20, Gone)]
        with pytest.raises(Gone) as told:
            list(archive.read())
        assert not isinstance(told.value, Missing)
    writer.close()
