"""Files of a Delta table over many runs: merged, removed when nobody needs them, and read meanwhile."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest
from deltalake import DeltaTable

from fanlight_archive import Writer
from fanlight_archive.files import Disk, DiskFile, File
from fanlight_spark.lakehouse import command, delta
from fanlight_spark.lakehouse.delta import MessagesDelta
from fanlight_spark.lakehouse.small_files import FAN, LARGE, SMALLEST, DataFile, groups
from tests.archive.messages import batch
from tests.without_spark.lakes import filled, rows_of, run


def file(number: int, size: int, day: str = "2026-11-28") -> DataFile:
    return DataFile(f"{number}", day, size, 1, number)


def test_files_of_a_day_and_about_the_same_size_become_one() -> None:
    small, middle, large = SMALLEST - 1, SMALLEST, LARGE
    files = [file(number, small) for number in range(2 * FAN + 1)]
    files += [file(100 + number, middle) for number in range(FAN - 1)]
    files += [file(200 + number, large) for number in range(FAN)]
    files += [file(300 + number, small, "2026-11-29") for number in range(FAN)]
    found = [[one.first for one in group] for group in groups(reversed(files))]
    assert found == [[*range(FAN)], [*range(FAN, 2 * FAN)], [*range(300, 300 + FAN)]]
    assert [one.first for one in next(groups([*files, file(99, middle)]))] == [*range(FAN)]
    assert [99, *range(100, 100 + FAN - 1)] in [
        [one.first for one in group] for group in groups([*files, file(99, middle)])
    ]


def table_of(out: Path) -> MessagesDelta:
    about = DeltaTable(str(out)).metadata().description
    assert about is not None
    return MessagesDelta(str(out), delta.parsed(about) or {}, {})


def test_small_files_become_one_sorted_file_and_who_follows_the_table_gets_nothing_twice(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 50 * (FAN + 2)), tmp_path / "out"
    assert len(run(folder, out, lot_bytes=1)) == FAN + 1
    before, expected = DeltaTable(str(out)).version(), rows_of(out)
    (merged,) = table_of(out).merge(1 << 30)
    assert (merged.day, merged.files) == ("1970-01-01", FAN)
    assert rows_of(out).equals(expected)
    actions = pa.table(DeltaTable(str(out)).get_add_actions(flatten=True)).sort_by("min.offset")
    assert actions["num_records"].to_pylist() == [50 * FAN, 50]
    log = (out / "_delta_log" / f"{before + 1:020}.json").read_text()
    changes = [line for line in log.splitlines() if "dataChange" in line]
    assert len(changes) == FAN + 1
    assert all('"dataChange":false' in line for line in changes)
    assert list(table_of(out).merge(1 << 30)) == []
    # The position is where it was: nothing is added again.
    assert run(folder, out) == []


def test_a_group_that_is_too_large_for_the_memory_is_left_as_it_is(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 50 * (FAN + 2)), tmp_path / "out"
    run(folder, out, lot_bytes=1)
    assert list(table_of(out).merge(1_000)) == []


def test_of_two_merges_at_once_one_counts(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 50 * (FAN + 1)), tmp_path / "out"
    run(folder, out, lot_bytes=1)
    one, other = table_of(out), table_of(out)
    assert len(list(one.merge(1 << 30))) == 1
    assert list(other.merge(1 << 30)) == []
    assert rows_of(out)["offset"].to_pylist() == list(range(50 * FAN))


def test_vacuum_lists_and_then_removes_what_no_version_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = filled(tmp_path / "archive", 50 * (FAN + 1)), tmp_path / "out"
    run(folder, out, lot_bytes=1)
    list(table_of(out).merge(1 << 30))
    orphan = out / "date=1970-01-01/part-0123.zstd.parquet"
    orphan.write_bytes(b"what a killed run has left")
    assert command.main(["vacuum", str(out), "--delete"]) == 0  # all of it is younger than a week
    assert "0 files were removed" in capsys.readouterr().out
    listed = delta.vacuum(str(out), {}, 0, delete=False)
    assert len(listed) == FAN + 1
    assert orphan.exists()
    assert sorted(delta.vacuum(str(out), {}, 0, delete=True)) == sorted(listed)
    assert len(list(out.rglob("part-*"))) == 1
    assert rows_of(out)["offset"].to_pylist() == list(range(50 * FAN))
    with pytest.raises(SystemExit):
        command.main(["vacuum", str(out), "--hours", "0"])
    assert "a commit may be under way" in capsys.readouterr().err


def test_two_readers_see_whole_versions_while_runs_add_merge_and_vacuum(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 100), tmp_path / "out"
    run(folder, out)
    ended, seen = threading.Event(), [[0], [0]]
    problems: list[str] = []

    def read(lengths: list[int]) -> None:
        while not ended.is_set():
            offsets = rows_of(out)["offset"].to_pylist()
            if offsets != list(range(len(offsets))) or len(offsets) < lengths[-1]:
                problems.append(f"{len(offsets)} behind {lengths[-1]}")
                return
            lengths.append(len(offsets))

    readers = [threading.Thread(target=read, args=(lengths,)) for lengths in seen]
    for reader in readers:
        reader.start()
    try:
        for _ in range(4):
            filled(folder, 50 * FAN)
            assert command.main(["compact", str(folder), "--out", str(out), "--commit-mib", "1"]) == 0
            run(folder, out, lot_bytes=1)
            list(table_of(out).merge(1 << 20))
            assert command.main(["vacuum", str(out), "--hours", "1", "--delete"]) == 0
            there = rows_of(out).num_rows
            while any(lengths[-1] < there for lengths in seen) and not problems:
                readers[0].join(0.01)
    finally:
        ended.set()
        for reader in readers:
            reader.join(60)
    assert problems == []
    assert all(len(set(lengths)) > 4 for lengths in seen)


class Unsynced(Disk):
    """A disk that is quick."""

    def create(self, name: str) -> File:
        return UnsyncedFile(self.folder / name, os.O_CREAT | os.O_EXCL)

    def open(self, name: str) -> File:
        return UnsyncedFile(self.folder / name, 0)

    def sync_names(self) -> None:
        pass


class UnsyncedFile(DiskFile):
    def sync(self) -> None:
        pass


SMALL = """
import resource, sys
from pathlib import Path
from tests.without_spark.lakes import run

