"""`ohlc`: bars by hand and against plain Python over the real market data, at once and as a stream with late rows."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from tests import require
from tests.archive.messages import batch

MONDAY = date(2026, 11, 16)


def payload(day: int, close: Any, ticker: str = "A", **other: Any) -> bytes:
    """A quote of a day after Monday; its open is 1 less, its high 2 more and its low 3 less than its close."""
    told = {"date": str(MONDAY + timedelta(days=day)), "ticker": ticker, "open": close - 1, "high": close + 2,
            "low": close - 3, "close": close, "volume": 10}  # fmt: skip
    return json.dumps({**told, **other}).encode()


def publish(folder: Path, payloads: list[bytes], first: int = 0) -> None:
    rows = batch(first, len(payloads)).to_pydict()
    rows["value"] = payloads
    writer = Writer(folder)
    writer.append(pa.RecordBatch.from_pydict(rows, schema=MESSAGE))
    writer.close()


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


WEEK = datetime(2026, 11, 16)


def test_open_and_close_are_by_the_time_told_and_then_by_offset(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import ohlc

    publish(
        tmp_path / "archive",
        [
            payload(2, 30.0),  # published first, and not the first of the week
            payload(0, 10.0), payload(0, 11.0),  # two of one day: by offset
            payload(6, 20.0), payload(6, 21.0, open=None, volume=None),  # Sunday, the same
            payload(7, 50.0),  # the next Monday
            payload(1, 5.0, "B", open=None, high=None, low=None),
            b"not JSON", b"{}", payload(1, 5.0, date="yesterday"), b'{"ticker": "A"}', b"\xff\xfe",
            payload(1, 5.0).replace(b"5.0", b"NaN"),
            *(payload(1, 5.0, date=f"{year}-01-01") for year in ("0000", "0999", "9000", "+12345", "-29000", "294247")),
            *(payload(1, 5.0, "C", volume=2**63 - 1) for _ in range(2)),  # more than a BIGINT has room for
        ],
    )  # fmt: skip
    out = tmp_path / "out"
    assert ohlc.main([str(tmp_path / "archive"), "--out", str(out)], spark) == 0
    assert rows_of(spark.read.parquet(str(out / "bars"))) == [
        ("A", WEEK, 9.0, 32.0, 7.0, 21.0, 40, 5),
        ("A", WEEK + timedelta(days=7), 49.0, 52.0, 47.0, 50.0, 10, 1),
        ("B", WEEK, None, None, None, 5.0, 10, 1),
        ("C", WEEK, 4.0, 7.0, 2.0, 5.0, None, 2),
    ]
    assert "21 messages, 12 unreadable; " in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "<dd>21</dd>" in page
    assert "[9,21,7,32]" in page  # open, close, low, high


def test_bars_of_the_real_data_are_those_of_plain_python(spark: Any) -> None:
    """A month of every fifth ticker; published in an order that is not that of time."""
    from fanlight_spark.jobs import ohlc

    table = pq.read_table(require.data("market") / "sp500_daily.parquet").to_pylist()
    last = max(row["date"] for row in table)
    tickers = sorted({row["ticker"] for row in table})[::5]
    rows = [row for row in table if row["date"] > last - timedelta(days=31) and row["ticker"] in set(tickers)]
    rows.sort(key=lambda row: (row["ticker"][::-1], row["date"].day))
    assert len(rows) > 1000
    messages = [(offset, json.dumps({**row, "date": str(row["date"])}).encode()) for offset, row in enumerate(rows)]
    found = ohlc.bars(ohlc.quotes(spark.createDataFrame(messages, "offset BIGINT, value BINARY")))

    weeks: dict[tuple[str, datetime], list[dict[str, Any]]] = {}
    for row in rows:
        monday = row["date"] - timedelta(days=row["date"].weekday())
        weeks.setdefault((row["ticker"], datetime(monday.year, monday.month, monday.day)), []).append(row)

    def bar(days: list[dict[str, Any]]) -> tuple[Any, ...]:
        days = sorted(days, key=lambda day: day["date"])
        told = {name: [day[name] for day in days if day[name] is not None] for name in ("open", "high", "low", "close")}
        return (told["open"][0], max(told["high"]), min(told["low"]), told["close"][-1],
                sum(day["volume"] for day in days), len(days))  # fmt: skip

    assert rows_of(found) == sorted((*key, *bar(days)) for key, days in weeks.items())


def test_a_stream_writes_each_bar_once_and_drops_and_counts_what_is_too_late(spark: Any, tmp_path: Path) -> None:
    """Batches of two messages. The watermark is two days behind the newest message; Spark drops by that of the batch
    before last, and writes bars by that of the last."""
    from fanlight_spark.jobs import ohlc

    folder, out = tmp_path / "archive", tmp_path / "out"
    publish(
        folder,
        [
            payload(0, 10.0), payload(8, 20.0),  # the watermark is then at day 6: the first week is open
            payload(1, 12.0), b"?",  # late, and in time
            payload(10, 30.0), payload(9, 25.0),  # day 8: the first week is closed,
            payload(11, 33.0), payload(12, 35.0),  # and written
            payload(2, 99.0), payload(15, 40.0),  # too late; the second week is open
        ],
    )  # fmt: skip

    def run() -> Any:
        stream = spark.readStream.format("fanlight").options(startingOffsets="earliest", maxOffsetsPerTrigger=2)
        return ohlc.run_stream(stream.load(str(folder)), out, late="2 days")

    counts = run()
    assert (counts.messages, counts.unreadable, counts.late) == (10, 1, 1)
    first = ("A", WEEK, 9.0, 14.0, 7.0, 12.0, 20, 2)
    assert rows_of(spark.read.parquet(str(out / "stream"))) == [first]
    assert run() == ohlc.Counts(0, 0, 0)

    publish(folder, [payload(3, 99.0), payload(13, 36.0), payload(17, 50.0), payload(24, 60.0)], first=10)
    counts = run()
    assert (counts.messages, counts.unreadable, counts.late) == (4, 0, 1)
    second = ("A", WEEK + timedelta(days=7), 19.0, 38.0, 17.0, 36.0, 60, 6)
    third = ("A", WEEK + timedelta(days=14), 39.0, 52.0, 37.0, 50.0, 20, 2)
    assert rows_of(spark.read.parquet(str(out / "stream"))) == [first, second, third]


@pytest.mark.parametrize(
    ("every", "begin"),
    [("7 days", "4 days"), ("1 week", "4 days"), ("2 weeks", "4 days"), ("1 day", "0 days"), ("10 days", "0 days"),
     ("1 hour", "0 days")],
)  # fmt: skip
def test_bars_of_weeks_begin_on_mondays(every: str, begin: str) -> None:
    from fanlight_spark.jobs import ohlc

    assert ohlc.begin_of(every) == begin


def test_the_command_streams_and_says_what_was_late(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import ohlc

    publish(tmp_path / "archive", [payload(0, 10.0), payload(20, 20.0)])
    line = [str(tmp_path / "archive"), "--out", str(tmp_path / "out"), "--stream", "--late", "1 day"]
    assert ohlc.main([*line, "--every", "1 day"], spark) == 0
    assert "2 messages, 0 unreadable, 0 dropped, too late; " in capsys.readouterr().out
    for other in (["--every", "7 days"], ["--every", "1 day", "--filter", "stock.#"]):  # bars of both would be mixed
        assert ohlc.main([*line, *other], spark) == 2
        assert "take another folder" in capsys.readouterr().err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "dropped, too late" in page
    assert datetime.now(UTC).strftime("%Y-%m-%d") in page
