"""The bars: what the design promises of each workload, and what one run reached.

Ratios are taken between figures of the same run, so that they hold on any machine; absolute bars are those of the
machine the design was measured on (two shared cores of an AMD Zen 4) and say less on another. A bar whose figure was
not measured is named, not passed over.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fanlight_matchers.collect import Report


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise. `reached` None: not measured."""

    workload: str
    what: str
    limit: float
    at_most: bool
    unit: str  # "x", "ns", "µs", "ms", "B"
    reached: float | None

    @property
    def met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached <= self.limit if self.at_most else self.reached >= self.limit


# The least factors to trie-S and to trie-I; at most ns in C, of them hot ones; at most ns from Python.
TOPICS: dict[str, tuple[float, float, float, float | None, float | None]] = {
    "W1 1k": (1.5, 2.0, 60, None, 130),
    "W1v 1k": (0.9, 0.6, 220, None, 300),
    "W3 1k": (1.6, 1.2, 230, None, 320),
    "W2 10k": (1.6, 0.9, 280, None, 350),
    "W2 100k": (4.0, 1.1, 430, 230, 550),
    "W3 10k": (3.5, 2.2, 260, None, 350),
    "W3 100k": (6.0, 2.2, 420, 200, 500),
    "W3 1M": (12.0, 4.0, 850, 300, 1_050),
    "W4a": (4.0, 1.5, 1_400, None, None),
    "W4b": (3.0, 0.8, 3_200, None, None),
    "W4c": (5.0, 4.0, 5_000, None, None),
    "W4d": (8.0, 3.5, 10_000, None, None),
    "W4e": (1.8, 1.2, 850, None, None),
    "W4f": (25.0, 20.0, 450, None, None),
}

# Against whom, where, how many times as fast; and whether in C or as called from Python.
OTHERS = [
    ("W1 1k", "bitmap", 10, "cold"), ("W1 1k", "matchbox", 10, "cold"),
    ("W2 10k", "naive", 250, "cold"), ("W3 10k", "naive", 250, "cold"),
    ("W1 1k", "paho", 14, "call"), ("W2 10k", "paho", 10, "call"), ("W3 100k", "paho", 35, "call"),
    ("W1 1k", "hyperscan", 9, "call"), ("W2 10k", "hyperscan", 60, "call"),
]  # fmt: skip

BYTES = {"W2 100k": 110, "W3 100k": 135}
BESIDE = 105  # B a filter of W3 1M, beside its text and id


class Figured:
    """The figures of a report by workload, contender and name; None: not measured."""

    def __init__(self, report: Report) -> None:
        self.rows = {(row["workload"], row["contender"]): row for row in report.get("workloads", [])}

    def __call__(self, workload: str, contender: str, name: str) -> float | None:
        value = self.rows.get((workload, contender), {}).get(name)
        return None if value is None else float(value)

    def times(self, workload: str, contender: str, name: str = "cold") -> float | None:
        """How many times as fast as that contender ours is."""
        return ratio(self(workload, contender, name), self(workload, "fanlight", name))


def ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def bars(report: Report) -> list[Bar]:
    """All of them, met or not."""
    figured = Figured(report)
    return [
        *_topics(figured),
        *_others(figured),
        *_scaling(figured),
        *_memory(figured, report),
        *_changes(figured, report),
        *_besides(report),
    ]


def _topics(figured: Figured) -> Iterator[Bar]:
    for workload, (trie_s, trie_i, cold, hot, call) in TOPICS.items():
        yield Bar(workload, "as fast as trie-S", trie_s, False, "x", figured.times(workload, "trie-S"))
        yield Bar(workload, "as fast as trie-I", trie_i, False, "x", figured.times(workload, "trie-I"))
        yield Bar(workload, "cold", cold, True, "ns", figured(workload, "fanlight", "cold"))
        if hot is not None:
            yield Bar(workload, "hot", hot, True, "ns", figured(workload, "fanlight", "hot"))
        if call is not None:
            yield Bar(workload, "from Python", call, True, "ns", figured(workload, "fanlight", "call"))
    yield Bar("W3 100k", "hot, as fast as trie-I", 3.5, False, "x", figured.times("W3 100k", "trie-I", "hot"))