source, out, lot = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lots = run(Path(source), Path(out), lot_bytes=int(lot))
print(len(lots), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_thousand_small_segments_are_few_files_in_bounded_memory(tmp_path: Path) -> None:
    """70 MB in segments of 70 kB, in lots of 4 MB: what is taken beside is a few lots, and not the archive."""
    (tmp_path / "archive").mkdir()
    writer = Writer(tmp_path / "archive", files=Unsynced(tmp_path / "archive"), segment_bytes=1)
    rows = batch(0, 10, payload=7_000)
    for _ in range(1_000):
        writer.append(rows)
    writer.close()
    line = [sys.executable, "-c", SMALL, str(tmp_path / "archive"), str(tmp_path / "out"), str(4 << 20)]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    lots, kib = map(int, done.stdout.split())
    assert lots == 17
    assert kib * (1024 if sys.platform == "linux" else 1) < 45 << 20
    assert rows_of(tmp_path / "out")["offset"].to_pylist() == list(range(10_000))


def test_the_command_line_says_what_was_lost_and_ends_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = filled(tmp_path / "archive", 200), tmp_path / "out"
    (folder / "00000000000000000050.arrows").unlink()
    line = ["compact", str(folder), "--out", str(out)]
    assert command.main(line) == 2
    assert "messages 50 to 99 are gone" in capsys.readouterr().err
    assert command.main([*line, "--allow-loss", "--fail-above", "0"]) == 1
    text = capsys.readouterr().out
    assert "offsets 0 to 149: 100 messages, 1 files" in text
    assert "50 lost\n  lost: messages 50 to 99 are gone" in text
    assert command.main([*line, "--allow-loss", "--fail-above", "0"]) == 0  # it was lost once
    assert command.main(["compact", str(tmp_path), "--out", str(out)]) == 2
    assert "no archive" in capsys.readouterr().err
    assert command.main([*line[:-1], "nowhere://x"]) == 2
    assert "nowhere" in capsys.readouterr().err
