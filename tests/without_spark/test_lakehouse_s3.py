"""A Delta table in an object store, which has no rename and no folders: one store for all of it."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]
import pytest
from deltalake import DeltaTable

from fanlight_archive import Archive
from fanlight_archive.holds import holds_in
from fanlight_spark.lakehouse import command, compacting, delta
from fanlight_spark.lakehouse.compacting import Overtaken
from fanlight_spark.lakehouse.delta import MessagesDelta
from fanlight_spark.lakehouse.small_files import FAN
from tests.without_spark.lakes import filled
from tests.without_spark.object_store import object_store

BUCKET = "lake"


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    with object_store(BUCKET) as options:
        yield options


def arguments(options: dict[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in ("--storage-option", f"{name}={value}")]


def read(url: str, store: dict[str, str]) -> Any:
    return DeltaTable(url, storage_options=store).to_pyarrow_table().sort_by("offset")


KILLED = """
import json, sys
from pathlib import Path
from fanlight_spark.lakehouse import compacting
from fanlight_spark.lakehouse.delta import MessagesDelta

source, url, options = sys.argv[1:]
def opened(archive):
    return MessagesDelta(url, {"archive": archive, "filter": None, "syntax": None}, json.loads(options))
for one in compacting.compact(Path(source), opened, lot_bytes=1):
    print(one.end, flush=True)
"""


def test_compact_merge_and_vacuum_over_a_kill_in_an_object_store(
    store: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, url = filled(tmp_path / "archive", 50 * (FAN + 2)), f"s3://{BUCKET}/messages"
    line = [sys.executable, "-c", KILLED, str(folder), url, json.dumps(store)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        for _ in range(FAN - 1):
            killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
    offsets = read(url, store)["offset"].to_pylist()
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= 50 * (FAN - 1)
    options = arguments(store)
    assert command.main(["compact", str(folder), "--out", url, *options]) == 0
    assert "1970-01-01: 8 files are one now" in capsys.readouterr().out
    assert read(url, store)["offset"].to_pylist() == list(range(50 * (FAN + 1)))
    with Archive(folder) as archive:
        (hold,) = holds_in(folder, archive.id, None)
    assert (hold.by, hold.offset) == (url, 50 * (FAN + 1))
    assert command.main(["vacuum", url, *options]) == 0
    assert "0 files would be removed" in capsys.readouterr().out
    assert len(delta.vacuum(url, store, 0, delete=True)) >= FAN
    assert read(url, store)["offset"].to_pylist() == list(range(50 * (FAN + 1)))
    some = DeltaTable(url, storage_options=store).to_pyarrow_dataset().to_table(filter=pc.field("offset") == 7)
    assert some["topic"].to_pylist() == ["stock.AAPL.1"]


def test_of_two_compactions_at_once_the_store_refuses_one(store: dict[str, str], tmp_path: Path) -> None:
    folder, url = filled(tmp_path / "archive", 200), f"s3://{BUCKET}/twice"

    def opened(archive: str) -> MessagesDelta:
        return MessagesDelta(url, {"archive": archive, "filter": None, "syntax": None}, store)

    def slow(archive: str) -> MessagesDelta:
        table = opened(archive)
        list(compacting.compact(folder, opened))
        return table

    with pytest.raises(Overtaken, match="another compaction"):
        list(compacting.compact(folder, slow))
    assert read(url, store)["offset"].to_pylist() == list(range(150))


def test_a_store_that_refuses_is_an_error_of_the_command(
    store: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = filled(tmp_path / "archive", 100)
    assert command.main(["compact", str(folder), "--out", "s3://nobodys/messages", *arguments(store)]) == 2
    said = capsys.readouterr().err
    assert "s3://nobodys/messages: " in said
    assert "NoSuchBucket" in said
    assert said.count("\n") == 1


def test_an_iceberg_table_in_an_object_store_goes_on_where_it_was(
    store: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files and the metadata are in the store, the catalog is a database."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.catalog import load_catalog

    folder = filled(tmp_path / "archive", 150)
    settings = {
        "type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{BUCKET}/iceberg",
        "s3.endpoint": store["AWS_ENDPOINT_URL"], "s3.access-key-id": store["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": store["AWS_SECRET_ACCESS_KEY"], "s3.region": store["AWS_REGION"],
    }  # fmt: skip
    line = ["compact", str(folder), "--format", "iceberg", "--catalog", "lake", "--out", "lake.messages"]
    line += arguments(settings)
    for up_to in (70, 150, 150):
        assert command.main([*line, "--up-to", str(up_to)]) == 0, capsys.readouterr().err
    table = load_catalog("lake", **settings).load_table("lake.messages")
    assert table.scan().to_arrow().sort_by("offset")["offset"].to_pylist() == list(range(150))
    assert all(one.file.file_path.startswith(f"s3://{BUCKET}/iceberg/") for one in table.scan().plan_files())
