"""What the broker shows of sessions and of what it keeps for them: views, counters, gauges."""

import json

from fanlight_broker.core.inspection import COUNTERS, GAUGES, BrokerInspection
from fanlight_broker.protocols.mqtt import qos2
from fanlight_broker.wire.message import HOLDER_BYTES
from tests.broker.core.sessions import World


def inspection_of(world: World) -> BrokerInspection:
    return BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)


def test_a_session_shows_what_waits_for_it() -> None:
    world = World()
    peer = world.connect("c", user="u", expiry=60, receive_max=2, will=world.will("w"))
    peer.subscribe("a", 1)
    for n in range(5):
        world.publish("a", str(n), 1)
    peer.session.receive(7)
    (view,) = inspection_of(world).sessions(offset=0, limit=10)
    assert view == {
        "client": "c", "user": "u", "connected": True, "connection": peer.client.number, "protocol": "lines",
        "expiry_seconds": 60, "subscriptions": 1, "in_flight": 2, "receive_max": 2, "queued": 3,
        "queued_bytes": peer.session.window.queue.nbytes, "dropped": 0, "expired": 0, "unreleased": 1, "will": True,
    }  # fmt: skip
    (subscription,) = inspection_of(world).subscriptions(offset=0, limit=10)
    assert (subscription["client"], subscription["qos"], subscription["delivered"]) == ("c", 1, 5)
    peer.leave(will=False)
    (view,) = inspection_of(world).sessions(offset=0, limit=10)
    assert (view["connected"], view["connection"]) == (False, None)
    assert inspection_of(world).sessions(offset=1, limit=10) == []
    assert json.dumps(view)


def test_gauges_follow_sessions_and_what_is_kept() -> None:
    world = World()
    peer = world.connect("c", expiry=60)
    peer.subscribe("a", 1)
    world.connect("d").subscribe("a", 1)
    world.publish("a", qos=1, retain=True)
    gauges = inspection_of(world).gauges()
    assert set(gauges) == set(GAUGES)
    assert (gauges["sessions"], gauges["sessions_away"]) == (2, 0)
    assert (gauges["stored_messages"], gauges["retained_messages"]) == (1, 1)
    assert gauges["stored_bytes"] == gauges["retained_bytes"] + 2 * HOLDER_BYTES > 0  # two sessions have it in flight
    peer.leave()
    world.connect("d").leave()
    gauges = inspection_of(world).gauges()
    assert (gauges["sessions"], gauges["sessions_away"]) == (1, 1)


def test_counters_tell_what_became_of_messages() -> None:
    world = World(queue_messages_max=1, retained_messages_max=0)
    peer = world.connect("c", expiry=60, receive_max=1)
    peer.subscribe("a", 2)
    world.publish("a", "0", 1, retain=True)
    peer.acknowledge()
    world.publish("a", "1", 1)
    assert qos2.refuse(peer.session.window, 2, world.now)
    world.publish("a", "2", 1)
    world.publish("a", "3", 1, expires_at=world.now + 1)
    world.publish("a", "4", 1)  # no room
    peer.leave()
    world.publish("a", "5", 0)
    world.now += 2
    again = world.connect("c", clean_start=False, expiry=60, will=world.will("w"))
    assert again.got() == ["a 2 1 dup"]
    world.connect("c", clean_start=False, expiry=60)
    again.leave()
    world.connect("e", expiry=1).leave()
    world.later(2)
    counters = inspection_of(world).counters()
    assert set(counters) == set(COUNTERS)
    told = {
        "messages_acknowledged": 1, "messages_refused": 1, "messages_expired": 1, "messages_redelivered": 2,
        "dropped_queue": 1, "dropped_absent": 1, "retained_refused": 1, "sessions_resumed": 2,
        "sessions_taken_over": 1, "sessions_expired": 1, "wills_published": 1,
    }  # fmt: skip
    assert {name: counters[name] for name in told} == told
