"""Figures as tables: aligned for a terminal, or with bars for a document. A table is a list of rows of cells, the
first of them its head."""

from collections.abc import Sequence
from typing import Any

from fanlight_matchers.bars import Bar
from fanlight_matchers.measure import Figures

Table = list[tuple[str, ...]]

COLUMNS = (
    "contender", "found", "cold", "hot", "any", "call", "x trie-I", "x trie-S", "insert", "again", "remove",
    "B/filter", "90/10", "50/50", "p50", "p99", "without",
)  # fmt: skip


def aligned(table: Table) -> list[str]:
    """For a terminal: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs)).rstrip()
        for pairs in (list(zip(row, widths, strict=True)) for row in table)
    ]


def marked(table: Table) -> list[str]:
    """As Markdown has them."""
    head, *rows = [f"| {' | '.join(row)} |" for row in table]
    rule = "|---|" + "---:|" * (len(table[0]) - 1)
    return [head, rule, *rows]


def workload(rows: Sequence[Figures]) -> list[str]:
    """A line a contender: ns a match in C (cold, hot) and from Python (call), and so on."""
    cells: Table = [COLUMNS]
    for row in rows:
        if row.reason:
            cells.append((row.contender, *[""] * (len(COLUMNS) - 2), row.reason))
            continue
        changes = (row.insert, row.again, row.remove, row.bytes, row.mix_90_10, row.mix_50_50, row.half, row.slow)
        cells.append(
            (
                row.contender, f"{row.found:.2f}" if row.cold else "",
                *[number(value) for value in (row.cold, row.hot, row.any, row.call)],
                times(row.to_trie_i), times(row.to_trie_s), *[number(value) for value in changes],
                f"{row.skipped:,} filters" if row.skipped else "",
            )
        )  # fmt: skip
    return aligned(cells)


def threads(rows: Sequence[dict[str, Any]]) -> Table:
    """A line a contender and mix: operations a second, for so many threads."""
    counts = sorted({row["threads"] for row in rows})
    cells: Table = [("contender", "matches", *[f"{count} thread{'s' * (count > 1)}" for count in counts])]
    for contender, reads in dict.fromkeys((row["contender"], row["reads"]) for row in rows):
        speeds = {
            row["threads"]: row["per_second"] for row in rows if (row["contender"], row["reads"]) == (contender, reads)
        }
        cells.append((contender, f"{reads / 10:g} %", *[f"{speeds[count]:,.0f}/s" for count in counts]))
    return cells


def bars(rows: Sequence[Bar]) -> Table:
    """Each bar, what was reached, and whether it is met."""
    verdicts = {True: "met", False: "**not met**", None: "not measured"}
    cells: Table = [("workload", "what", "bar", "reached", "")]
    for bar in rows:
        sign = "≤" if bar.at_most else "≥"
        reached = "" if bar.reached is None else _with_unit(bar.reached, bar.unit)
        cells.append((bar.workload, bar.what, f"{sign} {_with_unit(bar.limit, bar.unit)}", reached, verdicts[bar.met]))
    return cells


def _with_unit(value: float, unit: str) -> str:
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{shown}{unit}" if unit == "x" else f"{shown} {unit}"


def number(value: float | None) -> str:
    """Without digits that no measurement has."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"
