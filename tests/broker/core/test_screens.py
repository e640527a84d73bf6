"""Subscriptions with selectors against two oracles: the matcher's for the topic, Kleene's logic for the content."""

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.errors import InvalidSelector
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.screens import STORED_MAX
from fanlight_broker.core.stored_screener import StoredScreener
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.route import Route
from matchcore import reference
from matchcore.body_reader import BodyCounts
from matchcore.kleene import attribute_of, holds
from matchcore.where import parse_where
from tests.broker.core.parts import at_once, connect, explained, subscribe

TOPICS = [b"a", b"a.b", b"a.c", b"b.c"]
FILTERS = [b"a", b"a.*", b"#", b"*.c"]
WHERES = [
    None, "x > 1", "x > 1 OR y = 'b'", "x IS NULL", "NOT (x > 1)", "y LIKE 'a%'", "payload.z = 1",
    "$words = 2 AND x < 3",
    "AT LEAST 2 OF (x = 1, y = 'a', payload.z = 1)",
]


def values_of(message: Message) -> list[Any]:
    """Topic, payload and headers."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(message.fields)
    return list(unpacker)


def message_of(topic: bytes, headers: dict[str, Any], body: Any = None) -> Message:
    """A native message; with a body in msgpack, unless it is None."""
    payload = b"" if body is None else msgpack.packb(body)
    if body is not None:
        headers = {**headers, "content-type": "application/msgpack"}
    fields = b"".join(msgpack.packb(each) for each in (topic.decode(), payload, headers))
    return Message(FORMAT, topic, 0, payload, fields=fields, format_data=5)


class ScreensMachine(RuleBasedStateMachine):
    @initialize(most=st.sampled_from([1, 1_000]))
    def begin(self, most: int) -> None:
        self.broker = Broker(Limits(routes_max=most), lambda: None, at_once)
        self.client, _ = connect(self.broker)
        self.held: dict[int, tuple[bytes, str | None, str | None, Subscription]] = {}
        self.queues: dict[str, tuple[tuple[bytes, ...], str | None]] = {}
        self.numbers = iter(range(1_000_000))

    @rule(filters=st.sets(st.sampled_from(FILTERS), min_size=1, max_size=3), where=st.sampled_from(WHERES))
    def declare(self, filters: set[bytes], where: str | None) -> None:
        name, condition = f"q{next(self.numbers)}", condition_of(where) if where is not None else None
        self.broker.queues.declare(
            self.client, name, tuple((filter, "amqp") for filter in sorted(filters)), QueueOptions(), 0.0,
            condition=condition,
        )
        self.queues[name] = tuple(filters), where

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if self.queues:
            name = data.draw(st.sampled_from(sorted(self.queues)))
            self.broker.queues.end(self.broker.queues.find(name))
            del self.queues[name]

    @rule(filter=st.sampled_from(FILTERS), where=st.sampled_from(WHERES), group=st.sampled_from([None, None, "g"]))
    def subscribe(self, filter: bytes, where: str | None, group: str | None) -> None:
        number = next(self.numbers)
        condition = condition_of(where) if where is not None else None
        made = subscribe(self.broker, self.client, number, filter, group=group, condition=condition)
        self.held[number] = filter, where, group, made

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        if self.held:
            number = data.draw(st.sampled_from(sorted(self.held)))
            self.broker.subscribing.unsubscribe(self.client, number)
            del self.held[number]

    @rule(
        topic=st.sampled_from(TOPICS), cached=st.booleans(),
        headers=st.fixed_dictionaries({}, optional={
            "x": st.sampled_from([0, 1, 2, 5, 1.5, "2", None, True]), "y": st.sampled_from(["a", "b", "ab", 1]),
        }), body=st.sampled_from([None, {}, {"z": 1}, {"z": "1"}, [1]]),
    )  # fmt: skip
    def publish(self, topic: bytes, cached: bool, headers: dict[str, Any], body: Any) -> None:
        router, message = self.broker.router, message_of(topic, headers, body)
        own = router.route(topic, "amqp") if cached else router.own_route(topic, "amqp")
        route = router.for_message(own, message, None)
        wanted = {number for number, (filter, where, _, _) in self.held.items() if self.reached(filter, where, message)}
        got = {target.number for target in route.targets}
        assert got == {number for number in wanted if self.held[number][2] is None}
        queues = [group.name for group in route.groups if isinstance(group, NamedQueue)]
        assert sorted(queues) == sorted(
            name for name, (filters, where) in self.queues.items()
            if any(self.reached(filter, where, message) for filter in filters)
        )
        groups = [group for group in route.groups if not isinstance(group, NamedQueue)]
        members = {member.number for group in groups for member in group.members}
        assert members == {number for number in wanted if self.held[number][2] is not None}
        assert route.screens is None
        assert len(groups) == len({self.held[number][:2] for number in wanted if self.held[number][2]})
        assert [target.id for target in route.targets] == sorted(target.id for target in route.targets)
        filters = [filter for filter, where, _, _ in self.held.values() if where is not None]
        filters += [filter for own, where in self.queues.values() if where is not None for filter in own]
        assert bool(own.screens) == any(reference.matches(filter, "amqp", topic, "amqp") for filter in filters)

    def reached(self, filter: bytes, where: str | None, message: Message) -> bool:
        if not reference.matches(filter, "amqp", message.topic, "amqp"):
            return False
        if where is None:
            return True
        headers = values_of(message)[2]
        known: dict[Any, Any] = {attribute_of(name): value for name, value in headers.items()}
        if "content-type" in headers:
            body = msgpack.unpackb(message.payload)
            known |= {attribute_of(f"payload.{name}"): value for name, value in body.items()} if body != [1] else {}
        known[attribute_of("$words")] = len(message.topic.split(b"."))
        return holds(parse_where(where), known) is True

    @invariant()
    def everything_is_counted(self) -> None:
        if not hasattr(self, "held"):
            return
        router = self.broker.router
        bindings = [where for filters, where in self.queues.values() for _ in filters]
        assert len(router) == len(self.held) + len(bindings)
        own = {each.number for each in router.subscriptions() if each.group is None or each.group.name == "g"}
        assert own == set(self.held)
        wheres = [*(where for _, where, _, _ in self.held.values()), *bindings]
        assert len(router.screens) == sum(where is not None for where in wheres)
        if not wheres:
            assert self.broker.ledger.subscriptions.used in (0, router.index_bytes)


TestScreens = ScreensMachine.TestCase
TestScreens.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_a_route_that_nobody_uses_does_not_keep_who_has_left() -> None:
    broker = Broker(Limits(), lambda: None, at_once)
    client, _ = connect(broker)
    for number in range(3):
        subscribe(broker, client, number, b"a", condition=condition_of("x = 1"))
    message = message_of(b"a", {"x": 1})
    route = broker.router.route(b"a", "amqp")
    assert len(broker.router.for_message(route, message, None)) == 3
    for number in range(3):
        broker.subscribing.unsubscribe(client, number)
        assert len(broker.router.for_message(broker.router.route(b"a", "amqp"), message, None)) == 2 - number


def test_a_group_on_a_topic_with_selectors_is_found_by_whoever_is_in_it() -> None:
    """Members come and go while the route is kept; the first, by whose id the route found the group, goes too."""
    broker = Broker(Limits(), lambda: None, at_once)
    client, _ = connect(broker)
    subscribe(broker, client, 1, b"a", condition=condition_of("x = 1"))
    subscribe(broker, client, 2, b"a", group="g")
    message = message_of(b"a", {"x": 2})

    def members() -> list[list[int]]:
        route = broker.router.for_message(broker.router.route(b"a", "amqp"), message, None)
        assert not route.targets
        return [[member.number for member in group.members] for group in route.groups]

    assert members() == [[2]]
    subscribe(broker, client, 3, b"a", group="g")
    assert members() == [[2, 3]]
    broker.subscribing.unsubscribe(client, 2)
    assert members() == [[3]]
    subscribe(broker, client, 4, b"b")  # has the id of the member that has left
    assert members() == [[3]]


def test_equal_texts_are_one_condition_and_one_is_not_true() -> None:
    assert condition_of("a  =  1") == condition_of("a = 1") != condition_of("a = TRUE")
    assert hash(condition_of("a=1")) == hash(condition_of("a = 1"))
    assert condition_of({"a": [1]}) == condition_of("a = 1")
    assert str(condition_of("a")) == "a = TRUE"


def test_what_could_not_be_read_again_is_refused() -> None:
    """A canonical text is longer than what a client wrote, and a session's is read again after a restart."""
    text = f"x IN ({','.join(str(number) for number in range(1_000, 1_800))})"
    assert len(text) < 4_096
    with pytest.raises(InvalidSelector, match="canonical"):
        condition_of(text)


