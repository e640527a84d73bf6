"""The parts of docs/scaling.md that are made from a report (reporting.py)."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fanlight_bench import reporting
from fanlight_bench.reporting import markdown, number, paragraph

Report = Mapping[str, Any]

DOCUMENT = Path(__file__).parents[3] / "docs" / "scaling.md"
RESULTS = Path(__file__).parent / "results" / "published.json"

# Beside the cost of a message: a column for each protocol, where it was measured.
BESIDE = {
    "filters": {"us_per_filter": "µs to subscribe", "bytes_per_filter": "bytes a filter"},
    "subscribers": {"us_per_delivery": "µs a delivery"},
    "connections": {"bytes_per_connection": "bytes a connection", "connects_per_second": "connects/s"},
}


def rewritten(text: str, report: Report) -> str:
    """The page with its parts made from the report. KeyError: a part that nobody makes."""
    return reporting.rewritten(text, lambda name: BLOCKS[name](report))


def rewrite(report: Report, path: Path) -> bool:
    """Rewrite the file; whether it changed."""
    return reporting.rewrite(path, lambda text: rewritten(text, report))


def table(report: Report, curve: str) -> list[list[str]]:
    """The head, and one row for each size."""
    points = [point for point in report["points"] if point["curve"] == curve]
    columns = list(dict.fromkeys((point["protocol"], point["series"]) for point in points))
    protocols = list(dict.fromkeys(protocol for protocol, _ in columns))
    head = [curve, *(f"{protocol}, {series}" if series else protocol for protocol, series in columns)]
    head += [f"{what}, {protocol}" for what in BESIDE[curve].values() for protocol in protocols]
    rows = [head]
    for size in sorted({point["size"] for point in points}):
        here = {(point["protocol"], point["series"]): point for point in points if point["size"] == size}
        row = [f"{size:,}", *(number(here.get(column, {}).get("us_per_message")) for column in columns)]
        for name in BESIDE[curve]:
            for protocol in protocols:
                # Of two series the first: its broker has just started and has no memory of an earlier load to reuse.
                own = [point for (of, _), point in here.items() if of == protocol]
                row.append(number(next((point[name] for point in own if point.get(name) is not None), None)))
        rows.append(row)
    return rows


def _curve(curve: str, report: Report) -> list[str]:
    rows = table(report, curve)
    return markdown(rows, left=0) if len(rows) > 1 else ["Not measured in this run."]


def _machine(report: Report) -> list[str]:
    lines = paragraph(
        f"{reporting.machine(report['machine'])}; {report['duration']:g} s a load. In the median load other work took "
        f"{_share(report, 'others_busy')} of a processor."
    )
    if faulty := [point for point in report["points"] if point["faults"]]:
        lines += ["", *paragraph("Deliveries with faults: " + "; ".join(map(_named, faulty)) + ".")]
    if report["left_out"]:
        lines += ["", *paragraph("Left out for lack of time: " + "; ".join(map(_named, report["left_out"])) + ".")]
    return lines


def _named(point: Mapping[str, Any]) -> str:
    return f"{point['size']:,} {point['curve']}, {point['protocol']}"


def _share(report: Report, name: str) -> str:
    known = sorted(point[name] for point in report["points"] if point[name] is not None)
    return f"{known[len(known) // 2]:.0%}" if known else "an unknown share"


BLOCKS: dict[str, Callable[[Report], list[str]]] = {
    "machine": _machine, **{curve: partial(_curve, curve) for curve in BESIDE},
}  # fmt: skip
