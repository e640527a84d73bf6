"""Sessions: resumed, taken over, ended; what they keep while the client is away (MQTT 5, 3.1.2, 3.1.4, 4.1)."""

from collections.abc import Callable
from itertools import pairwise
from math import inf

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import InvalidFilter, LimitExceeded, NoSuchSubscription, NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.sessions import ENDED_PER_SWEEP
from fanlight_broker.core.subscriber import Client
from tests.broker.core.parts import connect, subscribe
from tests.broker.core.sessions import Peer, World
from tests.broker.wire.formats import LineFormat


def test_a_session_without_expiry_ends_with_its_connection() -> None:
    """3.1.2.11.2: [MQTT-4.1.0-1]"""
    world = World()
    peer = world.connect("c")
    peer.subscribe("a", 1)
    peer.leave()
    assert (len(world.broker.sessions), len(world.broker.router)) == (0, 0)
    assert not world.connect("c", clean_start=False).present


def test_a_session_is_there_again_with_what_came_meanwhile() -> None:
    world = World()
    peer = world.connect("c", expiry=60)
    peer.subscribe("a/+", 1)
    peer.leave()
    assert world.broker.sessions.away == 1
    for n in range(3):
        assert world.publish("a/b", str(n), 1) == 1
    world.later(59)
    again = world.connect("c", clean_start=False)
    assert again.present
    assert again.session is peer.session
    assert again.got() == ["a/b 0 1", "a/b 1 1", "a/b 2 1"]
    assert next(iter(again.client.subscriber.subscriptions)).owner.client is again.client


def test_a_session_ends_when_its_time_is_over_and_not_before() -> None:
    """3.1.2.11.2"""
    world = World()
    world.connect("c", expiry=60).leave()
    world.later(59.9)
    assert world.broker.sessions.get("c") is not None
    world.later(0.2)
    assert world.broker.sessions.get("c") is None
    assert world.broker.sessions.expired == 1


def test_many_sessions_whose_time_is_over_at_once_end_some_at_a_time() -> None:
    """The loop is not held for all of them; one that is still to be ended is not resumed [MQTT-4.1.0-2]."""
    world = World()
    for n in range(2 * ENDED_PER_SWEEP + 1):
        world.connect(f"c{n}", expiry=60).leave()
    world.later(61)
    assert len(world.broker.sessions) == ENDED_PER_SWEEP + 1
    last = f"c{2 * ENDED_PER_SWEEP}"
    before = world.broker.sessions.get(last)
    assert before is not None
    back = world.connect(last, clean_start=False)
    assert not back.present
    assert before.ended
    world.later(0)
    assert list(world.broker.sessions) == [back.session]
    assert world.broker.sessions.expired == 2 * ENDED_PER_SWEEP + 1


def test_a_client_that_came_back_is_not_ended_by_its_old_deadline() -> None:
    world = World()
    world.connect("c", expiry=60).leave()
    world.later(30)
    back = world.connect("c", clean_start=False, expiry=60)
    world.later(100)
    assert back.session.connected
    back.leave()
    world.later(59)
    assert world.broker.sessions.get("c") is back.session


def test_disconnect_may_change_the_expiry() -> None:
    """3.14.2.2.2"""
    world = World()
    world.connect("c", expiry=60).leave(expiry=0.0)
    assert len(world.broker.sessions) == 0
    world.connect("c", expiry=60).leave(expiry=600.0)
    world.later(599)
    assert len(world.broker.sessions) == 1


def test_for_ever_is_as_long_as_the_limit() -> None:
    world = World(session_seconds_max=100.0)
    world.connect("c", expiry=inf).leave()
    world.later(99)
    assert len(world.broker.sessions) == 1
    world.later(2)
    assert len(world.broker.sessions) == 0


