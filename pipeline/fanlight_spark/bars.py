"""Bars of ticks: open, high, low, close, volume, VWAP and count, by time, by number of ticks or by volume.

A tick has a key, a time, a price and perhaps a size: `TickColumns` says which columns of a decoded table these are.
Ticks of equal time are in the order of their offsets. A tick may itself be a bar, with an open, a high and a low.

    time     bars of 'every', of days in a zone; weeks begin on Mondays
    ticks    every so many ticks of a key make a bar
    volume   a tick is in the bar in which the first of its size falls, so a large one may close several

A message may correct another: of ticks of a key with the same `id` the one with the last offset counts.
"""

import re
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

YEARS: Final = (1000, 8999)  # so that what Python has times for, 1 to 9999, has room for the windows about them
VALUES: Final = ("open", "high", "low", "close", "volume", "vwap", "count")
BY_NUMBER: Final = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?(?:e[0-9]+)?)\s+(ticks?|volume)")


class TickColumns(NamedTuple):
    """Columns of a decoded table. time: None for when the broker got it. open, high, low: of ticks that are bars."""

    key: str
    price: str
    size: str | None = None
    time: str | None = None
    id: str | None = None
    open: str | None = None
    high: str | None = None
    low: str | None = None


class Every(NamedTuple):
    """What a bar is made of: '7 days', '100 ticks', '1e6 volume'."""

    kind: str  # time, ticks, volume
    number: float
    text: str

    @staticmethod
    def of(text: str) -> "Every":
        """Raises ValueError."""
        found = BY_NUMBER.fullmatch(text.strip().lower())
        if found is None:
            return Every("time", 0, text)
        kind, number = "volume" if found[2] == "volume" else "ticks", float(found[1])
        if number <= 0 or (kind == "ticks" and number != int(number)):
            raise ValueError(f"{text}: a bar is of one tick or more, or of some volume")
        return Every(kind, number, text)

    @property
    def days(self) -> int:
        """How many whole days, if it is a time; else 0."""
        number, _, unit = self.text.strip().lower().partition(" ")
        length = {"day": 1, "week": 7}.get(unit.strip().rstrip("s"), 0)
        return int(number) * length if number.isdigit() else 0

    @property
    def begin(self) -> str:
        """Where bars begin, after 1970-01-01, which was a Thursday: those of whole weeks on Mondays."""
        return "4 days" if self.days and self.days % 7 == 0 else "0 days"


def ticks(decoded: DataFrame, roles: TickColumns) -> DataFrame:
    """(key, at, offset, price, size, id, open, high, low) of what `decode` has made; at is null where a year is none.

    Raises ValueError for a column that is not there.
    """
    if missing := sorted({name for name in roles if name is not None} - set(decoded.columns)):
        has = ", ".join(name for name in decoded.columns if not name.startswith("_"))
        raise ValueError(f"the table has no column {', '.join(missing)}: it has {has}")
    time = F.col(roles.time or "_timestamp").cast("timestamp")
    price = F.col(roles.price).cast("double")
    others = {"open": roles.open, "high": roles.high, "low": roles.low}
    return decoded.select(
        F.col(roles.key).cast("string").alias("key"), F.when(F.year(time).between(*YEARS), time).alias("at"),
        F.col("_offset").alias("offset"), price.alias("price"), _or_null(roles.size, None).alias("size"),
        _or_null(roles.id, "string").alias("id"),
        *((price if name is None else F.col(name).cast("double")).alias(what) for what, name in others.items()),
    )  # fmt: skip


def _or_null(name: str | None, kind: str | None) -> Column:
    if name is None:
        return F.lit(None).cast(kind or "bigint")
    return F.col(name) if kind is None else F.col(name).cast(kind)


def readable(ticks: DataFrame) -> DataFrame:
    return ticks.where(~unreadable())


def unreadable() -> Column:
    return F.col("key").isNull() | F.col("at").isNull() | F.col("price").isNull()


def corrected(ticks: DataFrame) -> DataFrame:
    """Without those that a later message corrects."""
    whole = F.struct(*ticks.columns).alias("whole")
    mine = ticks.withColumn("mine", F.coalesce("id", F.concat(F.lit("\0"), F.col("offset").cast("string"))))
    return mine.groupBy("key", "mine").agg(F.max_by(whole, "offset").alias("whole")).select("whole.*")


def bars(ticks: DataFrame, every: Every, zone: str = "UTC") -> DataFrame:
    """(key, start, end, VALUES) of ticks; volume is null if there is no size, or if the sum is no BIGINT any more.

    end: of a bar by time, where the next begins; else when its last tick was.
    """
    if every.kind == "time":
        return by_time(with_local(ticks, every, zone), every, zone)
    order = Window.partitionBy("key").orderBy("at", "offset")
    if every.kind == "ticks":
        number = F.floor((F.row_number().over(order) - 1) / F.lit(int(every.number)))
    else:
        size = F.greatest(F.coalesce("size", F.lit(0)), F.lit(0)).cast("double")
        before = F.coalesce(F.sum(size).over(order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0.0))
        number = F.floor(before / F.lit(every.number))
    grouped = ticks.withColumn("number", number).groupBy("key", "number")
    return _values(grouped, F.min("at").alias("start"), F.max("at").alias("end")).drop("number")


def with_local(ticks: DataFrame, every: Every, zone: str) -> DataFrame:
    """With the time by which bars are made: by the clock of the zone if they are of days, for days have 23 to 25 hours.

    An instant else: an hour that clocks repeat would be one bar.
    """
    local = F.from_utc_timestamp("at", zone) if every.days and zone != "UTC" else F.col("at")
    return ticks.withColumn("local", local)


def by_time(ticks: DataFrame, every: Every, zone: str) -> DataFrame:
    """Of ticks `with_local`, of a stream too."""
    window = F.window("local", every.text, startTime=every.begin).alias("window")
    made = _values(ticks.groupBy("key", window))
    ends = (F.col(f"window.{end}") for end in ("start", "end"))
    if every.days and zone != "UTC":
        ends = (F.to_utc_timestamp(end, zone) for end in ends)
    start, end = ends
    return made.select("key", start.alias("start"), end.alias("end"), *VALUES)


def _values(grouped: Any, *more: Column) -> DataFrame:
    order = F.struct("at", "offset")
    value = F.col("price") * F.col("size")
    sized = F.when(value.isNotNull(), F.col("size").cast("double"))
    made: DataFrame = grouped.agg(
        *more,
        F.min_by("open", F.when(F.col("open").isNotNull(), order)).alias("open"),
        F.max("high").alias("high"), F.min("low").alias("low"), F.max_by("price", order).alias("close"),
        F.try_sum("size").alias("volume"), F.try_divide(F.sum(value), F.sum(sized)).alias("vwap"),
        F.count("*").alias("count"),
    )  # fmt: skip
    return made


def latest(revisions: DataFrame) -> DataFrame:
    """Bars as they are now, of what a stream has written: the last revision of each."""
    rest = F.struct("revision", "end", *VALUES)
    newest = revisions.groupBy("key", "start").agg(F.max_by(rest, "revision").alias("newest"))
    return newest.select("key", "start", *(f"newest.{name}" for name in ("end", *VALUES)))
