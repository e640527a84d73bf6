"""`python -m bench.matchers`, or `python -m bench matchers`: the contenders' tables, JSON on standard output.

    python -m bench.matchers                          all tables, W2 and W3 with 10,000 filters; minutes
    python -m bench.matchers --only W3 --filters 100000 --contenders fanlight,trie-I,trie-S
    python -m bench.matchers --quick                  everything once, small: that it runs, not how fast

Tables: each workload (W1 to W4, W5 being the mixes) with every contender that can hold it, and operations a
second of those made for several threads. The tables are on standard error. Figures are ns of thread CPU time;
"x trie-I" says how many times as fast as the flat trie in this run.
"""

import argparse
import dataclasses
import json
import platform
import sys

from bench.matchers import tables
from bench.matchers.measure import QUICK, Effort, Figures, Shared, compare, shared
from bench.matchers.registry import CONTENDERS
from bench.matchers.workloads import ADVERSARIAL, REALISTIC, make

THREADS = (1, 2, 4, 8)
# Of 1,000 operations the matches: half, nine in ten, and matchbox's 1:3 of changes to look-ups; 1:1 is the half.
READS = (500, 750, 900)
FOR_THREADS = ("mutex", "matchbox")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    effort = QUICK if options.quick else Effort(passes=options.passes)
    chosen = [CONTENDERS[name] for name in options.contenders.split(",")]
    figures: list[Figures] = []
    for name in options.only.split(","):
        filters = options.filters if name in ("W2", "W3") else None
        work = make(name, 300 if options.quick else filters)
        print(f"bench: {work.name}, {len(work.filters):,} filters", file=sys.stderr)
        rows = compare(work, chosen, effort)
        figures += rows
        print("\n".join(tables.workload(rows)), file=sys.stderr)
    threads: list[Shared] = []
    if options.threads:
        work = make("W3", 500 if options.quick else 10_000)
        operations = 500 if options.quick else 100_000
        threads = [
            shared(CONTENDERS[name], work, count, reads, operations)
            for name in FOR_THREADS
            for reads in READS
            for count in (THREADS[:2] if options.quick else THREADS)
        ]
        print("\n".join(tables.threads(threads)), file=sys.stderr)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    json.dump(
        {
            "machine": machine,
            "workloads": [dataclasses.asdict(row) for row in figures],
            "threads": [
                {"contender": row.contender, "threads": row.threads, "reads": row.reads, "per_second": row.per_second}
                for row in threads
            ],
        },
        sys.stdout, indent=1,
    )  # fmt: skip
    print()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.matchers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*REALISTIC, *ADVERSARIAL]
    parser.add_argument("--only", default=",".join(names), metavar="W1,W2", help="these workloads (all)")
    parser.add_argument(
        "--contenders", default=",".join(CONTENDERS), metavar="A,B", help=f"these of {', '.join(CONTENDERS)}"
    )
    parser.add_argument("--filters", type=int, default=10_000, metavar="N", help="of W2 and W3 (%(default)s)")
    parser.add_argument("--passes", type=int, default=5, metavar="N", help="of which the quickest counts")
    parser.add_argument("--no-threads", dest="threads", action="store_false", help="without several threads")
    parser.add_argument("--quick", action="store_true", help="once and small: that it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
