"""`bars`: by hand, and against plain Python over the real prices; at once, and as a stream with late rows."""

import json
import math
from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from tests import require
from tests.archive.messages import batch

MONDAY = date(2026, 11, 16)
WEEK = datetime(2026, 11, 16)
DECODERS = """
[[decoder]]
table = "quotes"
filter = "#"
format = "json"
time = "date"

[decoder.fields]
ticker = "string"
date = "timestamp"
open = { type = "double", optional = true }
high = { type = "double", optional = true }
low = { type = "double", optional = true }
close = "double"
volume = { type = "bigint", optional = true }
trade = { type = "string", optional = true }
"""
ROLES = ["--key", "ticker", "--price", "close", "--size", "volume"]
OF_BARS = ["--open", "open", "--high", "high", "--low", "low"]


def payload(day: float, close: Any, ticker: str = "A", **other: Any) -> bytes:
    """A quote of a day after Monday; its open is 1 less, its high 2 more and its low 3 less than its close."""
    at = datetime.combine(MONDAY, time()) + timedelta(days=day)
    told = {"date": at.isoformat(), "ticker": ticker, "open": close - 1, "high": close + 2, "low": close - 3,
            "close": close, "volume": 10}  # fmt: skip
    return json.dumps({**told, **other}).encode()


def publish(folder: Path, payloads: list[bytes], first: int = 0) -> None:
    rows = batch(first, len(payloads)).to_pydict()
    rows["value"] = payloads
    writer = Writer(folder)
    writer.append(pa.RecordBatch.from_pydict(rows, schema=MESSAGE))
    writer.close()


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture
def line(tmp_path: Path) -> list[str]:
    """The command line over tmp_path/archive, but for --every."""
    (tmp_path / "decoders.toml").write_text(DECODERS)
    return [str(tmp_path / "archive"), "--decoders", str(tmp_path / "decoders.toml"), *ROLES]


