"""A page for people: an answer, tables and charts in one HTML file that needs nothing else.

    page = Report("Traffic", "archive, 2026-11-21")
    page.answer("1,000 messages passed in an hour, and none for 12 minutes of it.", found=True)
    page.facts([("messages", 1_000), ("bytes", 98_304)])
    page.table(["root", "messages"], rows)
    page.section("By topic root")
    page.say("The root of a topic is its first word.")
    page.chart(charts.bars(rows, "messages"), "Messages of each root")
    page.write(folder / "report.html")

A reader has the answer on the first screen: a sentence with its figure, then a table, then the charts. Charts can be
pointed at, zoomed, made logarithmic, and downloaded as PNG and as CSV (charts.py, page/charts.js).

What is in a page came over the network from anybody. Everything is escaped; a policy in the page allows the two scripts
that it comes with, by their hashes, and nothing else: no other script, no font, no picture, no request. Cells, rows and
charts are bounded, so that a page is below a megabyte, and the text says what was left out. Light and dark as the
reader's system has it, light on paper. Decision 0034 says why this library.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import cache
from html import escape
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, Final

from fanlight_spark.jobs.charts import Chart, short, visible

ROWS_MAX: Final = 100
CELL_MAX: Final = 120  # letters; a topic may have 65,535 bytes
CHARTS_BYTES_MAX: Final = 220_000  # of the data of all charts,
TABLES_BYTES_MAX: Final = 100_000  # and of the rows of all tables: with the library a page is below a megabyte
SCRIPTS: Final = ("echarts.js", "charts.js")


class Report:
    """A page that is being written, from top to bottom; the answer stands above all, whenever it is given."""

    def __init__(
        self, title: str, about: str = "", made: datetime | None = None, refresh: int | None = None
    ) -> None:
        """refresh: how many seconds until a browser reads it again, of a page that is written again and again."""
        self.title, self.about, self.refresh = title, about, refresh
        self.made = made or datetime.now(UTC)
        self.charts_left_out = 0
        self._answer = ""
        self._parts: list[str] = []
        self._chart_bytes = self._table_bytes = 0

    def answer(self, sentence: str, found: bool | None = None) -> None:
        """What the reader wants to know, with its figure. found: whether it is something to act on, if known."""
        kind = "" if found is None else " found" if found else " good"
        self._answer = f'<p class="answer{kind}">{_text(sentence)}</p>'

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
        head = "".join(f'<th scope="col"{kind[at]}>{_text(name)}</th>' for at, name in enumerate(columns))
        body = ""
        for at, row in enumerate(shown):
            line = "<tr>" + "".join(f"<td{k}>{_cell(value)}</td>" for k, value in zip(kind, row, strict=True)) + "</tr>"
            if self._table_bytes + len(line.encode("utf-8", "replace")) > TABLES_BYTES_MAX:
                shown, more = shown[:at], True
                break
            self._table_bytes += len(line.encode("utf-8", "replace"))
            body += line
        if body:
            self._parts.append(f'<div class="wide" tabindex="0"><table><tr>{head}</tr>{body}</table></div>')
        notes = [caption] if caption else []
        if total is not None and total > len(shown):
            notes.append(f"The first {len(shown):,} of {total:,}.")
        elif more:
            notes.append(f"The first {len(shown):,}; there are more.")
        elif not shown:
            notes.append("There are none.")
        if notes:
            self._parts.append(f'<p class="note">{_text(" ".join(notes))}</p>')

    def chart(self, chart: Chart, caption: str) -> None:
        """caption: what the chart shows; its name for screen readers and in a download, too."""
        data = json.dumps(chart.data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
        if self._chart_bytes + len(data) > CHARTS_BYTES_MAX:
            self.charts_left_out += 1
            self._parts.append(f'<p class="note">{_text(caption)}: there was no room left on the page to draw it.</p>')
            return
        self._chart_bytes += len(data)
        data = data.replace("<", "\\u003c").replace("&", "\\u0026")  # nothing in it ends the element that it is in
        self._parts.append(
            f'<figure class="data"><figcaption>{_text(caption)}</figcaption>'
            f'<script type="application/json">{data}</script><div class="chart" role="img" tabindex="0" hidden></div>'
            "<noscript><p>This chart needs JavaScript.</p></noscript></figure>"
        )

    def html(self) -> str:
        """The page. It comes with the scripts if it has a chart."""
        about = f'<p class="about">{_text(self.about)}</p>' if self.about else ""
        scripts = [_file(name) for name in SCRIPTS] if self._chart_bytes else []
        again = f'<meta http-equiv="refresh" content="{self.refresh}">\n' if self.refresh else ""
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(self.title)}</title>\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{again}'
            f'<style>{_file("page.css")}</style></head>\n'
            f"<body><h1>{_text(self.title)}</h1>{self._answer}{about}\n"
            + "\n".join(self._parts)
            + f"\n<footer><p>Made {self.made:%Y-%m-%d %H:%M} UTC by Fanlight.</p></footer>"
            + "".join(f"<script>{script}</script>" for script in scripts)
            + "</body></html>\n"
        )

    def write(self, path: Path) -> None:
        """Whole or not at all: beside, then renamed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.new")
        # A topic in a table may be what UTF-8 has no bytes for.
        aside.write_bytes(self.html().encode("utf-8", "replace"))
        os.replace(aside, path)


@cache
def _file(name: str) -> str:
    """A file of the folder `page`, from wherever the package is, a zip too."""
    text = (resources.files("fanlight_spark.jobs") / "page" / name).read_text(encoding="utf-8")
    if "</script" in text or "<!--" in text:
        raise ValueError(f"page/{name} cannot stand inside a page")
    return text


def _policy(scripts: Sequence[str]) -> str:
    """What the page allows itself: its own styles and these scripts."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return "default-src 'none'; style-src 'unsafe-inline'" + (f"; script-src {allowed}" if allowed else "")


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
    return f'<span title="{_text(whole[:CELL_MAX * 4])}">{_text(short(whole, CELL_MAX))}</span>'


def _text(text: str) -> str:
    """Escaped, and control characters made visible."""
    return escape(visible(text))


def _is_number(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
