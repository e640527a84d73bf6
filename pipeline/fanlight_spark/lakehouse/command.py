"""The command lines of tables with a log, without Spark. `__main__` is theirs, and `jobs.compact` has a part of it.

Exit codes as those of the jobs: 0; 1 for more losses than --fail-above; 2 for mistakes; 130 for an interrupt.
"""

import argparse
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from fanlight_archive import ArchiveError, manifest
from fanlight_spark.lakehouse.holding import Hold, name_of

OK, FOUND, WRONG, INTERRUPTED = 0, 1, 2, 130
SETS, DELTA, ICEBERG = "sets", "delta", "iceberg"
TABLES: Final = (DELTA, ICEBERG)
NEEDED: Final = {
    DELTA: ("deltalake", "deltalake>=1.6"),
    ICEBERG: ("pyiceberg", "pyiceberg[sql-sqlite]>=0.12"),
}
LIBRARIES: Final = ("_internal", "deltalake", "pyiceberg", "sqlalchemy")  # whose errors have no root in common
MIB: Final = 1024 * 1024
VACUUM_HOURS: Final = 168
VACUUM_HOURS_LEAST: Final = 1  # files of a commit under way are in no log yet


def place(text: str) -> Path | str:
    """Where a table is: a folder, or a url of an object store as it is."""
    return text if "://" in text else Path(text)


def add_arguments(parser: Any) -> None:
    """What both command lines of `compact` have."""
    add = parser.add_argument_group("tables with a log").add_argument
    add("--storage-option", type=_pair, action="append", default=[], metavar="KEY=VALUE", help=STORAGE)
    about = "messages of a commit, in memory; the job takes some three times as much (%(default)s)"
    add("--commit-mib", type=_positive, default=256, metavar="MIB", help=about)
    add("--catalog", metavar="NAME", help="of pyiceberg's configuration; --out is then a name: lake.messages")
    add("--no-merge", action="store_true", help="leave small files as they are")


def add_hold(add: Any) -> None:
    about = "name of the file by which the archive's retention waits for this job; by default made of --out"
    add("--hold", metavar="NAME", help=about)
    add("--no-hold", action="store_true", help="let retention remove what was not compacted")


def hold(options: argparse.Namespace) -> Hold | None:
    """Raises ValueError."""
    if options.no_hold:
        return None
    by = options.out if isinstance(options.out, str) else str(options.out.absolute())
    return Hold(Path(options.input), options.hold or name_of(by), by)


def compact(options: argparse.Namespace) -> int | None:
    """Do what the command line asks for; None if it asks for sets. Raises ValueError, ArchiveError, OSError."""
    if options.format == SETS:
        if isinstance(options.out, str):
            raise ValueError(f"--out {options.out}: an object store is for --format {', '.join(TABLES)}")
        return None
    with _named_errors(options.format, str(options.out)):
        return _compact(options)


def _compact(options: argparse.Namespace) -> int:
    from fanlight_spark.lakehouse import compacting

    if not (Path(options.input) / manifest.NAME).is_file():
        raise ValueError(f"{options.input}: no archive; compact reads an archive's folder, not a broker or Parquet")
    syntax = None if options.filter is None else options.syntax
    about = {"filter": options.filter, "syntax": syntax}
    tables: list[Any] = []

    def opened(archive: str) -> Any:
        tables.append(_table(options, {"archive": archive, **about}))
        return tables[0]

    run = partial(
        compacting.compact, up_to=options.up_to, filter=options.filter, syntax=options.syntax, hold=hold(options)
    )
    size = options.commit_mib * MIB
    messages = lost = 0
    for one in run(Path(options.input), opened, allow_loss=options.allow_loss, lot_bytes=size):
        less = f"; {one.messages_lost:,} lost" if one.lost else ""
        print(
            f"offsets {one.first:,} to {one.end - 1:,}: {one.messages:,} messages, {one.files:,} files, "
            f"{one.bytes:,} bytes{less}",
            flush=True,
        )
        for sentence in one.lost:
            print(f"  lost: {sentence}")
        messages += one.messages
        lost += one.messages_lost
    for merged in () if options.no_merge or options.format != DELTA else tables[0].merge(size):
        print(f"{merged.day}: {merged.files:,} files are one now, {merged.bytes:,} bytes", flush=True)
    print(f"{messages:,} messages added to {options.out}")
    return FOUND if options.fail_above is not None and lost > options.fail_above else OK


