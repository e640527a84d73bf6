"""`compact --format delta`, without Spark: each message once, in one commit with the position, over any kill."""

import random
from datetime import date
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]
import pytest
from deltalake import DeltaTable

from fanlight_archive import MESSAGE, SCHEMA, Archive, Gone, Writer
from fanlight_archive.holds import NAME, Keeping, holds_in, lowest
from fanlight_spark.lakehouse import compacting
from fanlight_spark.lakehouse.compacting import Overtaken
from fanlight_spark.lakehouse.delta import MessagesDelta
from fanlight_spark.lakehouse.holding import Hold, name_of
from fanlight_spark.lakehouse.rows import sorted_rows
from tests.archive.messages import batch
from tests.without_spark.lakes import filled, kill_somewhere, rows_of, run


def test_what_is_closed_becomes_a_delta_table_and_a_repetition_adds_only_what_is_new(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 300), tmp_path / "out"
    assert [(one.first, one.end, one.messages) for one in run(folder, out)] == [(0, 250, 250)]
    assert run(folder, out) == []
    writer = Writer(folder)  # it closes the open segment
    writer.close()
    assert [(one.first, one.end) for one in run(folder, out, lot_bytes=1)] == [(250, 300)]
    found = rows_of(out)
    with Archive(folder) as archive:
        expected = pa.Table.from_batches(archive.read())
    for name in SCHEMA.names:
        assert found[name].to_pylist() == expected[name].to_pylist()
    assert set(found["root"].to_pylist()) == {"stock"}
    assert DeltaTable(str(out)).version() == 2  # it was made, and two commits


def test_files_are_sorted_by_root_and_time_and_have_statistics_that_leave_them_out(tmp_path: Path) -> None:
    midnight = 20_000 * 86_400_000_000
    columns = batch(0, 6).to_pydict()
    columns["timestamp"] = [midnight + n * 1_000_000 for n in (-2, 1, 3, 2, -1, 4)]
    columns["topic"] = ["b.x", "a/x", "a.y", "/x", "a" * 70 + ".x", "c"]
    columns["syntax"] = ["amqp", "mqtt", "amqp", "mqtt", "amqp", "amqp"]
    writer = Writer(tmp_path / "archive")
    writer.append(pa.RecordBatch.from_pydict(columns, schema=MESSAGE))
    writer.close()
    out = tmp_path / "out"
    (done,) = run(tmp_path / "archive", out)
    assert done.files == 2
    table = DeltaTable(str(out))
    actions = pa.table(table.get_add_actions(flatten=True)).sort_by("partition.date")
    assert actions["num_records"].to_pylist() == [2, 4]
    assert actions["min.root"].to_pylist() == ["a" * 64, ""]
    assert actions["max.root"].to_pylist() == ["b", "c"]
    assert actions["min.offset"].to_pylist() == [0, 1]
    assert [at.timestamp() for at in actions["max.timestamp"].to_pylist()] == [midnight / 1e6 - 1, midnight / 1e6 + 4]
    later = DeltaTable(str(out)).to_pyarrow_table(filters=pc.field("date") == date(2024, 10, 4))
    assert later["root"].to_pylist() == ["", "a", "a", "c"]
    assert later["offset"].to_pylist() == [3, 1, 2, 5]
    assert table.to_pyarrow_table(filters=pc.field("root") == "a" * 70)["offset"].to_pylist() == [4]


def test_a_filter_says_what_is_taken_and_the_table_is_of_this_filter_alone(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 200), tmp_path / "out"
    run(folder, out, filter="stock.*.1")
    assert rows_of(out)["offset"].to_pylist() == list(range(1, 150, 3))
    assert run(folder, out, filter="stock.*.1") == []
    with pytest.raises(ValueError, match=r"was made with filter stock\.\*\.1, not None: take another place"):
        run(folder, out)
    with pytest.raises(ValueError, match="was made with archive"):
        run(filled(tmp_path / "other", 100), out)


def test_of_two_compactions_at_once_one_adds_the_messages(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 200), tmp_path / "out"
    run(folder, out, up_to=50)

    def opened(archive: str) -> MessagesDelta:
        slow = MessagesDelta(str(out), {"archive": archive, "filter": None, "syntax": None}, {})
        run(folder, out)
        return slow

    with pytest.raises(Overtaken, match="another compaction"):
        list(compacting.compact(folder, opened))
    assert rows_of(out)["offset"].to_pylist() == list(range(150))


