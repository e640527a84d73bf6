"""A page for people: a title, sentences, tables and plots in one HTML file that needs nothing else.

    report = Report("Traffic", "archive, 2026-11-21")
    report.facts([("messages", 1_000), ("bytes", 98_304)])
    report.section("By topic root")
    report.say("The root of a topic is its first word.")
    report.table(["root", "messages"], rows)
    report.plot(plots.bars(rows), "messages of each root")
    report.write(folder / "report.html")

No script, no font, no picture from elsewhere, and the page forbids itself any: what is in it came over the network from
anybody. Everything is escaped, cells and rows are bounded, and the text that a table leaves out is said to be left out.
Light and dark as the reader's system has it.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, Final

from fanlight_spark.jobs.plots import Svg, short

ROWS_MAX: Final = 100
CELL_MAX: Final = 120  # letters; a topic may have 65,535 bytes

# c0 to c7 are apart from each other for those who see few colours, too, and on either ground.
STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5c6570; --line: #dde1e6; --ground: #fff; --panel: #f6f7f9;
  --c0: #2a6fbb; --c1: #d9541e; --c2: #1f8a5b; --c3: #a3499b; --c4: #b8860b; --c5: #45a1b0;
  --c6: #7a5c3e; --c7: #808891; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --soft: #9aa3ad; --line: #33393f; --ground: #16191c;
  --panel: #1e2226; --c0: #5f9fe6; --c1: #f0804f; --c2: #4cc38a; --c3: #cf82c7; --c4: #dcb04a; --c5: #6cc5d3;
  --c6: #b7946f; --c7: #a0a8b0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 56rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 46rem; }
p.about, footer, figcaption, p.note { color: var(--soft); font-size: .87rem; overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0; }
dl div { background: var(--panel); border-radius: 8px; padding: .6rem 1rem; min-width: 8rem; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  unicode-bidi: isolate; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; }
svg.plot { width: 100%; height: auto; display: block; font: 12px system-ui, sans-serif; }
.plot text { fill: var(--ink); } .plot .tick { fill: var(--soft); font-size: 11px; }
.plot .grid { stroke: var(--line); } .plot .axis { stroke: var(--soft); }
.plot polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.plot polyline.partial { stroke-dasharray: 3 4; }
.plot .rise { stroke: var(--c2); fill: var(--ground); } .plot .fall { stroke: var(--c1); fill: var(--c1); }
""" + "\n".join(
    f".plot rect.c{n}, .plot circle.c{n} {{ fill: var(--c{n}); }} .plot polyline.c{n} {{ stroke: var(--c{n}); }}"
    for n in range(8)
)
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


class Report:
    """A page that is being written, from top to bottom."""

    def __init__(self, title: str, about: str = "", made: datetime | None = None) -> None:
        self.title, self.about = title, about
        self.made = made or datetime.now(UTC)
        self._parts: list[str] = []

    def section(self, title: str) -> None:
        self._parts.append(f"<h2>{_text(title)}</h2>")

    def say(self, sentence: str) -> None:
        self._parts.append(f"<p>{_text(sentence)}</p>")

    def facts(self, facts: Iterable[tuple[str, Any]]) -> None:
        """The few figures that matter most."""
        rows = "".join(f"<div><dt>{_text(name)}</dt><dd>{_cell(value)}</dd></div>" for name, value in facts)
        self._parts.append(f"<dl>{rows}</dl>")

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        caption: str = "",
        *,
        rows_max: int = ROWS_MAX,
        total: int | None = None,
    ) -> None:
        """The first rows, in their order; rows of Spark will do. total: of how many, if `rows` are not all."""
        given = iter(rows)
        shown = [tuple(row) for row in islice(given, rows_max)]
        more = next(given, None) is not None
        numbers = [_is_number([row[at] for row in shown]) for at in range(len(columns))]
        kind = [' class="number"' if number else "" for number in numbers]
        head = "".join(f"<th{kind[at]}>{_text(name)}</th>" for at, name in enumerate(columns))
        body = "".join(
            "<tr>" + "".join(f"<td{kind[at]}>{_cell(value)}</td>" for at, value in enumerate(row)) + "</tr>"
            for row in shown
        )
        self._parts.append(f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>')
        notes = [caption] if caption else []
        if total is not None and total > len(shown):
            notes.append(f"The first {len(shown):,} of {total:,}.")
        elif more:
            notes.append(f"The first {len(shown):,}; there are more.")
        elif not shown:
            notes.append("There are none.")
        if notes:
            self._parts.append(f'<p class="note">{_text(" ".join(notes))}</p>')

    def plot(self, svg: Svg, caption: str = "") -> None:
        self._parts.append(f"<figure>{svg}<figcaption>{_text(caption)}</figcaption></figure>")

    def html(self) -> str:
        about = f'<p class="about">{_text(self.about)}</p>' if self.about else ""
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(self.title)}</title>\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style></head>\n'
            f"<body><h1>{_text(self.title)}</h1>{about}\n"
            + "\n".join(self._parts)
            + f"\n<footer><p>Made {self.made:%Y-%m-%d %H:%M} UTC by Fanlight.</p></footer></body></html>\n"
        )

    def write(self, path: Path) -> None:
        """Whole or not at all: beside, then renamed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.new")
        # A topic in a table may be what UTF-8 has no bytes for.
        aside.write_bytes(self.html().encode("utf-8", "replace"))
        os.replace(aside, path)


def _cell(value: Any) -> str:
    """A value as people read it, escaped and cut to what a cell has room for."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    whole = str(value)
    if len(whole) <= CELL_MAX:
        return _text(whole)
    return f'<span title="{_text(whole[:2_000])}">{_text(short(whole, CELL_MAX))}</span>'


def _text(text: str) -> str:
    """Escaped, and control characters made visible."""
    return escape("".join(letter if letter >= " " and letter != "\x7f" else "\ufffd" for letter in text))


def _is_number(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
