"""Queues and sessions that end, or expire, with many messages: these are dropped in slices, and others have turns."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.draining import DROPPED_PER_LOOK
from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.requests import ConnectRequest, SessionOptions
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.work_queue import QueueOptions, WorkQueue
from fanlight_broker.protocols.native.format import DELIVERY_FORMAT
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import peek
from fanlight_broker.wire.queue import Queue
from tests.broker.core.parts import Listener
from tests.broker.wire.formats import LineFormat

COUNT = 5_000
FORMAT = LineFormat("lines")


class Clocked:
    """A broker whose turns have two readings of the clock. Turns are counted, and never timed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.soon: list[Callable[[], Any]] = []
        self.broker = Broker(Limits(), schedule=lambda: None, next_turn=self.soon.append, clock=self.tick)
        self.client = self.broker.clients.connect(
            self.broker.new_outbox(), Listener(), 0.0, name="c", user="", agent="", address="192.0.2.1",
            protocol="test", format=FORMAT,
        )  # fmt: skip

    def tick(self) -> float:
        self.now += 0.001
        return self.now

    def declare(self, **options: Any) -> WorkQueue:
        return self.broker.queues.declare(self.client, "q", ((b"t", "mqtt"),), QueueOptions(**options), self.now)

    def publish(self, number: int, **options: Any) -> None:
        self.broker.ledger.now = self.now
        message = Message(FORMAT, b"t", 1, b"%05d" % number, qos=1, **options)
        assert publish(self.broker.router.route(b"t", "mqtt"), self.broker.ledger, None, message) == 1

    def filled(self, **options: Any) -> WorkQueue:
        queue = self.declare(**options)
        for number in range(COUNT):
            self.publish(number)
        return queue

    def sweep(self) -> None:
        self.broker.turns.begin()
        self.broker.sweep(self.now)

    def turns(self) -> list[int]:
        """Run until nothing is put off; how many messages were stored after each turn."""
        left = [self.broker.ledger.stored_messages]
        while self.soon:
            self.soon.pop(0)()
            left.append(self.broker.ledger.stored_messages)
        return left


@pytest.fixture
def world() -> Clocked:
    return Clocked()


def assert_dropped_in_slices(left: list[int], end: int = 0) -> None:
    assert left[-1] == end
    assert max(before - after for before, after in pairwise([COUNT, *left])) < COUNT // 2


def absent(
    world: Clocked, name: str, expiry: float, *, group: str | None = None, address: str = "192.0.2.1"
) -> Session:
    """A session whose client is not connected."""
    connect = ConnectRequest(name, FORMAT, "lines", address, expiry=expiry)
    sessions = world.broker.sessions
    client, session, _ = sessions.connect(world.broker.new_outbox(), Listener(), world.now, connect)
    sessions.subscribe(session, b"t", "mqtt", SessionOptions(qos=1, group=group))
    sessions.leave(client, world.now, will=False)
    world.broker.clients.disconnect(client, "test", world.now)
    return session


def away(world: Clocked, name: str, expiry: float) -> Session:
    """One with messages."""
    session = absent(world, name, expiry)
    session.window.queue.messages_max = COUNT
    for number in range(COUNT):
        world.publish(number)
    return session


def test_a_session_expires_and_its_messages_go_in_slices(world: Clocked) -> None:
    session = away(world, "s", 60.0)
    world.now += 61
    world.sweep()
    assert (len(world.broker.sessions), world.broker.sessions.expired) == (0, 1)
    assert len(session.window.queue) > COUNT // 2
    assert_dropped_in_slices(world.turns())
    assert (world.broker.ledger.stored, world.broker.ledger.dropped_session) == (0, COUNT)
    assert world.broker.sessions.draining == 0
    assert session.share.account.stored == 0


def test_a_clean_start_does_not_wait_for_what_the_old_session_had(world: Clocked) -> None:
    old = away(world, "s", 60.0)
    sessions = world.broker.sessions
    connect = ConnectRequest("s", FORMAT, "lines", "192.0.2.1", clean_start=True, expiry=60.0)
    _, new, present = sessions.connect(world.broker.new_outbox(), Listener(), world.now, connect)
    assert (present, len(new.window.queue), sessions.draining) == (False, 0, 1)
    sessions.subscribe(new, b"t", "mqtt", SessionOptions(qos=1))
    world.publish(0)
    assert_dropped_in_slices(world.turns(), end=1)
    assert (len(old.window.queue), len(new.window.queue)) == (0, 1)


def test_a_queue_that_nobody_uses_ends_and_its_messages_go_in_slices(world: Clocked) -> None:
    world.filled(unused_seconds=60.0)
    world.now += 61
    world.sweep()
    assert world.broker.queues.expired == 1
    assert_dropped_in_slices(world.turns())


def test_the_name_of_a_queue_that_ends_is_free_at_once(world: Clocked) -> None:
    ended = world.filled()
    world.broker.turns.begin()
    assert world.broker.queues.end(ended) == COUNT
    other = world.declare()
    world.publish(1)
    assert_dropped_in_slices(world.turns(), 1)
    assert (len(ended.inside), len(other.inside)) == (0, 1)
    assert ended.inside.published == COUNT


def test_what_is_in_flight_delayed_or_to_be_buried_is_dropped_too(world: Clocked) -> None:
    queue = world.filled(deliveries_max=5, dead_letter=(b"dead", "mqtt"))
    variant = world.broker.variants.of(DELIVERY_FORMAT)
    ended: list[str] = []
    consumer = world.broker.queues.consume(world.client, 1, queue, variant, 300, 60.0, ended.append)
    world.broker.queues.start(consumer, world.now)
    for number, flight in enumerate(consumer.window.flights()):
        if number < 100:
            assert queue.inside.refuse(consumer.window, flight.tag, 1_000.0, world.now)
        elif number < 200:
            assert queue.inside.reject(consumer.window, flight.tag, world.now)
    assert queue.inside.buried == 100
    world.broker.turns.begin()
    world.broker.queues.end(queue)
    assert ended == ["consumer_deleted"]
    assert_dropped_in_slices(world.turns())
    assert world.broker.queues.burial.dead == 0


