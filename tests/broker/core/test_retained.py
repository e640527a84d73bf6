"""Retained messages: set, replaced, cleared, found, sent in slices (MQTT 5, 3.3.1.3)."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core import retained
from fanlight_broker.core.retained import SLICE
from fanlight_broker.wire.message import Message
from matchcore import reference
from tests.broker.core.sessions import Peer, World


def retain(world: World, topic: str, payload: str = "x", qos: int = 0, **options: Any) -> None:
    world.publish(topic, payload, qos, retain=True, **options)


def drain(world: World, peer: Peer) -> list[str]:
    """What the peer reads, until nothing more comes."""
    got = peer.got()
    while world.broker.sessions.advance(peer.session, world.now) or peer.outbox.size:
        got += peer.got()
    return got + peer.got()


@pytest.fixture(scope="module", autouse=True, params=[retained.PART, 3], ids=["one part", "parts of three"])
def parts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here with all topics in one index, and with three in each."""
    before, retained.PART = retained.PART, request.param
    look_up = retained.LOOK_UP
    if request.param < look_up:
        retained.LOOK_UP = 0  # so small a part takes no time
    yield
    retained.PART, retained.LOOK_UP = before, look_up


def test_the_last_value_is_kept_and_an_empty_one_clears_it() -> None:
    """[MQTT-3.3.1-5], [MQTT-3.3.1-6], [MQTT-3.3.1-7]"""
    world = World()
    retain(world, "a", "1")
    retain(world, "a", "2")
    retain(world, "b", "3")
    world.publish("b", "4")  # without the flag: [MQTT-3.3.1-8]
    peer = world.connect("c")
    peer.subscribe("+", retained=True)
    assert sorted(peer.got()) == ["a 2 0 retain", "b 3 0 retain"]
    retain(world, "a", "")
    assert len(world.broker.retained) == 1
    assert world.broker.retained.get(b"a", "mqtt", world.now) is None


def test_subscribers_that_are_there_see_no_retain_flag() -> None:
    """[MQTT-3.3.1-12]"""
    world = World()
    peer = world.connect("c")
    peer.subscribe("a", retained=True)
    retain(world, "a")
    assert peer.got() == ["a x 0"]


def test_retained_messages_have_the_lower_quality_and_the_subscriptions_identifier() -> None:
    world = World()
    retain(world, "a", qos=2)
    peer = world.connect("c", receive_max=1)
    peer.subscribe("a", 1, identifier=b"7,", retained=True)
    peer.subscribe("#", 0, identifier=b"8,", retained=True)
    assert peer.got() == ["a x 1 retain ids=7,", "a x 0 retain ids=8,"]


def test_one_topic_in_two_spellings_has_one_value() -> None:
    world = World()
    retain(world, "a/b", "1")
    other = Message(world.format, b"a.b", 0, b"2", retain=True)
    world.put_in(other)
    assert len(world.broker.retained) == 1
    for filter in ("a/b", "a/+", "#"):
        peer = world.connect("c")
        peer.subscribe(filter, retained=True)
        assert peer.got() == ["a.b 2 0 retain"]
    world.put_in(Message(world.format, b"a/b.c", 0, b"3", retain=True))
    assert len(world.broker.retained) == 2


TOPICS = ["a", "a/b", "a/b/c", "/", "b", "$x/a", "a//c"]
FILTERS = ["#", "+", "a/#", "+/b", "a/+/c", "/", "$x/#", "a", "+/+", "/+"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from(["", "1", "2"])), max_size=30), st.data())
def test_a_subscriber_gets_exactly_what_a_plain_dictionary_has(
    changes: list[tuple[str, str]], data: st.DataObject
) -> None:
    world = World()
    expected: dict[str, str] = {}
    for topic, payload in changes:
        retain(world, topic, payload)
        expected.pop(topic, None)
        if payload:
            expected[topic] = payload
    filter = data.draw(st.sampled_from(FILTERS))
    peer = world.connect("c")
    peer.subscribe(filter, retained=True)
    matching = {t: p for t, p in expected.items() if reference.matches(filter.encode(), "mqtt", t.encode(), "mqtt")}
    assert sorted(peer.got()) == sorted(f"{topic} {payload} 0 retain" for topic, payload in matching.items())
    retained = world.broker.retained
    assert len(retained) == len(expected)
    assert retained.nbytes == world.broker.ledger.stored


def test_many_are_sent_in_slices_as_the_client_reads() -> None:
    world = World()
    for n in range(3 * SLICE):
        retain(world, f"t/{n}", str(n))
    peer = world.connect("c")
    peer.subscribe("t/#", retained=True)
    assert peer.outbox.messages == SLICE - retained.LOOK_UP
    assert peer.outbox.refill
    assert len(drain(world, peer)) == 3 * SLICE
    assert not peer.session.cursors


