"""Headways of public transport: how long after each other vehicles pass the same place, and where they bunch.

decoders.toml says what payloads hold, and --route, --trip and the others which columns of it count. Below --out:
    headways   route, direction, place, trip, at, headway, usual (seconds), what: bunched, gap, or null
    routes     route, direction, trips, headways, bunched, gaps, usual, wait, even_wait: what riders wait on average,
               and what they would wait if vehicles were evenly spaced

exit codes: 0 done, 1 more than --fail-above percent of headways are bunched or gaps, 2 wrong arguments or files
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_spark.decoding.file import load
from fanlight_spark.headways import LINE, STEP, VehicleColumns, headways, passes, positions, routes
from fanlight_spark.jobs import charts, command, local_time
from fanlight_spark.jobs.report import Report
from fanlight_spark.tables import decode
from fanlight_spark.ways import AWAY

COLUMNS: Final = ("offset", "topic", "syntax", "timestamp", "value")
SHOWN: Final = 20
DRAWN: Final = 3  # routes
ROWS_MAX: Final = 2_000  # passes that are drawn of one


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    decoders = load(options.decoders)
    roles = VehicleColumns(**{name: getattr(options, name) for name in VehicleColumns._fields})
    roles = roles._replace(time=roles.time or decoders.one(options.table).time)
    decoded = decode(command.messages(spark, options, *COLUMNS), decoders, options.table)
    found = headways(passes(positions(decoded, roles), options.step), options.zone)
    made = command.write(found, options.out / "headways")
    lines = command.write(routes(made), options.out / "routes")
    page, said, share = report(made, lines, command.described(options))
    page.write(options.out / command.REPORT)
    print(said)
    print(options.out / command.REPORT)
    return command.code(options, round(share))


def report(headways: DataFrame, lines: DataFrame, about: str) -> tuple[Report, str, float]:
    """The page, its first sentence, and how many percent of headways are bunched or gaps."""
    counted = ("headways", "bunched", "gaps")
    sums = lines.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counted)).first()
    number = lines.select("route").distinct().count()
    page = Report("Headways", about)
    if not sums["headways"]:
        said = "There are no two vehicles that passed the same place."
        page.answer(said)
        return page, said, 0
    share = 100 * (sums["bunched"] + sums["gaps"]) / sums["headways"]
    wait = lines.agg(*(F.sum(F.col(name) * F.col("headways")).alias(name) for name in ("wait", "even_wait"))).first()
    mean, even = (wait[name] / sums["headways"] / 60 for name in ("wait", "even_wait"))
    said = (
        f"{100 * sums['bunched'] / sums['headways']:.0f} % of {sums['headways']:,} headways on {number:,} routes are "
        f"bunched, {100 * sums['gaps'] / sums['headways']:.0f} % are gaps: a rider waits {mean:.1f} minutes, and would "
        f"wait {even:.1f} if vehicles came evenly."
    )
    page.answer(said, found=share > 0)
    worst = lines.orderBy(F.desc_nulls_last(F.col("wait") - F.col("even_wait")), *LINE).limit(SHOWN).collect()
    minutes = ["usual", "wait", "even_wait"]
    page.table(
        ["route", "direction", "trips", "headways", "bunched", "gaps", "usual, min", "wait, min", "even wait, min"],
        [(*row[:6], *(None if row[name] is None else row[name] / 60 for name in minutes)) for row in worst],
        total=lines.count(),
    )
    page.section("What riders wait")
    waits = [(_name(row), (row.wait - row.even_wait) / 60) for row in worst if row.wait is not None]
    page.chart(charts.bars(waits, "minutes"), "Minutes that a rider waits longer than if vehicles came evenly")
    for row in worst[:DRAWN]:
        _draw(page, headways.where((F.col("route") == row.route) & (F.col("direction") == row.direction)), _name(row))
    return page, said, share


def _draw(page: Report, headways: DataFrame, name: str) -> None:
    """One route: each trip as a line from place to place, and the headways at the place with the most of them."""
    page.section(name)
    numbered = headways.withColumn("far", F.regexp_extract("place", r"^([0-9.]+) km$", 1).try_cast("double"))
    rows = numbered.orderBy("trip", "at").limit(ROWS_MAX).collect()
    if all(row.far is not None for row in rows):
        page.say("A line is a trip. Lines that meet are vehicles that bunch; a wide space is a gap.")
        series: dict[str, list[tuple[Any, float | None]]] = {"trips": []}
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            series["trips"].append((row.at, row.far))
            if after is not None and after.trip != row.trip:
                series["trips"].append((row.at, None))
        page.chart(charts.lines(series, y="km"), f"{name}: trips along the way")
    busiest = headways.where("headway IS NOT NULL").groupBy("place").count().orderBy(F.desc("count"), "place").first()
    if busiest is None:
        return
    there = headways.where((F.col("place") == busiest.place) & F.col("headway").isNotNull()).orderBy("at")
    points = there.select("at", "headway", "usual").limit(ROWS_MAX).collect()
    drawn: dict[str, list[tuple[datetime, float | None]]] = {
        "headway": [(row.at, row.headway / 60) for row in points],
        "usual": [(row.at, row.usual / 60) for row in points],
    }
    page.chart(charts.lines(drawn, y="minutes"), f"{name}: headways at {busiest.place}")


def _name(row: Any) -> str:
    return f"{row.route} {row.direction}".strip()


def main(arguments: Sequence[str] | None = None, spark: Any = None) -> int:
    example = ("python -m fanlight_spark.jobs.headways archive --decoders buses.toml --route route --trip trip_id "
               "--direction trip_headsign --latitude latitude --longitude longitude --out headways")  # fmt: skip
    parser = command.parser("headways", __doc__ or "", example)
    add = parser.add_argument
    add("--decoders", type=Path, required=True, metavar="FILE", help="what payloads hold: docs/pipeline-decoding.md")
    add("--table", metavar="NAME", help="of the file, if it has several")
    add("--route", required=True, metavar="COLUMN", help="of a position: its route,")
    add("--trip", required=True, metavar="COLUMN", help="and its trip: one run of a vehicle along it")
    add("--direction", metavar="COLUMN", help="where it goes to; without it all trips of a route are one way")
    add("--time", metavar="COLUMN", help="when it was (what the decoder has as time, else when the broker got it)")
    add("--stop", metavar="COLUMN", help="the stop where it is; or")
    about = f"degrees; positions more than {AWAY} m from the way are left out"
    add("--latitude", metavar="COLUMN", help=about)
    add("--longitude", metavar="COLUMN", help="the same")
    about = "metres between two points of a way (%(default)s)"
    add("--step", type=command.at_least(100), default=STEP, metavar="N", help=about)
    about_zone = "of the hours of day: America/Chicago (%(default)s)"
    add("--zone", type=local_time.zone_named, default="UTC", metavar="ZONE", help=about_zone)
    command.add_threshold(parser, "percent of headways are bunched or gaps")
    return command.run(parser, work, arguments, spark)


if __name__ == "__main__":
    sys.exit(main())
