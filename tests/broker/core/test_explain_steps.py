"""/explain of a topic with many subscriptions: in steps, between which the broker goes on."""

from typing import Any

import pytest

from fanlight_broker.core import explain as explaining
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.explain import explain
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.subscriber import Client
from tests.broker.core.parts import at_once, connect, explained, subscribe


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AT_ONCE", "ROWS_AT_ONCE", "CLIENTS_AT_ONCE"):
        monkeypatch.setattr(explaining, name, 4)


def many(broker: Broker, count: int) -> Client:
    """A client with subscriptions to a and to #: each third has no selector, those of the others are x > number."""
    client, _ = connect(broker)
    for number in range(count):
        where = condition_of(f"x > {number}") if number % 3 else None
        subscribe(broker, client, number, (b"a", b"#", b"b")[number % 7 % 3], condition=where)
    return client


def by_hand(broker: Broker, client: Client, x: int | None) -> tuple[list[int], list[int], list[int]]:
    """Who gets a message, who does not because of a selector, and all others of the client."""
    reached = sorted(
        (each for each in client.subscriber.subscriptions if each.filter in (b"a", b"#")), key=lambda each: each.id
    )
    got = [each.number for each in reached if each.condition is None or x is None or x > each.number]
    filtered = [each.number for each in reached if each.number not in got]
    return got, filtered, [each.number for each in client.subscriber.subscriptions if each.number not in got]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 60])
@pytest.mark.parametrize("x", [None, 0, 20, 100])
@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_what_the_steps_make_is_what_was_true(count: int, x: int | None, limit: int) -> None:
    broker = Broker(Limits(), lambda: None, at_once)
    client = many(broker, count)
    got, filtered, others = by_hand(broker, client, x)
    view = explained(broker, b"a", "amqp", client.subscriber.name, limit, None if x is None else {"x": x})
    assert view["total"] == len(got)
    assert [each["subscription"] for each in view["matches"]] == got[:limit]
    if x is not None:
        assert (view["filtered_total"], [row["subscription"] for row in view["filtered"]]) == (
            len(filtered), filtered[:limit],
        )  # fmt: skip
    why_not = view["client"]
    assert (why_not["matching"], why_not["why_not_total"]) == (len(got), len(others))
    assert len(why_not["why_not"]) == min(len(others), limit)


def test_a_step_is_of_few_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many are looked at, by their conditions and rows, does not grow with those that a topic reaches."""
    broker = Broker(Limits(), lambda: None, at_once)
    client = many(broker, 200)
    made: list[int] = [0]
    for name in ("identified", "filter_of", "not_true", "why_not"):
        function = getattr(explaining, name)

        def counted(*arguments: Any, function: Any = function) -> Any:
            made[-1] += 1
            return function(*arguments)

        monkeypatch.setattr(explaining, name, counted)
    made.extend(0 for _ in explain(broker, b"a", "amqp", client.subscriber.name, 1_000, {"x": 50}))
    assert len(made) > 100
    assert sum(made) > 300
    assert max(made) <= 8


@pytest.mark.parametrize("also", [False, True])
def test_subscriptions_that_begin_and_end_between_the_steps(also: bool) -> None:
    broker = Broker(Limits(), lambda: None, at_once)
    client = many(broker, 60)
    fresh = iter(range(1_000, 10_000))
    taken = 0
    for _ in explain(broker, b"a", "amqp", client.subscriber.name, 1_000, {"x": 30}):
        if taken < 60:
            broker.subscribing.unsubscribe(client, taken)
            taken += 1
        if also:  # which get the ids of others
            number = next(fresh)
            where = condition_of("x > 29") if number % 2 else None
            subscribe(broker, client, number, (b"c", b"#", b"a")[number % 3], condition=where)
    left = sorted(each.number for each in client.subscriber.subscriptions)
    assert all(number >= 1_000 for number in left)
    assert explained(broker, b"a", "amqp", None, 1_000)["total"] == sum(number % 3 != 1_000 % 3 - 1 for number in left)
