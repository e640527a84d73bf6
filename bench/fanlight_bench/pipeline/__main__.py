"""`python -m fanlight_bench pipeline`: the speed of the pipeline on Spark, each figure beside a baseline.

    python -m fanlight_bench pipeline                      all of it: JSON on standard output, tables on standard error
    python -m fanlight_bench pipeline --list               what there is, and what each measures
    python -m fanlight_bench pipeline --only matching      some
    python -m fanlight_bench pipeline --rows 1000000       of messages, in place of two million
    python -m fanlight_bench pipeline --publish            all of it, and the page docs/pipeline-speed.md anew
    python -m fanlight_bench pipeline --publish --only X   some, which take the place of those in the committed results
    python -m fanlight_bench pipeline --document           the page anew, from the committed results
    python -m fanlight_bench pipeline --quick              once and small: that it works

A rate is the median of several turns by the clock, after some that do not count, with what the middle half of them vary
by. The cases of a group take turns, and `x` is how many times as quick a case is as another of the same turn. All takes
about a quarter of an hour on two processors, a gigabyte of disk and as much memory. It needs a Java and the extra
`[spark]`. What the page says between `until: BENCH` and `measured` goes when that bench is published anew.

Exit codes: 0 done, whatever the figures are; 1 two ways that must agree do not; 2 the command line, or a file, is
wrong; 3 Spark, Java or the data is not here.
"""

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fanlight_bench import reporting, svg
from fanlight_bench.machine import machine
from fanlight_bench.pipeline import plots, tables
from fanlight_bench.pipeline.case import QUICK_ROWS, ROWS, TURNS, WARM, Bench, measured

OK, FAULTY, WRONG, MISSING = 0, 1, 2, 3
SPARKS = ("source", "decoding", "matching", "live", "compaction")
APART = ("memory",)  # which start Sparks of their own
BENCHES = (*SPARKS, *APART, "archived")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        _log([f"{name:<10}  {about(name)}" for name in BENCHES], sys.stdout)
        return OK
    names = options.only.split(",") if options.only else list(BENCHES)
    if unknown := set(names) - set(BENCHES):
        _log([f"bench: {', '.join(sorted(unknown))}: no such bench; there are {', '.join(BENCHES)}"])
        return WRONG
    if options.document:
        return _document(options, json.loads(Path(options.results).read_text(encoding="utf-8")))
    if set(names) & {*SPARKS, *APART} and (reason := _lacking()):
        _log([f"bench: {reason}"])
        return MISSING
    from fanlight_bench.pipeline.messages import NoData

    try:
        report = measure(names, options)
    except (NoData, ModuleNotFoundError) as error:
        _log([f"bench: {error}"])
        return MISSING
    except AssertionError as error:
        _log([f"bench: {error}"])
        return FAULTY
    if options.publish:
        path = Path(options.results)
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = report if not options.only else renewed(json.loads(path.read_text(encoding="utf-8")), report)
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        _document(options, whole, report["benches"])
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return OK


def measure(names: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """The report; each group's table is printed as soon as it is complete."""
    rows, turns, warm = options.rows, options.turns, WARM
    if options.quick:
        rows, turns, warm = min(rows, QUICK_ROWS), 1, 0
    report: dict[str, Any] = {
        "machine": machine(), "versions": _versions(), "rows": rows, "turns": turns, "load": _load(), "benches": {}
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fanlight-bench-", dir=options.folder) as folder:
        settings = dict(given.split("=", 1) for given in options.set)
        bench = Bench(Path(folder), rows, turns, warm, options.cores, settings, options.quick)
        try:
            for name in names:
                found = report["benches"][name] = {}
                for group in importlib.import_module(f"fanlight_bench.pipeline.{name}").groups(bench):
                    found[group.name] = measured(group, bench)
                    _log(tables.group(name, group.name, found[group.name]))
        finally:
            bench.stop()
    return report


def renewed(published: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """The published results with some benches of another run, and how these were measured."""
    how = {name: report[name] for name in ("rows", "turns", "load")}
    kept = {name: one for name, one in published.get("renewed", {}).items() if name not in report["benches"]}
    return {
        **published,
        "benches": {**published["benches"], **report["benches"]},
        "renewed": {**kept, **dict.fromkeys(report["benches"], how)},
    }


def about(name: str) -> str:
    """The first line of its docstring, which is read and not imported: that would need Spark."""
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return text.removeprefix('"""').partition("\n")[0]


def _lacking() -> str:
    """What is not here; "" if Spark can start."""
    if find_spec("pyspark") is None or find_spec("pandas") is None:
        return "needs PySpark: `make spark` in a checkout"
    from fanlight_spark.session import has_java

    return "" if has_java() else "needs a Java 17 for Spark: default-jre-headless of Debian, openjdk-17-jre of others"


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("pyspark", "pyarrow") if find_spec(name) is not None}


def _document(options: argparse.Namespace, report: dict[str, Any], measured: Collection[str] = ()) -> int:
    path = Path(options.docs) / tables.DOCUMENT.name
    changed = reporting.rewrite(path, lambda text: tables.rewritten(tables.without_interim(text, measured), report))
    _log(reporting.published(path, changed, lambda folder: svg.write(plots.plots(report), folder)))
    return OK


def _load() -> float:
    """Processes that wanted a processor in the last minute, before this began."""
    return round(os.getloadavg()[0], 1)


def _log(lines: Sequence[str], where: Any = None) -> None:
    print("\n".join(lines), file=where or sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench pipeline", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="what there is")
    what.add_argument("--publish", action="store_true", help="measure; write the results and the page")
    what.add_argument("--document", action="store_true", help="write the page from the results")
    what.add_argument("--quick", action="store_true", help="once and small: that it works")
    add = parser.add_argument
    add("--only", metavar="NAME,NAME", help="of --list")
    add("--rows", type=_positive, default=ROWS, metavar="N", help="messages (%(default)s)")
    add("--turns", type=_positive, default=TURNS, metavar="N", help="of each case (%(default)s)")
    add("--cores", type=_positive, metavar="N", help="that Spark may use (all)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="of Spark, over what the session sets")
    add("--folder", metavar="FOLDER", help="for what is written meanwhile (the system's for temporary files)")
    add("--results", default=str(tables.RESULTS), metavar="FILE", help="of --publish and --document")
    add("--docs", default=str(tables.DOCUMENT.parent), metavar="FOLDER", help="where pipeline-speed.md is")
    return parser


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
