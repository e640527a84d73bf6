"""The parts of docs/selectors-speed.md that are made from a report (fanlight_bench.reporting)."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fanlight_bench import reporting
from fanlight_bench.reporting import markdown, number, paragraph
from fanlight_content.bars import COUNTING, ContentFigured, bars
from fanlight_content.collect import PLAN, ContentReport
from fanlight_content.registry import BASELINE, CONTENDERS, OURS
from fanlight_content.workloads import ADVERSARIAL, SHARES, SIZES, pass_name
from fanlight_matchers.tables import bars as bar_table
from fanlight_matchers.tables import times

DOCUMENT = Path(__file__).parents[3] / "docs" / "selectors-speed.md"
PASS = tuple(pass_name(share) for share in SHARES)
BUSY = 1.2  # processes at work beside the bench's own, from which on a run says that the machine was busy


def rewritten(text: str, report: ContentReport) -> str:
    """The page with its parts made from the report. KeyError: a part that nobody makes."""
    return reporting.rewritten(text, lambda name: TABLES[name](report))


def rewrite(report: ContentReport, path: Path = DOCUMENT) -> bool:
    """Rewrite the file; whether it changed."""
    return reporting.rewrite(path, lambda text: rewritten(text, report))


def _machine(report: ContentReport) -> list[str]:
    commit = f" Commit `{report['commit']}`." if report.get("commit") else ""
    before, after = report["load"]["before"], report["load"]["after"]
    load = f" Load average {before:.1f} at the beginning, {after:.1f} at the end"
    if max(before, after - 1) > BUSY:
        load += ": **other programs were at work**, so the ratios are worth more than the nanoseconds"
    note = f" {report['note']}" if report.get("note") else ""
    return paragraph(f"These figures: {reporting.machine(report['machine'])}.{commit}{load}.{note}")


def _by_contender(report: ContentReport, workloads: Sequence[str], name: str = "ns") -> list[str]:
    """A line for each contender, a column for each workload; the least in bold."""
    figured = ContentFigured(report)
    columns = [work for work in workloads if figured(work, OURS, name) is not None]
    cells = [("", *columns)]
    least = {work: min(_known(figured(work, one, name) for one in CONTENDERS)) for work in columns}
    for contender in CONTENDERS:
        values = [figured(work, contender, name) for work in columns]
        if not any(value is not None for value in values):
            continue
        shown = [number(value, 2) for value in values]
        shown = [
            f"**{text}**" if value == least[work] else text
            for text, value, work in zip(shown, values, columns, strict=True)
        ]
        cells.append((_label(contender), *shown))
    return markdown(cells)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _label(contender: str) -> str:
    return contender if CONTENDERS[contender].compiled else f"{contender} (Python)"


def _sized(kind: str) -> Callable[[ContentReport], list[str]]:
    return lambda report: _by_contender(report, [f"{kind} {size}" for size in SIZES])


def _ratios(report: ContentReport) -> list[str]:
    """How many times as fast as the baseline: those that are given the topic's match, and counting over all."""
    figured = ContentFigured(report)
    chosen = [name for name, entry in CONTENDERS.items() if name not in (BASELINE, "naive") and entry.compiled]
    chosen = [name for name in chosen if name == COUNTING or not CONTENDERS[name].over_all]
    cells: list[tuple[str, ...]] = [("", *chosen, "found")]
    for work in dict.fromkeys(asked.workload for asked in PLAN):
        if figured(work, OURS, "ratio") is not None:
            ratios = [times(figured(work, name, "ratio")) for name in chosen]
            cells.append((work, *ratios, number(figured(work, OURS, "found"), 2)))
    return markdown(cells)


def _faster(report: ContentReport) -> list[str]:
    """The workloads in which another contender is the fastest."""
    figured = ContentFigured(report)
    cells: list[tuple[str, ...]] = [("", "fastest", "ns", "fanlight, ns", "times as fast as fanlight")]
    for work in dict.fromkeys(asked.workload for asked in PLAN):
        known = {name: ns for name in CONTENDERS if (ns := figured(work, name, "ns")) is not None}
        best = min(known, key=lambda name: known[name], default=OURS)
        if best != OURS and OURS in known:
            cells.append((work, best, number(known[best], 2), number(known[OURS], 2), times(known[OURS] / known[best])))
    return markdown(cells, left=2) if len(cells) > 1 else ["None, in this run."]


def _memory(report: ContentReport) -> list[str]:
    return _by_contender(
        report, [asked.workload for asked in PLAN if asked.workload.startswith(("shared", "narrow"))], "bytes"
    )


def _insert(report: ContentReport) -> list[str]:
    return _by_contender(report, [f"shared {size}" for size in SIZES], "insert_ns")


def _bars(report: ContentReport) -> list[str]:
    return markdown(bar_table(bars(report)))


TABLES: dict[str, Callable[[ContentReport], list[str]]] = {
    "machine": _machine, "shared": _sized("shared"), "rare": _sized("rare"), "half": _sized("half"),
    "narrow": _sized("narrow"),
    "pass": lambda report: _by_contender(report, PASS),
    "adversarial": lambda report: _by_contender(report, tuple(ADVERSARIAL)),
    "ratios": _ratios, "faster": _faster, "memory": _memory, "insert": _insert, "bars": _bars,
}  # fmt: skip
