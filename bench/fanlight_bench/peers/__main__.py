"""`python -m fanlight_bench peers`: Fanlight beside other brokers. What it does and a line a run on standard error.

    python -m fanlight_bench peers                            all scenarios, all brokers, three rounds: 26 minutes
    python -m fanlight_bench peers --scenarios A,B --only fanlight,nats --rounds 1 --duration 0.5
    python -m fanlight_bench peers --scenarios E --into FILE  these again, in place of those of a file of results
    python -m fanlight_bench peers --list                     the scenarios and the brokers
    python -m fanlight_bench peers --bars [FILE]              every bar: reached, met or not
    python -m fanlight_bench peers --report [FILE]            the report and the chart anew, from a file of results
    python -m fanlight_bench peers durable ...                messages that are kept: see durable/__main__.py

A comparison is written into bench/results/DATE.json, and docs/benchmarks.md, its plots and the chart of README.md are
made from it; one of only some scenarios or brokers leaves the documents as they are, unless --publish is given. What
is not installed is named with the commands that install it; they run after a yes, or with --yes.

Exit codes: 0 done, whatever the figures are; 2 the command line, or a file, is wrong; 3 there was nothing to compare.
"""

import argparse
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from fanlight_bench.peers import compare, document, install, plan, results, tables
from fanlight_bench.peers.bar import Bar
from fanlight_bench.peers.bars import bars
from fanlight_bench.peers.contenders import CONTENDERS
from fanlight_bench.peers.drive import drive
from fanlight_bench.peers.plan import ASKED, PlannedScenario
from fanlight_bench.reporting import aligned

OK, WRONG, NOTHING = 0, 2, 3
NEWEST = "newest"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["durable"]:
        from fanlight_bench.durable.__main__ import main as durable  # it needs compiled modules that are optional

        return durable(arguments[1:])
    options = parser().parse_args(arguments)
    try:
        if options.list:
            return _list()
        if options.bars is not None:
            _bars(bars(results.load(_file(options.bars, options))))
            return OK
        if options.report is not None:
            return _report(results.load(_file(options.report, options)), options)
        return _compare(options)
    except (OSError, ValueError) as error:
        _log(str(error))
        return WRONG


def _compare(options: argparse.Namespace) -> int:
    asked = _asked(options.scenarios)
    try:
        chosen = plan.contenders(_words(options.only))
    except KeyError as error:
        raise ValueError(f"no broker is called {error}; there are {', '.join(CONTENDERS)}") from None
    brokers = list({id(one.peer): one.peer for one in chosen}.values())
    install.install(brokers, yes=options.yes, log=_log)
    if all(one.peer.program() is None for one in chosen):
        _log("none of these brokers is there")
        return NOTHING
    into = None if options.into is None else _file(options.into, options)
    if into is not None:  # before an hour is spent on it
        present = [one.name for one in chosen if one.peer.program() is not None]
        results.comparable(results.load(into), present)
    # So that brokers are stopped, folders removed and the runs so far kept when somebody ends this.
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        report = compare.compare(
            asked, chosen, drive, _log,
            rounds=options.rounds, duration=options.duration, warmup=options.warmup,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGTERM, before)
    if into is not None and report["complete"]:
        whole, path = results.replaced(results.load(into), report), into
        path.write_text(results.text(whole), encoding="utf-8")
    else:
        whole, path = report, results.write(report, Path(options.results))
    _log(f"written {path}")
    for letter, about in report["scenarios"].items():
        print("\n".join([f"\n{letter}: {about['title']}", *aligned(tables.scenario(report, letter))]))
    if measured := [bar for bar in bars(report) if bar.reached is not None]:
        _bars(measured)
    everything = report["complete"] and len(asked) == len(ASKED) and len(chosen) == len(CONTENDERS)
    if everything or options.publish or path == into:
        return _report(whole, options)
    return OK


def _report(report: results.Report, options: argparse.Namespace) -> int:
    for path in (Path(options.docs) / "benchmarks.md", Path(options.docs).parent / "README.md"):
        _log(f"{path} {'rewritten' if document.rewrite(report, path) else 'is as it was'}")
    try:
        from fanlight_bench.peers import plots

        _log(f"drawn {', '.join(plots.write(report, Path(options.docs)))}")
    except ModuleNotFoundError as error:
        _log(f"no plots: {error}; `pip install --group bench` brings it")
    return OK


def _bars(rows: Sequence[Bar]) -> None:
    print("\n".join(["", *aligned(tables.bars(rows))]))
    count = {verdict: sum(bar.met is verdict for bar in rows) for verdict in (True, False, None)}
    print(f"\n{count[True]} met, {count[False]} not met, {count[None]} not measured")


def _list() -> int:
    print("\n".join(f"{letter:<6} {asked.scenario:<20} {asked.title}" for letter, asked in ASKED.items()))
    print()
    for name, contender in CONTENDERS.items():
        there = "" if contender.peer.program() else "  (not installed)"
        print(f"{name:<16} {contender.title}{there}")
    return OK


def _asked(names: str) -> Sequence[PlannedScenario]:
    wanted = _words(names)
    unknown = [name for name in wanted if name not in ASKED]
    if unknown:
        raise ValueError(f"no scenario is called {', '.join(unknown)}; there are {', '.join(ASKED)}")
    return [asked for letter, asked in ASKED.items() if not wanted or letter in wanted]


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _file(name: str, options: argparse.Namespace) -> Path:
    return results.newest(Path(options.results)) if name == NEWEST else Path(name)


def _leave(number: int, frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt


def _log(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """The command line of a comparison."""
    made = argparse.ArgumentParser(
        prog="python -m fanlight_bench peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("--rounds", type=int, default=3, metavar="N", help="interleaved runs of each, fewer if long (%(default)s)")
    add("--only", default="", metavar="NAME,NAME", help="these brokers or contenders (all)")
    add("--scenarios", "--rows", default="", metavar="A,B", help="these scenarios (all)")
    add("--duration", type=float, default=1.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--warmup", type=float, default=0.2, metavar="SECONDS", help="before it (%(default)s)")
    add("--yes", action="store_true", help="install what is missing without asking")
    add("--publish", action="store_true", help="make the documents also from a comparison of only some")
    add("--into", nargs="?", const=NEWEST, metavar="FILE", help="replace these scenarios in a file (the newest)")
    add("--list", action="store_true", help="the scenarios and the brokers, and nothing else")
    add("--bars", nargs="?", const=NEWEST, metavar="FILE", help="the bars of a file of results (the newest)")
    add("--report", nargs="?", const=NEWEST, metavar="FILE", help="documents anew from a file of results (the newest)")
    add("--results", default=str(results.FOLDER), metavar="FOLDER", help="of the files of results (%(default)s)")
    add("--docs", default=str(document.ROOT / "docs"), metavar="FOLDER", help="where benchmarks.md is (%(default)s)")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
