"""Results for people: a table for each group, and the parts of docs/pipeline-speed.md that are made (reporting.py)."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fanlight_bench import reporting
from fanlight_bench.reporting import markdown, number, paragraph

Report = Mapping[str, Any]

DOCUMENT = Path(__file__).parents[3] / "docs" / "pipeline-speed.md"
INTERIM = re.compile(r"<!-- until: ([a-z]+) -->\n.*?<!-- measured -->\n\n?", re.DOTALL)
RESULTS = Path(__file__).parent / "results" / "published.json"


def group(bench: str, name: str, figures: Report) -> list[str]:
    """A line for each case."""
    title = bench if name == bench else f"{bench}: {name}"
    facts = {fact: value for fact, value in figures["facts"].items() if not isinstance(value, dict)}
    lines = [title + "".join(f"   {fact} {_fact(value)}" for fact, value in facts.items())]
    for row, values in figures["facts"].items():
        if isinstance(values, dict):
            lines.append(f"  {row:<26} " + "   ".join(f"{name} {_fact(value)}" for name, value in values.items()))
    for case, found in figures["cases"].items():
        beside = "   ".join(f"{number(ratio)} x {other}" for other, ratio in found["beside"].items())
        rate = rate_of(found["rows_per_second"])
        spent = f"{found['cpu_us']:6.3g} us" if "cpu_us" in found else ""
        lines.append(f"  {case:<26} {rate:>8} rows/s  ±{found['spread']:<6.1%} {spent:<9}  {beside}".rstrip())
    return lines


def rate_of(value: float) -> str:
    for unit, letter in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"


def _fact(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def rewritten(text: str, report: Report) -> str:
    """The page with its parts made from the report."""
    return reporting.rewritten(text, lambda name: _machine(report) if name == "machine" else _bench(name, report))


def without_interim(text: str, measured: Collection[str]) -> str:
    """The page without what it says only until these benches are measured anew."""
    return INTERIM.sub(lambda found: "" if found[1] in measured else found[0], text)


def _machine(report: Report) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return paragraph(
        f"{reporting.machine(report['machine'])}, {versions}; {report['rows']:,} messages, the median of "
        f"{report['turns']} turns.{_renewed(report)}"
    )


def _renewed(report: Report) -> str:
    """How those benches were measured that are of another run than the rest."""
    said = []
    for name, how in report.get("renewed", {}).items():
        busy = ", on a machine with other work" if how["load"] > report["machine"]["processors"] / 2 else ""
        said.append(f"{name} ({how['rows']:,} messages, {how['turns']} turns{busy})")
    return f" Of later runs: {'; '.join(said)}." if said else ""


def _bench(name: str, report: Report) -> list[str]:
    """The tables of one bench: rates, and other numbers."""
    if name not in report["benches"]:
        return ["Not measured in this run."]
    lines: list[str] = []
    for title, figures in report["benches"][name].items():
        lines += [""] if lines else []
        lines += _rates(title, figures) if figures["cases"] else _facts(title, figures["facts"])
    return lines


def _facts(title: str, facts: Report) -> list[str]:
    """A row for each, a column for each figure that any of them has."""
    names = list(dict.fromkeys(name for values in facts.values() for name in values))
    rows = [[row, *(_fact(values[name]) if name in values else "" for name in names)] for row, values in facts.items()]
    return markdown([[title, *map(_words, names)], *rows])


def _rates(title: str, figures: Report) -> list[str]:
    known = any("cpu_us" in found for found in figures["cases"].values())  # not of results from before
    rows = [[title, "rows/s", "±", *(["µs of a processor"] if known else []), "as quick as"]]
    for case, found in figures["cases"].items():
        beside = "; ".join(f"{number(ratio)} × {other}" for other, ratio in found["beside"].items())
        spent = [f"{found['cpu_us']:.3g}" if "cpu_us" in found else ""] if known else []
        rows.append([case, rate_of(found["rows_per_second"]), f"{found['spread']:.0%}", *spent, beside])
    facts = "; ".join(f"{_words(fact)}: {_fact(value)}" for fact, value in figures["facts"].items())
    return [*markdown(rows), *(["", *paragraph(facts[0].upper() + facts[1:] + ".")] if facts else [])]


def _words(name: str) -> str:
    """The name of a number, for people."""
    return re.sub(r"\bus\b", "µs", name.replace("_", " "))
