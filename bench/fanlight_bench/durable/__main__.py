"""`python -m fanlight_bench peers durable`: messages that are kept, in Fanlight and beside other brokers.

    python -m fanlight_bench peers durable                            all rows, all brokers: half an hour
    python -m fanlight_bench peers durable --rows 1x1,100x10 --only fanlight,rabbitmq --rounds 1
    python -m fanlight_bench peers durable --rows backlog --backlog 1000000
    python -m fanlight_bench peers durable --rows restart --sessions 200000 --retained 1000000 \
        --restart-backlog 10000000
    python -m fanlight_bench peers durable --list                     the rows and the brokers
    python -m fanlight_bench peers durable --bars [FILE]              every bar: reached, met or not
    python -m fanlight_bench peers durable --report [FILE]            the report anew, from a file of results

The brokers' data are in --folder, which must be on a disk: build/durable below the current folder. A broker that is not
installed is left out, with a sentence. The results are written to bench/results/durable/DATE.json;
docs/benchmarks-durable.md is made from those of all rows and brokers, from others with --publish.

Exit codes: 0 done, whatever the figures are; 2 the command line, the folder or a file is wrong; 3 no broker is there.
"""

import argparse
import signal
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from fanlight_bench.durable import document, plan
from fanlight_bench.durable.bars import bars
from fanlight_bench.durable.brokers import KEEPERS
from fanlight_bench.durable.plan import PLANNED
from fanlight_bench.durable.rows import Bounds
from fanlight_bench.peers import results, tables
from fanlight_bench.peers.results import Report
from fanlight_bench.reporting import aligned

OK, WRONG, NOTHING = 0, 2, 3
NEWEST = "newest"
FOLDER = results.FOLDER / "durable"
Named = TypeVar("Named")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            return _list()
        if options.bars is not None:
            _bars(results.load(_file(options.bars, options)))
            return OK
        if options.report is not None:
            return _report(results.load(_file(options.report, options)), options)
        return _compare(options)
    except (OSError, ValueError) as error:
        _log(str(error))
        return WRONG


def _compare(options: argparse.Namespace) -> int:
    asked = _named(options.rows, PLANNED, "row")
    keepers = _named(options.only, KEEPERS, "broker")
    if not any(keeper.there() for keeper in keepers):
        _log("none of these brokers is there")
        return NOTHING
    bounds = Bounds(**{field.name: getattr(options, field.name) for field in fields(Bounds)})
    # So that brokers are stopped, folders removed and the runs so far kept when somebody ends this.
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        folder = Path(options.folder)
        report = plan.compare(asked, keepers, folder, bounds, _log, rounds=options.rounds, pairs=options.pairs)
    finally:
        signal.signal(signal.SIGTERM, before)
    _log(f"written {results.write(report, Path(options.results))}")
    for name, about in report["scenarios"].items():
        print("\n".join([f"\n{name}: {about['title']}", *aligned(document.table(report, name))]))
    _bars(report)
    everything = report["complete"] and len(asked) == len(PLANNED) and len(keepers) == len(KEEPERS)
    return _report(report, options) if everything or options.publish else OK


def _report(report: Report, options: argparse.Namespace) -> int:
    path = Path(options.docs) / document.DOCUMENT.name
    _log(f"{path} {'rewritten' if document.rewrite(report, path) else 'is as it was'}")
    return OK


def _bars(report: Report) -> None:
    measured = [bar for bar in bars(report) if bar.reached is not None]
    if measured:
        print("\n".join(["", *aligned(tables.bars(measured))]))
    print(f"\n{sum(bar.met is True for bar in measured)} of {len(measured)} bars met")


def _list() -> int:
    print("\n".join(f"{row.name:<10} {row.title}" for row in PLANNED.values()))
    print()
    for keeper in KEEPERS.values():
        there = "" if keeper.there() else f"  (not there: {keeper.missing or 'it is not installed'})"
        print(f"{keeper.name:<18} {keeper.title}: {keeper.syncs}{there}")
    return OK


def _named(names: str, known: Mapping[str, Named], what: str) -> Sequence[Named]:
    """Those of a list of names with commas, in the order of `known`; all if it is empty."""
    wanted = [name for name in names.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"no {what} is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [each for name, each in known.items() if not wanted or name in wanted]


def _file(name: str, options: argparse.Namespace) -> Path:
    return results.newest(Path(options.results)) if name == NEWEST else Path(name)


def _leave(number: int, frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt


def _log(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


# Help for the fields of Bounds, which are options of the same names.
BOUNDS = {
    "duration": "seconds measured, of a rate", "warmup": "seconds before it",
    "fill_bytes": "bytes that a store writes before the rate of 100x10", "filling": "seconds within which it must",
    "patience": "seconds within which a large row must be stored",
    "drain": "seconds within which what waits must be delivered", "fan_out_sessions": "absent sessions of fan-out",
    "fan_out_messages": "messages to them", "backlog": "messages that wait", "backlog_sessions": "in so many sessions",
    "shared": "messages of the row shared", "shared_sessions": "sessions that each of them waits in",
    "restart_backlog": "messages that wait at the restart", "sessions": "sessions of the restart",
    "subscriptions": "of each of them", "retained": "retained messages there",
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench peers durable", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--rounds", type=int, default=3, metavar="N", help="runs of each, interleaved (%(default)s)")
    add("--pairs", type=int, default=10, metavar="N", help="rounds of A to D, with data and without (%(default)s)")
    add("--only", default="", metavar="NAME,NAME", help="these brokers (all)")
    add("--rows", default="", metavar="NAME,NAME", help="these rows (all)")
    add("--folder", default="build/durable", metavar="FOLDER", help="of the data, on a disk (%(default)s)")
    for field in fields(Bounds):
        value = type(field.default)
        add(f"--{field.name.replace('_', '-')}", type=value, default=field.default, metavar="N",
            help=f"{BOUNDS[field.name]} (%(default)s)")  # fmt: skip
    add("--publish", action="store_true", help="make the document also from only some rows or brokers")
    add("--list", action="store_true", help="the rows and the brokers, and nothing else")
    add("--bars", nargs="?", const=NEWEST, metavar="FILE", help="the bars of a file of results (the newest)")
    add("--report", nargs="?", const=NEWEST, metavar="FILE", help="the document anew from a file (the newest)")
    add("--results", default=str(FOLDER), metavar="FOLDER", help="of the files of results (%(default)s)")
    add("--docs", default=str(document.DOCUMENT.parent), metavar="FOLDER", help="of the document (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
