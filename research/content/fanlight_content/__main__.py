"""`python -m fanlight_content`: ways to match messages with selectors, compared. Tables on standard error, then JSON.

    python -m fanlight_content                         the published workloads on this machine; eight minutes
    python -m fanlight_content "shared 100k"           one workload, all compiled contenders
    python -m fanlight_content "shared 20k" "all <>" --contenders "fanlight,counting"
    python -m fanlight_content --list                  the workloads and the contenders
    python -m fanlight_content --publish               everything: results, docs/selectors-speed.md and its plots
    python -m fanlight_content --document              the document and the plots anew, from the committed results
    python -m fanlight_content ... --quick             few selectors, two turns: that it runs, not how fast

A message comes with its fields decoded and its topic matched; what is measured is finding the selectors that are true
of it, in ns of thread CPU time: the median of several turns in which all contenders are asked one after the other.
"x" says how many times as fast as "per subscriber" in the same run: each selector of the topic's filter evaluated in
turn, as brokers do that have no index of selectors. Ratios hold on another machine and on a busy one; ns do not. In the
run, each contender is checked against this baseline, and the baseline against the interpreter that defines selectors.

Bytes and inserts are those of a selector, with its compiled program in them and without its text.

Exit codes: 0 done, whatever the figures are; 1 a contender found other selectors than the oracle; 2 the command line,
or a file, is wrong.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.reporting import aligned, number, published
from fanlight_content import bars, collect, document, plots, workloads
from fanlight_content.measure import Wrong
from fanlight_content.registry import BASELINE, CONTENDERS
from fanlight_matchers.__main__ import compact
from fanlight_matchers.tables import bars as bar_table
from fanlight_matchers.tables import times

OK, FOUND_WRONG, WRONG = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            print("\n".join(["workloads:", *(f"  {name}" for name in workloads.names()), "contenders:"]))
            print("\n".join(f"  {name}" for name in CONTENDERS))
            return OK
        if options.document:
            return _document(options, json.loads(Path(options.results).read_text(encoding="utf-8")))
        if options.publish:
            return _publish(options)
        return _compare(options)
    except Wrong as error:
        print(f"bench: {error}", file=sys.stderr)
        return FOUND_WRONG
    except (OSError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return WRONG


def _compare(options: argparse.Namespace) -> int:
    """The tables of some workloads, or of the plan. Raises ValueError of a name that nothing has."""
    chosen = options.contenders.split(",") if options.contenders else None
    for name in chosen or ():
        if name not in CONTENDERS:
            raise ValueError(f"no contender {name!r}; there are {', '.join(CONTENDERS)}")
    plan = [collect.AskedOf(name, collect.COMPILED) for name in options.workloads] or collect.PLAN
    rows = []
    for asked in plan:
        names = list(dict.fromkeys((*(chosen or asked.contenders), BASELINE)))
        found = collect.collect_workload(
            collect.AskedOf(asked.workload, names, options.turns or asked.turns), options.quick
        )
        _log(table(found))
        rows += found
    report: dict[str, Any] = {"machine": machine(), "quick": options.quick, "rows": rows}
    if not options.workloads and chosen is None:
        report |= {"growth": collect.collect_growth(options.quick), "silence": collect.collect_silence(options.quick)}
        report |= {"decoding": collect.collect_decoding(options.quick)}
        _log(aligned(bar_table(bars.bars(report))))
    json.dump(report, sys.stdout, indent=1)
    print()
    return OK


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line a contender."""
    cells = [("", "ns", "x baseline", "±", "found", "B/selector", "insert ns")]
    for row in rows:
        figures = (number(row["ns"]), times(row["ratio"]), f"{row['spread']:.0%}", number(row["found"], 2))
        cells.append((row["contender"], *figures, number(row["bytes"]), number(row["insert_ns"])))
    return [f"{rows[0]['workload']}: {rows[0]['selectors']:,} selectors", *aligned(cells)]


def _publish(options: argparse.Namespace) -> int:
    report = collect.collect(quick=options.quick)
    path = Path(options.results)
    path.write_text(compact(report), encoding="utf-8")
    _log([f"bench: written {path}", *aligned(bar_table(bars.bars(report)))])
    return _document(options, report)


def _document(options: argparse.Namespace, report: collect.ContentReport) -> int:
    path = Path(options.docs) / document.DOCUMENT.name
    _log(published(path, document.rewrite(report, path), partial(plots.write, report)))
    return OK


def _log(lines: Sequence[str]) -> None:
    print("\n".join(lines), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_content", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help="of --list; sizes are free; the published ones if none is named",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="what there is")
    what.add_argument("--publish", action="store_true", help="measure all; write results, document and plots")
    what.add_argument("--document", action="store_true", help="write document and plots from the results")
    add("--contenders", metavar="A,B", help="these of --list, and the baseline")
    add("--turns", type=int, metavar="N", help=f"of each contender ({collect.TURNS})")
    add("--results", default=str(collect.RESULTS), metavar="FILE", help="of --publish and --document")
    add("--docs", default=str(document.DOCUMENT.parent), metavar="FOLDER", help="where the document and the plots are")
    add("--quick", action="store_true", help="few selectors, two turns: that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