def test_clean_start_discards_the_session() -> None:
    """3.1.2.4: [MQTT-3.1.2-4]"""
    world = World()
    peer = world.connect("c", expiry=60)
    peer.subscribe("a", 1)
    peer.leave()
    world.publish("a", qos=1)
    fresh = world.connect("c", expiry=60)
    assert not fresh.present
    assert fresh.got() == []
    assert len(fresh.client.subscriber.subscriptions) == 0
    assert world.broker.ledger.stored_messages == 0
    assert world.broker.ledger.dropped_session == 1


@pytest.mark.parametrize("clean_start", [False, True])
def test_a_second_connection_takes_the_session_over(clean_start: bool) -> None:
    """3.1.4: [MQTT-3.1.4-3]"""
    world = World()
    first = world.connect("c", expiry=60)
    first.subscribe("a", 1)
    world.publish("a", "0", 1)
    second = world.connect("c", clean_start=clean_start, expiry=60)
    assert first.connection.told == [("goodbye", "taken_over")]
    assert second.present is not clean_start
    first.leave()  # its transport is gone at last: that is nobody's business any more
    assert second.session.connected
    assert second.got() == ([] if clean_start else ["a 0 1 dup"])
    assert world.broker.sessions.taken_over == 1
    assert list(world.broker.clients) == [second.client]


def test_the_one_that_is_taken_over_can_still_be_told_why() -> None:
    world = World()
    first = world.connect("c", expiry=60)
    world.connect("c", clean_start=False)
    first.outbox.write(b"REL id=\0\7")
    assert first.got() == ["REL 7"]


def test_another_users_session_is_not_to_be_had() -> None:
    world = World()
    peer = world.connect("c", user="alice", expiry=60)
    with pytest.raises(NotPermitted):
        world.connect("c", user="bob")
    assert peer.connection.told == []
    assert peer.session.connected


def test_sessions_are_bounded_and_known_ones_get_in() -> None:
    world = World(sessions_max=2)
    world.connect("a", expiry=60, address="192.0.2.2").leave()
    world.connect("b")
    with pytest.raises(LimitExceeded) as raised:
        world.connect("c")
    assert raised.value.details["limit"] == "sessions_max"
    assert world.connect("a", clean_start=False).present


def test_a_session_of_another_version_of_the_family_goes_on() -> None:
    world = World()
    peer = world.connect("c", expiry=60)
    peer.subscribe("a", 1, identifier=b"1", retain_as_published=True)
    peer.subscribe("#", 2, no_local=True)
    peer.leave()
    world.publish("a", qos=1)
    other = LineFormat("other", "lines")
    again = world.connect("c", clean_start=False, format=other)
    world.publish("a", "y", retain=True, qos=2)
    assert again.publish("a", "z", qos=2) == 1
    assert again.got() == ["a x 1 ids=1", "a y 2 retain ids=1", "a z 1 ids=1"]
    assert other.encoded == 3


def test_subscribing_again_replaces_the_options_without_a_gap() -> None:
    """3.8.4: [MQTT-3.8.4-3]"""
    world = World()
    peer = world.connect("c")
    first, new = peer.subscribe("a/+", 0)
    assert new
    world.publish("a/b", "0", 1)
    second, new = peer.subscribe("a/+", 1, identifier=b"9")
    assert (second, new) == (first, False)
    world.publish("a/b", "1", 1)
    assert peer.got() == ["a/b 0 0", "a/b 1 1 ids=9"]
    assert len(world.broker.router) == 1


def test_unsubscribing_ends_it_and_what_is_on_its_way_goes_on() -> None:
    """3.10.4"""
    world = World()
    peer = world.connect("c", receive_max=1)
    peer.subscribe("a", 1)
    world.publish("a", "0", 1)
    world.publish("a", "1", 1)
    world.broker.sessions.unsubscribe(peer.session, b"a", None)
    assert world.publish("a", "2", 1) == 0
    peer.acknowledge()
    assert peer.got() == ["a 0 1", "a 1 1"]
    with pytest.raises(NoSuchSubscription):
        world.broker.sessions.unsubscribe(peer.session, b"a", None)


