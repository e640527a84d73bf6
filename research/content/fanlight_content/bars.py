"""The bars of the design of selectors, and what one run reached. The bars themselves are fanlight_matchers.bars'."""

from collections.abc import Iterator

from fanlight_content.collect import GROWN, SILENT, SILENT_MANY, ContentReport
from fanlight_content.registry import BASELINE, OURS
from fanlight_content.workloads import ADVERSARIAL
from fanlight_matchers.bars import Bar, ratio

COUNTING = "counting"
LINEAR = 1.25


class ContentFigured:
    """The figures of a report by workload, contender and name; None: not measured."""

    def __init__(self, report: ContentReport) -> None:
        self.rows = {(row["workload"], row["contender"]): row for row in report.get("rows", [])}

    def __call__(self, workload: str, contender: str, name: str) -> float | None:
        value = self.rows.get((workload, contender), {}).get(name)
        return None if value is None else float(value)

    def times(self, workload: str, contender: str) -> float | None:
        """How many times as fast as that contender ours is."""
        if contender == BASELINE:
            return self(workload, OURS, "ratio")  # turn by turn
        return ratio(self(workload, contender, "ns"), self(workload, OURS, "ns"))

    def slower(self, workload: str) -> float | None:
        """How many times as long as the baseline ours takes."""
        return ratio(1, self.times(workload, BASELINE))


def bars(report: ContentReport) -> list[Bar]:
    """All of them, met or not."""
    figured = ContentFigured(report)
    return [*_shared(figured), *_others(figured, report), *_adversarial(figured, report)]


def _shared(figured: ContentFigured) -> Iterator[Bar]:
    for workload, beside, counting in (("shared 100k", 6, 40), ("rare 100k", 6, 40), ("shared 1M", 4, 70)):
        yield Bar(workload, f"as fast as {BASELINE}", beside, False, "x", figured.times(workload, BASELINE))
        yield Bar(workload, "as fast as counting", counting, False, "x", figured.times(workload, COUNTING))
    for workload in ("shared 100k", "rare 100k"):
        ns = figured(workload, OURS, "ns")
        yield Bar(workload, "a message", 4, True, "µs", None if ns is None else ns / 1e3)
    insert = figured("shared 100k", OURS, "insert_ns")
    yield Bar("shared 100k", "insert", 1.2, True, "µs", None if insert is None else insert / 1e3)
    yield Bar("shared 100k", "a selector, without its text", 120, True, "B", figured("shared 100k", OURS, "bytes"))


def _others(figured: ContentFigured, report: ContentReport) -> Iterator[Bar]:
    yield Bar("narrow 100k", f"time to {BASELINE}", 1.15, True, "x", figured.slower("narrow 100k"))
    silent = {row["selectors"]: row["ns"] for row in report.get("silence", [])}
    reached = ratio(silent.get(SILENT_MANY), silent.get(SILENT))
    yield Bar("matches nothing", "1M selectors elsewhere to 10k", 1.1, True, "x", reached)
    for format, limit in (("msgpack", 350), ("JSON", 450)):
        yield Bar("14 fields of 20", f"decode {format}", limit, True, "ns", report.get("decoding", {}).get(format))


def _adversarial(figured: ContentFigured, report: ContentReport) -> Iterator[Bar]:
    known = {(row["workload"], row["contender"], row["times"]): row["ns"] for row in report.get("growth", [])}

    def grown(workload: str, contender: str) -> float | None:
        return ratio(known.get((workload, contender, GROWN)), known.get((workload, contender, 1)))

    for workload in ADVERSARIAL:
        yield Bar(workload, f"time to {BASELINE}", 1.3, True, "x", figured.slower(workload))
        reached = ratio(grown(workload, OURS), grown(workload, BASELINE))
        what = f"growth with {GROWN} times the selectors, to that of {BASELINE}"
        yield Bar(workload, what, LINEAR, True, "x", reached)
