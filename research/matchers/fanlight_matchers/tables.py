"""The tables of the matchers, made from a report or from fresh measurements."""

from collections.abc import Sequence
from typing import Any

from fanlight_bench import reporting
from fanlight_bench.reporting import VERDICTS, aligned, limit, with_unit
from fanlight_matchers.bars import Bar
from fanlight_matchers.measure import Figures

Table = list[tuple[str, ...]]

COLUMNS = (
    "contender", "found", "cold", "hot", "any", "call", "x trie-I", "x trie-S", "insert", "again", "remove",
    "B/filter", "90/10", "50/50", "p50", "p99", "without",
)  # fmt: skip


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
    """A line a contender and mix: operations a second, by number of threads."""
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
    cells: Table = [("workload", "what", "bar", "reached", "")]
    for bar in rows:
        reached = "" if bar.reached is None else with_unit(bar.reached, bar.unit)
        bound = limit(bar.limit, bar.unit, at_most=bar.at_most)
        cells.append((bar.workload, bar.what, bound, reached, VERDICTS[bar.met]))
    return cells


def number(value: float | None) -> str:
    """With two significant digits at least: a measurement here has no more."""
    return reporting.number(value, digits=2)


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"