def test_topics_without_a_value_do_not_end_the_sending() -> None:
    """A slice in which nothing was to be sent leaves the outbox empty: it asks to go on all the same."""
    world = World()
    for n in range(4 * SLICE):
        retain(world, f"t/{n}")
    for n in range(3 * SLICE):
        retain(world, f"t/{n}", "")
    peer = world.connect("c")
    peer.subscribe("#", retained=True)
    got: list[str] = []
    while peer.outbox in world.broker.ledger.pop_dirty():  # as the flush does: no packet comes to set it going
        peer.outbox.clean()
        got += peer.got()
        if peer.outbox.refill:
            peer.outbox.refill = False
            world.broker.sessions.advance(peer.session, world.now)
    assert len(got) == SLICE
    assert not peer.session.cursors


def test_filters_that_match_nothing_share_the_slice_of_a_turn() -> None:
    """However many filters a SUBSCRIBE has, their look-ups are spread over turns."""
    world = World()
    for n in range(SLICE):
        retain(world, f"{n}/none")  # the same words: it must be looked up
    peer = world.connect("c")
    for n in range(SLICE):
        peer.subscribe(f"none/{n}/#")
    for subscription in list(peer.session.subscriptions):
        world.broker.sessions.send_retained(peer.session, subscription)
    turns = 1
    while world.broker.sessions.advance(peer.session, world.now):
        assert peer.outbox.refill
        turns += 1
    assert turns >= SLICE * retained.LOOK_UP // SLICE
    assert not peer.session.cursors


def test_a_filter_with_a_word_that_no_topic_has_is_not_looked_up() -> None:
    world = World()
    retain(world, "a/b")
    peer = world.connect("c")
    for filter in ("a/c", "+/x", "c"):
        peer.subscribe(filter, retained=False)
    for subscription in list(peer.session.subscriptions):
        world.broker.sessions.send_retained(peer.session, subscription)
    assert not peer.session.cursors
    peer.subscribe("+/b", retained=True)
    assert len(peer.got()) == 1


def test_a_client_that_does_not_read_gets_no_more_than_a_little_ahead() -> None:
    world = World(outbox_bytes_max=1024 * 1024)
    for n in range(200):
        retain(world, f"t/{n}", "y" * 4_000)
    peer = world.connect("c")
    peer.subscribe("t/#", retained=True)
    for _ in range(10):
        assert world.broker.sessions.advance(peer.session, world.now)
    assert peer.outbox.size < 80_000
    assert len(drain(world, peer)) == 200
    assert world.broker.ledger.dropped_newest == 0


@pytest.mark.parametrize("qos", [0, 1])
def test_never_an_old_value_after_a_newer_one_and_none_left_out(qos: int) -> None:
    world = World()
    total = 2 * SLICE
    for n in range(total):
        retain(world, f"t/{n}", "old", 1)
    peer = world.connect("c", receive_max=10)
    peer.subscribe("t/#", qos, retained=True)
    for n in range(0, total, 3):
        retain(world, f"t/{n}", "new", 1)
    for n in range(1, total, 3):
        retain(world, f"t/{n}", "", 1)
    got: list[str] = []
    while found := peer.got():
        got += found
        peer.acknowledge()
        world.broker.sessions.advance(peer.session, world.now)
    values: dict[str, list[str]] = {}
    for line in got:
        topic, payload, *_ = line.split(" ")
        values.setdefault(topic, []).append(payload)
    for n in range(total):
        seen = values[f"t/{n}"]
        assert seen[-1] == ("new" if n % 3 == 0 else "" if n % 3 == 1 else "old")
        assert seen in (["new"], ["old", "new"], [""], ["old", ""], ["old"])


def test_a_slow_acknowledger_gets_all_of_them_without_a_drop() -> None:
    world = World(queue_messages_max=20)
    for n in range(300):
        retain(world, f"t/{n}", "x", 1)
    peer = world.connect("c", receive_max=3)
    peer.subscribe("t/#", 1, retained=True)
    got: list[str] = []
    while found := peer.got():
        got += found
        peer.acknowledge()
        world.broker.sessions.advance(peer.session, world.now)
    assert len(got) == len(set(got)) == 300
    assert world.broker.ledger.dropped_queue == 0


def test_a_cursor_goes_on_with_the_next_connection_of_its_session() -> None:
    world = World()
    for n in range(2 * SLICE):
        retain(world, f"t/{n}", "x", 1)
    peer = world.connect("c", expiry=60, receive_max=5)
    peer.subscribe("t/#", 1, retained=True)
    peer.leave()
    again = world.connect("c", clean_start=False, receive_max=65_535)
    got = drain(world, again)
    assert len({line.split()[0] for line in got}) == 2 * SLICE