def test_a_refused_filter_leaves_the_session_as_it_was() -> None:
    world = World(subscriptions_per_client_max=1)
    peer = world.connect("c")
    with pytest.raises(InvalidFilter):
        peer.subscribe("a/#/b")
    assert len(peer.session.subscriptions) == 0
    peer.subscribe("a")
    peer.subscribe("a", 1)
    with pytest.raises(LimitExceeded):
        peer.subscribe("b")
    assert len(world.broker.router) == 1


def test_an_identifier_received_with_quality_2_is_known_until_it_is_released() -> None:
    """4.3.3: [MQTT-4.3.3-10], over a reconnect too"""
    world = World()
    peer = world.connect("c", expiry=60)
    assert peer.session.receive(7)
    assert not peer.session.receive(7)
    peer.leave()
    again = world.connect("c", clean_start=False)
    assert not again.session.receive(7)
    assert again.session.release(7)
    assert not again.session.release(7)
    assert again.session.receive(7)


def test_sessions_and_connections_get_the_same_message() -> None:
    world = World()
    peer = world.connect("c")
    peer.subscribe("a/b", 1)
    client, _ = connect(world.broker)
    subscribe(world.broker, client, 5, b"a.b")
    assert world.publish("a/b", "hello", 1) == 2
    assert peer.got() == ["a/b hello 1"]
    assert b"hello" in client.outbox.read()


def test_shared_messages_of_a_client_that_goes_reach_the_others() -> None:
    """4.8.2"""
    world = World()
    peers = [world.connect(name, expiry=60) for name in "ab"]
    for peer in peers:
        peer.subscribe("t", 1, group="g")
    for n in range(4):
        assert world.publish("t", str(n), 1) == 1
    assert [len(peer.got()) for peer in peers] == [2, 2]
    peers[0].leave()
    assert len(peers[1].got()) == 2
    assert peers[1].session.window.in_flight == 4
    peers[1].leave()
    world.publish("t", "4", 1)
    back = world.connect("a", clean_start=False)
    assert sorted(line.split()[1] for line in back.got()) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("expiry", [0, 60])
def test_shared_messages_of_a_client_that_unsubscribes_and_goes_reach_the_others(expiry: float) -> None:
    """4.8.2: what is in flight stays its own while it is connected [MQTT-3.10.4-5], and no longer."""
    world = World()
    going, staying = world.connect("going", expiry=expiry), world.connect("staying")
    for peer in (going, staying):
        peer.subscribe("t", 1, group="g")
    for n in range(4):
        world.publish("t", str(n), 1)
    assert [len(peer.got()) for peer in (going, staying)] == [2, 2]
    world.broker.sessions.unsubscribe(going.session, b"t", "g")
    assert staying.got() == []
    going.leave()
    assert len(staying.got()) == 2
    assert world.broker.ledger.dropped_session == 0
    staying.acknowledge()
    assert world.broker.ledger.stored_messages == 0


def test_what_the_last_member_had_in_flight_when_it_unsubscribed_is_its_own() -> None:
    world = World()
    peer = world.connect("c", expiry=60)
    peer.subscribe("t", 1, group="g")
    world.publish("t", "1", 1)
    world.broker.sessions.unsubscribe(peer.session, b"t", "g")
    peer.leave()
    back = world.connect("c", clean_start=False, expiry=60)
    assert back.got() == ["t 1 1 dup"]
    assert world.broker.ledger.stored_messages == 1


def test_limits_of_queues_are_those_of_the_settings() -> None:
    world = World(queue_messages_max=2, queue_policy="drop_oldest")
    peer = world.connect("c", expiry=60)
    peer.subscribe("a", 1)
    peer.leave()
    for n in range(4):
        world.publish("a", str(n), 1)
    assert world.connect("c", clean_start=False).got() == ["a 2 1", "a 3 1"]


