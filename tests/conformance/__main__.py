"""The page of MQTT's normative statements on standard output.

    python -m tests.conformance > docs/mqtt-conformance.md
    python -m tests.conformance --missing        those that have no test, one a line; exit status 1 if there are any
"""

import argparse
import sys

from tests.conformance.table import ROOT, collect, index, marked_files, missing, render, statements


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="list the statements that have no test")
    options = parser.parse_args()
    known = statements()
    shown = index(collect(marked_files(ROOT / "tests")), known)
    if not options.missing:
        sys.stdout.write(render(known, shown))
        return 0
    without = missing(known, shown)
    for one in without:
        print(f"{one.version:5} {one.identifier:15} {one.says}")
    return 1 if without else 0


if __name__ == "__main__":
    sys.exit(main())
