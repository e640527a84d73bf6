"""New permissions: what they do not allow any more is ended with a reason, and what they allow goes on untouched."""

from dataclasses import replace
from typing import Any

import pytest

from fanlight_broker.core.limits import SubscribePartly
from fanlight_broker.core.permissions import UNRESTRICTED
from tests.broker.core.reference import Reference, Rule, allow, deny
from tests.broker.protocols.permitted import DIALECTS, NativeClient, World

ALL = allow("all")
NO_SECRETS = (deny("subscribe publish queue replay", "secret/#", user="s"), ALL)
dialects = pytest.mark.parametrize("dialect", DIALECTS)


def use(world: World, *rules: Rule) -> None:
    world.broker.use_permissions(Reference(*rules))
    world.turn()


@dialects
@pytest.mark.parametrize("before", ["none", "others"])
def test_a_subscription_that_is_denied_now_ends_with_a_reason(dialect: str, before: str) -> None:
    world = World()
    if before == "others":
        use(world, ALL)
    reader, other, publisher = world.client(dialect, "s"), world.client(dialect, "o"), world.client("native", "p")
    for each in (reader, other):
        each.subscribe("secret/a")
        each.subscribe("open/a")
    publisher.publish("secret/a")
    assert [reader.topics(), other.topics()] == [["secret/a"]] * 2
    use(world, *NO_SECRETS)
    for topic in ("secret/a", "open/a"):
        publisher.publish(topic)
    assert other.topics() == ["secret/a", "open/a"]
    if isinstance(reader, NativeClient):
        assert reader.topics() == ["open/a"]
        assert reader.ended == [(1, "not_permitted")]
    else:
        assert reader.topics() == []
        assert reader.peer.close_reason is not None
        assert reader.lost == (None if dialect == "mqtt3" else 0x87)
    assert world.denied("subscribe") == 1


@dialects
def test_marks_of_partly_allowed_subscriptions_are_set_and_taken_away(dialect: str) -> None:
    world = World()
    reader, publisher = world.client(dialect, "s"), world.client("native", "p")
    reader.subscribe("#")
    for rules, expected in (
        (None, ["secret/a", "open/a"]), (NO_SECRETS, ["open/a"]), ((ALL,), ["secret/a", "open/a"]),
        (NO_SECRETS, ["open/a"]), (None, ["secret/a", "open/a"]),
    ):  # fmt: skip
        if rules is None:
            world.broker.use_permissions(UNRESTRICTED)
        else:
            use(world, *rules)
        for topic in ("secret/a", "open/a", "secret/a", "open/a"):
            publisher.publish(topic)
        assert reader.topics() == expected * 2
    assert not reader.peer.gone


@dialects
def test_with_another_setting_partly_allowed_subscriptions_end(dialect: str) -> None:
    world = World()
    use(world, *NO_SECRETS)
    reader = world.client(dialect, "s")
    reader.subscribe("#")
    world.broker.use(replace(world.broker.limits, subscribe_partly=SubscribePartly.REFUSE))
    world.turn()
    assert len(world.broker.router) == 0


@dialects
def test_a_route_that_a_lane_knows_is_asked_about_again(dialect: str) -> None:
    world = World()
    use(world, ALL)
    reader, publisher = world.client("native", "r"), world.client(dialect, "s")
    reader.subscribe("#")
    expected: list[str] = []
    for rules in ((ALL,), NO_SECRETS, (ALL,), None, NO_SECRETS):
        if rules is None:
            world.broker.use_permissions(UNRESTRICTED)
        else:
            use(world, *rules)
        for _ in range(3):
            publisher.publish("secret/a")
        expected = [] if rules is NO_SECRETS else ["secret/a"] * 3
        assert reader.topics() == expected


@dialects
def test_a_connection_that_is_denied_now_is_closed(dialect: str) -> None:
    world = World()
    client, other = world.client(dialect, "s"), world.client(dialect, "o")
    use(world, deny("connect", user="s"), ALL)
    client.got()
    assert client.peer.close_reason is not None
    assert client.lost == {"native": "not_permitted", "mqtt3": None, "mqtt5": 0x87}[dialect]
    assert other.peer.close_reason is None
    assert not world.stranger(dialect, "s").let_in


@pytest.mark.parametrize("dialect", DIALECTS[1:])
def test_a_session_whose_client_is_away_loses_what_is_denied_now(dialect: str) -> None:
    world = World()
    away, publisher = world.client(dialect, "s", clean=False), world.client("mqtt5", "p")
    for filter in ("secret/a", "open/a", "+/b"):
        away.subscribe(filter, qos=1)
    away.peer.vanish()
    use(world, *NO_SECRETS)
    for topic in ("secret/a", "open/a", "secret/b", "open/b"):
        publisher.publish(topic, qos=1)
    assert world.client(dialect, "s", clean=False).topics() == ["open/a", "open/b"]


