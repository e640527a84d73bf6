"""The router against the matcher's oracle: a route, cached or fresh, holds exactly those who get the topic."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanlight_broker.core import router
from fanlight_broker.core.errors import InvalidFilter, InvalidTopic, NotPermitted
from fanlight_broker.core.explain import explain
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from matchcore import reference
from tests.broker.core.parts import broker_with, connect, subscribe

Spelled = tuple[bytes, str]

WORDS = {"amqp": [b"a", b"b", b"", b"$inbox", b"$SYS", b"$x"], "mqtt": [b"a", b"b", b"", b"$inbox", b"$SYS", b"a.b"]}
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
    if root in (b"$SYS", b"$inbox"):
        return (reference.filter_words(*filter) or [b""])[0] == root
    return True


class RouterMachine(RuleBasedStateMachine):
    @initialize(most=st.sampled_from([16, 1_000]))
    def begin(self, most: int) -> None:
        self.broker = broker_with(routes_max=most, filter_hashes_max=4)  # as many as `filters` draws
        self.client, _ = connect(self.broker)
        self.held: dict[int, tuple[Spelled, str | None, Subscription]] = {}
        self.numbers = iter(range(1_000_000))
        self.built = self.invalidated = self.evicted = 0

    def cached(self) -> dict[Spelled, Route]:
        return {(route.key[1:], ("amqp", "mqtt")[route.key[0]]): route for route in self.broker.routes.routes()}

    def change(self, filter: Spelled, action: Any) -> Any:
        """Only the routes that the filter touches are forgotten."""
        before = self.cached()
        result = action()
        touched = {topic for topic in before if reference.matches(*filter, *topic)}
        assert self.cached() == {topic: route for topic, route in before.items() if topic not in touched}
        self.invalidated += len(touched)
        return result

    @rule(filter=filters(), group=st.sampled_from([None, None, "g", "h"]))
    def subscribe(self, filter: Spelled, group: str | None) -> None:
        words = filter[0].split(b"." if filter[1] == "amqp" else b"/")
        if words[0] == b"$inbox":  # as if it were the client's own, wildcards too: it is the router that is tested
            if len(words) < 2:
                return
            self.client.subscriber.inbox = f"$inbox.{words[1].decode()}"
        number = next(self.numbers)
        self.held[number] = (
            filter, group,
            self.change(filter, lambda: subscribe(self.broker, self.client, number, *filter, group=group)),
        )  # fmt: skip

    @rule(nth=st.integers(0, 100))
    def unsubscribe(self, nth: int) -> None:
        if self.held:
            number = list(self.held)[nth % len(self.held)]
            filter, _, _ = self.held.pop(number)
            self.change(filter, lambda: self.broker.subscribing.unsubscribe(self.client, number))

    @rule(topic=topics())
    def publish(self, topic: Spelled) -> None:
        before = self.cached()
        route = self.broker.router.route(*topic)
        if topic in before:
            assert route is before[topic]
        else:
            self.built += 1
            self.evicted += len(before) == self.broker.routes.most
        assert self.broker.routes.lookup(("amqp", "mqtt").index(topic[1]), topic[0]) is route
        self.check(topic, route)

    def check(self, topic: Spelled, route: Route) -> None:
        targets: list[Target] = []
        groups: dict[tuple[str, Spelled], set[Target]] = {}
        for filter, group, subscription in self.held.values():
            if group is None:
                if reached(filter, topic):
                    targets.append(subscription)
            else:
                groups.setdefault((group, filter), set()).add(subscription)
        assert sorted(map(id, route.targets)) == sorted(map(id, targets))
        expected = [members for (_, filter), members in groups.items() if reached(filter, topic)]
        got = [set(group.members) for group in route.groups]
        assert len(got) == len(expected)
        assert all(members in expected for members in got)

    @invariant()
    def every_cached_route_is_what_a_fresh_one_would_be(self) -> None:
        for topic, route in self.cached().items():
            self.check(topic, route)

    @invariant()
    def it_adds_up(self) -> None:
        router = self.broker.router
        assert len(router) == len(self.held)
        assert {s.number for s in router.subscriptions()} == set(self.held)
        assert len({s.id for s in router.subscriptions()}) == len(self.held)
        assert (router.built, router.invalidated) == (self.built, self.invalidated)
        assert self.broker.routes.evicted == self.evicted
        assert sum(map(len, router._topics)) == len(self.broker.routes)

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.clients.disconnect(self.client, "over", 0.0)
            assert len(self.broker.router) == 0
            assert len(self.broker.router._filters) == 0
            assert self.broker.router._groups == {}


RouterMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestRouterAgainstTheOracle = RouterMachine.TestCase


def test_explain_tells_the_tier_of_each_subscription_shown() -> None:
    broker = broker_with()
    client, _ = connect(broker)
    for number in range(3_000):
        subscribe(broker, client, number, b"site.%d.*.dev.%d" % (number % 50, number))
    subscribe(broker, client, 3_000, b"site.7.hall.dev.7")
    subscribe(broker, client, 3_001, b"site.#")
    subscribe(broker, client, 3_002, b"site/+/hall/#", "mqtt")
    view = explain(broker, b"site.7.hall.dev.7", "amqp", None, 10)
    told = {match["subscription"]: (match["tier"], match["reason"]) for match in view["matches"]}
    assert set(told) == {7, 3_000, 3_001, 3_002}
    tier, reason = told[7]
    assert tier == "buckets"
    assert reason == "buckets: class left 4, key '7'; checked: length 5, left 0 'site', left 1 '7', left 3 'dev'"
    assert told[3_000] == ("exact", "exact: the whole topic")
    assert {told[3_001][0], told[3_002][0]} <= {"pool", "buckets"}
    assert all(match["rows"] for match in view["matches"])
    assert len(explain(broker, b"site.7.hall.dev.7", "amqp", None, 2)["matches"]) == 2


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


def test_a_full_cache_forgets_the_oldest_topic() -> None:
    broker = broker_with(routes_max=16)
    routes = [broker.router.route(b"t%d" % n, "amqp") for n in range(17)]
    assert broker.routes.routes() == routes[1:]
    assert broker.routes.evicted == 1
    client, _ = connect(broker)
    subscribe(broker, client, 1, b"t0")
    assert broker.router.invalidated == 0  # it was not there any more
    assert broker.router.route(b"t0", "amqp").targets == list(client.subscriber.subscriptions)


def test_cached_topics_are_bounded_in_bytes() -> None:
    broker = broker_with(routes_bytes_max=1024 * 1024)
    for n in range(200):
        broker.router.route(b"%05d" % n * 4_000, "amqp")
    assert broker.routes.nbytes <= 1024 * 1024
    assert broker.routes.evicted == 200 - len(broker.routes)


def test_an_invalid_topic_is_not_kept() -> None:
    broker = broker_with(topic_words_max=3)
    for _ in range(2):
        with pytest.raises(InvalidTopic) as raised:
            broker.router.route(b"a.b.c.d", "amqp")
        assert raised.value.details == {"position": 6}
    assert len(broker.routes) == 0


@pytest.mark.parametrize("topic", [b"$SYS", b"$SYS.a", b"$SYS."])
def test_clients_do_not_publish_to_the_brokers_own_topics(topic: bytes) -> None:
    broker = broker_with()
    client, _ = connect(broker)
    with pytest.raises(NotPermitted):
        broker.publishing.route(client.subscriber, topic, "amqp")
    with pytest.raises(NotPermitted):
        broker.publishing.route(client.subscriber, topic.replace(b".", b"/"), "mqtt")
    broker.publishing.route(client.subscriber, b"a." + topic, "amqp")


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


@pytest.mark.parametrize("many", [2, 4_096])
def test_a_filter_that_touches_most_routes_forgets_them_as_any_other_does(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once where they are many, one by one elsewhere: what is known of hot topics, and what comes, is the same."""
    monkeypatch.setattr(router, "MANY_ROUTES", many)
    broker = broker_with()
    client, _ = connect(broker)
    subscribe(broker, client, 1, b"a.*")
    routes = [broker.router.route(b"a.%d" % n, "amqp") for n in range(8)] + [broker.router.route(b"b", "amqp")]
    for hits, route in enumerate(routes):
        route.hits = hits
    subscribe(broker, client, 2, b"a.#")
    assert broker.router.invalidated == 8
    again = broker.router.route(b"a.3", "amqp")
    assert again is not routes[3]
    assert (again.hits, len(again)) == (3, 2)
    assert broker.router.route(b"b", "amqp").hits == 8
    hottest = broker.router.hot_topics(3)
    assert [(topic, messages) for topic, _, messages, _ in hottest] == [(b"b", 8), (b"a.7", 7), (b"a.6", 6)]
    broker.subscribing.unsubscribe(client, 2)
    assert len(broker.router.route(b"a.3", "amqp")) == 1
    assert len(broker.routes) == 2
