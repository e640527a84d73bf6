"""The router against the matcher's oracle: a route, cached or fresh, holds exactly those who get the topic."""

import gc
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanlight_broker.core import router
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import InvalidFilter, InvalidTopic, NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from matchcore import reference
from tests.broker.core.parts import broker_with, connect, explained, subscribe

Spelled = tuple[bytes, str]

WORDS = {
    "amqp": [b"a", b"b", b"", b"$inbox", b"$SYS", b"$stream", b"$x"],
    "mqtt": [b"a", b"b", b"", b"$inbox", b"$SYS", b"$stream", b"a.b"],
}
WILD = {"amqp": [b"*", b"#"], "mqtt": [b"+"]}
SEPARATOR = {"amqp": b".", "mqtt": b"/"}


@st.composite
def topics(draw: st.DrawFn) -> Spelled:
    syntax = draw(st.sampled_from(["amqp", "mqtt"]))
    words = draw(st.lists(st.sampled_from(WORDS[syntax]), min_size=int(syntax == "mqtt"), max_size=4))
    text = SEPARATOR[syntax].join(words)
    return (text, syntax) if text or syntax == "amqp" else (b"a", syntax)


@st.composite
def filters(draw: st.DrawFn) -> Spelled:
    syntax = draw(st.sampled_from(["amqp", "mqtt"]))
    words = draw(st.lists(st.sampled_from(WORDS[syntax] + 2 * WILD[syntax]), min_size=1, max_size=4))
    if syntax == "mqtt" and draw(st.booleans()):
        words.append(b"#")
    text = SEPARATOR[syntax].join(words)
    return (text, syntax) if text or syntax == "amqp" else (b"+", syntax)


def reached(filter: Spelled, topic: Spelled) -> bool:
    """By the oracle, and the rule about reserved names (docs/native-protocol.md, section 4)."""
    if not reference.matches(*filter, *topic):
        return False
    root = (reference.topic_words(*topic) or [b""])[0]
    if root in (b"$SYS", b"$inbox", b"$stream"):
        return (reference.filter_words(*filter) or [b""])[0] == root
    return True


