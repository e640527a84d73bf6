"""The parts of docs/matching.md that are made: tables and drawings (fanlight_bench.reporting).

The drawings come from the code (paper.py), the tables from a report, as a rule the committed one
(results/published.json), and tests/research checks that the document says what they say.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fanlight_bench import reporting
from fanlight_bench.reporting import markdown, paragraph
from fanlight_matchers import paper
from fanlight_matchers.bars import Figured, bars
from fanlight_matchers.collect import Report
from fanlight_matchers.literature import OPERATIONS, PUBLISHED
from fanlight_matchers.tables import Table, number, threads, times
from fanlight_matchers.tables import bars as bar_table

DOCUMENT = Path(__file__).parents[3] / "docs" / "matching.md"

WORKLOADS = (
    "W1 1k", "W1v 1k", "W3 1k", "W6 1k", "W6L 1k", "W2 10k", "W2 100k", "W3 10k", "W3 100k", "W3 1M",
    "W4a", "W4b", "W4c", "W4d", "W4e", "W4f",
)  # fmt: skip
DESIGNS = (
    "naive", "static", "bitmap", "bitmap-or", "rabbit", "matchbox", "trie-S", "nats", "dfa", "trie-I", "fanlight",
)  # fmt: skip
REMEMBERING = ("static", "bitmap", "trie-S", "nats", "dfa", "trie-I", "fanlight")
OPERATION_NAMES = {"subscribe": "subscribe", "unsubscribe": "unsubscribe", "lookup": "look-up"}
LIBRARIES = ("re", "pyroaring", "paho", "hyperscan", "fanlight")


def rewritten(text: str, report: Report | None) -> str:
    """The page with its parts made anew; without a report the drawings only. KeyError: an unknown part."""
    drawings = paper.blocks()

    def make(name: str) -> Sequence[str] | None:
        if name in drawings:
            return drawings[name]
        return None if report is None else TABLES[name](report)

    return reporting.rewritten(text, make)


def rewrite(report: Report | None, path: Path = DOCUMENT) -> bool:
    """Rewrite the file; whether it changed."""
    return reporting.rewrite(path, lambda text: rewritten(text, report))


def _machine(report: Report) -> list[str]:
    commit = f" Commit `{report['commit']}`." if report.get("commit") else ""
    return paragraph(f"These figures: {reporting.machine(report['machine'])}.{commit}")


def _cold(report: Report) -> list[str]:
    return markdown(_by_workload(report, DESIGNS, "cold"))


def _hot(report: Report) -> list[str]:
    return markdown(_by_workload(report, REMEMBERING, "hot"))


def _calls(report: Report) -> list[str]:
    table = _by_workload(report, LIBRARIES, "call")
    return markdown([row for row in table if any(row[1:-1])])


def _by_workload(report: Report, contenders: Sequence[str], name: str) -> Table:
    """The least in bold; in brackets where a contender could hold only some of the filters."""
    figured = Figured(report)
    measured = {contender for _, contender in figured.rows}
    contenders = [contender for contender in contenders if contender in measured]  # a run need not have all
    cells: Table = [("", *contenders)]
    for workload in WORKLOADS:
        values = [figured(workload, contender, name) for contender in contenders]
        partly = [bool(figured(workload, contender, "skipped")) for contender in contenders]
        whole = [value for value, part in zip(values, partly, strict=True) if value is not None and not part]
        if not whole:
            continue
        shown = [
            "" if value is None else f"({number(value)})" if part else number(value)
            for value, part in zip(values, partly, strict=True)
        ]
        best = next(i for i, value in enumerate(values) if value == min(whole) and not partly[i])
        shown[best] = f"**{shown[best]}**"
        cells.append((workload, *shown))
    return cells


def _ratios(report: Report) -> list[str]:
    """Ours: cold, hot, any, from Python; and how many times as fast as the two tries, cold and hot."""
    figured = Figured(report)
    cells: Table = [
        (
            "",
            "cold",
            "hot",
            "any",
            "from Python",
            "p99",
            "× trie-I",
            "× trie-I, hot",
            "× trie-S",
            "× trie-S, hot",
            "found",
        )
    ]
    for workload in WORKLOADS:
        if figured(workload, "fanlight", "cold") is None:
            continue
        ns = [number(figured(workload, "fanlight", name)) for name in ("cold", "hot", "any", "call", "slow")]
        fast = [
            times(figured.times(workload, contender, name))
            for contender in ("trie-I", "trie-S")
            for name in ("cold", "hot")
        ]
        cells.append((workload, *ns, *fast, f"{figured(workload, 'fanlight', 'found') or 0:.2f}"))
    return markdown(cells)


def _changes(report: Report) -> list[str]:
    """Bytes, inserts, removals and mixes where there are many filters."""
    figured = Figured(report)
    names = ("bytes", "insert", "remove", "mix_90_10", "mix_50_50", "c_mix_90_10", "c_mix_50_50")
    cells: Table = [("", "", "B/filter", "insert", "remove", "90/10", "50/50", "90/10 in C", "50/50 in C")]
    for workload in ("W1 1k", "W2 100k", "W3 10k", "W3 100k", "W3 1M"):
        for contender in ("fanlight", "trie-I", "trie-S", "matchbox", "nats", "dfa", "bitmap", "paho"):
            values = [figured(workload, contender, name) for name in names]
            if any(value is not None for value in values):
                cells.append((workload, contender, *map(number, values)))
    return markdown(cells)


def _treat(report: Report) -> list[str]:
    streams = {row["contender"]: row for row in report["stream"]}
    rows = {(row["contender"], row.get("hot", False)): row for row in report["treat"]}
    cells: Table = [
        ("", "subscribe", "unsubscribe", "look-up", "from Python", "subscribe, hot", "unsubscribe, hot", "look-up, hot",
         "from Python, hot", "messages/s", "B/filter")
    ]  # fmt: skip
    for contender in dict.fromkeys(row["contender"] for row in report["treat"]):
        ns = [
            number(rows.get((contender, hot), {}).get(name))
            for hot in (False, True)
            for name in ("subscribe", "unsubscribe", "lookup", "call")
        ]
        stream: dict[str, Any] = streams.get(contender, {})
        each = stream.get("cold", stream.get("call"))
        cells.append((contender, *ns, "" if not each else f"{1e9 / each:,.0f}", number(stream.get("bytes"))))
    return markdown(cells)


def _published(report: Report) -> list[str]:
    """What Treat published of each operation, what our port takes, and what ours takes in its place."""
    rows = {(row["contender"], row.get("hot", False)): row for row in report["treat"]}
    cells: Table = [("Treat's program, its port", "", *(OPERATION_NAMES[name] for name in OPERATIONS))]
    for known in PUBLISHED:
        for hot, figures in ((False, known.cold), (True, known.hot)):
            both = [rows.get((name, hot), {}) for name in (known.contender, "fanlight")]
            shown = [
                " / ".join(number(value) or "–" for value in (published, *(one.get(operation) for one in both)))
                for operation, published in zip(OPERATIONS, figures, strict=True)
            ]
            cells.append((f"{known.design}, `{known.contender}`", "hot" if hot else "cold", *shown))
    return markdown(cells, left=2)


def _throughput(report: Report) -> list[str]:
    """Messages a second of Treat's stream, and what the filters take in memory."""
    streams = {row["contender"]: row for row in report["stream"]}
    ours = streams["fanlight"]
    cells: Table = [
        ("Treat's program, its port", "messages/s, published", "port", "fanlight", "B/filter, port", "fanlight",
         "subscribe, port", "fanlight")
    ]  # fmt: skip
    for known in PUBLISHED:
        port = streams.get(known.contender, {})
        shown = [number(one[name]) if one.get(name) else "" for name in ("bytes", "insert") for one in (port, ours)]
        speeds = [f"{1e9 / one['cold']:,.0f}" if one.get("cold") else "" for one in (port, ours)]
        cells.append((f"{known.design}, `{known.contender}`", f"{known.messages:,.0f}", *speeds, *shown))
    return markdown(cells)