def test_what_expires_in_a_queue_is_given_back_before_the_client_returns() -> None:
    """3.3.2.3.3"""
    world = World()
    peer = world.connect("c", expiry=600)
    peer.subscribe("a", 1)
    peer.leave()
    world.publish("a", "0", 1, expires_at=world.now + 5)
    world.publish("a", "1", 1)
    world.later(4)
    assert world.broker.ledger.stored_messages == 2
    world.later(2)
    assert (world.broker.ledger.stored_messages, peer.session.window.queue.expired) == (1, 1)


def crowd(world: World, policy: str = "pause") -> tuple[Peer, Client]:
    """A client with a full queue, and a publisher that waits for it."""
    peer = world.connect("c", receive_max=1, policy=policy)
    peer.subscribe("a", 1)
    while (blocker := world.broker.router.route(b"a", "mqtt").blocker_of(None)) is None:
        world.publish("a", qos=1)
    publisher, _ = connect(world.broker)
    world.broker.flow.hold_back(publisher, blocker, world.now)
    return peer, publisher


def test_an_acknowledgement_now_and_then_gives_a_slow_client_no_more_time_to_hold_publishers() -> None:
    world = World(pause_seconds_max=10, queue_messages_max=20)
    peer, publisher = crowd(world)
    for _ in range(2):
        peer.acknowledge()
        world.later(4)
    assert peer.connection.told == []
    assert world.broker.flow.is_held_back(publisher)
    peer.acknowledge()
    world.later(4)
    assert peer.connection.told == [("cut off", "slow_consumer")]
    assert not world.broker.flow.is_held_back(publisher)


def test_a_client_that_acknowledges_now_and_then_loses_what_its_queue_has_no_room_for_and_holds_nobody() -> None:
    world = World(burst_seconds_max=0.1, queue_messages_max=20, pause_allowed=False)
    peer, publisher = crowd(world, "drop_newest")
    world.later(0.25)
    assert not world.broker.flow.is_held_back(publisher)
    for _ in range(10):
        peer.acknowledge()
        for _ in range(50):
            assert world.broker.router.route(b"a", "mqtt").blocker_of(publisher.outbox) is None
            world.publish("a", qos=1)
        world.later(4)
    world.broker.finish()
    queue = peer.session.window.queue
    assert len(queue) == 20
    assert queue.dropped == world.broker.ledger.dropped_queue > 400
    assert peer.client.slow
    assert peer.connection.told == []
    assert world.broker.flow.held_seconds(world.now) == pytest.approx(0.25)


def test_who_waits_for_a_crowded_session_goes_on_when_its_queue_has_drained() -> None:
    world = World(pause_seconds_max=10, queue_messages_max=20)
    peer, publisher = crowd(world)
    while len(peer.session.window.queue) > 4:
        assert not peer.outbox.drained()
        peer.got()
        peer.acknowledge()
    peer.got()
    assert peer.outbox.drained()
    assert world.broker.flow.drained(peer.outbox, world.now) == [publisher]


def test_what_waits_for_a_client_that_comes_back_is_sent_some_in_each_turn() -> None:
    """All of a receive maximum in one step held the loop for 0.1 s."""
    soon: list[Callable[[], None]] = []
    seconds = iter(range(1_000_000))  # a clock by which each turn is over at the first look at it
    world = World()
    world.broker = Broker(
        Limits(inflight_messages_max=65_535, queue_messages_max=10_000, share_percent=100), lambda: None, soon.append,
        clock=lambda: float(next(seconds)),
    )
    peer = world.connect("c", expiry=60)
    peer.subscribe("a", 1)
    peer.leave()
    for n in range(5_000):
        world.publish("a", f"{n}", 1)
    world.broker.turns.begin()
    peer = world.connect("c", expiry=60, clean_start=False, receive_max=65_535)
    sent = [peer.session.window.in_flight]
    while soon:
        now, soon[:] = list(soon), []
        for work in now:
            work()
        sent.append(peer.session.window.in_flight)
    assert max(after - before for before, after in pairwise([0, *sent])) <= 1_024
    assert sent[-1] == 5_000
    assert [line.split()[1] for line in peer.got()] == [f"{n}" for n in range(5_000)]
