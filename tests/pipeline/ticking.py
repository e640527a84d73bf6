"""A stream of bars by the hour, and the same bars by plain Python."""

import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

from fanlight_archive import MESSAGE, Writer
from tests.archive.messages import batch

DECODERS = """
[[decoder]]
table = "ticks"
filter = "#"
format = "json"
time = "at"

[decoder.fields]
ticker = "string"
at = "timestamp"
price = "double"
size = "bigint"
"""
BEGIN = datetime(2026, 11, 16, tzinfo=UTC)


class Tick(NamedTuple):
    ticker: str
    at: datetime
    price: float
    size: int


class Bar(NamedTuple):
    open: float | None
    high: float
    low: float
    close: float
    volume: int
    messages: int


COLUMNS = ("open", "high", "low", "close", "volume", "count")  # of a row, in the order of Bar


def fill_with_ticks(archive: Path, rows: int, chance: random.Random) -> list[Tick]:
    """One a minute, of three tickers, in closed segments of 400."""
    ticks = [
        Tick(f"T{number % 3}", BEGIN + timedelta(minutes=number), chance.randrange(1_000) / 8, chance.randrange(100))
        for number in range(rows)
    ]
    writer = Writer(archive)
    for first in range(0, rows, 50):
        if first and first % 400 == 0:
            writer.roll()
        some = ticks[first : first + 50]
        columns = batch(first, len(some)).to_pydict()
        columns["value"] = [json.dumps({**one._asdict(), "at": one.at.isoformat()}).encode() for one in some]
        writer.append(pa.RecordBatch.from_pydict(columns, schema=MESSAGE))
    writer.close()
    return ticks


def stream_bars(stream: Any, out: Path) -> None:
    """As far as there are messages, from where it was, as the job `bars --stream` does."""
    from fanlight_spark.bars import Every, TickColumns, ticks
    from fanlight_spark.decoding.file import load
    from fanlight_spark.jobs import bar_stream
    from fanlight_spark.jobs.bars import watched
    from fanlight_spark.tables import decode

    out.mkdir(exist_ok=True)
    (out / "decoders.toml").write_text(DECODERS)
    columns = TickColumns("ticker", "price", "size", "at")
    found = watched(ticks(decode(stream, load(out / "decoders.toml"), "ticks"), columns), "ticks")
    live = bar_stream.Live(out, "ticker", "Bars", "an archive", False)
    bar_stream.run(found, Every.of("1 hour"), "UTC", live, {}, "1 minute")


def bars_of(ticks: list[Tick]) -> dict[tuple[str, datetime], Bar]:
    by_hour = defaultdict(list)
    for one in ticks:
        by_hour[one.ticker, one.at.replace(minute=0)].append(one)
    made = {}
    for where, some in by_hour.items():
        prices = [one.price for one in some]
        size = sum(one.size for one in some)
        made[where] = Bar(prices[0], max(prices), min(prices), prices[-1], size, len(some))
    return made


def found(out: Path) -> dict[tuple[str, datetime], Bar]:
    """The last revision of each bar, of the batches that were written to their end."""
    last: dict[tuple[str, datetime], Bar] = {}
    folders = {int(path.parent.name.partition("=")[2]): path.parent for path in out.glob("stream/*/_SUCCESS")}
    for number in sorted(folders):
        for path in folders[number].glob("*.parquet"):
            for row in pq.ParquetFile(path).read().to_pylist():
                start = datetime.fromisoformat(str(row["start"])).replace(tzinfo=UTC)  # Spark's are without a zone
                last[row["key"], start] = Bar(*(row[name] for name in COLUMNS))
    return last