def test_what_is_known_of_a_message_without_a_publisher() -> None:
    message = message_of(b"a.b", {})
    asked = parse_where("$client IS NULL AND $user IS NULL AND $time IS NULL AND $qos = 0 AND $word[3] IS NULL")
    assert StoredScreener(asked, BodyCounts()).is_true_of(message)


def test_the_screeners_of_stored_messages_are_kept_up_to_a_bound() -> None:
    """Many clients ask for retained messages with the same selector; each screener has 64 KiB for bodies."""
    screens = Broker(Limits(), lambda: None, at_once).router.screens
    wheres = [condition_of(f"x = {number}") for number in range(STORED_MAX + 1)]
    first = [screens.of_stored(where) for where in wheres[:STORED_MAX]]
    assert screens.of_stored(condition_of("x = 0")) is first[0]
    screens.of_stored(wheres[-1])  # in place of the one that was asked for longest ago
    assert screens.of_stored(wheres[0]) is first[0]
    assert screens.of_stored(wheres[1]) is not first[1]
    assert len({id(screens.of_stored(where)) for where in wheres[-STORED_MAX:]}) == STORED_MAX
    assert [screens.of_stored(where).is_true_of(message_of(b"a", {"x": 7})) for where in wheres[6:8]] == [False, True]


def test_the_route_counts_the_messages_that_passed_on_it() -> None:
    broker = Broker(Limits(), lambda: None, at_once)
    client, _ = connect(broker)
    subscribe(broker, client, 1, b"a", condition=condition_of("x = 1"))
    for value in (1, 2, 1):
        broker.publishing.announce(message_of(b"a", {"x": value}), 0.0)
    assert isinstance(broker.router.route(b"a", "amqp"), Route)
    assert (broker.ledger.filtered, broker.ledger.unroutable) == (0, 0)  # the broker's own
    assert broker.router.messages_by_route() == {}  # nor are its routes cached


