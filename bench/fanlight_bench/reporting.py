"""Results for people: tables, and pages of which some parts are made from results.

A part of a Markdown page begins with `<!-- made: NAME -->` and ends with `<!-- end -->`. What is between is replaced
by the lines that are made for that name; the rest of the page is written by hand and stays.
"""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"(<!-- made: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = 120  # of prose in a page
VERDICTS = {True: "met", False: "**not met**", None: "not measured"}

Table = Sequence[Sequence[str]]  # rows of cells; the first row is the head
Make = Callable[[str], Sequence[str] | None]


def rewritten(text: str, make: Make) -> str:
    """The page with new lines in its parts, by name; a part for which `make` returns None stays as it is.

    Errors of `make` pass, such as KeyError for a name that it does not know.
    """

    def replace(match: re.Match[str]) -> str:
        lines = make(match[2])
        return match[0] if lines is None else "\n".join([match[1].rstrip("\n"), *lines, match[3]])

    return BLOCK.sub(replace, text)


def rewrite(path: Path, rewritten: Callable[[str], str]) -> bool:
    """Rewrite the file; whether it changed. Raises OSError."""
    before = path.read_text(encoding="utf-8")
    after = rewritten(before)
    path.write_text(after, encoding="utf-8")
    return before != after


def published(path: Path, changed: bool, draw: Callable[[Path], Sequence[str]]) -> list[str]:
    """Have the plots of a page drawn into its folder. What to say of page and plots: without matplotlib, why not."""
    said = f"bench: {path} {'rewritten' if changed else 'is as it was'}"
    try:
        return [said, f"bench: drawn {', '.join(draw(path.parent))}"]
    except ModuleNotFoundError as error:
        return [said, f"bench: no plots: {error}; `pip install --group bench` brings it"]


def paragraph(text: str) -> list[str]:
    """Prose for a page, in lines."""
    return textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def markdown(table: Table, left: int = 1) -> list[str]:
    """A table for a page: the first `left` columns are aligned to the left, the others to the right."""
    head, *rows = [f"| {' | '.join(row)} |" for row in table]
    return [head, "|" + "---|" * left + "---:|" * (len(table[0]) - left), *rows]


def aligned(table: Table) -> list[str]:
    """A table for a terminal: columns of words are aligned to the left, columns of numbers to the right."""
    columns = list(zip(*table, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [at == 0 or not any(cell[:1].isdigit() for cell in column[1:]) for at, column in enumerate(columns)]
    return [
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, words, strict=True)
        ).rstrip()
        for row in table
    ]


def number(value: float | None, digits: int = 3) -> str:
    """With `digits` significant digits at least, and thousands separated; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def with_unit(value: float, unit: str) -> str:
    return f"{number(value)}{unit}" if unit in ("x", "/s") else f"{number(value)} {unit}"


def share(value: float | None) -> str:
    """In percent; empty for None."""
    return "" if value is None else f"{value:.0%}"


def limit(value: float, unit: str, *, at_most: bool) -> str:
    """A bar: "≤ 3 µs"."""
    return f"{'≤' if at_most else '≥'} {with_unit(value, unit)}"


def machine(about: Mapping[str, Any]) -> str:
    """The machine of a report, in a line; memory only where the report has it."""
    memory = f"{about['memory_bytes'] / 2**30:.0f} GiB, " if about.get("memory_bytes") else ""
    return (
        f"{about['processor'] or about['machine']}, {about['processors']} processors, {memory}"
        f"{about['system']}, CPython {about['python']}"
    )
