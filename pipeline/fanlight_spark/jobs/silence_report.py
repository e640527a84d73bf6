"""The page of the job `silence`: what fell silent first, then the rest; each of the worst over time."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fanlight_spark.histories import EPOCH, Clock
from fanlight_spark.jobs import charts
from fanlight_spark.jobs.report import Report

SHOWN: Final = 20  # findings of each kind in a table
DRAWN: Final = 6
WINDOWS: Final = 2_000  # the newest, of each that is drawn
WHATS: Final = ("silent", "rate", "size", "new")
TITLES: Final = {
    "silent": "Unusually silent", "rate": "Rates outside their history", "size": "Sizes outside their history",
    "new": "Seen for the first time",
}  # fmt: skip
NOTES: Final = {
    "silent": "Of a topic only that time counts in which anything was archived.",
    "rate": "Messages in a window; of neighbouring windows the most extreme.",
    "size": "Mean bytes of the payloads of a window.",
    "new": "With the number of messages since.",
}  # fmt: skip


def report(
    found: DataFrame, known: DataFrame, windows: DataFrame, clock: Clock, every: str, about: str
) -> tuple[Report, str, int]:
    """The page, its first sentence, and how many findings there are."""
    counts = Counter({
        (row.kind, row.what, row.still): row["count"]
        for row in found.groupBy("kind", "what", F.col("end").isNull().alias("still")).count().collect()
    })  # fmt: skip
    sums = known.agg(
        F.count_if(F.col("kind") == "topic").alias("topics"),
        F.count_if(F.col("kind") == "publisher").alias("publishers"),
        F.sum(F.when(F.col("kind") == "topic", F.col("messages"))).alias("messages"),
        F.count_if(F.col("usual_gap").isNull()).alias("unknown"),
    ).first()  # fmt: skip
    total, since = counts.total(), _time(clock.recent)
    said = f"{answer(counts)} since {since:%Y-%m-%d %H:%M} UTC."
    page = Report("Silence and anomalies", about)
    page.answer(said, found=total > 0)
    page.facts([
        ("messages", sums["messages"]), ("topics", sums["topics"]), ("publishers", sums["publishers"]),
        ("too little is known of", sums["unknown"]), ("findings", total),
    ])  # fmt: skip
    worst: list[Any] = []
    for what in WHATS:
        mine = found.where(F.col("what") == what)
        order = (F.col("end").isNotNull(), F.desc(F.abs("score")), "kind", "name", "begin")
        rows = mine.orderBy(*order).limit(SHOWN).collect()
        number = sum(count for key, count in counts.items() if key[1] == what)
        if rows:
            page.section(TITLES[what])
            page.table(["", "name", "from", "until", "usual", "found", "times"], [_shown(row) for row in rows],
                       NOTES[what], total=number)  # fmt: skip
            worst += [row for row in rows if row.kind != "everything"][: 3 if what == "silent" else 2]
    if worst:
        page.section("Over time")
        page.say(f"Messages in {every}. A gap is time without messages; what was found is marked.")
        _draw(page, worst[:DRAWN], windows, clock)
    return page, said, total


def answer(counts: Counter[tuple[str, str, bool]]) -> str:
    """What was found, in words; the silences that go on first."""
    parts = []
    for still, one, more in (
        (True, "fell silent and still is", "fell silent and still are"),
        (False, "was silent for a while", "were silent for a while"),
    ):
        who = [f"{count:,} {kind}{'' if count == 1 else 's'}" for kind in ("topic", "publisher")
               if (count := counts[(kind, "silent", still)])]  # fmt: skip
        if who:
            alone = sum(counts[(kind, "silent", still)] for kind in ("topic", "publisher")) == 1
            parts.append(f"{' and '.join(who)} {one if alone else more}")
    if all_of_it := sum(count for (kind, what, _), count in counts.items() if (kind, what) == ("everything", "silent")):
        parts.append(f"nothing at all was archived for {all_of_it:,} unusual stretch{'' if all_of_it == 1 else 'es'}")
    for what, words in (("rate", "rate"), ("size", "size"), ("new", "name")):
        number = sum(count for key, count in counts.items() if key[1] == what)
        verb, whose = ("is", "its") if number == 1 else ("are", "their")
        if number:
            said = "new" if what == "new" else f"outside {whose} history"
            parts.append(f"{number:,} {words}{'' if number == 1 else 's'} {verb} {said}")
    said = ", ".join(parts) or "Nothing fell silent, and nothing is outside its history"
    return said[0].upper() + said[1:]


def _shown(row: Any) -> tuple[Any, ...]:
    length = row.what == "silent"
    usual, found = (span(value) if length and value is not None else value for value in (row.usual, row.found))
    until = "still" if row.end is None else row.end
    return (row.kind, row.name or "#", row.begin, until, usual, found, row.score)


def span(seconds: float) -> str:
    """How long, in the two largest units."""
    parts: list[str] = []
    rest = round(seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, rest = divmod(rest, length)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def _draw(page: Report, worst: list[Any], windows: DataFrame, clock: Clock) -> None:
    """A line for each, where it has messages, with marks where something was found."""
    names = list(dict.fromkeys((row.kind, row.name) for row in worst))
    step = timedelta(microseconds=clock.every)
    chosen = None
    for kind, name in names:
        mine = (F.col("kind") == kind) & (F.col("name") == name)
        chosen = mine if chosen is None else chosen | mine
    assert chosen is not None
    lines: dict[tuple[str, str], list[Any]] = {key: [] for key in names}
    newest = windows.where(chosen).orderBy(F.desc("start")).limit(WINDOWS * len(names))
    for row in reversed(newest.select("kind", "name", "start", "messages").collect()):
        lines[(row.kind, row.name)].append((row.start, row.messages))
    end = _time(clock.end)
    for key, points in lines.items():
        marks = [charts.Mark(row.begin, row.end or end, row.what) for row in worst if (row.kind, row.name) == key]
        page.chart(charts.lines({key[1]: points}, y="messages", step=step, marks=marks), f"{key[0]} {key[1]}")


def _time(at: int) -> datetime:
    return (EPOCH + timedelta(microseconds=at)).astimezone(UTC).replace(tzinfo=None)
