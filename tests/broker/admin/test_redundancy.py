"""Redundant subscriptions: what a pass finds against a comparison of all with all, and how it is shared and paced."""

import asyncio
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchcore
from fanlight_broker.admin import slices as slicing
from fanlight_broker.admin.api import redundancy
from fanlight_broker.admin.api.redundancy import (
    COMPARED_MAX,
    QUICK_SECONDS,
    SHARE,
    Redundancy,
    Survey,
    literals,
    makes_redundant,
    passed_over,
    progress_of,
)
from fanlight_broker.admin.slices import Slices
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.protocols.mqtt.packets import SubAck, Subscribe
from fanlight_broker.protocols.mqtt.packets import Subscription as Asked
from tests.broker.protocols.mqtt.world import Peer, World

WORDS = ["a", "b", "c"]


def subscribed(world: World, filters: list[str], name: str = "client") -> Peer:
    peer = world.connect(name)
    for at in range(0, len(filters), 100):
        peer.say(Subscribe(1, tuple(Asked(each) for each in filters[at : at + 100])))
        assert isinstance(peer.next(), SubAck)
    return peer


def all_of(world: World) -> Iterator[Subscription | None]:
    place: int | None = 0
    while place is not None:
        found, place = world.broker.router.from_place(place, 64)
        yield from found
        yield None


def whole(world: World) -> Survey:
    found = Survey([])
    for _ in passed_over(all_of(world), found):
        pass
    return found


@given(st.lists(st.sampled_from([*WORDS, "+", "*", "#"]), min_size=1, max_size=4), st.sampled_from(["amqp", "mqtt"]),
       st.lists(st.sampled_from([*WORDS, "+", "*", "#"]), min_size=1, max_size=4), st.sampled_from(["amqp", "mqtt"]))
@settings(max_examples=200)
def test_a_filter_that_covers_another_one_has_no_word_that_the_other_one_has_not(
    a: list[str], a_syntax: str, b: list[str], b_syntax: str
) -> None:
    one, other = (("." if syntax == "amqp" else "/").join(words).encode() for words, syntax in
                  ((a, a_syntax), (b, b_syntax)))
    try:
        covers = matchcore.covers(one, other, a_syntax=a_syntax, b_syntax=b_syntax)
    except matchcore.InvalidFilter:
        return
    if covers:
        assert literals(one, a_syntax) <= literals(other, b_syntax)


def test_a_pass_finds_what_a_comparison_of_all_with_all_does() -> None:
    chance = random.Random(5)
    world = World()
    for number in range(3):
        filters = {
            "/".join(chance.choices([*WORDS, "+"], k=chance.randint(1, 3))) + chance.choice(["", "", "/#"])
            for _ in range(60)
        }
        subscribed(world, sorted(filters), f"client {number}")
    everything = [each for each in all_of(world) if each is not None]
    expected = {
        each.id for each in everything
        if any(makes_redundant(other, each) for other in everything if other.owner is each.owner)
    }
    found = whole(world)
    assert {each.id for each, _ in found.pairs} == expected
    assert all(makes_redundant(other, each) for each, other in found.pairs)
    assert (found.redundant, found.looked_at) == (len(expected), len(everything))
    assert 20 < len(expected) < len(everything)


def test_filters_with_a_word_of_their_own_are_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 filters of one client: all with all would be 250,000 comparisons."""
    compared = 0

    def counting(other: Subscription, subscription: Subscription) -> bool:
        nonlocal compared
        compared += 1
        return makes_redundant(other, subscription)

    monkeypatch.setattr(redundancy, "makes_redundant", counting)
    world = World()
    subscribed(world, [f"site/1/+/alarm{number}/#" for number in range(500)])
    assert whole(world).redundant == 0
    assert compared <= 1_000
    compared = 0
    hostile = World()
    subscribed(hostile, ["/".join("a" if bit == "1" else "+" for bit in f"{number:09b}") for number in range(500)])
    whole(hostile)
    assert compared <= 500 * COMPARED_MAX


def test_no_step_of_a_pass_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redundancy, "COPIED", 64)
    world = World()
    subscribed(world, [f"a/+/{number}" for number in range(640)])
    assert sum(1 for _ in passed_over(all_of(world), Survey([]))) >= 4 * 640 // 64


def test_a_client_that_changes_its_subscriptions_meanwhile_does_not_stop_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redundancy, "COPIED", 8)
    world = World()
    peer = subscribed(world, ["a/#", *(f"a/{number}" for number in range(40))])
    found = Survey([])
    for number, _ in enumerate(passed_over(all_of(world), found)):
        peer.say(Subscribe(1, (Asked(f"b/{number}"),)))
    assert found.redundant == 40


class Paced:
    """A Redundancy whose clocks go on as the test says: each step of a pass takes `step` of the processor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, world: World, step: float) -> None:
        monkeypatch.setattr(slicing, "REST", 0)
        monkeypatch.setattr(redundancy, "REST", 0)
        monkeypatch.setattr(redundancy, "LOOK", 1)
        self.now = self.used = 0.0
        self.rests = list[float]()
        self.passes = 0
        self._world, self._step = world, step
        sleep = asyncio.sleep

        async def rest(seconds: float) -> None:
            self.rests.append(seconds)
            self.now += seconds
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", rest)
        self.of = Redundancy(self._each, Slices(lambda: self.used), lambda: self.now, lambda: self.used)

    def _each(self) -> Iterator[Subscription | None]:
        self.passes += 1
        for each in all_of(self._world):
            self.used += self._step
            yield each


async def test_a_short_pass_is_whole_at_once_and_its_result_is_kept_for_a_hundred_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    subscribed(world, ["a/#", "a/b"])
    paced = Paced(monkeypatch, world, 0.01)
    found = await paced.of.found()
    assert (found.complete, found.redundant, found.looked_at) == (True, 1, 2)
    assert await paced.of.found() is found
    paced.now += found.seconds / SHARE + 1
    again = await paced.of.found()
    assert (again is found, again.redundant, paced.passes) == (False, 1, 2)
    paced.of.stop()


async def test_a_long_pass_is_answered_as_far_as_it_is_and_goes_on_with_its_share_while_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    subscribed(world, [f"a/{number}" for number in range(200)] + ["a/#"])
    subscribed(world, [f"b/{number}" for number in range(200)] + ["b/#"], "another")
    paced = Paced(monkeypatch, world, QUICK_SECONDS / 100)
    found = await paced.of.found()
    assert (found.complete, found.redundant) == (False, 200)
    assert 0 < progress_of(found, 402)["looked_at"] < 402
    for _ in range(200):  # whatever was put off
        await asyncio.tasks.sleep(0)
    assert not found.complete, "it goes on though nobody asks"
    while not found.complete:
        assert await paced.of.found() is found
        await asyncio.tasks.sleep(0)
    slow = [each for each in paced.rests if each]
    assert sum(slow) == pytest.approx((found.seconds - QUICK_SECONDS) / SHARE, rel=0.1)
    assert (found.redundant, found.looked_at, paced.passes) == (400, 402, 1)
    assert progress_of(found, 402) == {
        "looked_at": 402, "of": 402, "redundant": 400, "worked_seconds": round(found.seconds, 3),
    }
    paced.of.stop()
