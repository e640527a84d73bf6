"""What a client held that has gone ends in slices, and is silent at once."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.teardown import LOOK
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.message import Message
from tests.broker.core.parts import connect, subscribe
from tests.broker.core.sessions import World

SLICE = 4 * LOOK - 1  # subscriptions in one turn, by the clock below


class Clock:
    """Half a millisecond passes between two looks at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.0005
        return self.now


class Turns(list[Callable[[], None]]):
    """What was put off; `run` gives it its turn."""

    def run(self) -> None:
        waiting, self[:] = self[:], []
        for go_on in waiting:
            go_on()


def test_a_slice_in_each_turn_until_all_have_ended() -> None:
    turns = Turns()
    broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    client, _ = connect(broker)
    other, _ = connect(broker)
    for number in range(2 * SLICE + 1):
        subscribe(broker, client, number, b"a.%d.#" % number)
    kept = subscribe(broker, other, 1, b"a.#")
    route = broker.router.route(b"a.7.b", "amqp")
    assert len(route) == 2
    broker.clients.disconnect(client, "gone", 0.0)
    left = []
    while len(broker.teardown):
        left.append((len(broker.router), len(broker.teardown)))
        assert [target for target in broker.router.route(b"a.7.b", "amqp").targets if not target.ended] == [kept]
        turns.run()
    assert left[0] == (2 * SLICE + 2, 2 * SLICE + 1)
    assert all(0 < before - after <= SLICE for (_, before), (_, after) in pairwise(left))
    assert (list(broker.router.subscriptions()), len(broker.teardown)) == ([kept], 0)
    assert broker.router.route(b"a.7.b", "amqp").targets == [kept]
    assert broker.subscribing.ended == 2 * SLICE + 1


def test_clients_that_go_meanwhile_wait_behind_each_other() -> None:
    turns = Turns()
    broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    clients = [connect(broker)[0] for _ in range(3)]
    for client in clients:
        for number in range(SLICE + 1):
            subscribe(broker, client, number, b"a.%d.#" % number)
    for client in clients:
        broker.clients.disconnect(client, "gone", 0.0)
        assert len(turns) == 1
    while turns:
        assert len(turns) == 1
        turns.run()
    assert len(broker.router) == 0


@pytest.mark.parametrize("qos", [0, 1])
def test_nothing_reaches_a_session_that_ends_in_slices(qos: int) -> None:
    turns = Turns()
    world = World()
    world.broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    peer = world.connect("c")
    for number in range(3 * SLICE):
        peer.subscribe(f"a/{number}/#", 1)
    peer.subscribe("a/#", 1, group="g")
    member = world.connect("d")
    member.subscribe("a/#", 1, group="g")
    peer.leave()
    again = world.connect("c")  # a new session of the same name has none of it
    assert turns
    assert world.publish("a/7/x", "m", qos) == 1
    assert member.got() == [f"a/7/x m {qos}"]
    assert (again.got(), len(again.session.subscriptions)) == ([], 0)
    assert (world.broker.ledger.stored_messages, len(peer.session.window.queue)) == (qos, 0)
    while turns:
        turns.run()
    assert len(world.broker.router) == 1


def test_a_target_that_stands_for_several_of_a_session_that_ends_is_silent_with_them() -> None:
    turns = Turns()
    world = World()
    world.broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    peer, other = world.connect("c"), world.connect("d")
    for number in range(SLICE):
        peer.subscribe(f"b/{number}")
    for topic in ("a/#", "a/+", "+/x"):
        peer.subscribe(topic)
    other.subscribe("a/x")
    assert world.publish("a/x", "before") == 2  # the route is there, with one target for three
    peer.leave()
    assert turns
    assert world.publish("a/x", "after") == 1
    assert other.got()[-1].startswith("a/x after")


def test_messages_that_wait_for_credit_are_given_up_with_their_subscription() -> None:
    turns = Turns()
    broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    client, _ = connect(broker)
    poor = subscribe(broker, client, 1, b"a", credit=0, waiting_max=5)
    publish(broker.router.route(b"a", "amqp"), broker.ledger, None, Message(FORMAT, b"a", 0, b"kept"))
    assert (poor.waiting_messages, broker.ledger.used > 0) == (1, True)
    broker.clients.disconnect(client, "gone", 0.0)
    while turns:
        turns.run()
    assert (poor.ended, poor.waiting_messages, broker.ledger.used) == (True, 0, 0)


def test_without_turns_all_ends_at_once() -> None:
    world = World()
    peer = world.connect("c")
    for number in range(3 * SLICE):
        peer.subscribe(f"a/{number}")
    peer.leave()
    assert (len(world.broker.router), len(world.broker.teardown)) == (0, 0)


def test_one_that_had_its_last_message_as_its_client_went_keeps_none_of_the_others() -> None:
    turns = Turns()
    broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    client, _ = connect(broker)
    subscriptions = [subscribe(broker, client, number, b"a.%d" % number, after=1) for number in range(2 * SLICE)]
    for subscription in subscriptions:
        subscription.end()  # as its last message does; who published it has not called `finish` yet
    broker.clients.disconnect(client, "gone", 0.0)
    assert len(broker.teardown) == 2 * SLICE
    broker.finish()
    other, _ = connect(broker)
    subscribe(broker, other, 1, b"b")
    broker.clients.disconnect(other, "gone", 0.0)
    while turns:
        turns.run()
    assert (len(broker.router), len(broker.teardown)) == (0, 0)
    assert broker.subscribing.ended == 2 * SLICE + 1


def test_a_fault_in_one_keeps_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    broker = Broker(Limits(), lambda: None, turns.append, clock=Clock())
    client, _ = connect(broker)
    faulty, *_ = [subscribe(broker, client, number, b"a.%d" % number) for number in range(2 * SLICE)]
    end = broker.subscribing.end

    def end_or_fail(subscription: Subscription) -> None:
        if subscription is faulty:
            raise RuntimeError("out of order")
        end(subscription)

    monkeypatch.setattr(broker.subscribing, "end", end_or_fail)
    faults = 0
    try:
        broker.clients.disconnect(client, "gone", 0.0)
    except RuntimeError:
        faults += 1
    while turns:
        try:
            turns.run()
        except RuntimeError:
            faults += 1
    assert (faults, list(broker.router.subscriptions()), len(broker.teardown)) == (1, [faulty], 0)