def _table(options: argparse.Namespace, about: dict[str, str | None]) -> Any:
    where, settings = str(options.out), dict(options.storage_option)
    if options.format == ICEBERG:
        from fanlight_spark.lakehouse.iceberg import MessagesIceberg

        return MessagesIceberg(where, about, settings, options.catalog)
    if options.catalog is not None:
        raise ValueError("--catalog is for --format iceberg")
    from fanlight_spark.lakehouse.delta import MessagesDelta

    return MessagesDelta(where, about, settings)


def vacuum(options: argparse.Namespace) -> int:
    """List, or remove, the files that no version of the last hours names. Raises ValueError, OSError."""
    with _named_errors(DELTA, options.table):
        from fanlight_spark.lakehouse.delta import vacuum as vacuumed

        files = vacuumed(options.table, dict(options.storage_option), options.hours, delete=options.delete)
        for name in files:
            print(name)
        done = "were removed" if options.delete else "would be removed: --delete does it"
        print(f"{len(files):,} files {done}")
        return OK


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fanlight_spark.lakehouse", description="An archive as a table.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = commands.add_parser("compact", help="add what is new in an archive to a table")
    add = made.add_argument
    add("input", metavar="ARCHIVE", help="the archive's folder")
    add("--out", type=place, required=True, metavar="TABLE", help="a folder, or a url such as s3://bucket/messages")
    add("--format", choices=TABLES, default=DELTA, help="of the table (%(default)s)")
    add("--filter", metavar="FILTER", help="only topics that it matches, such as stock.#")
    add("--syntax", choices=("amqp", "mqtt"), default="amqp", help="of --filter: words between . (%(default)s) or /")
    add("--up-to", type=int, metavar="OFFSET", help="messages before this offset, from the open segment, too")
    add("--allow-loss", action="store_true", help="leave out messages that are gone or damaged, and write down which")
    add("--fail-above", type=int, metavar="N", help="exit 1 if more than N messages were lost")
    add_hold(add)
    add_arguments(made)
    made.set_defaults(work=compact)
    made = commands.add_parser("vacuum", help="remove files that no version of the last hours names")
    add = made.add_argument
    add("table", metavar="TABLE", help="a folder, or a url such as s3://bucket/messages")
    about = "readers of versions that are not older keep their files (%(default)s)"
    add("--hours", type=_hours, default=VACUUM_HOURS, metavar="N", help=about)
    add("--delete", action="store_true", help="remove them; without it they are listed")
    add("--storage-option", type=_pair, action="append", default=[], metavar="KEY=VALUE", help=STORAGE)
    made.set_defaults(work=vacuum)
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    try:
        return int(options.work(options))
    except (ValueError, OSError, ArchiveError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED


STORAGE: Final = "of the object store; else as its environment says (AWS_...)"


@contextmanager
def _named_errors(format: str, table: str) -> Iterator[None]:
    """The errors of a table's library are no OSError: they become one, with the table's name."""
    module, requirement = NEEDED[format]
    if find_spec(module) is None:
        raise ValueError(f"--format {format} needs {module}, which is not installed: pip install '{requirement}'")
    try:
        yield
    except Exception as error:
        within = type(error).__module__.partition(".")[0] in LIBRARIES
        if not within and not (isinstance(error, OSError) and error.errno is None):  # such have no file's name
            raise
        raise OSError(f"{table}: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    """What delta-rs says in a tree of coloured lines, in one."""
    lines = (re.sub(r"\x1b\[\d*m|↳|- +", "", line).strip() for line in str(error).splitlines())
    return ": ".join(line for line in lines if line)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text}: KEY=VALUE is wanted")
    return name, value


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more is wanted")
    return value


def _hours(text: str) -> int:
    if (value := int(text)) < VACUUM_HOURS_LEAST:
        raise argparse.ArgumentTypeError(f"{text}: {VACUUM_HOURS_LEAST} or more is wanted: a commit may be under way")
    return value