def _others(figured: Figured) -> Iterator[Bar]:
    for workload, contender, limit, name in OTHERS:
        how = ", from Python" if name == "call" else ""
        yield Bar(workload, f"as fast as {contender}{how}", limit, False, "x", figured.times(workload, contender, name))


def _scaling(figured: Figured) -> Iterator[Bar]:
    cold = [figured(f"W3 {size}", "fanlight", "cold") for size in ("10k", "100k", "1M")]
    yield Bar("W3", "time at 100k to time at 10k", 2.2, True, "x", ratio(cold[1], cold[0]))
    yield Bar("W3", "time at 1M to time at 100k", 2.6, True, "x", ratio(cold[2], cold[1]))
    for workload in ("W4c", "W4f"):
        worst = ratio(figured(workload, "fanlight", "slowest"), figured(workload, "fanlight", "half"))
        yield Bar(workload, "slowest topic to the median", 100, True, "x", worst)


def _memory(figured: Figured, report: Report) -> Iterator[Bar]:
    for workload, limit in BYTES.items():
        yield Bar(
            workload, "a filter, its text and id counted", limit, True, "B", figured(workload, "fanlight", "bytes")
        )
    yield Bar("W3 1M", "a filter, beside its text and id", BESIDE, True, "B", figured("W3 1M", "fanlight", "beside"))
    for workload in ("W3 100k", "W3 1M"):
        ours = figured(workload, "fanlight", "bytes")
        for contender, share in (("trie-I", 0.65), ("trie-S", 0.3)):
            reached = ratio(ours, figured(workload, contender, "bytes"))
            yield Bar(workload, f"a filter, to {contender}, which keeps no text", share, True, "x", reached)
    grown = report.get("process", {}).get("process")
    given = report.get("process", {}).get("given")
    grown_beside = None if grown is None or given is None else grown - given
    yield Bar("W3 1M", "growth of the process, beside text and id", BESIDE, True, "B", grown_beside)


def _changes(figured: Figured, report: Report) -> Iterator[Bar]:
    for workload in ("W2 100k", "W3 100k"):
        yield Bar(workload, "insert", 1_400, True, "ns", figured(workload, "fanlight", "insert"))
        yield Bar(workload, "remove", 1_300, True, "ns", figured(workload, "fanlight", "remove"))
    for workload, least in (("W3 100k", 1.8), ("W3 1M", 2.5)):
        mixed = figured.times(workload, "trie-I", "c_mix_90_10")
        yield Bar(workload, "90/10 mix, as fast as trie-I", least, False, "x", mixed)
    longest = report.get("pauses", {})
    for change in ("insert", "remove"):
        spent = longest.get(change)
        yield Bar("W3, to 100k", f"longest {change}", 5, True, "ms", None if spent is None else spent / 1e6)


def _besides(report: Report) -> Iterator[Bar]:
    called = report.get("boundary")
    over = None if called is None else called["call"] - called["floor"] - called["c"]
    yield Bar("W1", "an empty answer, above a call and the match in C", 15, True, "ns", over)
    frozen = report.get("frozen", {})
    spent = frozen.get("freeze")
    yield Bar("W3 100k", "freeze", 20, True, "ms", None if spent is None else spent / 1e6)
    asked = report.get("names", {})
    for question, what, most in (
        ("ten", "filter that matches ten names", 20.0),
        ("thousand", "filter that matches a thousand", 200.0),
        ("none", "filter that matches none", 1.0),
    ):
        yield Bar("names, 1M", what, most, True, "µs", asked.get(question, {}).get("us"))
