"""`python -m fanlight_bench micro`: parts of the broker by themselves, in ns of processor time, beside a floor.

    python -m fanlight_bench micro                     all of them: JSON on standard output, a table on standard error
    python -m fanlight_bench micro parse fan_out         some
    python -m fanlight_bench micro --list                what there is, and what each measures
    python -m fanlight_bench micro match --workload W3:100000 --workload W4b
    python -m fanlight_bench micro > before.json         then change something
    python -m fanlight_bench micro --against before.json what became faster or slower, beyond what the turns differ by
    python -m fanlight_bench micro ... --quick           once and small: that it runs, not how fast

A figure is the median of several turns, with what the middle half of them vary by. The cases of a group take turns, and
`x` is how many times as long as another case of the same turn: a floor below which it cannot come, or an oracle that it
must beat. Ratios of one run hold on another machine and a busy one; nanoseconds do not.

Exit codes: 0 done, whatever the figures are; 1 --fail-above was exceeded; 2 the command line, or a file, is wrong.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fanlight_bench.machine import machine
from fanlight_bench.micro import tables
from fanlight_bench.micro.case import QUICK_TURNS, TURNS, Effort, measured

OK, WORSE, WRONG = 0, 1, 2
BENCHES = (
    "parse", "fields", "route", "fan_out", "flush", "lanes", "publish", "cold", "exchanges", "bindings", "ruling",
    "permitted", "permission_classes", "paced", "permitting", "logins", "match", "insert", "remove", "mix", "names",
    "frozen", "records", "archive_index", "source_index", "replay_all", "memory", "screens", "rules", "selecting",
    "rows", "connect", "subscribe", "log", "restart", "engines",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        _log([f"{name:<9}  {about(name)}" for name in BENCHES], sys.stdout)
        return OK
    if unknown := set(options.names) - set(BENCHES):
        _log([f"bench: {', '.join(sorted(unknown))}: no such bench; there are {', '.join(BENCHES)}"])
        return WRONG
    if options.fail_above is not None and not options.against:
        _log(["bench: --fail-above needs a run to compare with: --against FILE"])
        return WRONG
    effort = Effort(
        QUICK_TURNS if options.quick else options.turns, options.quick, tuple(options.workload), options.size
    )
    try:
        before = json.loads(Path(options.against).read_text(encoding="utf-8")) if options.against else None
        report = measure(options.names or BENCHES, effort)
        changes = tables.changes(before, report) if before is not None else []
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log([f"bench: {type(error).__name__}: {error}"])
        return WRONG
    if before is not None:
        _log(tables.compared(changes))
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    worst = max([-one.change for one in changes if one.verdict == tables.WORSE], default=0.0)
    return WORSE if options.fail_above is not None and worst * 100 > options.fail_above else OK


def measure(names: Sequence[str], effort: Effort) -> dict[str, Any]:
    """The report; each group's table is printed as soon as it is complete."""
    report: dict[str, Any] = {"machine": machine(), "turns": effort.turns, "benches": {}}
    for name in names:
        found = report["benches"][name] = {}
        for group in importlib.import_module(f"fanlight_bench.micro.{name}").groups(effort):
            found[group.name] = measured(group, effort)
            _log(tables.group(name, group.name, found[group.name]))
    return report


def about(name: str) -> str:
    """The first line of its docstring."""
    return (importlib.import_module(f"fanlight_bench.micro.{name}").__doc__ or "").partition("\n")[0]


def _log(lines: Sequence[str], where: Any = None) -> None:
    print("\n".join(lines), file=where or sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench micro", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of --list; all, if no name is given")
    add("--list", action="store_true", help="what there is")
    add("--turns", type=int, default=TURNS, metavar="N", help="of each case (%(default)s)")
    add("--workload", action="append", default=[], metavar="W3:100000", help="of filters, for those that have some")
    add("--size", type=int, metavar="N", help="names, or topics, for those that have some")
    add("--against", metavar="FILE", help="compare with an earlier run's standard output")
    add("--fail-above", type=float, metavar="PERCENT", help="with --against: exit 1 if something is slower by more")
    add("--quick", action="store_true", help="once and small: that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