class RouterMachine(RuleBasedStateMachine):
    """Routes are brought up to date when they are used, by what has changed since: so changes pile up between uses."""

    @initialize(most=st.sampled_from([16, 1_000]))
    def begin(self, most: int) -> None:
        self.turns: list[Any] = []
        self.broker = Broker(Limits(routes_max=most, filter_hashes_max=4), lambda: None, self.turns.append)
        self.client, _ = connect(self.broker)
        self.held: dict[int, tuple[Spelled, str | None, Subscription]] = {}
        self.numbers = iter(range(1_000_000))

    def cached(self) -> set[Spelled]:
        return {(route.key[1:], ("amqp", "mqtt")[route.key[0]]) for route in self.broker.routes.routes()}

    @rule(filter=filters(), group=st.sampled_from([None, None, None, "g", "h"]))
    def subscribe(self, filter: Spelled, group: str | None) -> None:
        words = filter[0].split(b"." if filter[1] == "amqp" else b"/")
        if words[0] == b"$inbox":  # as if it were the client's own, wildcards too: it is the router that is tested
            if len(words) < 2:
                return
            self.client.subscriber.inbox = f"$inbox.{words[1].decode()}"
        number = next(self.numbers)
        self.held[number] = (filter, group, subscribe(self.broker, self.client, number, *filter, group=group))

    @rule(nth=st.integers(0, 100))
    def unsubscribe(self, nth: int) -> None:
        if self.held:
            number = list(self.held)[nth % len(self.held)]
            del self.held[number]
            self.broker.subscribing.unsubscribe(self.client, number)

    @rule(filter=filters(), times=st.sampled_from([1, 35]))
    def come_and_go(self, filter: Spelled, times: int) -> None:
        """More changes than are remembered."""
        if filter[0].startswith(b"$inbox"):
            return
        for _ in range(times):
            subscribe(self.broker, self.client, -1 % (1 << 32), *filter)
            self.broker.subscribing.unsubscribe(self.client, -1 % (1 << 32))

    @rule(topic=topics())
    def publish(self, topic: Spelled) -> None:
        before, evicted = self.cached(), self.broker.routes.evicted
        hits, misses = self.broker.routes.hits, self.broker.routes.misses
        route = self.broker.router.route(*topic)
        self.check(topic, route)
        if topic in before:
            assert self.broker.routes.get(route.key) is route
            assert (self.broker.routes.hits, self.broker.routes.misses) == (hits + 1, misses)
        else:
            assert (self.broker.routes.hits, self.broker.routes.misses) == (hits, misses + 1)
            assert self.cached() <= before | {topic}
            assert self.broker.routes.evicted - evicted in (0, 1)
        assert len(self.broker.routes) <= self.broker.routes.most

    @rule()
    def publish_on_all(self) -> None:
        for topic in self.cached():
            self.check(topic, self.broker.router.route(*topic))

    @rule()
    def turn(self) -> None:
        turns, self.turns[:] = self.turns[:], []
        for work in turns:
            work()

    def check(self, topic: Spelled, route: Route) -> None:
        targets: list[Target] = []
        groups: dict[tuple[str, Spelled], set[Target]] = {}
        for filter, group, subscription in self.held.values():
            if group is None:
                if reached(filter, topic):
                    targets.append(subscription)
            else:
                groups.setdefault((group, filter), set()).add(subscription)
        assert list(map(id, route.targets)) == list(map(id, sorted(targets, key=lambda target: target.id)))
        expected = [members for (_, filter), members in groups.items() if reached(filter, topic)]
        got = [set(group.members) for group in route.groups]
        assert len(got) == len(expected)
        assert all(members in expected for members in got)
        in_python = self.broker.router.own_route(*topic)  # nothing of it is compiled but the matcher
        assert (in_python.targets, set(in_python.groups)) == (route.targets, set(route.groups))

    @invariant()
    def it_adds_up(self) -> None:
        router, routes = self.broker.router, self.broker.routes
        assert len(router) == len(self.held)
        assert {s.number for s in router.subscriptions()} == set(self.held)
        assert len({s.id for s in router.subscriptions()}) == len(self.held)
        assert routes.nbytes == sum(route.nbytes for route in routes.routes())

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.publish_on_all()
            self.broker.clients.disconnect(self.client, "over", 0.0)
            while self.turns:
                self.turn()
            assert len(self.broker.router) == 0
            assert len(self.broker.router._filters) == 0
            assert self.broker.router._groups == {}
            assert not any(route.targets or route.groups for route in self.broker.routes.routes())
            for _, _, subscription in self.held.values():  # what is gone is referred to by nothing of the router's
                assert self.broker.routes not in gc.get_referrers(subscription)


RouterMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
TestRouterAgainstTheOracle = RouterMachine.TestCase


def test_explain_tells_the_tier_of_each_subscription_shown() -> None:
    broker = broker_with()
    client, _ = connect(broker)
    for number in range(3_000):
        subscribe(broker, client, number, b"site.%d.*.dev.%d" % (number % 50, number))
    subscribe(broker, client, 3_000, b"site.7.hall.dev.7")
    subscribe(broker, client, 3_001, b"site.#")
    subscribe(broker, client, 3_002, b"site/+/hall/#", "mqtt")
    view = explained(broker, b"site.7.hall.dev.7", "amqp", None, 10)
    told = {match["subscription"]: (match["tier"], match["reason"]) for match in view["matches"]}
    assert set(told) == {7, 3_000, 3_001, 3_002}
    tier, reason = told[7]
    assert tier == "buckets"
    assert reason == "buckets: class left 4, key '7'; checked: length 5, left 0 'site', left 1 '7', left 3 'dev'"
    assert told[3_000] == ("exact", "exact: the whole topic")
    assert {told[3_001][0], told[3_002][0]} <= {"pool", "buckets"}
    assert all(match["rows"] for match in view["matches"])
    assert len(explained(broker, b"site.7.hall.dev.7", "amqp", None, 2)["matches"]) == 2


