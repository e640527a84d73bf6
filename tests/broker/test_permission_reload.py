"""New permissions: what they do not allow any more is ended with a reason, and what they allow goes on untouched."""

from dataclasses import replace
from typing import Any

import pytest

import matchcore
from fanlight_broker.core.limits import SubscribePartly
from fanlight_broker.core.permissions import Action, Asker, FilterVerdict, Unrestricted, Verdict
from tests.broker.core.reference import Reference, ReferenceGrant, Rule, allow, deny
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
            world.broker.use_permissions(Unrestricted())
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
            world.broker.use_permissions(Unrestricted())
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

    world.broker.rechecking._turns.over = over
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
    world.broker.rechecking._turns.over = lambda: True
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


def test_what_a_client_asked_for_goes_on_when_it_has_gone_and_holds_no_class() -> None:
    world = World()
    permissions = Reference(deny("publish", "secret/#", user="s"), ALL)
    world.broker.use_permissions(permissions)
    client = world.client("native", "s")
    subscriber = client.peer.protocol.client.subscriber
    client.peer.vanish()
    for topic, permitted in ((b"secret/a", False), (b"open/a", True)):
        assert world.broker.enforcement.decide(subscriber, Action.PUBLISH, topic, "mqtt").allowed == permitted
    assert subscriber.badge is None
    assert all(badge.holders == 0 for badge in world.broker.enforcement._badges.values())


class Narrow(Reference):
    """Rules whose own limit of topics is less than the broker's."""

    def grant_of(self, asker: Asker) -> ReferenceGrant:
        grant = super().grant_of(asker)
        decide, decide_filter = grant.decide, grant.decide_filter

        def narrow(action: Action, topic: bytes = b"", syntax: str = "", fields: Any = None) -> Verdict:
            if topic.count(b"/") > 3:
                matchcore.split_topic(topic, syntax, max_words=4)
            return decide(action, topic, syntax, fields)

        def narrow_filter(action: Action, filter: bytes, syntax: str) -> FilterVerdict:
            if filter.count(b"/") > 3:
                matchcore.parse_filter(filter, syntax, max_words=4)
            return decide_filter(action, filter, syntax)

        grant.decide, grant.decide_filter = narrow, narrow_filter  # type: ignore[method-assign]
        return grant


@dialects
def test_a_topic_that_rules_cannot_look_at_is_invalid_and_reaches_nobody_in_part(dialect: str) -> None:
    world = World()
    client, whole, other = world.client(dialect, "s"), world.client("native", "o"), world.client("native", "p")
    long = "a/b/c/d/e"
    for each in (client, whole):
        each.subscribe("#")
    client.subscribe(long)
    world.broker.use_permissions(Narrow(deny("subscribe", "secret/#", user="s"), ALL))
    world.turn()
    if client.peer.close_reason is not None:  # for the filter that ended, which MQTT says so
        client = world.client(dialect, "s")
        client.subscribe("#")
    assert not client.subscribe(long)
    client.publish(long, qos=1)
    other.publish("x/y")
    assert (client.topics(), whole.topics()) == (["x/y"], ["x/y"])
    assert not client.peer.gone


def test_however_many_classes_there_are_all_are_revoked_at_once_and_released_some_in_a_turn() -> None:
    world = World()
    before = Reference(deny("publish", "secret/#", user="nobody"), ALL)
    world.broker.use_permissions(before)
    publishers = [world.client("native", f"p{number}") for number in range(20)]
    reader = world.client("native", "r")
    reader.subscribe("#")
    for publisher in publishers:
        publisher.publish("secret/a")
    assert reader.topics() == ["secret/a"] * 20
    waiting: list[Any] = []
    world.broker.turns._soon = waiting.append
    world.broker.turns.over = lambda: True
    world.broker.rechecking._go_on = lambda steps, round: None  # type: ignore[method-assign] # nobody is asked again
    badges = list(world.broker.enforcement._badges.values())
    world.broker.use_permissions(Reference(deny("publish", "secret/#"), ALL))
    assert all(badge.revoked for badge in badges)
    for publisher in publishers:
        publisher.publish("secret/a")
    assert reader.topics() == []
    held = [sum(grant.holders for grant in before.grants.values())]
    while waiting:
        waiting.pop(0)()
        held.append(sum(grant.holders for grant in before.grants.values()))
    assert held == list(range(21, -1, -1))
