"""docs/scaling.md: its tables are made from a report, never written by hand.

A block begins with `<!-- made: NAME -->` and ends with `<!-- end -->`; what is between is replaced.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

Report = Mapping[str, Any]

DOCUMENT = Path(__file__).parents[3] / "docs" / "scaling.md"
RESULTS = Path(__file__).parent / "results" / "published.json"
BLOCK = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Beside the cost of a message: a column for each protocol, where it was measured.
BESIDE = {
    "filters": {"us_per_filter": "us to subscribe", "bytes_per_filter": "bytes a filter"},
    "subscribers": {"us_per_delivery": "us a delivery"},
    "connections": {"bytes_per_connection": "bytes a connection", "connects_per_second": "connects/s"},
}


def rewritten(text: str, report: Report) -> str:
    """The document with its blocks made anew. KeyError: a block that nobody makes."""
    return BLOCK.sub(lambda match: "\n".join([match[1].rstrip("\n"), *BLOCKS[match[2]](report), match[3]]), text)


def rewrite(report: Report, path: Path) -> bool:
    """The file; whether it changed."""
    before = path.read_text(encoding="utf-8")
    after = rewritten(before, report)
    path.write_text(after, encoding="utf-8")
    return before != after


def table(report: Report, curve: str) -> list[list[str]]:
    """The head, and a row for each size."""
    points = [point for point in report["points"] if point["curve"] == curve]
    columns = list(dict.fromkeys((point["protocol"], point["series"]) for point in points))
    protocols = list(dict.fromkeys(protocol for protocol, _ in columns))
    head = [curve, *(f"{protocol}, {series}" if series else protocol for protocol, series in columns)]
    head += [f"{what}, {protocol}" for what in BESIDE[curve].values() for protocol in protocols]
    rows = [head]
    for size in sorted({point["size"] for point in points}):
        here = {(point["protocol"], point["series"]): point for point in points if point["size"] == size}
        row = [f"{size:,}", *(_number(here.get(column, {}).get("us_per_message")) for column in columns)]
        for name in BESIDE[curve]:
            for protocol in protocols:
                # Of two series the first: its broker has just begun, and no memory of an earlier load to use again.
                own = [point for (of, _), point in here.items() if of == protocol]
                row.append(_number(next((point[name] for point in own if point.get(name) is not None), None)))
        rows.append(row)
    return rows


def marked(rows: Sequence[Sequence[str]]) -> list[str]:
    """As Markdown."""
    head, *rest = rows
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---:|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rest),
    ]


def _curve(curve: str, report: Report) -> list[str]:
    rows = table(report, curve)
    return marked(rows) if len(rows) > 1 else ["Not measured in this run."]


def _machine(report: Report) -> list[str]:
    machine = report["machine"]
    lines = [
        f"{machine['processor'] or machine['machine']}, {machine['processors']} processors, {machine['system']}, "
        f"CPython {machine['python']}; {report['duration']:g} s a load. Something else took "
        f"{_share(report, 'others_busy')} of a processor in the middle load."
    ]
    if faulty := [point for point in report["points"] if point["faults"]]:
        lines += ["", "Not all was delivered as it should be: " + "; ".join(map(_named, faulty)) + "."]
    if report["left_out"]:
        lines += ["", "Left out, for want of time: " + "; ".join(map(_named, report["left_out"])) + "."]
    return lines


def _named(point: Mapping[str, Any]) -> str:
    return f"{point['size']:,} {point['curve']}, {point['protocol']}"


def _share(report: Report, name: str) -> str:
    known = sorted(point[name] for point in report["points"] if point[name] is not None)
    return f"{known[len(known) // 2]:.0%}" if known else "an unknown share"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


BLOCKS: dict[str, Callable[[Report], list[str]]] = {
    "machine": _machine, **{curve: partial(_curve, curve) for curve in BESIDE},
}  # fmt: skip
