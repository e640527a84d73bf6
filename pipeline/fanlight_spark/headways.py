"""Headways of public transport: when vehicles pass the same place of a route, and how long after each other.

A place is a stop, where positions name one, or else a point of the way: the longest trip of a route in a direction is
its way, positions of other trips are laid onto it, and a trip passes each point of it, `step` metres apart, at a time
between two positions. So a vehicle that reports once in two minutes still has a time for each point.

    positions   route, direction, trip, at, and stop or latitude and longitude
    passes      route, direction, place, trip, at
    headways    the same, with headway in seconds, null for the first; usual; and what: bunched, gap, or null

The usual headway is the median of the route, direction and hour; of the route and direction where an hour has few.
"""

from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.ways import line_passes

STEP: Final = 1_000  # metres between two points of a way
LEAST: Final = 5  # headways, to know what is usual in an hour
PASSES: Final = pa.schema(
    [*((name, pa.string()) for name in ("route", "direction", "place", "trip")), ("at", pa.timestamp("us", tz="UTC"))]
)
LINE: Final = ("route", "direction")
MICROSECOND: Final = 1_000_000


class VehicleColumns(NamedTuple):
    """Columns of a decoded table. time: None for when the broker got it."""

    route: str
    trip: str
    direction: str | None = None
    time: str | None = None
    stop: str | None = None
    latitude: str | None = None
    longitude: str | None = None


def positions(decoded: DataFrame, roles: VehicleColumns) -> DataFrame:
    """(route, direction, trip, at, and stop or latitude and longitude) of rows that have them all.

    Raises ValueError for a column that is not there, and where neither stop nor latitude and longitude are.
    """
    if missing := sorted({name for name in roles if name is not None} - set(decoded.columns)):
        raise ValueError(f"the table has no column {', '.join(missing)}")
    if roles.stop is None and None in (roles.latitude, roles.longitude):
        raise ValueError("where is a vehicle? Either a column with the stop is needed, or latitude and longitude")
    text = {"route": roles.route, "trip": roles.trip, "stop": roles.stop}
    at = F.col(roles.time or "_timestamp").cast("timestamp").alias("at")
    direction = F.lit("") if roles.direction is None else F.coalesce(F.col(roles.direction).cast("string"), F.lit(""))
    named = [F.col(name).cast("string").alias(what) for what, name in text.items() if name is not None]
    if roles.stop is None:
        named += [F.col(name).cast("double").alias(what) for what, name in
                  (("latitude", roles.latitude), ("longitude", roles.longitude)) if name is not None]  # fmt: skip
    return decoded.select(*named, direction.alias("direction"), at).dropna()


def passes(positions: DataFrame, step: int = STEP) -> DataFrame:
    """(route, direction, place, trip, at). Of one route all positions are in the memory of a worker at once."""
    if "stop" in positions.columns:
        by_stop = positions.groupBy(*LINE, F.col("stop").alias("place"), "trip")
        return by_stop.agg(F.min("at").alias("at"))

    def of_line(table: Any) -> Any:
        workers.settle()
        at = table["at"].cast(pa.int64()).to_numpy() / MICROSECOND
        trips, latitude, longitude = (table[name].to_numpy() for name in ("trip", "latitude", "longitude"))
        found = line_passes(trips, at, latitude, longitude, step)
        route, direction = (table[name][0].as_py() for name in LINE)
        rows = [
            {"route": route, "direction": direction, "place": f"{metres / 1_000:g} km", "trip": trip,
             "at": round(when * MICROSECOND)} for metres, trip, when in found
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=PASSES)

    return positions.groupBy(*LINE).applyInArrow(of_line, from_arrow_schema(PASSES))


def headways(passes: DataFrame, zone: str = "UTC", bunched: float = 0.25, gap: float = 2) -> DataFrame:
    """Each pass with the headway before it, the usual one, and what it is.

    bunched, gap: of the usual headway, less and more than which one is.
    """
    before = Window.partitionBy(*LINE, "place").orderBy("at", "trip")
    headway = F.unix_micros("at") - F.lag(F.unix_micros("at")).over(before)
    each = passes.withColumn("headway", headway / F.lit(float(MICROSECOND)))
    each = each.withColumn("hour", F.hour(F.from_utc_timestamp("at", zone)))
    of_hour, of_line = Window.partitionBy(*LINE, "hour"), Window.partitionBy(*LINE)
    usual = F.when(F.count("headway").over(of_hour) >= LEAST, F.median("headway").over(of_hour))
    usual = F.coalesce(usual, F.median("headway").over(of_line))
    what: Column = F.when(F.col("headway") < bunched * F.col("usual"), "bunched")
    what = what.when(F.col("headway") > gap * F.col("usual"), "gap")
    return each.withColumn("usual", usual).withColumn("what", what).drop("hour")


def routes(headways: DataFrame) -> DataFrame:
    """(route, direction, trips, headways, bunched, gaps, usual, wait, even_wait), the longest wait too many first.

    wait: seconds that somebody waits on average who comes at random, the mean square of headways by twice their mean;
    even_wait: the same, if all headways were equal.
    """
    mean = F.avg("headway")
    found = headways.groupBy(*LINE).agg(
        F.count_distinct("trip").alias("trips"), F.count("headway").alias("headways"),
        F.count_if(F.col("what") == "bunched").alias("bunched"), F.count_if(F.col("what") == "gap").alias("gaps"),
        F.median("headway").alias("usual"),
        F.try_divide(F.avg(F.col("headway") * F.col("headway")), 2 * mean).alias("wait"), (mean / 2).alias("even_wait"),
    )  # fmt: skip
    return found.orderBy(F.desc_nulls_last(F.col("wait") - F.col("even_wait")), *LINE)
