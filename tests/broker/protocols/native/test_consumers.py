"""CONSUMER and CONSUMER_INFO: another prefetch, pauses, and who is the active consumer (section 3.9)."""

from typing import Any

import pytest

from fanlight_broker.core.queue_views import queue_view
from tests.broker.protocols.native.test_queues import ACK, NACK, consume, deliveries, payloads, subscribe
from tests.broker.protocols.native.world import Peer, World, publish

CONSUMER, CONSUMER_INFO = 37, 38


@pytest.fixture(params=[False, True], ids=["fast", "plain"])
def world(request: pytest.FixtureRequest) -> World:
    return World(plain=request.param)


def change(peer: Peer, **options: Any) -> dict[str, Any]:
    """What its OK says; deliveries behind it are to be read."""
    peer.say(CONSUMER, 9, 7, options)
    first, *rest = peer.frames()
    assert first[:2] == [7, 9], first
    assert not rest
    result: dict[str, Any] = first[2]
    return result


def fill(world: World, count: int) -> Peer:
    publisher = world.connect()
    publisher.send(*(publish("orders.eu", b"%d" % n) for n in range(count)))
    return publisher


def test_a_larger_prefetch_delivers_more_at_once(world: World) -> None:
    worker = consume(world, prefetch=1)
    fill(world, 4)
    assert payloads(worker) == [b"0"]
    worker.say(CONSUMER, 9, 7, {"prefetch": 3})
    ok, *rest = worker.frames()
    assert ok == [7, 9, {"prefetch": 3, "ack_wait": 30.0, "paused": False, "active": True}]
    assert [fields[5] for fields in rest] == [b"1", b"2"]
    worker.say(ACK, 7, 1)
    assert payloads(worker) == [b"3"]


def test_a_smaller_prefetch_takes_nothing_back(world: World) -> None:
    worker = consume(world, prefetch=3)
    fill(world, 5)
    assert len(payloads(worker)) == 3
    assert change(worker, prefetch=1)["prefetch"] == 1
    worker.say(ACK, 7, 1)
    worker.say(ACK, 7, 2)
    assert payloads(worker) == []
    worker.say(ACK, 7, 3)
    assert payloads(worker) == [b"3"]


def test_the_broker_may_lower_a_prefetch() -> None:
    world = World(prefetch_max=5)
    assert change(consume(world), prefetch=1_000)["prefetch"] == 5


def test_another_ack_wait_is_for_what_is_delivered_then(world: World) -> None:
    worker = consume(world, prefetch=2, ack_wait=5)
    publisher = fill(world, 1)
    assert change(fresh(worker), ack_wait=20)["ack_wait"] == 20
    publisher.send(publish("orders.eu", b"1"))
    assert payloads(worker) == [b"1"]
    world.pass_time(6)
    assert deliveries(worker) == [(3, 2, b"0")]
    world.pass_time(16)
    assert deliveries(worker) == [(4, 2, b"1")]


def fresh(worker: Peer) -> Peer:
    """What it has got is read."""
    worker.frames()
    return worker


def test_a_paused_consumer_gets_nothing_and_keeps_what_it_has(world: World) -> None:
    worker = consume(world, prefetch=2)
    publisher = fill(world, 2)
    assert len(payloads(worker)) == 2
    assert change(worker, paused=True)["paused"] is True
    publisher.send(publish("orders.eu", b"2"), publish("orders.eu", b"3"))
    worker.say(ACK, 7, 1)
    worker.say(NACK, 7, 2)
    world.pass_time(1)
    assert worker.frames() == []
    worker.say(CONSUMER, 9, 7, {"paused": False})
    ok, *rest = worker.frames()
    assert ok[2]["paused"] is False
    assert [(fields[3], fields[5]) for fields in rest] == [(2, b"1"), (1, b"2")]


def test_another_consumer_gets_what_a_paused_one_does_not(world: World) -> None:
    first, second = consume(world), consume(world)
    change(first, paused=True)
    fill(world, 3)
    assert (payloads(first), payloads(second)) == ([], [b"0", b"1", b"2"])


def test_a_new_consumer_may_begin_with_a_pause(world: World) -> None:
    peer = world.connect()
    assert subscribe(peer, "orders.#", "billing", paused=True)["paused"] is True
    fill(world, 1)
    assert peer.frames() == []
    peer.say(CONSUMER, None, 7, {"paused": False})
    assert payloads(peer) == [b"0"]


def test_the_next_consumer_learns_that_it_is_active_before_it_gets_anything(world: World) -> None:
    first, second, third = (world.connect() for _ in range(3))
    options = {"queue": {"single_active": True}, "prefetch": 5}
    assert [subscribe(peer, "orders.#", "billing", **options)["active"] for peer in (first, second, third)] == [
        True, False, False,
    ]
    fill(world, 2)
    assert len(payloads(first)) == 2
    first.vanish()
    info, *rest = second.frames()
    assert info == [CONSUMER_INFO, 7, {"active": True}]
    assert [(fields[3], fields[5]) for fields in rest] == [(2, b"0"), (2, b"1")]
    assert third.frames() == []
    third.say(8, None, 7)
    second.vanish()
    assert subscribe(third, "orders.#", "billing")["active"] is True


def test_a_paused_active_consumer_stays_the_active_one(world: World) -> None:
    first = consume(world, queue={"single_active": True})
    second = consume(world)
    assert change(first, paused=True) == {"prefetch": 100, "ack_wait": 30.0, "paused": True, "active": True}
    fill(world, 1)
    assert (first.frames(), second.frames()) == ([], [])
    first.say(8, None, 7)
    assert [fields[0] for fields in second.frames()] == [CONSUMER_INFO, 32]


def test_consumers_of_other_queues_get_no_notice(world: World) -> None:
    first, second = consume(world), consume(world)
    first.vanish()
    assert second.frames() == []


def test_the_view_of_a_queue_says_who_is_active_and_paused(world: World) -> None:
    first = consume(world, queue={"single_active": True})
    consume(world)
    change(first, paused=True)
    view = queue_view(world.broker.queues.find("billing"), world.now)
    assert [(each["active"], each["paused"]) for each in view["consumers"]] == [(True, True), (False, False)]


@pytest.mark.parametrize("number", [8, 6])
def test_there_is_no_such_consumer(world: World, number: int) -> None:
    worker = consume(world)
    worker.say(6, None, 6, "plain")
    worker.say(CONSUMER, 9, number, {"paused": True})
    assert worker.next()[:3] == [13, 9, "no_such_subscription"]