def test_a_session_is_asked_about_again_when_its_client_is_in_another_group() -> None:
    world = World()
    world.groups["s"] = frozenset({"staff"})
    use(world, allow("subscribe", "secret/#", group="staff"), allow("connect publish"), allow("subscribe", "open/#"))
    client, publisher = world.client("mqtt5", "s", clean=False), world.client("native", "p")
    assert client.subscribe("secret/a")
    assert client.subscribe("open/a")
    world.groups["s"] = frozenset()
    client.peer.vanish()
    client = world.client("mqtt5", "s", clean=False)
    for topic in ("secret/a", "open/a"):
        publisher.publish(topic)
    assert client.topics() == ["open/a"]


def test_a_consumer_ends_when_it_may_not_read_its_queue_any_more() -> None:
    world = World()
    consumer, publisher = world.client("native", "s"), world.client("native", "p")
    assert isinstance(consumer, NativeClient)
    consumer.subscribe("#", consumer="q", durable=True, ack=True)
    use(world, *NO_SECRETS)
    publisher.publish("secret/a")
    assert consumer.topics() == []
    assert consumer.ended == [(1, "not_permitted")]
    assert world.broker.queues.find("q").consumers == {}


@dialects
def test_members_of_groups_end_when_some_of_their_filter_is_denied(dialect: str) -> None:
    world = World()
    member, publisher = world.client(dialect, "s"), world.client("native", "p")
    member.subscribe("#", group="g")
    use(world, *NO_SECRETS)
    publisher.publish("open/a")
    assert member.topics() == []
    assert len(world.broker.router) == 0


def test_what_was_in_force_is_looked_at_in_slices_and_what_is_asked_for_is_decided_at_once() -> None:
    """Between the turns only what the old permissions have allowed is there, or the new ones."""
    world = World()
    waiting: list[Any] = []
    world.broker.turns._soon = waiting.append
    readers = [world.client("native", "s") for _ in range(20)]
    publisher, denied = world.client("native", "p"), world.client("native", "s")
    for reader in readers:
        reader.subscribe("secret/a")
    turns = 0

    def over() -> bool:
        nonlocal turns
        turns += 1
        return turns % 3 == 0

    world.broker._rechecking._turns.over = over
    world.broker.use_permissions(Reference(*NO_SECRETS))
    assert not world.client("native", "s").subscribe("secret/a")
    denied.publish("secret/a")
    assert world.denied("publish") == 1
    left = [len(world.broker.router)]
    while waiting:
        waiting.pop(0)()
        world.turn()
        left.append(len(world.broker.router))
    assert left[0] > 0 == left[-1]
    assert left == sorted(left, reverse=True)
    publisher.publish("secret/a")
    assert [reader.topics() for reader in readers] == [[]] * 20


def test_another_reload_in_the_middle_begins_anew() -> None:
    world = World()
    waiting: list[Any] = []
    world.broker.turns._soon = waiting.append
    readers = [world.client("native", "s") for _ in range(5)]
    for reader in readers:
        reader.subscribe("secret/a")
        reader.subscribe("#")
    world.broker._rechecking._turns.over = lambda: True
    world.broker.use_permissions(Reference(*NO_SECRETS))
    world.broker.use_permissions(Reference(ALL))
    while waiting:
        waiting.pop(0)()
    publisher = world.client("native", "p")
    publisher.publish("secret/b")
    assert all("secret/b" in reader.topics() for reader in readers)
    assert world.broker.router._finder.partly == 0


def test_classes_that_nobody_is_in_are_released_and_their_numbers_mean_others_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fanlight_broker.core.enforcement.IDLE_MAX", 2)
    world = World()
    permissions = Reference(deny("publish", "secret/#", user="bad"), ALL)
    world.broker.use_permissions(permissions)
    reader = world.client("native", "r")
    reader.subscribe("#")
    for number in range(6):
        good = world.client("native", f"good{number}")
        good.publish("secret/a")
        good.peer.vanish()
    bad = [world.client("native", "bad") for _ in range(2)]
    numbers = {grant.number for grant in permissions.grants.values()}
    assert max(numbers) < 6, "numbers are used again"
    for client in bad:
        client.publish("secret/a")
    assert len(reader.topics()) == 6
    assert all(grant.holders > 0 for grant in permissions.grants.values())