@pytest.mark.parametrize("filter", [b"a.*.c.d", b"a/#/b", b"x" * 101])
def test_a_refused_filter_leaves_nothing_behind(filter: bytes) -> None:
    broker = broker_with(topic_words_max=3, topic_bytes_max=100)
    client, _ = connect(broker)
    kept = subscribe(broker, client, 1, b"a")
    syntax = "mqtt" if b"/" in filter else "amqp"
    with pytest.raises(InvalidFilter):
        subscribe(broker, client, 2, filter, syntax, group="g")
    assert [s.id for s in broker.router.subscriptions()] == [kept.id]
    assert len(broker.router._filters) == 1
    assert broker.router._groups == {}
    assert [s.number for s in client.subscriber.subscriptions] == [1]
    assert subscribe(broker, client, 2, b"b").id != kept.id


def test_a_full_cache_takes_a_topic_at_its_second_sighting_in_the_place_of_one_that_is_not_used() -> None:
    broker = broker_with(routes_max=16)
    for n in range(16):
        broker.router.route(b"t%d" % n, "amqp").hits = 7 * (n != 3)  # one of them was never published on
    kept = set(broker.routes.routes())
    assert broker.router.route(b"new", "amqp") not in kept
    assert set(broker.routes.routes()) == kept
    new = broker.router.route(b"new", "amqp")
    assert new in broker.routes.routes()
    assert {route.key for route in kept - set(broker.routes.routes())} == {b"\0t3"}
    assert broker.routes.evicted == 1
    client, _ = connect(broker)
    subscribe(broker, client, 1, b"t3")
    assert broker.router.route(b"t3", "amqp").targets == list(client.subscriber.subscriptions)
    assert broker.router.invalidated == 0  # it was not there any more


def test_routes_in_use_stay_however_many_other_topics_come_round() -> None:
    """A working set larger than the cache: with a queue in place of the clock no message would find its route."""
    broker = broker_with(routes_max=100)
    for many in (200, 500):
        for _ in range(20):
            before = broker.routes.hits
            for n in range(many):
                broker.router.route(b"t%d" % n, "amqp").hits += 1
        assert broker.routes.hits - before >= 50
    for _ in range(40):  # other topics take their places
        before = broker.routes.hits
        for n in range(100):
            broker.router.route(b"other%d" % n, "amqp").hits += 1
    assert broker.routes.hits - before == 100


def test_who_is_gone_is_kept_by_no_route_that_nobody_uses() -> None:
    turns: list[Any] = []
    broker = Broker(Limits(), lambda: None, turns.append)
    staying, _ = connect(broker)
    going, _ = connect(broker)
    subscribe(broker, staying, 1, b"#")
    gone = subscribe(broker, going, 1, b"*.*")
    for n in range(1_000):
        broker.router.route(b"a.%d" % n, "amqp")
    broker.clients.disconnect(going, "over", 0.0)
    while turns:
        turns.pop(0)()
    assert [holder for holder in gc.get_referrers(gone) if isinstance(holder, list)] == []
    assert sys.getrefcount(gone) == 2
    assert all(len(route) == 1 for route in broker.routes.routes())
    assert broker.router.invalidated == 1_000


def test_the_sweep_takes_some_routes_in_a_turn() -> None:
    turns: list[Any] = []
    broker = Broker(Limits(), lambda: None, turns.append)
    client, _ = connect(broker)
    subscribe(broker, client, 1, b"a.*")
    for n in range(1_000):
        broker.router.route(b"a.%d" % n, "amqp")
    broker.subscribing.unsubscribe(client, 1)
    swept = [0]
    while turns:
        turns.pop(0)()
        swept.append(broker.router.invalidated)
    assert all(after - before <= router.SWEPT_AT_ONCE for before, after in pairwise(swept))
    assert swept[-1] == 1_000


