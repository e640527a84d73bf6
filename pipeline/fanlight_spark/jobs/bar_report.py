"""The page of the job `bars`: the keys with the most volume as candles."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanlight_spark.jobs import charts
from fanlight_spark.jobs.command import counted
from fanlight_spark.jobs.local_time import local
from fanlight_spark.jobs.report import Report

SHOWN: Final = 6  # keys that get a chart
ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class Counts:
    """What a run has done with the messages."""

    messages: int = 0
    unreadable: int = 0
    corrected: int = 0
    late: int = 0  # dropped by the watermark


def report(bars: DataFrame, counts: Counts, title: str, about: str, key: str, zone: str) -> Report:
    totals = bars.agg(F.count("*").alias("bars"), F.count_distinct("key").alias("keys")).first()
    by_volume = bars.groupBy("key").agg(
        F.sum(F.col("volume").cast("double")).alias("volume"), F.sum("count").alias("messages")
    )  # fmt: skip
    largest = by_volume.orderBy(F.desc_nulls_last("volume"), F.desc("messages"), "key").limit(ROWS).collect()
    shown = [row.key for row in largest[:SHOWN]]
    wanted = bars.where(F.col("key").isin(shown)).dropna(subset=["open", "high", "low", "close"])
    newest = wanted.orderBy(F.desc("start")).limit(SHOWN * charts.CANDLES_MAX).collect()
    page = page_of(title, about, counts, totals["bars"], totals["keys"])
    page.table([key, "volume", "messages"], largest, total=totals["keys"])
    draw(page, shown, reversed(newest), zone)
    return page


def page_of(title: str, about: str, counts: Counts, bars: int, keys: int, refresh: int | None = None) -> Report:
    """The head of a page. refresh: how many seconds until a browser reads it again."""
    page = Report(title, about, refresh=refresh)
    lost = counts.unreadable + counts.late
    page.answer(
        f"{counted(bars, 'bar')} of {counted(keys, 'key')}, from {counted(counts.messages, 'message')}; {lost:,} "
        f"{'was' if lost == 1 else 'were'} unreadable or too late.",
        found=lost > 0,
    )
    page.facts([
        ("messages", counts.messages), ("bars", bars), ("keys", keys), ("unreadable", counts.unreadable),
        ("corrected", counts.corrected), ("too late", counts.late),
    ])  # fmt: skip
    return page


def draw(page: Report, keys: list[str], bars: Iterable[Any], zone: str = "UTC") -> None:
    """Candles of these keys, of bars from the oldest to the newest."""
    rows: dict[str, list[charts.Candle]] = {key: [] for key in keys}
    for row in bars:
        label = f"{local(row.start, zone):%Y-%m-%d %H:%M:%S}"
        label = label.removesuffix(":00").removesuffix(" 00:00")
        volume = None if row.volume is None else float(row.volume)
        rows[row.key].append(charts.Candle(label, row.open, row.high, row.low, row.close, volume))
    page.section("The most volume")
    for key, candles in rows.items():
        page.chart(charts.candles(candles, key), f"{key}: filled where it fell")