def _conventional(report: Report) -> list[str]:
    figured = Figured(report)
    cells: Table = [("1,000 subscriptions", "ns a match", "× the scan of interned filters")]
    for contender, what in (
        ("re", "a regular expression a filter, from Python"), ("naive", "conventional: a scan of interned filters"),
        ("static", "static bitmap, topics known"), ("bitmap", "optimised bitmap"),
        ("bitmap-or", "the same with pure rows, as Treat and WSO2 have it"), ("fanlight", "fanlight"),
    ):  # fmt: skip
        mine = figured("W1v 1k", contender, "call" if contender == "re" else "cold")
        scan = figured("W1v 1k", "naive", "cold")
        if mine is not None:
            cells.append((what, number(mine), times(None if scan is None else scan / mine)))
    return markdown(cells)


def _goal(report: Report) -> list[str]:
    figured = Figured(report)
    cells: Table = [("10,000 filters (W3)", "µs a message", "messages/s", "under 10 µs")]
    for contender in DESIGNS:
        ns = figured("W3 10k", contender, "cold")
        if ns is not None:
            cells.append((contender, f"{ns / 1e3:.2f}", f"{1e9 / ns:,.0f}", "yes" if ns < 10_000 else "no"))
    return markdown(cells)


def _threads(report: Report) -> list[str]:
    return markdown(threads(report["threads"]), left=2)


def _apart(report: Report) -> list[str]:
    rows = report.get("apart")
    return markdown(threads(rows), left=2) if rows else ["The committed run has no such figures."]


def _beside(report: Report) -> list[str]:
    cells: Table = [("asked", "readers", "topics/s, all readers", "changes/s of the writer")]
    for row in report["beside"]:
        speeds = (f"{row['topics_per_second']:,.0f}", f"{row.get('changes_per_second', 0):,.0f}")
        cells.append((row["asked"], str(row["readers"]), *speeds))
    return markdown(cells)


def _bars(report: Report) -> list[str]:
    return markdown(bar_table(bars(report)))


TABLES: dict[str, Callable[[Report], list[str]]] = {
    "machine": _machine, "cold": _cold, "hot": _hot, "calls": _calls, "ratios": _ratios, "changes": _changes,
    "treat": _treat, "published": _published, "conventional": _conventional, "goal": _goal, "threads": _threads,
    "throughput": _throughput, "apart": _apart, "beside": _beside, "bars": _bars,
}  # fmt: skip
