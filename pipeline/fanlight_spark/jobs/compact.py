"""Segments of an archive to Parquet, as sets or as a Delta table, by date and topic root; safe to repeat and to kill.

What was compacted before is not read again: each run adds what has come since as new sets of files, and never touches
those that are there. It takes closed segments only, so that nothing it has taken can be lost by a crash of the broker's
machine; or what there is up to an offset (--up-to).

    FOLDER/manifest.json                                    which sets there are, their offsets and epochs
    FOLDER/messages/set=…/date=2026-11-21/hour=20/root=stock/part-….parquet

Read it with compacted.read(spark, FOLDER), as the other jobs do: it reads the sets that the manifest names.

With --format delta or iceberg the result is such a table, and no Spark is started: fanlight_spark.lakehouse.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fanlight_archive import Archive, Loss
from fanlight_spark.jobs import charts, command, filesets
from fanlight_spark.jobs.filesets import FileSet, Manifest
from fanlight_spark.jobs.report import Report
from fanlight_spark.jobs.roots import folder_name, kept, root
from fanlight_spark.lakehouse import command as lakehouse
from fanlight_spark.lakehouse.holding import Hold
from fanlight_spark.positions import Bounds, Position, divide, position_at

ROOTS_MAX: Final = 64  # times 24 hours: as many folders a day as a file system and a reader still like
MESSAGES_MAX: Final = 20_000_000  # of a set: what a kill may cost is some minutes of work
PLACES: Final = ("date", "hour", "root")
SETTINGS: Final = {
    # INT96, which is the default, has no statistics, and other readers no liking for it.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Rows are exchanged so that a folder gets one file, or some of this size before Parquet has packed them.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "128m",
}


def partitioned(messages: DataFrame, roots: list[str]) -> DataFrame:
    """The messages with their places: date and hour of the time at which the broker got them, UTC, and the root.

    roots: those with a folder of their own; the others are `_other`.
    """
    micros = F.unix_micros("timestamp")
    return messages.withColumns(
        {
            "date": F.date_from_unix_date(F.floor(micros / 86_400_000_000).cast("int")),
            "hour": F.pmod(F.floor(micros / 3_600_000_000), F.lit(24)).cast("int"),
            "root": kept(folder_name(root()), roots),
        }
    )


def roots_of(messages: DataFrame, known: list[str], most: int) -> list[str]:
    """The roots that get a folder: those that have one, and of the new ones the most frequent, as far as there is room.

    So a root is in its own folder always, or in `_other` always: one that finds no room finds none later.
    """
    room = most - len(known)
    if room <= 0:
        return known
    counts = messages.select(folder_name(root()).alias("root")).groupBy("root").count()
    if known:
        counts = counts.where(~F.col("root").isin(known))
    return known + [row.root for row in counts.orderBy(F.desc("count"), "root").limit(room).collect()]


def compact(
    spark: SparkSession,
    source: Path,
    out: Path,
    *,
    up_to: int | None = None,
    filter: str | None = None,
    syntax: str = "amqp",
    roots_max: int = ROOTS_MAX,
    messages_max: int = MESSAGES_MAX,
    allow_loss: bool = False,
    hold: Hold | None = None,
) -> list[FileSet]:
    """Compact the messages since the last run; the sets that were published. Raises ValueError, ArchiveError."""
    published = []
    with Archive(source) as archive, filesets.opened(out) as folder, _set(spark, SETTINGS):
        start = position_at(archive, archive.start).json()
        new = Manifest(archive.id, start, roots_max, filter, None if filter is None else syntax)
        manifest = folder.manifest or new
        for name in ("archive", "roots_max", "filter", "syntax"):
            was, asked = getattr(manifest, name), getattr(new, name)
            if was != asked:
                raise ValueError(f"{out} was made with {name} {was}, not {asked}: take another folder")
        if hold is not None:
            hold.at(Position.of(manifest.position))
        lost: list[Loss] = []  # since the last set
        bounds = Noting(fail_on_loss=not allow_loss, skip_corrupt=allow_loss, noted=lost)
        end = (archive.spans[-1].end if archive.spans else 0) if up_to is None else min(up_to, archive.end)
        first, _ = bounds.range_of(archive, Position.of(manifest.position), position_at(archive, archive.end))
        for at, stop in list(divide(archive, first, end, messages_max)):
            made = FileSet(None, at, stop, _epochs(archive, at, stop))
            aside = folder.aside(at)
            messages = _messages(spark, archive, made, filter, syntax, allow_loss=allow_loss)
            roots = roots_of(messages, manifest.roots, roots_max)
            write(partitioned(messages, roots), aside)
            made = filesets.counted(aside, made)
            before = [loss for loss in lost if loss.first < at]
            # Read once more to find what is damaged: only where something is missing, or that is unknown.
            again = allow_loss and (filter is not None or made.messages != stop - at)
            within = losses(archive, at, stop, bounds) if again else []
            missing = sum(loss.end - loss.first for loss in within)
            if filter is None and made.messages + missing != stop - at:
                raise ValueError(f"{made.messages:,} messages were written of {stop - at:,} from offset {at} on")
            lost[:] = [loss for loss in lost if loss.first >= stop]
            made = replace(made, lost=[_recorded(loss) for loss in [*before, *within]])
            manifest = replace(manifest, roots=roots, position=position_at(archive, stop).json())
            manifest = folder.publish(manifest, aside, made)
            published.append(manifest.sets[-1])
            if hold is not None:
                hold.at(Position.of(manifest.position))
        if folder.manifest is None:
            folder.write(manifest)  # so that other jobs can read the folder before it has messages
    return published


@dataclass(frozen=True, slots=True)
class Noting(Bounds):
    """Bounds that keep what they leave out, to be written down."""

    noted: list[Loss] = field(default_factory=list)

    def lost(self, loss: Loss) -> None:
        Bounds.lost(self, loss)
        self.noted.append(loss)


def losses(archive: Archive, first: int, end: int, bounds: Bounds) -> list[Loss]:
    """What of a range is damaged or missing: all of it is read. Raises what `bounds` does not leave out."""
    found: list[Loss] = []

    def lost(loss: Loss) -> None:
        Bounds.lost(bounds, loss)
        found.append(loss)

    for _ in archive.read(first, end, lost=lost):
        pass
    return found


def _recorded(loss: Loss) -> dict[str, Any]:
    return {"first": loss.first, "end": loss.end, "why": str(loss.error)}


def write(placed: DataFrame, folder: Path) -> None:
    """Files of a sensible size, the rows of each in the order of their offsets."""
    ordered = placed.hint("rebalance", *PLACES).sortWithinPartitions(*PLACES, "offset")
    ordered.write.partitionBy(*PLACES).option("compression", "zstd").parquet(str(folder))


def report(folder: Path, new: Sequence[FileSet], about: str) -> Report:
    manifest = filesets.load(folder)
    sets = manifest.sets if manifest else []
    page = Report("Compacted messages", about)
    lost = sum(one.messages_lost for one in sets)
    page.answer(
        f"{sum(one.messages for one in new):,} new messages were compacted, {sum(one.messages for one in sets):,} "
        f"are there in all; {lost:,} were lost.", found=lost > 0,
    )  # fmt: skip
    page.facts(
        [
            ("messages", sum(one.messages for one in sets)),
            ("bytes", sum(one.bytes for one in sets)),
            ("files", sum(one.files for one in sets)),
            ("sets", len(sets)),
            ("new messages", sum(one.messages for one in new)),
            ("messages lost", lost),
        ]
    )
    page.section("Roots")
    page.say("The root of a topic is its first word; _other has those that found no room for a folder of their own.")
    found = filesets.by_root(folder, manifest) if manifest else {}
    sizes = sorted(((name, files, size) for name, (files, size) in found.items()), key=lambda row: -row[2])
    page.table(["root", "files", "bytes"], sizes)
    page.chart(charts.bars([(name, size) for name, _, size in sizes], "bytes"), "Bytes of each root")
    page.section("Sets")
    page.say("Each was published whole, and is never changed. The newest are first.")
    page.table(
        ["first offset", "end", "epochs", "messages", "files", "bytes", "folder"],
        [
            (one.first, one.end, ", ".join(str(at["epoch"]) for at in one.epochs), one.messages, one.files, one.bytes,
             one.folder)
            for one in reversed(sets)
        ],
    )  # fmt: skip
    if stretches := [one for made in reversed(sets) for one in made.lost]:
        page.section("What was lost")
        page.say("Messages that the archive no longer had, or had damaged, and that --allow-loss left out.")
        page.table(["first offset", "end", "why"], [(one["first"], one["end"], one["why"]) for one in stretches])
    return page


def _messages(
    spark: SparkSession, archive: Archive, made: FileSet, filter: str | None, syntax: str, *, allow_loss: bool
) -> DataFrame:
    def position(offset: int) -> str:
        return json.dumps(position_at(archive, offset).json())

    reader = spark.read.format("fanlight").option("path", str(archive.folder.absolute()))
    reader = reader.option("startingOffsets", position(made.first)).option("endingOffsets", position(made.end))
    reader = reader.option("failOnDataLoss", str(not allow_loss).lower())
    if filter is not None:
        reader = reader.option("filter", filter).option("syntax", syntax)
    return reader.load()


def _epochs(archive: Archive, first: int, end: int) -> list[dict[str, int]]:
    """The epochs of a range, each with the first of its offsets there."""
    found = [one for one in archive.manifest.epochs if one.first < end]
    inside = [one for at, one in enumerate(found) if at + 1 == len(found) or found[at + 1].first > first]
    return [{"epoch": one.number, "first": max(one.first, first)} for one in inside]


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            spark.conf.unset(name) if was is None else spark.conf.set(name, was)


def work(spark: SparkSession, options: argparse.Namespace) -> int:
    if not command.is_archive(options.input):
        raise ValueError(f"{options.input}: no archive; compact reads an archive's folder, not a broker or Parquet")
    new = compact(
        spark, Path(options.input), options.out, up_to=options.up_to, filter=options.filter, syntax=options.syntax,
        roots_max=options.roots_max, messages_max=options.messages_max, allow_loss=options.allow_loss,
        hold=lakehouse.hold(options),
    )  # fmt: skip
    report(options.out, new, f"{command.described(options)}, in {options.out}").write(options.out / command.REPORT)
    for one in new:
        span = f"offsets {one.first:,} to {one.end - 1:,}"
        less = f"; {one.messages_lost:,} lost" if one.lost else ""
        print(f"{span}: {one.messages:,} messages, {one.files:,} files, {one.bytes:,} bytes{less}")
    print(f"{sum(one.messages for one in new):,} messages added; {options.out / command.REPORT}")
    return command.code(options, sum(one.messages_lost for one in new))


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    example = "python -m fanlight_spark.jobs.compact /var/lib/fanlight/archive --out messages"
    parser = command.parser("compact", __doc__, example, times=False, out=lakehouse.place)
    add, count, positive = parser.add_argument, command.at_least(0), command.at_least(1)
    add("--up-to", type=count, metavar="OFFSET", help="messages before this offset, from the open segment, too")
    add("--roots-max", type=count, default=ROOTS_MAX, metavar="N", help="roots that get a folder (%(default)s)")
    add("--messages-max", type=positive, default=MESSAGES_MAX, metavar="N", help="of a set, some (%(default)s)")
    add("--allow-loss", action="store_true", help="leave out messages that are gone or damaged, and write down which")
    about = "sets of Parquet by Spark, or a table with a log (%(default)s)"
    add("--format", choices=(lakehouse.SETS, *lakehouse.TABLES), default=lakehouse.SETS, help=about)
    command.add_threshold(parser, "messages were lost")
    lakehouse.add_hold(add)
    lakehouse.add_arguments(parser)
    return command.run(parser, work, arguments, spark, alone=lakehouse.compact)


if __name__ == "__main__":
    sys.exit(main())