def test_counters_do_not_go_back_while_a_queue_is_dropped(world: Clocked) -> None:
    queue = world.filled()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    world.broker.turns.begin()
    world.broker.queues.end(queue)
    counts = [inspection.counters()]
    while world.soon:
        world.soon.pop(0)()
        counts.append(inspection.counters())
    for name in ("queue_messages", "queue_discarded"):
        values = [count[name] for count in counts]
        assert values == sorted(values)
        assert values[-1] == COUNT


def test_messages_that_outlive_their_queues_time_go_in_slices(world: Clocked) -> None:
    queue = world.filled(message_seconds=60.0)
    world.now += 61
    world.publish(COUNT)
    world.sweep()
    assert_dropped_in_slices(world.turns(), 1)
    assert queue.inside.queue.expired == COUNT


@pytest.mark.parametrize("priorities", [None, 3])
def test_messages_with_times_of_their_own_go_in_slices_and_the_others_keep_their_order(
    world: Clocked, priorities: int | None
) -> None:
    queue = world.declare(priorities=priorities)
    for number in range(COUNT):
        world.publish(number, **({} if number % 5 == 0 else {"expires_at": 60.0}))
    kept = [b"%05d" % number for number in range(0, COUNT, 5)]
    world.now = 61.0
    world.sweep()
    assert_dropped_in_slices(world.turns(), len(kept))
    assert [message.payload for message, _, _ in peek(queue.inside.queue, COUNT)] == kept
    assert queue.inside.queue.sifted == 0


def test_many_whose_delay_is_over_come_back_in_slices(world: Clocked) -> None:
    queue = world.filled()
    consumer = world.broker.queues.consume(
        world.client, 1, queue, world.broker.variants.of(DELIVERY_FORMAT), COUNT, 600.0, lambda reason: None
    )
    world.broker.queues.start(consumer, world.now)
    for flight in consumer.window.flights():
        queue.inside.refuse(consumer.window, flight.tag, 30.0, world.now)
    world.broker.queues.leave(consumer, world.now)
    assert queue.inside.queue.apart == COUNT
    world.now += 31
    apart = [COUNT]
    world.sweep()
    while world.soon:
        apart.append(queue.inside.queue.apart)
        world.soon.pop(0)()
    apart.append(queue.inside.queue.apart)
    assert_dropped_in_slices(apart)
    assert len(queue.inside.queue) == COUNT


def group_queue(world: Clocked) -> Queue:
    found = world.broker.router.group_queue("g", b"t", "mqtt")
    assert found is not None
    return found


def test_a_group_ends_with_its_last_member_and_its_messages_go_in_slices(world: Clocked) -> None:
    first, last = (absent(world, name, 60.0, group="g") for name in "ab")
    for number in range(COUNT):
        world.publish(number)
    queue = group_queue(world)
    sessions = world.broker.sessions
    sessions.unsubscribe(first, b"t", "g")
    assert len(queue) == COUNT
    world.broker.turns.begin()
    sessions.unsubscribe(last, b"t", "g")
    assert world.broker.router.group_queue("g", b"t", "mqtt") is None
    assert len(queue) == COUNT - DROPPED_PER_LOOK
    assert_dropped_in_slices(world.turns())
    assert (world.broker.ledger.stored, last.share.account.stored) == (0, 0)


def test_a_group_whose_members_expire_ends_in_slices_and_its_principal_is_forgotten(world: Clocked) -> None:
    for name in "abc":
        absent(world, name, 60.0, group="g", address="192.0.2.66")
    for number in range(COUNT):
        world.publish(number)
    assert len(world.broker.shares) == 2
    world.now += 61
    while len(world.broker.sessions):
        world.sweep()
    assert_dropped_in_slices(world.turns())
    assert world.broker.ledger.stored == 0
    assert [share.principal for share in world.broker.shares] == ["address 192.0.2.1"]


def test_a_group_that_begins_again_has_nothing_of_the_one_that_ended(world: Clocked) -> None:
    session = absent(world, "s", 60.0, group="g")
    for number in range(COUNT):
        world.publish(number)
    world.broker.turns.begin()
    world.broker.sessions.unsubscribe(session, b"t", "g")
    world.broker.sessions.subscribe(session, b"t", "mqtt", SessionOptions(qos=1, group="g"))
    world.publish(COUNT)
    assert_dropped_in_slices(world.turns(), 1)
    assert [message.payload for message in group_queue(world).waiting()] == [b"%05d" % COUNT]


def test_what_many_consumers_have_not_acknowledged_goes_in_slices(world: Clocked) -> None:
    queue = world.filled()
    queues, ended = world.broker.queues, list[str]()
    before = world.broker.ledger.sessions.used
    for number in range(50):
        variant = world.broker.variants.of(DELIVERY_FORMAT)
        consumer = queues.consume(world.client, number, queue, variant, COUNT // 50, 600.0, ended.append)
        queues.start(consumer, world.now)
    assert queue.inside.unacknowledged == COUNT
    world.broker.turns.begin()
    assert queues.end(queue) == COUNT
    assert len(ended) == 50
    assert len(queue.inside) >= COUNT - DROPPED_PER_LOOK
    assert_dropped_in_slices(world.turns())
    assert (queue.inside.windows, world.broker.ledger.sessions.used) == ([], before)
    assert queue.inside.discards == COUNT
