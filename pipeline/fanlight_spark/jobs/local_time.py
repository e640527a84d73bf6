"""Windows of time and hours of day by the clock of a zone, for reports: days there have 23 to 25 hours.

What is in a table stays an instant; a zone says which instants a day begins at, and which hour of day it was.
"""

from argparse import ArgumentTypeError
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

from pyspark.sql import Column
from pyspark.sql import functions as F

from fanlight_spark.bars import Every
from fanlight_spark.decoding.times import zone_of

Stretch = tuple[datetime, datetime]
HOURS: Final = 24
ABOUT: Final = "where days begin, and whose hours of day the report has, such as America/New_York"
#: Clocks differ from UTC by whole quarters of an hour.
QUARTER: Final = timedelta(minutes=15)


def zone_named(text: str) -> str:
    """The type of an argument."""
    try:
        zone_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def local(at: datetime, zone: str) -> datetime:
    """What a clock there shows. Without a zone `at` is UTC's, and so is what this gives."""
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def window_start(every: str, zone: str = "UTC", column: str = "timestamp") -> Column:
    """Where the window begins that a time is in. Windows of whole days begin at midnight there; weeks on Mondays."""
    length = Every.of(every)
    if not length.days:
        return F.window(column, every)["start"]
    there = F.window(F.from_utc_timestamp(column, zone), every, startTime=length.begin)["start"]
    return F.to_utc_timestamp(there, zone)


@dataclass(frozen=True, slots=True)
class Windows:
    """Of one length, as `window_start` makes them; times are UTC's, without a zone.

    by_clock: they are whole days of `zone`, of which some have 23 or 25 hours
    """

    length: timedelta
    zone: str = "UTC"
    by_clock: bool = False

    @staticmethod
    def of(length: timedelta, every: str, zone: str) -> "Windows":
        return Windows(length, zone, Every.of(every).days > 0)

    def end(self, start: datetime) -> datetime:
        """Where the next one begins."""
        if not self.by_clock:
            return start + self.length
        there = (local(start, self.zone) + self.length).replace(tzinfo=ZoneInfo(self.zone))
        return there.astimezone(UTC).replace(tzinfo=None)

    def count(self, begin: datetime, end: datetime) -> int:
        """How many there are between two starts."""
        if self.by_clock:
            begin, end = local(begin, self.zone), local(end, self.zone)
        return (end - begin) // self.length

    def outages(self, starts: Iterable[datetime]) -> list[Stretch]:
        """Between windows that have messages, the stretches of one window or more that have none, ascending."""
        passed = sorted(set(starts))
        return [(self.end(one), other) for one, other in pairwise(passed) if other > self.end(one)]


def by_hour_of_day(rows: Iterable[Any], names: Iterable[str], zone: str) -> list[dict[str, int]]:
    """The sums of windows of an hour or less, by the hour of day in which they begin."""
    found = [dict.fromkeys(names, 0) for _ in range(HOURS)]
    for row in rows:
        sums = found[local(row.start, zone).hour]
        for name in sums:
            sums[name] += row[name] or 0
    return found


def hours_of_day(begin: datetime, end: datetime, zone: str) -> list[float]:
    """How many hours of real time each hour of day had between two instants: one that clocks repeat counts twice."""
    found = [0.0] * HOURS
    at, end = local(begin, "UTC"), local(end, "UTC")
    while at < end:
        last = min(at - (at - datetime.min) % QUARTER + QUARTER, end)
        found[local(at, zone).hour] += (last - at) / timedelta(hours=1)
        at = last
    return found
