"""What the command lines of all jobs have in common: where messages come from, which of them, and where results go.

    def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
        parser = command.parser("traffic", __doc__, "python -m fanlight_spark.jobs.traffic archive --out traffic")
        return command.run(parser, work, arguments, spark)

    def work(spark: SparkSession, options: argparse.Namespace) -> None:
        messages = command.messages(spark, options, "topic", "timestamp")
        command.write(messages.transform(...), options.out / "windows")

INPUT is the folder of an archive, a running broker's url, what `compact` has written, or other Parquet with the columns
of an archive. Results are folders of Parquet and report.html below --out; those of an earlier run are replaced.

Exit codes: 0; 1 for a finding above the threshold that the command line names; 2 for mistakes; 130 for an interrupt.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped, unused-ignore]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from fanlight_archive import ArchiveError
from fanlight_spark.broker import sdk
from fanlight_spark.jobs import compacted, filesets
from fanlight_spark.matching import match_topics
from fanlight_spark.session import configure, local_session, register
from fanlight_spark.source import BROKER_COLUMNS, COLUMNS

OK, FOUND, WRONG, INTERRUPTED = 0, 1, 2, 130
REPORT: Final = "report.html"
ARCHIVE_MANIFEST: Final = "manifest.jsonl"
BROKERS: Final = ("fanlight://", "fanlights://")
NO_FILES: Final = "No FileSystem for scheme"  # what Spark says of an address that it has no jars for
QUICK: Final = {"spark.sql.shuffle.partitions": "8", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}

Work = Callable[[SparkSession, argparse.Namespace], int | None]  # an exit code, if it is not OK


def parser(
    name: str, about: str, example: str, *, times: bool = True, named: bool = False, out: Callable[[str], Any] = Path
) -> argparse.ArgumentParser:
    """A command line with the arguments that all jobs have.

    times: whether it may be a part of the messages by time. named: INPUT is --archive, and --out may be left out
    out: the type of --out
    """
    made = argparse.ArgumentParser(
        prog=f"python -m fanlight_spark.jobs.{name}", description=about, epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = made.add_argument
    about_input = "an archive's folder, a broker's url, or a folder of Parquet (compact)"
    if named:
        add("--archive", dest="input", required=True, metavar="INPUT", help=about_input)
    else:
        add("input", metavar="INPUT", help=about_input)
    about_out = "where results go, and report.html; made if need be"
    add("--out", type=out, required=not named, metavar="FOLDER", help=about_out)
    if times:
        add("--from", dest="since", type=time, metavar="TIME", help="2026-11-21, or 2026-11-21T20:00:00+02:00 (UTC)")
        add("--until", type=time, metavar="TIME", help="only messages before it")
    add("--filter", metavar="FILTER", help="only topics that it matches, such as stock.#")
    add("--syntax", choices=("amqp", "mqtt"), default="amqp", help="of --filter: words between . (%(default)s) or /")
    add("--cores", type=at_least(1), metavar="N", help="processors that Spark takes here (all); not under spark-submit")
    return made


def add_threshold(parser: argparse.ArgumentParser, what: str) -> None:
    """--fail-above N, for CI. what: of what the job counts more than N is a finding: "topics fell silent"."""
    parser.add_argument("--fail-above", type=at_least(0), metavar="N", help=f"exit 1 if more than N {what}")


def code(options: argparse.Namespace, count: int) -> int:
    """The exit code of a job that has found so many."""
    return FOUND if options.fail_above is not None and count > options.fail_above else OK


def run(
    parser: argparse.ArgumentParser,
    work: Work,
    arguments: Sequence[str] | None,
    spark: SparkSession | None = None,
    alone: Callable[[argparse.Namespace], int | None] | None = None,
) -> int:
    """Read the command line and do the work; the exit code.

    spark: a session that is there, which stays. alone: work that needs none; it decides by what it returns: None, and
    the other is done
    """
    options = parser.parse_args(arguments)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they write the JVM's account of an error, too, 5 kB of it
    try:
        _check_out(options)
        if alone is not None and (done := alone(options)) is not None:
            return done
        with session(parser.prog, options.cores) if spark is None else _kept(spark) as there:
            code = work(there, options)
    except (ValueError, OSError, ArchiveError, PySparkException, Py4JError) as error:  # what has no name, too
        print(f"{parser.prog}: {_said(error)}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK if code is None else code


def counted(number: int, noun: str) -> str:
    """1 bar, 26 bars."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def at_least(least: int) -> Callable[[str], int]:
    """The type of an argument: a whole number, this or more."""

    def number(text: str) -> int:
        if (value := int(text)) < least:
            raise argparse.ArgumentTypeError(f"{text}: {least} or more is wanted")
        return value

    return number


def above(least: float) -> Callable[[str], float]:
    """The type of an argument: a number that is greater."""

    def number(text: str) -> float:
        if not (value := float(text)) > least or value == float("inf"):
            raise argparse.ArgumentTypeError(f"{text}: more than {least:g} is wanted")
        return value

    return number


