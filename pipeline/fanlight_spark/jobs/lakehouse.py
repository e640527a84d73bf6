"""What the command lines of `compact` have for tables with a log: --format delta. Nothing here needs Spark."""

import argparse
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from fanlight_spark.lakehouse.holding import Hold, name_of

SETS, DELTA = "sets", "delta"
FORMATS: Final = (SETS, DELTA)
MIB: Final = 1024 * 1024


def place(text: str) -> Path | str:
    """Where a table is: a folder, or a url of an object store as it is."""
    return text if "://" in text else Path(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("tables with a log").add_argument
    add("--format", choices=FORMATS, default=SETS, help="sets of Parquet by Spark, or a table (%(default)s)")
    about = "of the object store; else as its environment says (AWS_...)"
    add("--storage-option", type=_pair, action="append", default=[], metavar="KEY=VALUE", help=about)
    about = "messages of a commit, in memory; the job takes some three times as much (%(default)s)"
    about = "name of the file by which the archive's retention waits for this job; by default made of --out"
    add("--hold", metavar="NAME", help=about)
    add("--no-hold", action="store_true", help="let retention remove what was not compacted")
    add("--commit-mib", type=_positive, default=256, metavar="MIB", help=about)


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
            raise ValueError(f"--out {options.out}: an object store is for --format delta")
        return None
    if find_spec("deltalake") is None:
        raise ValueError("--format delta needs deltalake, which is not installed: pip install 'deltalake>=1.6'")
    from deltalake.exceptions import DeltaError

    from fanlight_spark.lakehouse import compacting
    from fanlight_spark.lakehouse.delta import MessagesDelta

    syntax = None if options.filter is None else options.syntax
    about = {"filter": options.filter, "syntax": syntax}

    def opened(archive: str) -> Any:
        return MessagesDelta(str(options.out), {"archive": archive, **about}, dict(options.storage_option))

    run = partial(
        compacting.compact, up_to=options.up_to, filter=options.filter, syntax=options.syntax, hold=hold(options)
    )
    messages = 0
    try:
        for one in run(Path(options.input), opened, allow_loss=options.allow_loss, lot_bytes=options.commit_mib * MIB):
            less = f"; {one.messages_lost:,} lost" if one.lost else ""
            print(
                f"offsets {one.first:,} to {one.end - 1:,}: {one.messages:,} messages, {one.files:,} files, "
                f"{one.bytes:,} bytes{less}",
                flush=True,
            )
            for sentence in one.lost:
                print(f"  lost: {sentence}")
            messages += one.messages
    except DeltaError as error:
        raise OSError(f"{options.out}: {error}") from error
    print(f"{messages:,} messages added to {options.out}")
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text}: KEY=VALUE is wanted")
    return name, value


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more is wanted")
    return value