def test_explain_says_who_gets_a_message_and_why_others_do_not() -> None:
    broker = Broker(Limits(), lambda: None, at_once)
    client, _ = connect(broker)
    name = client.subscriber.name
    for number, where in enumerate([None, "price > 100", "price > 10", "$word[2] = 'us' OR payload.z = 1"]):
        condition = condition_of(where) if where is not None else None
        subscribe(broker, client, number, b"stock.*", condition=condition)
    subscribe(broker, client, 9, b"forex.*", condition=condition_of("price > 10"))
    view = explained(broker, b"stock.eu", "amqp", name, 10, {"price": 80})
    assert [(each["subscription"], each["where"]) for each in view["matches"]] == [(0, None), (2, "price > 10")]
    assert all(each["tier"] for each in view["matches"])
    assert [each["found_by"] for each in view["matches"]] == [[], ["list of 3"]]
    assert [each["reason"].partition("; screen: ")[2] for each in view["matches"]] == ["", "list of 3"]
    assert [(each["subscription"], each["reason"]) for each in view["filtered"]] == [
        (1, "price is 80; the selector wants > 100"),
        (3, "0 of 2 alternatives are true, 1 must be: (1) $word[2] is 'eu'; the selector wants = 'us' (2) payload.z is "
            "absent; the selector wants = 1"),
    ]  # fmt: skip
    assert (view["total"], view["filtered_total"]) == (2, 2)
    why_not = {each["where"]: each["reason"] for each in view["client"]["why_not"]}
    assert why_not["price > 100"] == "price is 80; the selector wants > 100"
    assert "forex" in why_not["price > 10"]
    assert view["client"]["why_not_total"] == 3
    view = explained(broker, b"stock.eu", "amqp", name, 1, {"price": 80})
    assert (len(view["matches"]), len(view["client"]["why_not"]), view["client"]["why_not_total"]) == (1, 1, 3)
    view = explained(broker, b"stock.eu", "amqp", None, 1, {})
    assert (view["total"], view["filtered_total"], len(view["filtered"])) == (1, 3, 1)
    view = explained(broker, b"stock.eu", "amqp", name, 10)  # of the topic alone
    assert [each["subscription"] for each in view["matches"]] == [0, 1, 2, 3]
    assert "filtered" not in view
