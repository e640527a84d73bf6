"""`compact --format iceberg`: each message once, over kills and two runs at once."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest
from pyiceberg.catalog import load_catalog

from fanlight_archive import SCHEMA, Archive, Writer
from fanlight_spark.lakehouse import command, compacting
from fanlight_spark.lakehouse.compacting import Overtaken
from fanlight_spark.lakehouse.iceberg import IN_FOLDER, MessagesIceberg
from tests.without_spark.lakes import filled, kill_somewhere


def iceberg(out: Path, **about: str) -> Any:
    return lambda archive: MessagesIceberg(str(out), {"archive": archive, "filter": None, **about}, {})


def run(folder: Path, out: Path, **options: Any) -> list[tuple[int, int, int]]:
    return [(one.first, one.end, one.files) for one in compacting.compact(folder, iceberg(out), **options)]


def load(out: Path) -> Any:
    return load_catalog("fanlight", type="sql", uri=f"sqlite:///{out}/catalog.db", warehouse=out.as_uri())


def table(out: Path) -> Any:
    return load(out).load_table(IN_FOLDER)


def rows_of(out: Path) -> Any:
    return table(out).scan().to_arrow().sort_by("offset")


def test_an_archive_becomes_a_table_and_what_is_new_is_added(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 300), tmp_path / "out"
    assert run(folder, out) == [(0, 250, 1)]
    assert run(folder, out) == []
    Writer(folder).close()
    assert run(folder, out) == [(250, 300, 1)]
    found = rows_of(out)
    with Archive(folder) as archive:
        expected = pa.Table.from_batches(archive.read())
    for name in SCHEMA.names:
        # pyiceberg writes an empty list where there are no headers.
        assert found[name].to_pylist() == [
            value or [] if name == "headers" else value for value in expected[name].to_pylist()
        ]
    (day,) = {row["partition"]["date"].isoformat() for row in table(out).inspect.partitions().to_pylist()}
    assert day == "1970-01-01"
    assert table(out).current_snapshot().summary["fanlight.end"] == "300"
    with pytest.raises(ValueError, match=r"was made with filter None, not stock\.#"):
        list(compacting.compact(folder, iceberg(out, filter="stock.#")))


def test_of_two_compactions_at_once_one_adds_the_messages(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 200), tmp_path / "out"
    run(folder, out, up_to=50)

    def slow(archive: str) -> Any:
        made = iceberg(out)(archive)
        run(folder, out)
        return made

    with pytest.raises(Overtaken, match="another compaction"):
        list(compacting.compact(folder, slow))
    assert rows_of(out)["offset"].to_pylist() == list(range(150))
    with table(out).transaction() as changed:
        changed.set_properties({"commit.retry.num-retries": "4"})
    with pytest.raises(ValueError, match="with 0 nothing is added twice"):
        run(folder, out)


def test_a_filter_that_nothing_matches_moves_the_position_alone(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 200), tmp_path / "out"
    line = ["compact", str(folder), "--out", str(out), "--format", "iceberg", "--filter", "forex.#"]
    assert command.main(line) == 0
    assert rows_of(out).num_rows == 0
    assert '"offset": 150' in table(out).properties["fanlight.position"]


KILLED = """
import sys
from pathlib import Path
from fanlight_spark.lakehouse import compacting
from tests.without_spark.test_lakehouse_iceberg import iceberg

source, out = map(Path, sys.argv[1:])
print("begins", flush=True)
for one in compacting.compact(source, iceberg(out), lot_bytes=1):
    print(one.end, flush=True)
"""


def test_killed_between_and_in_commits_every_message_is_there_once(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)  # pytest shows it of a test that fails
    kill_iceberg(tmp_path, kills=2, seed=seed)


def kill_iceberg(work: Path, *, kills: int, seed: int) -> None:
    folder, out = filled(work / "archive", 500), work / "out"
    chance = random.Random(seed)
    for _ in range(kills):
        kill_somewhere(KILLED, folder, out, chance, lines=max(10 // kills, 3))
        if (out / "catalog.db").exists() and load(out).table_exists(IN_FOLDER):
            offsets = rows_of(out)["offset"].to_pylist()
            assert offsets == list(range(len(offsets)))
    run(folder, out)
    assert rows_of(out)["offset"].to_pylist() == list(range(450))


def test_mistakes_are_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["compact", str(filled(tmp_path / "archive", 100)), "--format", "iceberg", "--no-hold", "--out"]
    for more, said in (
        (["s3://lake/messages"], "an Iceberg table in an object store needs --catalog"),
        (["messages", "--catalog", "lake"], "it is the name of a table, such as lake.messages"),
        (["lake.messages", "--catalog", "unheard"], "PYICEBERG_CATALOG__UNHEARD__URI"),
    ):
        assert command.main([*line, *more]) == 2
        assert said in capsys.readouterr().err
    assert command.main([*line[:2], "--out", str(tmp_path / "out"), "--catalog", "lake"]) == 2
    assert "--catalog is for --format iceberg" in capsys.readouterr().err
