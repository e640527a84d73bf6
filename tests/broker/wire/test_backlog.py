"""A queue with a backlog is the same queue: in order, with the same bounds, while few of its messages are in memory."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.wire.backlog import Backlog
from fanlight_broker.wire.expiry import expire
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message, Variant, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire.formats import LineFormat
from tests.broker.wire.test_journal import Records

STORED_LIMIT = 4 << 20
HEADS = 16  # of a client that is there, while there is memory


class Kept(Backlog):
    """A backlog in memory. What is fetched comes when the test says so."""

    def __init__(self, journal: Records) -> None:
        self.messages: deque[tuple[int, Message, Variant, int]] = deque()  # number, ..., bytes
        self.journal = journal
        self.head = 4
        self.asked = False

    def add(self, flight: Flight, octets: int) -> None:
        assert flight.message is not None
        assert not self.messages or flight.number > self.messages[-1][0]
        self.messages.append((flight.number, flight.message, flight.variant, octets))
        self.count(1, octets)

    def drop_first(self) -> int:
        number, _, _, octets = self.messages.popleft()
        del self.journal.waiting[number]
        self.count(-1, -octets)
        return octets

    def fetch(self) -> None:
        self.asked = True

    def expire(self, now: float, most: int) -> tuple[int, int]:
        """The oldest, as long as they have expired."""
        messages, octets = 0, 0
        while self.messages and self.messages[0][1].expires_at <= now:
            octets += self.drop_first()
            messages += 1
        return messages, octets

    def deliver(self, queue: Queue, now: float, most: int) -> None:
        self.asked = False
        taken = [self.messages.popleft() for _ in range(min(most, len(self.messages)))]
        octets = sum(each[3] for each in taken)
        self.count(-len(taken), -octets)
        found = [(message, variant, number, 0, now) for number, message, variant, _ in taken]
        queue.fetched(found, len(taken), octets, now)


class World:
    """short: a quarter of the memory for messages is taken, by something else."""

    def __init__(self, messages_max: int, *, drop_oldest: bool, short: bool = False) -> None:
        self.ledger = Ledger(1 << 30, lambda: None, STORED_LIMIT)
        self.taken = STORED_LIMIT // 4 if short else 0
        self.ledger.keep(self.taken)
        self.heads = 1 if short else HEADS
        self.format, self.variants = LineFormat("lines"), Variants()
        self.queue = Queue(self.ledger, messages_max, 1 << 20, drop_oldest)
        self.queue.journal = self.journal = Records()
        self.queue.backlog = self.backlog = Kept(self.journal)
        self.window = Window(None, self.queue)
        self.route = Route(b"\0t", [Target(self.window, self.variants.of(self.format, 1), 1)], [])
        self.now, self.published = 1.0, 0

    def act(self, what: str, nth: int) -> None:
        window = self.window
        match what:
            case "publish":
                for _ in range(1 + nth % 5):
                    expires_at = self.now + nth if nth % 7 == 0 else float("inf")
                    payload = b"%d" % self.published
                    message = Message(self.format, b"t", 0, payload, qos=1, expires_at=expires_at)
                    self.published += 1
                    publish(self.route, self.ledger, None, message)
            case "connect" if not window.open:
                window.attach(Outbox(self.ledger, 1 << 20, "pause"), 1 + nth % 3)
                window.resume(self.now)
            case "leave" if window.open:
                window.detach()
            case "acknowledge" if window.open:
                for flight in window.flights()[: 1 + nth % 3]:
                    window.acknowledge(flight.tag, self.now)
            case "fetched" if self.backlog.asked:
                self.backlog.deliver(self.queue, self.now, 1 + nth % 4)
                window.advance(self.now)
            case "wait":
                self.now += nth % 4
            case "expire":
                expire(self.queue, self.now)

    def check(self) -> None:
        queue, backlog = self.queue, self.backlog
        in_memory = queue.waiting()
        assert self.journal.messages() == [*in_memory, *(each[1] for each in backlog.messages)]
        assert len(queue) == len(in_memory) + backlog.length <= queue.messages_max
        assert queue.nbytes == sum(message.nbytes for message in in_memory) + backlog.nbytes
        assert len(in_memory) <= self.heads * backlog.head + 3  # a fetch may bring more than are missing
        flights = self.window.flights()
        assert self.ledger.stored_messages == len(in_memory) + len(flights)
        numbers = [int(message.payload) for message in self.journal.messages()]
        assert numbers == sorted(numbers)
        assert [int(each.message.payload) for each in flights if each.message] == sorted(
            int(each.message.payload) for each in flights if each.message
        )
        room = self.window.open and self.window.sent < self.window.inflight_max
        if room and backlog.length and not in_memory:
            assert backlog.asked, "messages wait that nobody fetches"


ACTIONS = [*3 * ["publish"], *2 * ["acknowledge"], *2 * ["fetched"], "connect", "leave", "wait", "expire"]


STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40)), max_size=60)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.integers(1, 12), st.booleans(), st.booleans())
def test_a_queue_with_a_backlog_keeps_order_bounds_and_counts(
    steps: list[tuple[str, int]], messages_max: int, drop_oldest: bool, short: bool
) -> None:
    world = World(messages_max, drop_oldest=drop_oldest, short=short)
    for step in steps:
        world.act(*step)
        world.check()
    # Everything that is still waiting arrives, in order.
    world.act("connect", 2)
    waiting = [message for message in world.journal.messages() if not message.expired(world.now)]
    delivered: list[Message] = []
    flights = {flight.tag for flight in world.window.flights() if flight.message not in waiting}
    while world.backlog.length or len(world.queue) or world.window.in_flight:
        for flight in world.window.flights():
            assert flight.message is not None
            if flight.tag not in flights:
                delivered.append(flight.message)
            flights.discard(flight.tag)
            world.window.acknowledge(flight.tag, world.now)
        world.act("fetched", 3)
        world.check()
    assert delivered == waiting
    assert (world.ledger.stored, world.ledger.stored_messages) == (world.taken, 0)


def test_an_absent_client_s_messages_are_not_in_memory() -> None:
    world = World(1_000, drop_oldest=False)
    for _ in range(100):
        world.act("publish", 4)
    assert (len(world.queue), world.ledger.stored_messages) == (500, 0)
    assert not world.queue.drop(500)
    assert (len(world.queue), world.queue.nbytes, world.journal.waiting) == (0, 0, {})


@pytest.mark.parametrize(("short", "in_memory"), [(False, HEADS * 4), (True, 4)])
def test_what_a_client_that_is_there_has_not_taken_yet_stays_in_memory_if_there_is_enough(
    short: bool, in_memory: int
) -> None:
    world = World(1_000, drop_oldest=False, short=short)
    world.act("connect", 0)  # it acknowledges nothing
    for _ in range(100):
        world.act("publish", 4)
    assert (len(world.queue.waiting()), len(world.queue)) == (in_memory, 499)


def test_a_full_queue_drops_its_oldest_from_the_backlog() -> None:
    world = World(3, drop_oldest=True)
    world.act("publish", 4)
    assert [message.payload for message in world.journal.messages()] == [b"2", b"3", b"4"]
    assert world.ledger.dropped_queue == 2
