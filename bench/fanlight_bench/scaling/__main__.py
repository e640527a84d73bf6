"""`python -m fanlight_bench scaling`: what a message costs the broker when there is more of something.

    python -m fanlight_bench scaling                      all curves, native and MQTT, in four minutes at most
    python -m fanlight_bench scaling --only filters       one of them: filters, subscribers, connections
    python -m fanlight_bench scaling --connections 200,1000 --filters 0,10000 --protocols MQTT
    python -m fanlight_bench scaling --publish            all of it: results, docs/scaling.md and its plots
    python -m fanlight_bench scaling --document           the page and the plots anew, from the committed results
    python -m fanlight_bench scaling --quick              once and small: that it works

The curves are described in curves.py; every delivery is checked, as `fanlight bench load` does. JSON on
standard output, a line for each load on standard error. Processor 0 is the broker's, 1 the generator's. What would not
be over in time is left out, and said to be.

Exit codes: 0 all is well; 1 something was lost, repeated, reordered, damaged or misrouted; 2 the command line, or a
file, is wrong; 3 the broker did not start or refused, or there are too few file descriptors.
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fanlight_bench.launch import LaunchError
from fanlight_bench.load.speaker import Refused
from fanlight_bench.machine import machine
from fanlight_bench.reporting import published
from fanlight_bench.scaling import curves, document, plots
from fanlight_bench.scaling.measure import Misrouted, ScalingPlan, measure

OK, FAULTY, WRONG, NO_SERVER = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.document:
            return _document(options, json.loads(Path(options.results).read_text(encoding="utf-8")))
        points = list(curves.points(_sizes(options), options.protocols))
    except (OSError, ValueError) as error:
        _log(f"bench: {error}")
        return WRONG
    try:
        report = _measured(options, points)
    except (OSError, Refused, LaunchError) as error:
        _log(f"bench: {error}")
        return NO_SERVER
    except Misrouted as error:
        _log(f"bench: {error}")
        return FAULTY
    if options.publish:
        path = Path(options.results)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_compact(report), encoding="utf-8")
        _log(f"bench: written {path}")
        _document(options, report)
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return FAULTY if any(point["faults"] for point in report["points"]) else OK


def _measured(options: argparse.Namespace, points: Sequence[curves.Point]) -> dict[str, Any]:
    plan = ScalingPlan(options.duration, options.warmup, options.seconds, options.broker_cpu)
    if options.quick:
        plan = ScalingPlan(duration=0.1, warmup=0.05, limit=options.seconds, broker_cpu=None, shared=True)
    elif options.generator_cpu is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # fewer processors than that: unpinned is the best there is
            os.sched_setaffinity(0, {options.generator_cpu})
    loads = sum(len(point.loads) for point in points)
    about = min(sum(map(plan.seconds, points)), plan.limit)
    _log(f"bench: {loads} loads, about {about:.0f} s, {plan.limit:g} at most")
    found = measure(points, plan, _log)
    return {"machine": machine(), "duration": plan.duration, **found}


def _sizes(options: argparse.Namespace) -> dict[str, Sequence[int]]:
    """ValueError: a curve that is not there."""
    chosen = options.only.split(",") if options.only else list(curves.SIZES)
    if unknown := set(chosen) - set(curves.SIZES):
        raise ValueError(f"{', '.join(sorted(unknown))}: no such curve; there are {', '.join(curves.SIZES)}")
    usual = curves.QUICK if options.quick else curves.SIZES
    return {curve: getattr(options, curve) or usual[curve] for curve in chosen}


def _document(options: argparse.Namespace, report: dict[str, Any]) -> int:
    path = Path(options.docs) / document.DOCUMENT.name
    _log("\n".join(published(path, document.rewrite(report, path), partial(plots.write, report))))
    return OK


def _compact(report: dict[str, Any]) -> str:
    """JSON with a line for each point, so that two runs can be compared by diff."""
    parts = []
    for name, value in report.items():
        rows = [json.dumps(row) for row in value] if isinstance(value, list) else []
        parts.append(f"{json.dumps(name)}: " + ("[\n" + ",\n".join(rows) + "\n]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench scaling", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--publish", action="store_true", help="measure; write results, page and plots")
    what.add_argument("--document", action="store_true", help="write page and plots from the results")
    what.add_argument("--quick", action="store_true", help="once and small: that it works")
    add("--only", metavar="CURVE,CURVE", help="of " + ", ".join(curves.SIZES))
    for curve, sizes in curves.SIZES.items():
        add(f"--{curve}", type=_numbers, metavar="N,N", help=f"sizes ({','.join(map(str, sizes))})")
    add("--protocols", type=_protocols, default=list(curves.PROTOCOLS), metavar="A,B", help="native, MQTT (both)")
    add("--duration", type=float, default=ScalingPlan.duration, metavar="SECONDS",
        help="measured, of a load (%(default)s)")
    add("--warmup", type=float, default=ScalingPlan.warmup, metavar="SECONDS", help="before it (%(default)s)")
    add("--seconds", type=float, default=ScalingPlan.limit, metavar="N", help="for all of it, at most (%(default)s)")
    add("--broker-cpu", type=int, default=ScalingPlan.broker_cpu, metavar="N", help="of the broker (%(default)s)")
    add("--generator-cpu", type=int, default=1, metavar="N", help="of this process (%(default)s)")
    add("--results", default=str(document.RESULTS), metavar="FILE", help="of --publish and --document")
    add("--docs", default=str(document.DOCUMENT.parent), metavar="FOLDER", help="where scaling.md and its plots are")
    return parser


def _numbers(text: str) -> list[int]:
    return [int(number.replace("_", "")) for number in text.split(",")]


def _protocols(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - set(curves.PROTOCOLS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(curves.PROTOCOLS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
