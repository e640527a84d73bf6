"""The route cache against a dict: found by topic and syntax, forgotten when told, one not in use when it is full."""

import gc

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from tests.broker.wire.publisher import native_target

TOPICS = st.one_of(st.integers(0, 400).map(lambda n: b"t%d" % n), st.binary(max_size=2))
SYNTAX = st.integers(0, 1)


class CacheMachine(RuleBasedStateMachine):
    @initialize(most=st.sampled_from([1, 3, 40, 100_000]))
    def begin(self, most: int) -> None:
        self.cache = RouteCache(most)
        self.kept: dict[bytes, Route] = {}
        self.evicted = self.hits = self.misses = 0

    def add_one(self, syntax: int, topic: bytes, hits: int = 0) -> None:
        key = RouteCache.key_of(syntax, topic)
        route = Route(key, [], [])
        route.hits = hits
        if key in self.kept:
            with pytest.raises(ValueError, match="kept already"):
                self.cache.add(route)
            return
        full = len(self.kept) >= self.cache.most
        added = self.cache.add(route)
        found = {each.key: each for each in self.cache.routes()}
        gone = self.kept.keys() - found.keys()
        assert len(gone) == (full and added)
        assert added or full
        stayed = {key: each for key, each in self.kept.items() if key not in gone}
        assert found == (stayed | {key: route} if added else stayed)
        self.evicted += len(gone)
        self.kept = found

    @rule(syntax=SYNTAX, topic=TOPICS, hits=st.integers(0, 2))
    def add(self, syntax: int, topic: bytes, hits: int) -> None:
        self.add_one(syntax, topic, hits)

    @rule(syntax=SYNTAX, start=st.integers(0, 300), count=st.integers(1, 200))
    def add_many(self, syntax: int, start: int, count: int) -> None:
        for n in range(start, start + count):
            self.add_one(syntax, b"t%d" % n)

    @rule(every=st.integers(1, 5))
    def use_many(self, every: int) -> None:
        for route in list(self.kept.values())[::every]:
            route.hits += 1

    @rule(syntax=SYNTAX, topic=TOPICS)
    def discard(self, syntax: int, topic: bytes) -> None:
        key = RouteCache.key_of(syntax, topic)
        assert self.cache.discard(Route(key, [], [])) is False  # another route under the same key
        if key in self.kept:
            route = self.kept.pop(key)
            assert self.cache.discard(route) is True
            assert self.cache.discard(route) is False

    @rule(every=st.integers(1, 5))
    def discard_many(self, every: int) -> None:
        for key in list(self.kept)[::every]:
            assert self.cache.discard(self.kept.pop(key)) is True

    @rule(syntax=SYNTAX, topic=TOPICS)
    def look_up(self, syntax: int, topic: bytes) -> None:
        expected = self.kept.get(RouteCache.key_of(syntax, topic))
        assert self.cache.lookup(syntax, topic) is expected
        self.hits += expected is not None
        self.misses += expected is None

    @rule()
    def look_up_all(self) -> None:
        for key, route in self.kept.items():
            assert self.cache.lookup(key[0], key[1:]) is route
            assert self.cache.get(key) is route
        self.hits += len(self.kept)

    @invariant()
    def it_adds_up(self) -> None:
        assert len(self.cache) == len(self.kept)
        assert set(self.cache.routes()) == set(self.kept.values())
        assert (self.cache.hits, self.cache.misses) == (self.hits, self.misses)
        assert self.cache.evicted == self.evicted
        assert self.cache.nbytes == sum(route.nbytes for route in self.kept.values())


CacheMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestRouteCacheAgainstADict = CacheMachine.TestCase


def test_a_topic_in_two_syntaxes_is_two_routes() -> None:
    cache = RouteCache(10)
    dotted, slashed = (Route(RouteCache.key_of(syntax, b"a"), [], []) for syntax in (0, 1))
    cache.add(dotted)
    assert cache.lookup(1, b"a") is None
    cache.add(slashed)
    assert cache.lookup(0, b"a") is dotted
    assert cache.lookup(1, b"a") is slashed


def test_long_topics_are_bounded_in_bytes() -> None:
    cache = RouteCache(1_000_000, 1 << 20)
    for n in range(100):
        cache.add(Route(RouteCache.key_of(0, b"%05d" % n * 10_000), [], []))
        assert cache.nbytes <= 1 << 20
    assert 10 < len(cache) < 30
    assert 0 < cache.evicted <= 100 - len(cache)


def test_routes_with_many_targets_are_bounded_in_bytes() -> None:
    target = native_target(Outbox(Ledger(1, lambda: None), 1, "pause"), 1)
    cache = RouteCache(1_000_000, 1 << 20)
    for n in range(100):
        cache.add(Route(RouteCache.key_of(0, b"%d" % n), [target] * 10_000, []))
        assert cache.nbytes <= 1 << 20
    huge = Route(RouteCache.key_of(0, b"huge"), [target] * 1_000_000, [])
    assert cache.add(huge)
    assert cache.routes() == [huge]  # one is kept, however large it is
    cache.add(Route(RouteCache.key_of(0, b"next"), [], []))
    assert len(cache) == 1


def test_what_a_merged_target_stands_for_counts_in_bytes() -> None:
    """20,000 filters of one session that all match are one target on each route, with a list of 20,000."""
    ledger = Ledger(1, lambda: None)
    parts = [native_target(Outbox(ledger, 1, "pause"), 1)] * 20_000
    cache = RouteCache(1_000_000, 1 << 20)
    for n in range(100):
        merged = Target(parts[0].outbox, parts[0].variant, 1, parts=list(parts))
        cache.add(Route(RouteCache.key_of(0, b"%d" % n), [merged], []))
        assert cache.nbytes <= 1 << 20
    assert 0 < len(cache) <= (1 << 20) // (8 * len(parts))


def test_the_garbage_collector_does_not_walk_the_targets_of_routes() -> None:
    """2,000 routes of 20,000 targets held the loop for 0.16 s, each time that it did."""
    target = native_target(Outbox(Ledger(1, lambda: None), 1, "pause"), 1)
    targets, parts = [target], [target, target]
    merged = Target(target.outbox, target.variant, 1, parts=parts)
    route = Route(RouteCache.key_of(0, b"a"), targets, [])
    assert not gc.is_tracked(route.targets)
    assert merged.parts is parts
    assert not gc.is_tracked(parts)


def test_a_cache_of_no_routes_is_none() -> None:
    with pytest.raises(ValueError, match="at least one"):
        RouteCache(0)
