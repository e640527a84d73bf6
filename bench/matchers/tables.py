"""The figures as tables for a terminal."""

from collections.abc import Sequence

from bench.matchers.measure import Figures, Shared

COLUMNS = (
    "contender", "found", "cold", "hot", "call", "x trie-I", "x trie-S", "insert", "again", "remove", "B/filter",
    "90/10", "50/50", "without",
)  # fmt: skip


def workload(rows: Sequence[Figures]) -> list[str]:
    """A line a contender: ns a match in C (cold, hot) and from Python (call), and so on."""
    cells: list[tuple[str, ...]] = [COLUMNS]
    for row in rows:
        if row.reason:
            cells.append((row.contender, *[""] * (len(COLUMNS) - 2), row.reason))
            continue
        ns = (row.cold, row.hot, row.call, row.insert, row.again, row.remove, row.bytes, row.mix_90_10, row.mix_50_50)
        shown = [_ns(value) for value in ns]
        cells.append(
            (
                row.contender, f"{row.found:.2f}" if row.cold else "", *shown[:3],
                _ratio(row.to_trie_i), _ratio(row.to_trie_s), *shown[3:],
                f"{row.skipped:,} filters" if row.skipped else "",
            )
        )  # fmt: skip
    return _aligned(cells)


def threads(rows: Sequence[Shared]) -> list[str]:
    """A line a contender and mix: operations a second, for so many threads."""
    counts = sorted({row.threads for row in rows})
    cells: list[tuple[str, ...]] = [("contender", "matches", *[f"{count} threads" for count in counts])]
    for contender, reads in dict.fromkeys((row.contender, row.reads) for row in rows):
        speeds = {row.threads: row.per_second for row in rows if (row.contender, row.reads) == (contender, reads)}
        cells.append((contender, f"{reads / 10:g} %", *[f"{speeds[count]:,.0f}/s" for count in counts]))
    return _aligned(cells)


def _ns(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs)).rstrip()
        for pairs in (list(zip(row, widths, strict=True)) for row in cells)
    ]
