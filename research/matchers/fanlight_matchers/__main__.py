"""`python -m fanlight_matchers`: topic matchers compared. Tables on standard error, JSON on standard output.

    python -m fanlight_matchers                          the published tables on this machine, ours beside them; minutes
    python -m fanlight_matchers --only W3 --filters 100000 --contenders fanlight,trie-I,trie-S
    python -m fanlight_matchers --bars                   every bar of the design: reached, met or not
    python -m fanlight_matchers --against [FILE]         ratios to the flat trie, beside the committed ones: a report
    python -m fanlight_matchers --publish                everything: results, docs/matching.md and its plots
    python -m fanlight_matchers --document               the document and the plots anew, from the committed results
    python -m fanlight_matchers ... --quick              once and small: that it runs, not how fast

Tables: each workload (W1 to W4, W5 being the mixes) with every contender that can hold it; Treat's subscribe,
unsubscribe and look-up; operations a second of several threads. Figures are ns of thread CPU time; "x trie-I" says how
many times as fast as the flat trie in this run. Contenders whose library is not installed (`pip install --group
bench`) are left out.

Exit codes: 0 done, whatever the figures are; 1 --fail-above was exceeded; 2 the command line, or a file, is wrong.
"""

import argparse
import dataclasses
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.reporting import aligned, published
from fanlight_bench.workloads import ADVERSARIAL, REALISTIC, make
from fanlight_matchers import against, bars, collect, document, plots, tables
from fanlight_matchers.measure import QUICK, Effort, compare
from fanlight_matchers.registry import CONTENDERS

OK, WORSE, WRONG = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    effort = QUICK if options.quick else Effort(passes=options.passes)
    try:
        if options.document:
            return _document(options, against.load(Path(options.results)))
        if options.publish:
            return _publish(options, effort)
        if options.against is not None:
            return _against(options, effort)
        _workloads(options.only)
    except (OSError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return WRONG
    if options.bars:
        report = collect.collect_needed(effort)
        _log(aligned(tables.bars(bars.bars(report))))
        return _print(report)
    return _tables(options, effort)


def _tables(options: argparse.Namespace, effort: Effort) -> int:
    figures = []
    chosen = [CONTENDERS[name] for name in options.contenders.split(",")]
    for name in _workloads(options.only):
        filters = options.filters if name in ("W2", "W3") else None
        work = make(name, 300 if options.quick else filters)
        _log([f"bench: {work.name}, {len(work.filters):,} filters"])
        rows = compare(work, chosen, effort)
        figures += rows
        _log(tables.workload(rows))
    report: dict[str, Any] = {"machine": machine(), "workloads": [dataclasses.asdict(row) for row in figures]}
    if options.literature:
        report |= collect.collect_literature(effort)
        for made in ("published", "throughput", "goal", "conventional", "treat", "threads", "apart", "beside"):
            _log([f"bench: {made}", *document.TABLES[made](report)])
    return _print(report)


def _workloads(names: str) -> list[str]:
    """The workloads that are asked for; W4 is all of W4a to W4f. Raises ValueError."""
    found: list[str] = []
    for name in names.split(","):
        if name not in (*REALISTIC, *ADVERSARIAL, "W4"):
            raise ValueError(f"--only: no workload {name!r}; there are {', '.join([*REALISTIC, 'W4', *ADVERSARIAL])}")
        found += ADVERSARIAL if name == "W4" else [name]
    return found


def _publish(options: argparse.Namespace, effort: Effort) -> int:
    report = collect.collect(effort)
    path = Path(options.results)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(compact(report), encoding="utf-8")
    _log([f"bench: written {path}", *aligned(tables.bars(bars.bars(report)))])
    return _document(options, report)


def _document(options: argparse.Namespace, report: collect.Report) -> int:
    path = Path(options.docs) / document.DOCUMENT.name
    _log(published(path, document.rewrite(report, path), partial(plots.write, report)))
    return OK


def _against(options: argparse.Namespace, effort: Effort) -> int:
    changes = against.against(against.load(Path(options.against)), effort)
    _log(aligned(against.table(changes)))
    worst = against.worst(changes)
    _print({"changes": [{**dataclasses.asdict(one), "change": one.change, "verdict": one.verdict} for one in changes]})
    return WORSE if options.fail_above is not None and worst * 100 > options.fail_above else OK


def compact(report: collect.Report) -> str:
    """JSON with a line for each row, so that two runs can be compared by diff."""
    parts = []
    for name, value in report.items():
        rows = [json.dumps(row) for row in value] if isinstance(value, list) else None
        parts.append(
            f"{json.dumps(name)}: " + (json.dumps(value) if rows is None else "[\n" + ",\n".join(rows) + "\n]")
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _print(report: dict[str, Any]) -> int:
    json.dump(report, sys.stdout, indent=1)
    print()
    return OK


def _log(lines: list[str]) -> None:
    print("\n".join(lines), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_matchers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--bars", action="store_true", help="the bars of the design: reached, met or not")
    what.add_argument(
        "--against",
        nargs="?",
        const=str(collect.RESULTS),
        metavar="FILE",
        help="compare with it (the committed results)",
    )
    what.add_argument("--publish", action="store_true", help="measure all; write results, document and plots")
    what.add_argument("--document", action="store_true", help="write document and plots from the results")
    names = [*REALISTIC, *ADVERSARIAL]
    add("--only", default=",".join(names), metavar="W1,W2", help="of the tables: these workloads (all); W4: W4a to W4f")
    add("--contenders", default=",".join(CONTENDERS), metavar="A,B", help=f"these of {', '.join(CONTENDERS)}")
    add("--filters", type=int, default=10_000, metavar="N", help="of W2 and W3 (%(default)s)")
    add("--no-literature", dest="literature", action="store_false", help="without Treat's experiments and threads")
    add("--passes", type=int, default=5, metavar="N", help="of which the quickest counts (%(default)s)")
    add("--fail-above", type=float, metavar="PERCENT", help="with --against: exit 1 if something is worse by more")
    add("--results", default=str(collect.RESULTS), metavar="FILE", help="of --publish and --document")
    add("--docs", default=str(document.DOCUMENT.parent), metavar="FOLDER", help="where matching.md and the plots are")
    add("--quick", action="store_true", help="once and small: that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