def test_what_is_damaged_is_named_and_with_permission_left_out_and_recorded(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 300), tmp_path / "out"
    (folder / "00000000000000000100.arrows").unlink()
    damaged = folder / "00000000000000000050.arrows"
    data = bytearray(damaged.read_bytes())
    data[-600] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(Exception, match=r"00000000000000000050\.arrows"):
        run(folder, out)
    (done,) = run(folder, out, allow_loss=True)
    assert (done.messages, done.messages_lost) == (150, 100)
    assert [sentence.split(":")[0] for sentence in done.lost] == [
        "00000000000000000050.arrows", "messages 100 to 149 are gone"
    ]  # fmt: skip
    note = DeltaTable(str(out)).history(1)[0]["fanlight"]
    assert [(one["first"], one["end"]) for one in note["lost"]] == [(50, 100), (100, 150)]
    assert rows_of(out)["offset"].to_pylist() == [*range(50), *range(150, 250)]


def test_what_retention_has_taken_is_said(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 300), tmp_path / "out"
    run(folder, out, up_to=100)
    writer = Writer(folder)
    writer.remove_old(since=200 * 1_000_000)
    writer.close()
    with pytest.raises(Gone, match="messages 100 to 199 are gone"):
        run(folder, out)


def test_retention_waits_for_what_is_not_committed(tmp_path: Path) -> None:
    folder, out = filled(tmp_path / "archive", 300), tmp_path / "out"
    hold = Hold(folder, "lake", "a table")

    def opened(archive: str) -> MessagesDelta:
        return MessagesDelta(str(out), {"archive": archive, "filter": None, "syntax": None}, {})

    commits = compacting.compact(folder, opened, lot_bytes=1, hold=hold)
    assert (next(commits).end, next(commits).end) == (50, 100)

    def offset() -> int | None:
        with Archive(folder) as archive:
            return lowest(holds_in(folder, archive.id, None))

    assert offset() == 100
    writer = Writer(folder)
    assert [span.first for span in writer.remove_old(size=0, keeping=Keeping(offset(), 1 << 30))] == [0, 50]
    writer.close()
    assert [one.end for one in commits] == [150, 200, 250]
    assert offset() == 250


def test_a_hold_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = filled(tmp_path / "archive", 100)
    (folder / "holds").write_text("in its way")
    run(folder, tmp_path / "out", hold=Hold(folder, "lake", "a table"))
    assert rows_of(tmp_path / "out").num_rows == 50
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "retention does not wait for this job, as its hold cannot be written"
    ]
    with pytest.raises(ValueError, match="no name of a hold"):
        Hold(folder, "../x", "a table")
    assert name_of("s3://lake/mess ages") != name_of("s3://lake2/mess ages")
    assert NAME.fullmatch(name_of("s3://lake/" + "é" * 100))


KILLED = """
import sys
from pathlib import Path
from fanlight_spark.lakehouse import compacting
from fanlight_spark.lakehouse.delta import MessagesDelta

source, out = sys.argv[1:]
print("begins", flush=True)
table = None
def opened(archive):
    global table
    table = MessagesDelta(out, {"archive": archive, "filter": None, "syntax": None}, {})
    return table
for one in compacting.compact(Path(source), opened, lot_bytes=1):
    print(one.end, flush=True)
    for merged in table.merge(1 << 30):
        print(merged, flush=True)
"""


def test_killed_at_random_points_every_message_is_there_once(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)  # pytest shows it of a test that fails
    kill_delta(tmp_path, kills=3, seed=seed)


def kill_delta(work: Path, *, kills: int, seed: int) -> None:
    """SIGKILL after a line of its output, or in the middle of the next commit or merge: the next run goes on there."""
    folder, out = filled(work / "archive", 2_000), work / "out"
    chance = random.Random(seed)
    for _ in range(kills):
        kill_somewhere(KILLED, folder, out, chance, lines=36 // kills)
        if (out / "_delta_log").exists():
            offsets = rows_of(out)["offset"].to_pylist()
            assert offsets == list(range(len(offsets)))
    run(folder, out)
    assert rows_of(out)["offset"].to_pylist() == list(range(1_950))


def test_rows_with_the_same_time_are_in_the_order_of_their_offsets() -> None:
    columns = {**batch(0, 3).to_pydict(), "timestamp": [5, 5, 4]}
    rows = pa.RecordBatch.from_pydict({"offset": [7, 8, 9], **columns}, schema=SCHEMA)
    assert sorted_rows([rows])["offset"].to_pylist() == [9, 7, 8]
