"""The ring of the last hour: what is kept, what an answer has, and that it is bounded."""

from itertools import pairwise
from typing import Any

import pytest

from fanlight_broker.admin.history import PLACES, POINTS, History
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import BadQuery


class Source:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.counted = {"messages_in": 0, "dropped_newest": 0, "log_lines": 0}
        self.levels = {"connections": 0.0, "loop_lag_recent_seconds": 0.0025, "marks": 1.0}
        self.history = History(
            [MetricSource({}, lambda: self.counted, lambda: self.levels)],
            lambda: {"cpu_microseconds": 7, "resident_bytes": 9}, clock=lambda: self.now,
        )

    def sample(self, times: int = 1) -> None:
        for _ in range(times):
            self.now += 5
            self.counted["messages_in"] += 10
            self.levels["connections"] = self.history.count % 7
            self.history.sample()

    def view(self, **query: Any) -> dict[str, Any]:
        status, answer = self.history.view({name: str(value) for name, value in query.items()})
        assert status == 200
        return answer


def test_a_sample_has_the_chosen_series_in_whole_numbers() -> None:
    source = Source()
    source.sample()
    seen = source.view()
    assert seen["times"] == [1_005_000]
    assert seen["counters"] == {"cpu_microseconds": [7], "messages_in": [10], "dropped_newest": [0]}
    assert seen["gauges"] == {"resident_bytes": [9], "connections": [0], "loop_lag_recent_microseconds": [2_500]}


def test_a_reader_continues_behind_what_it_has() -> None:
    source = Source()
    source.sample(3)
    seen = source.view()
    assert seen["next"] == 3
    assert source.view(after=3)["times"] == []
    source.sample(2)
    assert source.view(after=3)["counters"]["messages_in"] == [40, 50]
    assert source.view(after=3)["began"] == seen["began"]


def test_a_reader_from_before_a_restart_gets_all() -> None:
    source = Source()
    source.sample(2)
    assert len(source.view(after=1_000)["times"]) == 2


def test_an_hour_is_kept_and_an_answer_is_bounded() -> None:
    source = Source()
    source.sample(PLACES + 100)
    seen = source.view()
    assert len(seen["times"]) == POINTS
    assert seen["times"][-1] == int(source.now * 1_000)
    assert seen["times"][-1] - seen["times"][0] == (PLACES - PLACES // POINTS) * 5_000
    # A counter is exact at its moment, a gauge the largest of those that are shown as one.
    counted = seen["counters"]["messages_in"]
    assert counted[-1] == 10 * (PLACES + 100)
    assert {later - earlier for earlier, later in pairwise(counted)} == {30}
    levels = [number % 7 for number in range(100, PLACES + 100)]
    assert seen["gauges"]["connections"] == [max(levels[at:at + 3]) for at in range(0, PLACES, 3)]
    assert {len(row) for kind in ("counters", "gauges") for row in seen[kind].values()} == {POINTS}


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(BadQuery, match="after"):
        Source().view(after="x")
