"""What is published is named by the manifest, whole, and stays; what was not is removed. No Spark."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_spark.jobs import filesets
from fanlight_spark.jobs.filesets import FileSet, Manifest

EMPTY = Manifest("an archive", {"archive": "an archive", "epoch": 1, "offset": 0}, 64)


def written(folder: filesets.Folder, first: int, rows: int = 3) -> Path:
    """A set that is ready to be published."""
    aside = folder.aside(first)
    (aside / "date=2026-11-21").mkdir(parents=True)
    pq.write_table(pa.table({"offset": range(first, first + rows)}), aside / "date=2026-11-21" / "part-0.parquet")
    return aside


def publish(folder: filesets.Folder, first: int, end: int) -> Manifest:
    aside = written(folder, first, end - first)
    made = filesets.counted(aside, FileSet(None, first, end, [{"epoch": 1, "first": first}]))
    return folder.publish(folder.manifest or EMPTY, aside, made)


def test_a_manifest_says_what_is_in_each_set(tmp_path: Path) -> None:
    with filesets.opened(tmp_path) as folder:
        publish(folder, 0, 3)
        publish(folder, 3, 10)
    manifest = filesets.load(tmp_path)
    assert manifest is not None
    assert manifest == folder.manifest
    assert [(one.first, one.end, one.messages, one.files) for one in manifest.sets] == [(0, 3, 3, 1), (3, 10, 7, 1)]
    for one in manifest.sets:
        (file,) = (tmp_path / "messages" / str(one.folder)).rglob("*.parquet")
        assert pq.read_table(file)["offset"].to_pylist() == list(range(one.first, one.end))
        assert file.stat().st_size == one.bytes


def test_what_was_left_is_removed_and_what_is_somebody_elses_is_not(tmp_path: Path) -> None:
    with filesets.opened(tmp_path) as folder:
        kept = publish(folder, 0, 3).sets[0].folder
        written(folder, 3)  # killed while it wrote
        half = written(folder, 3)
        half.rename(half.with_name("set=" + half.name[1:]))  # killed between the two renames
        (tmp_path / "messages" / "_notes").mkdir()
        (tmp_path / "manifest.json.new").write_text("torn")
    with filesets.opened(tmp_path) as folder:
        assert {path.name for path in (tmp_path / "messages").iterdir()} == {kept, "_notes"}
        publish(folder, 3, 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "manifest.json", "messages"]


def test_a_set_without_a_message_moves_on_and_has_no_folder(tmp_path: Path) -> None:
    with filesets.opened(tmp_path) as folder:
        folder.publish(replace(EMPTY, filter="a"), folder.aside(0), FileSet(None, 0, 9, []))
    manifest = filesets.load(tmp_path)
    assert manifest is not None
    assert [(one.folder, one.end) for one in manifest.sets] == [(None, 9)]
    assert list((tmp_path / "messages").iterdir()) == []


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    with filesets.opened(tmp_path), pytest.raises(ValueError, match="somebody else is writing there"):
        publish(next(filesets.opened.__wrapped__(tmp_path)), 0, 3)  # type: ignore[attr-defined]
    with filesets.opened(tmp_path) as folder:
        publish(folder, 0, 3)


def test_files_are_on_the_disk_before_they_have_a_name_and_the_manifest_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def sync(at: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{at}').resolve().name}")

    monkeypatch.setattr(os, "fsync", sync)
    rename = Path.rename

    def renamed(path: Path, to: Path) -> Path:
        done.append(f"name {Path(to).name}")
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", renamed)
    with filesets.opened(tmp_path) as folder:
        name = str(publish(folder, 0, 3).sets[0].folder)
    aside = name.replace("set=", "_")
    files = {"sync part-0.parquet", f"sync {aside}", "sync date=2026-11-21"}
    assert set(done[:3]) == files
    assert done[3:] == [
        f"name {name}", "sync messages", "sync manifest.json.new", "name manifest.json", f"sync {tmp_path.name}",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2, "sets": []}', '{"format": 1, "sets": []}'])
def test_what_is_no_manifest_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest\.json: not a manifest in format 1"):
        filesets.load(tmp_path)


def test_what_a_later_version_adds_is_nothing_that_one_must_know(tmp_path: Path) -> None:
    with filesets.opened(tmp_path) as folder:
        known = publish(folder, 0, 3)
    told = json.loads((tmp_path / "manifest.json").read_text())
    told["new"] = told["sets"][0]["new"] = 1
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    assert filesets.load(tmp_path) == known