def test_a_subscription_that_comes_and_goes_between_two_messages_costs_a_route_nothing() -> None:
    turns: list[Any] = []
    broker = Broker(Limits(), lambda: None, turns.append)
    client, _ = connect(broker)
    route = broker.router.route(b"a.b", "amqp")
    for _ in range(20):
        subscribe(broker, client, 1, b"a.*")
        broker.subscribing.unsubscribe(client, 1)
    assert broker.router.route(b"a.b", "amqp") is route
    assert (broker.router.invalidated, len(route)) == (0, 0)


def test_a_filter_with_a_word_that_no_topic_has_changes_no_route() -> None:
    broker = broker_with()
    client, _ = connect(broker)
    route = broker.router.route(b"a.b", "amqp")
    for number in range(100):  # more than are remembered
        subscribe(broker, client, number, b"*.c%d.#" % number)
    assert broker.router.route(b"a.b", "amqp") is route
    assert broker.router.invalidated == 0


def test_routes_with_the_same_subscribers_share_their_list() -> None:
    broker = broker_with()
    client, _ = connect(broker)
    for number in range(3):
        subscribe(broker, client, number, b"a.#")
    lists = {id(broker.router.route(b"a.%d" % n, "amqp").targets) for n in range(10)}
    assert len(lists) == 1
    subscribe(broker, client, 3, b"#")
    patched = {id(broker.router.route(b"a.%d" % n, "amqp").targets) for n in range(10)}
    new = broker.router.route(b"a.new", "amqp")
    assert patched == {id(new.targets)} != lists
    assert len(new) == 4


def test_cached_topics_are_bounded_in_bytes() -> None:
    broker = broker_with(routes_bytes_max=1024 * 1024)
    for n in range(200):
        broker.router.route(b"%05d" % n * 4_000, "amqp")
    assert broker.routes.nbytes <= 1024 * 1024
    assert len(broker.routes) < 200


def test_an_invalid_topic_is_not_kept() -> None:
    broker = broker_with(topic_words_max=3)
    for _ in range(2):
        with pytest.raises(InvalidTopic) as raised:
            broker.router.route(b"a.b.c.d", "amqp")
        assert raised.value.details == {"position": 6}
    assert len(broker.routes) == 0


@pytest.mark.parametrize("topic", [b"$SYS", b"$SYS.a", b"$SYS.", b"$stream", b"$stream.q.0.x"])
def test_clients_do_not_publish_to_the_brokers_own_topics(topic: bytes) -> None:
    broker = broker_with()
    client, _ = connect(broker)

    def publication(topic: bytes, syntax: int) -> Publication:
        return Publication(Message(FORMAT, topic, syntax, b""), client.subscriber)

    with pytest.raises(NotPermitted):
        broker.publishing.route(publication(topic, 0))
    with pytest.raises(NotPermitted):
        broker.publishing.route(publication(topic.replace(b".", b"/"), 1))
    broker.publishing.route(publication(b"a." + topic, 0))


def test_limits_that_a_reload_raises_hold_for_what_comes_then() -> None:
    broker = broker_with(topic_words_max=2, topic_bytes_max=10)
    client, _ = connect(broker)
    broker.use(type(broker.limits)(topic_words_max=5, topic_bytes_max=100))
    subscription = subscribe(broker, client, 1, b"a.*.c.d.#")
    assert broker.router.route(b"a.b.c.d", "amqp").targets == [subscription]
    broker.use(type(broker.limits)(topic_words_max=2))
    with pytest.raises(InvalidTopic):
        broker.router.matching(b"a.b.c.d", "amqp")
    broker.subscribing.unsubscribe(client, 1)
    assert len(broker.router) == 0


def test_a_key_is_syntax_and_topic() -> None:
    assert RouteCache.key_of(1, b"a/b") == b"\x01a/b"
