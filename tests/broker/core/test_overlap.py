"""Overlapping filters of one session (MQTT 5, 3.3.4): [MQTT-3.3.4-2] to [MQTT-3.3.4-5]."""

import itertools

import pytest

from tests.broker.core.sessions import World


def test_one_copy_at_the_highest_quality_with_all_identifiers() -> None:
    world = World()
    peer = world.connect("c")
    peer.subscribe("a/b", 1, identifier=b"1,")
    peer.subscribe("a/+", 2, identifier=b"2,")
    peer.subscribe("#", 0)
    assert world.publish("a/b", "x", 2) == 1
    assert peer.got() == ["a/b x 2 ids=1,2,"]
    assert world.publish("a/c", "y", 1) == 1
    assert peer.got() == ["a/c y 1 ids=2,"]


def test_the_retain_flag_is_kept_if_any_of_them_asks_for_it() -> None:
    for flags in itertools.product((False, True), repeat=2):
        world = World()
        peer = world.connect("c")
        peer.subscribe("a", retain_as_published=flags[0])
        peer.subscribe("+", retain_as_published=flags[1])
        world.publish("a", "x", retain=True)
        world.publish("a", "y")
        assert peer.got() == ["a x 0 retain" if any(flags) else "a x 0", "a y 0"]


@pytest.mark.parametrize("qos", [0, 1])
def test_no_local_ones_drop_out_first_of_the_sessions_own_messages_only(qos: int) -> None:
    world = World()
    peer, other = world.connect("c"), world.connect("d")
    peer.subscribe("a", 1, identifier=b"1,", no_local=True)
    peer.subscribe("+", 0, identifier=b"2,")
    assert peer.publish("a", "mine", qos) == 1
    assert other.publish("a", "theirs", qos) == 1
    assert peer.got() == ["a mine 0 ids=2,", f"a theirs {qos} ids=1,2,"]


def test_all_no_local_gives_nothing_of_ones_own() -> None:
    world = World()
    peer = world.connect("c")
    peer.subscribe("a", no_local=True)
    peer.subscribe("+", no_local=True)
    assert peer.publish("a") == 0
    assert world.publish("a") == 1


def test_no_local_holds_for_the_next_connection_of_the_session_too() -> None:
    """3.8.3.1: [MQTT-3.8.3-3]"""
    world = World()
    peer = world.connect("c", expiry=60)
    peer.subscribe("a", 1, no_local=True)
    peer.subscribe("b", 1, no_local=True)
    peer.subscribe("+", 1)
    peer.publish("b", "x", 1)
    peer.acknowledge()
    peer.leave()
    again = world.connect("c", clean_start=False)
    world.broker.sessions.unsubscribe(again.session, b"+", None)
    assert again.publish("a") == 0
    assert again.publish("b") == 0
    assert world.publish("b") == 1


def test_shared_subscriptions_do_not_overlap_with_others() -> None:
    world = World()
    peer = world.connect("c")
    peer.subscribe("a", 0, identifier=b"1,")
    peer.subscribe("a", 0, identifier=b"2,", group="g")
    assert world.publish("a") == 2
    assert sorted(peer.got()) == ["a x 0 ids=1,", "a x 0 ids=2,"]


def test_each_subscription_counts_what_it_had_a_part_in() -> None:
    world = World()
    peer = world.connect("c")
    first, _ = peer.subscribe("a")
    second, _ = peer.subscribe("+")
    world.publish("a")
    world.publish("b")
    assert (first.delivered, second.delivered) == (1, 2)


def test_a_change_of_one_of_them_makes_the_route_anew() -> None:
    world = World()
    peer = world.connect("c")
    peer.subscribe("a", 0)
    peer.subscribe("+", 0)
    world.publish("a", "0", 1)
    peer.subscribe("+", 1)
    world.publish("a", "1", 1)
    world.broker.sessions.unsubscribe(peer.session, b"+", None)
    world.publish("a", "2", 1)
    assert peer.got() == ["a 0 0", "a 1 1", "a 2 0"]
