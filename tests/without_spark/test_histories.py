"""Histories: each rule by hand, and all of them beside plain Python over the real prices with planted faults."""

import random
from collections import defaultdict
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

from fanlight_spark.histories import SECOND, Clock, Finding, History, Rules, findings, usual_gap
from tests import require
from tests.pipeline.history_oracle import Asked, Found, expected

HOUR = 3600 * SECOND
DAY = 24 * HOUR
Row = tuple[str, int, int]


def judged(rows: list[Row], asked: Asked) -> dict[str, set[Found]]:
    """What `findings` finds of messages, put together as the job does it."""
    starts = np.unique(np.array([at // asked.every * asked.every for _, at, _ in rows]))
    clock = Clock.of(starts, asked.every, asked.recent, asked.end, asked.zone)
    by_name: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, at, size in rows:
        by_name[name].append((at, size))
    found = {}
    for name, messages in by_name.items():
        rules = Rules(asked.factor, asked.score, asked.least)
        times, octets = np.array(sorted(messages)).T
        one = History.of(times, octets, clock, rules)
        if some := findings(one, clock, rules):
            found[name] = {(each.what, each.begin, each.end) for each in some}
    return found


def every(step: int, begin: int, end: int, name: str = "a", size: int = 100) -> list[Row]:
    return [(name, at, size) for at in range(begin, end, step)]


MINUTE = 60 * SECOND
BASE = 20_000 * DAY
OTHER = every(MINUTE, BASE, BASE + 10 * HOUR, "other")
ASKED = Asked(HOUR // 4, BASE + 8 * HOUR, BASE + 10 * HOUR - MINUTE)


def both(rows: list[Row], asked: Asked = ASKED) -> dict[str, set[Found]]:
    found = judged(rows, asked)
    assert found == expected(rows, asked)
    return found


def test_half_of_the_time_is_in_gaps_that_are_no_longer() -> None:
    assert usual_gap(np.array([1] * 100 + [60] * 10)) == 60  # bursts do not make it short
    assert usual_gap(np.array([5, 5, 5, 6])) == 5  # an outage does not make it long
    assert usual_gap(np.array([0, 0])) == usual_gap(np.array([], np.int64)) == 0


def test_a_topic_that_stops_is_silent_and_one_that_comes_back_was() -> None:
    stop, pause = BASE + 9 * HOUR, BASE + 9 * HOUR + 10 * MINUTE
    rows = [*OTHER, *every(MINUTE, BASE, stop), *every(MINUTE, BASE, stop, "b")]
    rows += every(MINUTE, pause, BASE + 10 * HOUR, "b")
    assert both(rows) == {"a": {("silent", stop - MINUTE, None)}, "b": {("silent", stop - MINUTE, pause)}}


def test_what_was_silent_three_times_is_not_unusual() -> None:
    def pausing(times: int) -> list[Row]:
        pauses = [range(BASE + (2 * n + 1) * HOUR, BASE + (2 * n + 1) * HOUR + HOUR // 2) for n in range(times)]
        return [row for row in every(MINUTE, BASE, ASKED.end) if not any(row[1] in pause for pause in pauses)]

    again = [row for row in pausing(2) if row[1] not in range(BASE + 9 * HOUR, BASE + 9 * HOUR + HOUR // 2)]
    assert {what for what, _, _ in both([*OTHER, *again])["a"]} == {"silent"}
    thrice = [row for row in pausing(3) if row[1] not in range(BASE + 9 * HOUR, BASE + 9 * HOUR + HOUR // 2)]
    assert both([*OTHER, *thrice]) == {}


def test_time_in_which_nothing_was_archived_counts_for_nobody() -> None:
    down = range(BASE + 8 * HOUR + HOUR // 2, BASE + 9 * HOUR + HOUR // 2)
    rows = [row for row in [*OTHER, *every(MINUTE, BASE, ASKED.end)] if row[1] not in down]
    assert both(rows) == {}


def test_a_silence_is_reported_when_it_begins_and_not_for_ever() -> None:
    assert both([*OTHER, *every(MINUTE, BASE, BASE + 4 * HOUR)]) == {}


def test_rates_and_sizes_are_beside_their_own_history() -> None:
    flood = every(MINUTE // 4, BASE + 9 * HOUR, BASE + 9 * HOUR + HOUR // 2)
    large = [("b", at, 150 if at >= BASE + 9 * HOUR else 100) for _, at, _ in every(MINUTE, BASE, ASKED.end)]
    stretch = ("rate", BASE + 9 * HOUR, BASE + 9 * HOUR + HOUR // 2)
    found = both([*OTHER, *every(MINUTE, BASE, ASKED.end), *flood, *large])
    # The last window is there only in part.
    assert found == {"a": {stretch}, "b": {("size", BASE + 9 * HOUR, BASE + 9 * HOUR + 3 * HOUR // 4)}}
    new = both([*OTHER, *every(MINUTE, BASE + 9 * HOUR, ASKED.end, "c")])
    assert new == {"c": {("new", BASE + 9 * HOUR, ASKED.end - MINUTE + (ASKED.end - BASE) % MINUTE)}}


def berlin(day: int, hour: int) -> int:
    """An hour of a day of March 2026; clocks are set forward on the 29th."""
    return round(datetime.combine(date(2026, 3, day), time(hour), ZoneInfo("Europe/Berlin")).timestamp()) * SECOND


def test_hours_of_day_are_those_of_the_zone_across_a_change_of_clocks() -> None:
    """From 6 to 22 by the clock of Berlin a message in five minutes, a lot at 8; nights are quiet."""
    rows = every(10 * MINUTE, berlin(23, 0), berlin(31, 22), "other")
    for day in range(23, 32):
        rows += every(5 * MINUTE, berlin(day, 6), berlin(day, 22))
        rows += every(MINUTE // 2, berlin(day, 8), berlin(day, 9))
    asked = Asked(HOUR, berlin(30, 0), berlin(31, 21), "Europe/Berlin")
    assert both([row for row in rows if row[1] <= asked.end], asked) == {}
    # By the clock of UTC it was an hour too early after the change.
    early = both([row for row in rows if row[1] <= asked.end], asked._replace(zone="UTC"))["a"]
    assert "rate" in {what for what, _, _ in early}
    quiet = [row for row in rows if row[1] <= asked.end and not berlin(30, 12) <= row[1] < berlin(30, 14)]
    quiet += every(10 * MINUTE, berlin(30, 12), berlin(30, 14), "other")
    assert both(quiet, asked) == {"a": {("silent", berlin(30, 12) - 5 * MINUTE, berlin(30, 14))}}


def test_what_is_found_in_the_real_prices_is_what_plain_python_finds() -> None:
    """Some tickers of 40 days, at the close of New York; one falls silent, one is repeated, one gets larger."""
    table = pq.read_table(require.data("market") / "sp500_daily.parquet", columns=["date", "ticker"])
    days = sorted(pc.unique(table["date"]).to_pylist())[-40:]
    tickers = sorted(pc.unique(table["ticker"]).to_pylist())[::25]
    wanted = pc.and_(pc.is_in(table["ticker"], pa.array(tickers)), pc.greater_equal(table["date"], days[0]))
    chance, rows = random.Random(3), list[Row]()
    for row in table.filter(wanted).to_pylist():
        late, ticker = row["date"] >= days[30], row["ticker"]
        if late and ticker == tickers[0]:
            continue
        close = round(datetime.combine(row["date"], time(16), ZoneInfo("America/New_York")).timestamp()) * SECOND
        times = 60 if late and ticker == tickers[1] else 10
        size = 100 + 200 * (late and ticker == tickers[2])
        rows += [(ticker, close + chance.randrange(HOUR), size + chance.randrange(20)) for _ in range(times)]
    end = max(at for _, at, _ in rows)
    recent = round(datetime.combine(days[30], time(0), UTC).timestamp()) * SECOND
    found = both(rows, Asked(HOUR, recent, end, "America/New_York", whole=False))
    assert [{what for what, _, _ in found[ticker]} for ticker in tickers[:3]] == [{"silent"}, {"rate"}, {"size"}]
    assert len(found) < len(tickers) / 3


def test_a_finding_says_how_far_it_is_from_what_was_usual() -> None:
    clock = Clock.of(np.arange(BASE, BASE + 10 * HOUR, HOUR), HOUR, BASE + 5 * HOUR, BASE + 10 * HOUR - MINUTE)
    times = np.arange(BASE, BASE + 6 * HOUR, MINUTE)
    one = History.of(times, np.full(len(times), 100), clock, Rules())
    assert findings(one, clock, Rules()) == [Finding("silent", BASE + 6 * HOUR - MINUTE, None, MINUTE, 4 * HOUR, 240.0)]