def test_open_and_close_are_by_the_time_told_and_then_by_offset(
    spark: Any, tmp_path: Path, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import bars

    publish(
        tmp_path / "archive",
        [
            payload(2, 30.0, volume=30),  # published first, and not the first of the week
            payload(0, 10.0), payload(0, 11.0),  # two of one day: by offset
            payload(6, 20.0), payload(6, 21.0, open=None, volume=None),  # Sunday, the same
            payload(7, 50.0),  # the next Monday
            payload(1, 5.0, "B", open=None, high=None, low=None, volume=0),
            b"not JSON", b"{}", payload(1, 5.0, date="yesterday"), b'{"ticker": "A"}', b"\xff\xfe",
            payload(1, 5.0).replace(b'"close": 5.0', b'"close": null'),
            *(payload(1, 5.0, date=f"{year}-01-01") for year in ("0999", "9000")),
            *(payload(1, 5.0, "C", volume=2**63 - 1) for _ in range(2)),  # more than a BIGINT has room for
            payload(0, 1.0, "D", trade="x"), payload(0, 2.0, "D", trade="y"), payload(0, 3.0, "D", trade="x"),
        ],
    )  # fmt: skip
    out = tmp_path / "out"
    arguments = [*line, *OF_BARS, "--id", "trade", "--every", "7 days", "--out", str(out)]
    assert bars.main([*arguments, "--fail-above", "7"], spark) == 1
    next_week = WEEK + timedelta(days=7)
    assert rows_of(spark.read.parquet(str(out / "bars"))) == [
        ("A", WEEK, next_week, 9.0, 32.0, 7.0, 21.0, 60, (10 * (10 + 11 + 20) + 30 * 30) / 60, 5),
        ("A", next_week, next_week + timedelta(days=7), 49.0, 52.0, 47.0, 50.0, 10, 50.0, 1),
        ("B", WEEK, next_week, None, None, None, 5.0, 0, None, 1),
        ("C", WEEK, next_week, 4.0, 7.0, 2.0, 5.0, None, 5.0, 2),
        ("D", WEEK, next_week, 1.0, 5.0, -1.0, 3.0, 20, 2.5, 2),  # the second of trade x is in place of the first
    ]
    assert "20 messages, 8 unreadable, 1 corrected; " in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "<dd>20</dd>" in page
    assert "[9,21,7,32]" in page  # open, close, low, high
    assert 'http-equiv="refresh"' not in page


def real_ticks() -> list[dict[str, Any]]:
    """A month of every fiftieth ticker, at the close in New York; published in an order that is not that of time."""
    table = pq.read_table(require.data("market") / "sp500_daily.parquet")
    last = pc.max(table["date"]).as_py()
    tickers = sorted(pc.unique(table["ticker"]).to_pylist())[::50]
    wanted = pc.and_(pc.greater(table["date"], last - timedelta(days=31)), pc.is_in(table["ticker"], pa.array(tickers)))
    rows = table.filter(wanted).to_pylist()
    rows.sort(key=lambda row: (row["ticker"][::-1], row["date"].day))
    new_york = ZoneInfo("America/New_York")
    return [{**row, "at": datetime.combine(row["date"], time(16), new_york), "offset": offset}
            for offset, row in enumerate(rows)]  # fmt: skip


def test_bars_of_the_real_data_are_those_of_plain_python(spark: Any) -> None:
    """By days of New York, by ticks, and by volume."""
    from fanlight_spark import bars

    ticks = real_ticks()
    assert len(ticks) > 150
    by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for tick in sorted(ticks, key=lambda tick: (tick["at"], tick["offset"])):
        by_key[tick["ticker"]].append(tick)
    biggest = max(tick["volume"] for tick in ticks)
    numbers: dict[str, dict[tuple[str, Any], list[dict[str, Any]]]] = {}
    for every in ("1 day", "7 ticks", f"{biggest} volume"):
        made = numbers.setdefault(every, defaultdict(list))
        for key, own in by_key.items():
            passed = 0
            for number, tick in enumerate(own):
                which = {"1 day": tick["date"], "7 ticks": number // 7}.get(every, passed // biggest)
                made[(key, which)].append(tick)
                passed += tick["volume"]
    frame = spark.createDataFrame(
        [(tick["ticker"], tick["at"].astimezone(UTC), tick["offset"], tick["close"], tick["volume"], None,
          *(tick[name] for name in ("open", "high", "low"))) for tick in ticks],
        "key STRING, at TIMESTAMP, offset BIGINT, price DOUBLE, size BIGINT, id STRING, open DOUBLE, high DOUBLE, "
        "low DOUBLE",
    )  # fmt: skip
    for every, expected in numbers.items():
        found = bars.bars(frame, bars.Every.of(every), "America/New_York").collect()
        assert len(found) == len(expected)
        by_start = {(row.key, row.start): row for row in found}
        for (key, which), own in expected.items():
            begin, end = own[0]["at"], own[-1]["at"]
            if every == "1 day":  # midnight in New York
                begin = datetime.combine(which, time(), ZoneInfo("America/New_York"))
                end = datetime.combine(which + timedelta(days=1), time(), ZoneInfo("America/New_York"))
            row = by_start[(key, begin.astimezone(UTC).replace(tzinfo=None))]
            assert row.end == end.astimezone(UTC).replace(tzinfo=None)
            told = {name: [one[name] for one in own if one[name] is not None] for name in ("open", "high", "low")}
            assert (row.open, row.high, row.low) == (told["open"][0], max(told["high"]), min(told["low"]))
            volume = sum(one["volume"] for one in own)
            assert (row.close, row.volume, row["count"]) == (own[-1]["close"], volume, len(own))
            vwap = sum(one["close"] * one["volume"] for one in own) / volume
            assert math.isclose(row.vwap, vwap, rel_tol=1e-12)


def test_a_stream_revises_bars_and_drops_and_counts_what_is_too_late(
    spark: Any, tmp_path: Path, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The watermark is two days behind the newest message of the batch before."""
    from fanlight_spark import bars as transforms
    from fanlight_spark.jobs import bars

    archive, out = tmp_path / "archive", tmp_path / "out"
    arguments = [*line, *OF_BARS, "--every", "7 days", "--stream", "--late", "2 days", "--out", str(out)]

    def run() -> str:
        assert bars.main(arguments, spark) == 0
        return capsys.readouterr().out.splitlines()[-1]

    def now() -> list[tuple[Any, ...]]:
        found = transforms.latest(spark.read.parquet(str(out / "stream")))
        return rows_of(found.select("start", "open", "high", "low", "close", "volume", "count"))

    publish(archive, [payload(0, 10.0), payload(8, 20.0), b"?"])
    assert run().startswith("3 messages, 1 unreadable, 0 too late; ")
    first, second = (WEEK, 9.0, 12.0, 7.0, 10.0, 10, 1), (WEEK + timedelta(days=7), 19.0, 22.0, 17.0, 20.0, 10, 1)
    assert now() == [first, second]  # at once, not when a week is over
    publish(archive, [payload(1, 12.0), payload(20, 30.0)], first=3)  # late, and in time: the watermark is at day 6
    assert run().startswith("2 messages, 0 unreadable, 0 too late; ")
    first = (WEEK, 9.0, 14.0, 7.0, 12.0, 20, 2)
    assert now() == [first, second, (WEEK + timedelta(days=14), 29.0, 32.0, 27.0, 30.0, 10, 1)]
    publish(archive, [payload(2, 99.0), payload(19, 25.0)], first=5)  # too late; in time
    assert run().startswith("2 messages, 0 unreadable, 1 too late; ")
    third = (WEEK + timedelta(days=14), 24.0, 32.0, 22.0, 30.0, 20, 2)
    assert now() == [first, second, third]
    revisions = spark.read.parquet(str(out / "stream")).where(f"start = '{WEEK}'").select("close", "revision")
    assert [close for close, _ in sorted(rows_of(revisions), key=lambda row: row[1])] == [10.0, 12.0]
    for other in (["--every", "1 day"], ["--filter", "stock.#"]):  # bars of both would be mixed
        assert bars.main([*arguments, *other], spark) == 2
        assert "take another folder" in capsys.readouterr().err
    assert bars.main([*arguments, "--every", "5 ticks"], spark) == 2
    assert "--stream makes bars by time" in capsys.readouterr().err


def test_a_page_is_written_with_each_batch_of_a_stream_that_goes_on(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs.bar_stream import SCHEMA, Live

    live = Live(tmp_path, "ticker", "Bars of 1 minute", "archive", going_on=True)
    live.resume(spark)
    schema = SCHEMA.replace(", revision INT", "")
    bar = (9.0, 12.0, 7.0, 10.0, 10.0, 10.0, 1)
    live.write(spark.createDataFrame([("A", WEEK, WEEK, *bar), ("<b>", WEEK, WEEK, *bar)], schema), 0)
    assert '<meta http-equiv="refresh" content="2">' in (page := (tmp_path / "report.html").read_text())
    assert page.count('<figure class="data">') == 2
    assert "[9,10,7,12]" in page
    assert "<b>" not in page.split("</style>")[1].split("<footer>")[0]
    live.write(spark.createDataFrame([("A", WEEK, WEEK, 9.0, 15.0, 7.0, 11.0, 30.0, 10.5, 3)], schema), 1)
    assert "[9,11,7,15]" in (page := (tmp_path / "report.html").read_text())
    assert "from 4 messages" in page
    again = Live(tmp_path, "ticker", "Bars of 1 minute", "archive", going_on=True)
    again.resume(spark)
    again.write(spark.createDataFrame([], schema), 2)
    assert "[9,11,7,15]" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("every", "begin"),
    [("7 days", "4 days"), ("1 week", "4 days"), ("2 weeks", "4 days"), ("1 day", "0 days"), ("10 days", "0 days"),
     ("1 hour", "0 days")],
)  # fmt: skip
def test_bars_of_weeks_begin_on_mondays(every: str, begin: str) -> None:
    from fanlight_spark.bars import Every

    assert Every.of(every).begin == begin


def test_a_bar_is_of_time_or_of_ticks_or_of_volume() -> None:
    from fanlight_spark.bars import Every

    assert [Every.of(text)[:2] for text in ("1 minute", "1 tick", "1_000 ticks", "2.5e6 volume")] == [
        ("time", 0), ("ticks", 1), ("ticks", 1000), ("volume", 2.5e6)
    ]  # fmt: skip
    for text in ("0 ticks", "1.5 ticks", "0 volume"):
        with pytest.raises(ValueError, match="a bar is of one tick or more"):
            Every.of(text)
