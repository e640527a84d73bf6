"""The report of `fanlightd rules compare`: one page that needs nothing else. What others have named is escaped."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Routing rules compared</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
.answer { font-size: 1.3rem; } .found { color: #a40000; } .table { overflow-x: auto; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem .8rem .2rem 0; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } tr + tr { border-top: 1px solid #ddd; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } .found { color: #ff8a80; } }
</style></head><body>
"""
TABLES: Final = (
    ("topics", "By topic and rules", ("what", "messages", "topic", "at", "rules_before", "rules_after")),
    ("subscribers", "By subscriber", ("what", "messages", "user", "client", "filter")),
)


def page(view: Mapping[str, Any], top: int) -> str:
    return HEAD + "\n".join(_parts(view, top)) + "\n</body></html>\n"


def _parts(view: Mapping[str, Any], top: int) -> Iterator[str]:
    yield "<h1>Routing rules compared</h1>"
    before = view["old"] or "no rules"
    yield f"<p>{escape(view['new'])} against {escape(before)}, on {escape(view['archive'])}</p>"
    found = " found" if view["differ"] else ""
    answer = f"{view['different']:,} of {view['messages']:,} messages go elsewhere, or as something else."
    yield f'<p class="answer{found}">{answer}</p>'
    for name, title, columns in TABLES:
        rows = view[name]
        if rows:
            yield f"<h2>{title}</h2>"
            yield from _table(columns, [[row[column] for column in columns] for row in rows[:top]])
            if len(rows) > top:
                yield f"<p>The first {top:,} of {len(rows):,} rows: --top, --json.</p>"
    hits = [[rule, count, view["failed"].get(rule, 0)] for rule, count in view["hits"].items()]
    unused = [[rule, 0, view["failed"].get(rule, 0)] for rule in view["never_hit"]]
    if hits or unused:
        yield "<h2>The new rules, and how many messages they acted on</h2>"
        yield from _table(("rule", "messages", "could not act on"), [*unused, *hits][:top])
    yield "<h2>What was not looked at</h2><ul>"
    yield from (f"<li>{escape(note)}</li>" for note in view["notes"])
    yield "</ul>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield '<div class="table"><table><tr>'
    yield "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in columns) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(_cell(value) for value in row) + "</tr>"
    yield "</table></div>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"
