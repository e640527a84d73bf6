"""Coverage by folder, and the files below 80 %, each with the reason that docs/coverage.md gives for it.

    coverage_report.py COVERAGE.json TREE
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "coverage.md"
LOW = 80.0


def reasons() -> dict[str, str]:
    """File -> reason, from the table of the page."""
    rows = re.findall(r"^\| `([^`]+)` \| [^|]* \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return dict(rows)


def main() -> None:
    """Print the two tables."""
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    tree = Path(sys.argv[2]).resolve()
    lines, covered = Counter[str](), Counter[str]()
    low: dict[str, float] = {}
    for name, entry in sorted(report["files"].items()):
        path = (tree / name).resolve()
        if not path.is_relative_to(tree):
            continue
        shown, summary = path.relative_to(tree).as_posix(), entry["summary"]
        for folder in (path.relative_to(tree).parent.as_posix(), "all"):
            lines[folder] += summary["num_statements"]
            covered[folder] += summary["covered_lines"]
        if summary["num_statements"] and summary["percent_covered"] < LOW:
            low[shown] = summary["percent_covered"]
    for folder in sorted(lines):
        if lines[folder]:
            print(f"{100 * covered[folder] / lines[folder]:6.1f} %  {lines[folder]:6}  {folder}")
    print(f"\nbelow {LOW:g} %:")
    known = reasons()
    for shown, percent in sorted(low.items()):
        print(f"{percent:6.1f} %  {shown}: {known.get(shown, 'no reason in docs/coverage.md')}")
    for shown in sorted(known.keys() - low.keys()):
        print(f"        {shown} is in docs/coverage.md and not below {LOW:g} %")


if __name__ == "__main__":
    main()