@contextmanager
def session(name: str, cores: int | None = None) -> Iterator[SparkSession]:
    """The session that spark-submit (or a notebook) has for us, or else one of this machine."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # set by spark-submit for the JVM that waits for this program
    if submitted:
        made = register(configure(SparkSession.builder.appName(name)).getOrCreate())
    else:
        made = local_session(name, cores=cores, settings=QUICK)
        made.sparkContext.setLogLevel("ERROR")
    try:
        yield made
    finally:
        made.stop()


def messages(spark: SparkSession, options: argparse.Namespace, *columns: str) -> DataFrame:
    """What the command line asks for, with these columns of an archive (all, if none are named).

    Raises ValueError, and what Spark and the archive raise.
    """
    since, until = getattr(options, "since", None), getattr(options, "until", None)
    named = list(columns) or (BROKER_COLUMNS if options.input.startswith(BROKERS) else COLUMNS).names
    if _is_source(options.input):
        # By topic inside the source, whatever columns are wanted; Spark does not prune those of a Python source.
        wanted = {*named, *(["timestamp"] if since or until else [])}
        reader = source(spark.read, options).schema(StructType([field for field in COLUMNS if field.name in wanted]))
        # From the first message as late as that; of those behind it, clocks may have been set back.
        reader = reader if since is None else reader.option("startingTimestamp", since.isoformat())
        reader = reader if until is None else reader.option("endingTimestamp", until.isoformat())
        return _between(reader.load(), since, until).select(*named)
    wanted = {*named, *(["timestamp"] if since or until else []), *(["topic", "syntax"] if options.filter else [])}
    frame = _between(_parquet(spark, options.input, wanted), since, until)
    if options.filter is not None:
        frame = match_topics(frame, [(options.filter, 0, options.syntax)], syntax_col="syntax").drop("subscription")
    return frame.select(*named)


def stream(spark: SparkSession, options: argparse.Namespace, *columns: str) -> DataFrame:
    """The same as a stream, from the oldest message on or from --from. Raises ValueError for what is no stream."""
    if not _is_source(options.input):
        raise ValueError(f"{options.input}: a stream is read from an archive or a broker, not from Parquet")
    if options.until is not None:
        raise ValueError("--until is not for a stream: it ends with what there is, or not at all")
    schema = StructType([field for field in COLUMNS if not columns or field.name in columns])
    reader = source(spark.readStream, options).schema(schema)
    if options.since is None:
        reader = reader.option("startingOffsets", "earliest")
    else:
        reader = reader.option("startingTimestamp", options.since.isoformat())
    return reader.load().select(*schema.names)


def source(reader: Any, options: argparse.Namespace) -> Any:
    """A reader of the source `fanlight`: of an archive's folder or of a broker, with the filter."""
    reader = reader.format("fanlight")
    if options.input.startswith(BROKERS):
        reader = reader.option("url", options.input)
    else:
        reader = reader.option("path", os.path.abspath(options.input))  # workers may be in another folder
    if options.filter is not None:
        reader = reader.option("filter", options.filter).option("syntax", options.syntax)
    return reader


def is_archive(folder: Path | str) -> bool:
    return (Path(folder) / ARCHIVE_MANIFEST).is_file()


def write(frame: DataFrame, folder: Path) -> DataFrame:
    """A result as Parquet, in place of that of an earlier run; read again, so that it is computed once."""
    frame.write.mode("overwrite").parquet(str(folder))
    return frame.sparkSession.read.schema(frame.schema).parquet(str(folder))


def described(options: argparse.Namespace) -> str:
    """What a report is about, in a line."""
    broker = options.input.startswith(BROKERS)
    parts = [sdk().url.shown(options.input) if broker else options.input]  # without a password: it goes into reports
    if options.filter is not None:
        parts.append(f"topics {options.filter} ({options.syntax})")
    for word, at in (("from", getattr(options, "since", None)), ("until", getattr(options, "until", None))):
        if at is not None:
            parts.append(f"{word} {at:%Y-%m-%d %H:%M:%S} UTC")
    return ", ".join(parts)


def time(text: str) -> datetime:
    """A time of the command line; UTC if it has no zone. Raises ValueError, which argparse turns into words."""
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _check_out(options: argparse.Namespace) -> None:
    """Raises ValueError where results would get among what is read."""
    if not isinstance(options.out, Path):  # none, or a place in an object store
        return
    if options.out.resolve() == Path(options.input).resolve() or is_archive(options.out):
        raise ValueError(f"--out {options.out} has messages to be read in it: take another folder for results")


def _is_source(name: str) -> bool:
    return name.startswith(BROKERS) or is_archive(name)


def _parquet(spark: SparkSession, name: str, wanted: Iterable[str]) -> DataFrame:
    if (Path(name) / filesets.MANIFEST).is_file() or compacted.is_delta(name):
        return compacted.read(spark, name)
    try:
        frame = spark.read.parquet(name)
    except (PySparkException, Py4JError) as error:
        if NO_FILES not in str(error):
            raise
        raise ValueError(
            f"{name}: no Delta table, and this Spark has no file system for such addresses: give a folder, a Delta "
            "table at s3://, or start Spark with the jars of that store (s3a:// needs hadoop-aws)"
        ) from error
    missing = sorted(set(wanted) - set(frame.columns))
    if missing:
        raise ValueError(f"{name}: neither an archive nor messages of one; as Parquet it lacks {', '.join(missing)}")
    return frame


def _between(frame: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    if since is not None:
        frame = frame.where(F.col("timestamp") >= F.lit(since))
        frame = frame.where(F.col("date") >= F.lit(since.date())) if "date" in frame.columns else frame
    if until is not None:
        frame = frame.where(F.col("timestamp") < F.lit(until))
        frame = frame.where(F.col("date") <= F.lit(until.date())) if "date" in frame.columns else frame
    return frame


@contextmanager
def _kept(spark: SparkSession) -> Iterator[SparkSession]:
    yield spark


def _said(error: Exception) -> str:
    """What went wrong in a line: of a fault in Python that came back through the JVM, what that said."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    within = False
    for line in lines:
        if isinstance(error, Py4JError) and line.startswith(": "):  # behind "An error occurred while calling"
            return line.removeprefix(": ").strip()
        if line.rstrip().endswith("Traceback (most recent call last):"):
            within = True
        elif within and not line.startswith(" "):
            return line.strip()
    return lines[0].strip() if lines else repr(error)
