"""The parts of docs/benchmarks.md, and the chart of the README, that are made from a file of results (reporting.py).

One kind of text inside them is written by hand and kept: the explanation of a bar that is not met, between
`<!-- why: BAR -->` and `<!-- end why -->`. An explanation whose bar is met now is kept at the end until somebody
deletes it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from statistics import median

from fanlight_bench import reporting
from fanlight_bench.peers import tables
from fanlight_bench.peers.bar import Bar
from fanlight_bench.peers.bars import bars
from fanlight_bench.peers.results import Report
from fanlight_bench.reporting import markdown, paragraph, with_unit

ROOT = Path(__file__).parents[3]
WHY = re.compile(r"<!-- why: (.+?) -->\n(.*?)<!-- end why -->\n?", re.DOTALL)
UNEXPLAINED = "Not explained yet. Add the profile and what would be needed."


def rewritten(text: str, report: Report) -> str:
    """The page with its parts made from the report. KeyError: a part that nobody makes."""
    known = {key: why.strip("\n") for key, why in WHY.findall(text)}
    return reporting.rewritten(
        text, lambda name: reasons(report, known) if name == "reasons" else BLOCKS[name](report)
    )


def rewrite(report: Report, path: Path) -> bool:
    """Rewrite the file; whether it changed. OSError: it cannot be read or written."""
    return reporting.rewrite(path, lambda text: rewritten(text, report))


def reasons(report: Report, known: dict[str, str]) -> list[str]:
    """A heading for each bar that is not met, with what was written below it."""
    lines: list[str] = []
    missed = [bar for bar in bars(report) if bar.met is False]
    for bar in missed:
        why = known.get(bar.key, "")
        lines += [f"**{bar.key}** ({_reached(bar)})", "", *_kept(bar.key, why or UNEXPLAINED)]
    if not missed:
        lines += ["All goals that were measured are met.", ""]
    earlier = {key: why for key, why in known.items() if key not in {bar.key for bar in missed} and why != UNEXPLAINED}
    for key, why in earlier.items():
        lines += [f"**{key}**: met or not measured in these runs; the explanation is from earlier runs.", ""]
        lines += _kept(key, why)
    return lines


def _kept(key: str, why: str) -> list[str]:
    return [f"<!-- why: {key} -->", why, "<!-- end why -->", ""]


def _reached(bar: Bar) -> str:
    assert bar.reached is not None
    sign = "at most" if bar.at_most else "at least"
    return f"{with_unit(bar.reached, bar.unit)}, {sign} {with_unit(bar.limit, bar.unit)} required"


def _machine(report: Report) -> list[str]:
    machine, effort = report["machine"], report["effort"]
    text = (
        f"{str(report['date'])[:10]}: {reporting.machine(machine)}, loopback. "
        f"{effort['rounds']} interleaved round{'s' * (effort['rounds'] != 1)} of {effort['duration']:g} s, "
        f"each after a warm-up of {effort['warmup']:g} s.{_others(report)}"
    )
    return [*paragraph(text), *_again(report)]


def _again(report: Report) -> list[str]:
    """The scenarios that were measured later than the rest, and the machine if it was another one."""
    again: dict[str, list[str]] = {}
    for letter, how in report.get("again", {}).items():
        rounds = f"{how['rounds']} round{'s' * (how['rounds'] != 1)} of {how['duration']:g} s"
        machine = how.get("machine", report["machine"])
        where = "" if machine == report["machine"] else f", {reporting.machine(machine)}"
        again.setdefault(f"{str(how['date'])[:16].replace('T', ' ')} UTC, {rounds}{where}", []).append(letter)
    texts = [f"Measured again, {when}: {', '.join(letters)}." for when, letters in again.items()]
    return [line for text in texts for line in paragraph(text)]


def _others(report: Report) -> str:
    """The other work of the machine, which lowers the rates."""
    busy = [run["others_busy"] for run in report["runs"] if run.get("others_busy") is not None]
    if not busy:
        return ""
    return f" Other work took a median of {median(busy):.0%} of one processor, so the rounds are interleaved."


def _contenders(report: Report) -> list[str]:
    cells: tables.Table = [("", "what", "version", "processors")]
    for name, about in report["contenders"].items():
        pinned = "one, pinned" if about["one_thread"] else "all"
        cells.append((name, about["title"], about["version"] or "-", pinned))
    for name in report["missing"]:
        cells.append((name, "not installed, not measured", "-", "-"))
    return markdown(cells)


def _scenarios(report: Report) -> list[str]:
    cells: tables.Table = [("", "what", "`python -m fanlight_bench load`")]
    for letter, about in report["scenarios"].items():
        cells.append((letter, about["title"], f"`{about['scenario']}`"))
    lines = markdown(cells)
    if report["left_out"]:
        lines += ["", "Left out by declaration:", ""]
        lines += [f"* {one['contender']} in {one['scenario']}: {one['reason']}." for one in report["left_out"]]
    return lines


def _bars(report: Report) -> list[str]:
    return markdown(tables.bars(bars(report)))


def _cpu(report: Report) -> list[str]:
    return [*_picture("cpu", "Processor time per delivery"), *markdown(tables.overview(report, "us_per_delivery"))]


def _rates(report: Report) -> list[str]:
    return [*_picture("rates", "Deliveries per second"), *markdown(tables.overview(report, "deliveries_per_second"))]


def _latency(report: Report) -> list[str]:
    return _picture("latency", "Latency at 5,000 messages per second")[:1]


def _memory(report: Report) -> list[str]:
    return [*_picture("memory", "Memory"), *markdown(tables.memory(report))]


def _picture(name: str, what: str) -> list[str]:
    return [f"![{what} of each broker](benchmarks-{name}.svg)", ""]


def _ratios(report: Report) -> list[str]:
    return markdown(tables.ratios(report))


def _targets(report: Report) -> list[str]:
    return markdown(tables.targets(report))


def _details(report: Report) -> list[str]:
    lines: list[str] = []
    for letter, about in report["scenarios"].items():
        rows = tables.scenario(report, letter)
        if len(rows) > 1:
            lines += [f"### {letter}: {about['title']}", "", *markdown(rows), ""]
    return lines


def _configurations(report: Report) -> list[str]:
    lines: list[str] = []
    for about in {(one["broker"], one["configuration"]): one for one in report["contenders"].values()}.values():
        lines += [f"{about['broker']} {about['version']}".rstrip(), "", "```text"]
        lines += [*about["configuration"].rstrip("\n").splitlines(), "```", ""]
    return lines


def _chart(report: Report) -> list[str]:
    machine = report["machine"]
    return [
        "![Processor time a delivery of each broker](docs/benchmarks-chart.svg)",
        "",
        f"{str(report['date'])[:10]}, {machine['processors']} processors, one of them the broker's; less is better.",
        "[All figures, versions and configurations](docs/benchmarks.md).",
    ]


BLOCKS: dict[str, Callable[[Report], list[str]]] = {
    "machine": _machine, "contenders": _contenders, "scenarios": _scenarios, "bars": _bars, "cpu": _cpu,
    "rates": _rates, "latency": _latency, "memory": _memory, "ratios": _ratios, "targets": _targets,
    "details": _details, "configurations": _configurations, "chart": _chart,
}  # fmt: skip