def test_unsubscribing_stops_it() -> None:
    world = World()
    for n in range(2 * SLICE):
        retain(world, f"t/{n}")
    peer = world.connect("c")
    peer.subscribe("t/#", retained=True)
    world.broker.sessions.unsubscribe(peer.session, b"t/#", None)
    assert len(drain(world, peer)) == SLICE - retained.LOOK_UP


def test_what_is_too_old_is_neither_sent_nor_kept() -> None:
    """3.3.2.3.3"""
    world = World()
    retain(world, "a", "1", expires_at=world.now + 10)
    retain(world, "b", "2", expires_at=world.now + 10)
    retain(world, "b", "3")
    peer = world.connect("c")
    world.now += 10
    peer.subscribe("+", retained=True)
    assert peer.got() == ["b 3 0 retain"]
    assert len(world.broker.retained) == 2
    world.later(0)
    assert len(world.broker.retained) == 1
    assert world.broker.retained.expired == 1
    assert world.broker.retained.nbytes == world.broker.ledger.stored


def test_many_that_expire_at_once_are_forgotten_some_at_a_time_and_sent_no_more() -> None:
    world = World()
    for n in range(retained.SWEPT + 1):
        retain(world, f"t/{n}", expires_at=world.now + 10)
    world.later(11)
    assert len(world.broker.retained) == 1
    peer = world.connect("c")
    peer.subscribe("#", retained=True)
    assert drain(world, peer) == []
    world.later(0)
    assert len(world.broker.retained) == 0
    assert world.broker.retained.expired == retained.SWEPT + 1


def test_the_time_it_has_left_is_told() -> None:
    """3.3.2.3.3: [MQTT-3.3.2-6]"""
    world = World()
    retain(world, "a", expires_at=world.now + 100)
    world.now += 60
    peer = world.connect("c")
    peer.subscribe("a", retained=True)
    assert b"left=40 " in peer.outbox.read()


def test_the_number_of_topics_is_bounded_and_known_ones_may_change() -> None:
    world = World(retained_messages_max=2)
    for topic in "abc":
        retain(world, topic)
    retain(world, "a", "2")
    retained = world.broker.retained
    assert (len(retained), retained.refused) == (2, 1)
    value = retained.get(b"a", "mqtt", world.now)
    assert value is not None
    assert value.payload == b"2"
    retain(world, "b", "")
    retain(world, "c")
    assert retained.get(b"c", "mqtt", world.now) is not None


def test_the_bytes_are_bounded_and_a_topic_whose_value_does_not_fit_has_none() -> None:
    world = World(retained_bytes_max=20_000)
    retain(world, "a", "1")
    retain(world, "b", "1")
    retain(world, "a", "z" * 30_000)
    retained = world.broker.retained
    assert retained.refused == 1
    assert retained.get(b"a", "mqtt", world.now) is None
    assert retained.get(b"b", "mqtt", world.now) is not None
    assert retained.nbytes == world.broker.ledger.stored <= 20_000


def test_wildcards_do_not_see_the_brokers_own_topics() -> None:
    world = World()
    own = world.message("$SYS/x", "1", retain=True)
    world.put_in(own)
    for filter, expected in (("#", []), ("+/x", []), ("$SYS/#", ["$SYS/x 1 0 retain"])):
        peer = world.connect("c")
        peer.subscribe(filter, retained=True)
        assert peer.got() == expected


def test_a_filter_without_wildcards_finds_its_topic_in_either_spelling() -> None:
    world = World()
    retain(world, "a/b", "1")
    retain(world, "a/c", "2")
    peer = world.connect("c")
    for filter, got in (("a/b", ["a/b 1 0 retain"]), ("a", []), ("a/c", ["a/c 2 0 retain"]), ("a/b/", [])):
        peer.subscribe(filter, retained=True)
        assert drain(world, peer) == got
        assert not peer.session.cursors


def test_parts_that_have_not_all_words_of_a_filter_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(retained, "PART", 3)
    for n in range(30):
        retain(world, f"shelf/{n}/value")
    looked_up: list[int] = []
    ids = world.broker.retained.ids

    def counted(filter: bytes, syntax: str, part: int) -> Any:
        looked_up.append(part)
        return ids(filter, syntax, part)

    monkeypatch.setattr(world.broker.retained, "ids", counted)
    peer = world.connect("c")
    peer.subscribe("shelf/20/#", retained=True)
    assert drain(world, peer) == ["shelf/20/value x 0 retain"]
    assert looked_up == [6]
