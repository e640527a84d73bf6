"""`fanlight top` without a broker: rates are differences, what is missing is left out, what is odd is harmless."""

import io
from typing import Any

import pytest

from fanlight.cli import explain, top


class Views:
    """What the broker's HTTP interface would say."""

    def __init__(self, **said: dict[str, Any]) -> None:
        self.said = said

    def get(self, path: str, **query: object) -> dict[str, Any]:
        return self.said.get(path.strip("/").replace("-", "_"), {})


def reading(at: float, limit: int = 10, **said: dict[str, Any]) -> top.CounterSample:
    made = top.CounterSample(Views(**said), limit)  # type: ignore[arg-type]
    made.at = at
    return made


def topics(**counts: int) -> dict[str, Any]:
    """As the broker ranks them: by messages a second, here a tenth of the messages in all."""
    rows = [(name, count, count / 10) for name, count in counts.items()]
    return {"topics": [{"topic": a, "syntax": "amqp", "messages": b, "per_second": c} for a, b, c in rows]}


def test_rates_are_differences_over_the_time_between() -> None:
    before = reading(10.0, stats={"messages_in": 100, "dropped_newest": 1, "dropped_credit": 2}, topics=topics(a=10))
    now = reading(12.0, stats={"messages_in": 300, "dropped_newest": 5, "dropped_credit": 2}, topics=topics(a=50, b=6))
    page = top.figures(before, now)
    assert page["per_second"]["messages_in"] == 100.0
    assert page["per_second"]["dropped"] == 2.0
    assert [each["rate"] for each in page["topics"]] == [5.0, 0.6]


def test_every_topic_has_a_rate_also_one_that_was_not_there_before() -> None:
    page = top.figures(reading(1.0, 1, topics=topics(a=10)), reading(2.0, 1, topics=topics(b=1000)))
    assert "topic b (amqp): 100/s, 1,000 in all" in "\n".join(top.lines(page))
    started_anew = {"topics": [{"topic": "c", "syntax": "amqp", "messages": 5, "per_second": None}]}
    page = top.figures(reading(1.0), reading(2.0, topics=started_anew))
    assert "topic c (amqp): 0/s, 5 in all" in "\n".join(top.lines(page))


def test_a_broker_that_was_started_anew_has_no_negative_rates() -> None:
    page = top.figures(reading(1.0, stats={"messages_in": 9}), reading(2.0, stats={"messages_in": 1}))
    assert page["per_second"]["messages_in"] == 0.0


def test_keys_that_are_missing_are_left_out() -> None:
    page = top.figures(reading(1.0), reading(2.0))
    assert top.lines(page)[0] == "fanlight ?  up ?  0 connections  0 subscriptions"
    assert explain.explained({}) == ["'' (amqp): 0 words: []", "0 matching subscriptions"]


SLOW = {
    "slow_consumers": [
        {"client": "de\x1bsk", "connection": 4, "policy": "pause", "outbox_bytes": 5000, "dropped": 7, "reason": "x"}
    ]
}


def test_a_slow_consumer_is_named_and_steers_no_terminal() -> None:
    page = top.figures(reading(1.0), reading(2.0, slow_consumers=SLOW))
    assert "  slow de\\x1bsk (connection 4, pause): 5,000 bytes wait, 7 dropped; x" in top.lines(page)


def test_tables_show_the_same_page() -> None:
    pytest.importorskip("rich")
    from rich.console import Console

    from fanlight.cli.top_rich import tables

    now = reading(2.0, stats={"version": "9.9", "messages_in": 50}, topics=topics(**{"[red]": 5}), slow_consumers=SLOW)
    out = io.StringIO()
    Console(file=out, width=120).print(tables(top.figures(reading(1.0), now)))
    for shown in ("fanlight 9.9", "[red]", "5,000", "de\\x1bsk"):
        assert shown in out.getvalue()


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.5, "0s"), (59, "59s"), (61, "1m"), (3600, "1h"), (90061, "1d 1h 1m"), (None, "?")]
)
def test_a_duration_is_short(seconds: object, shown: str) -> None:
    assert top.duration(seconds) == shown
