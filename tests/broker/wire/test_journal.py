"""What a journal is told is enough to build queue and inflight anew: compared with the real ones after every step."""

from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt import qos2
from fanlight_broker.wire.expiry import expire
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.flight import STATES, Flight
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.journal import QueueJournal
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.restoring import restore_to_window
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire.formats import LineFormat


class Records(QueueJournal):
    """Applies each record to a plain image: messages that wait by number, messages in flight by tag in their order."""

    numbers = count(1)

    def __init__(self) -> None:
        self.waiting: dict[int, Message] = {}
        self.flights: dict[int, Message | None] = {}
        self.held: set[int] = set()  # numbers of this queue that are in flight
        self.reported = 0

    def enqueued(self, flight: Flight) -> None:
        self.reported += 1
        assert not flight.number
        assert flight.message is not None
        flight.number = next(self.numbers)
        self.waiting[flight.number] = flight.message

    def returned(self, flight: Flight) -> None:
        self.reported += 1
        assert flight.message is not None
        if flight.number in self.held:
            self.held.remove(flight.number)
            self.waiting[flight.number] = flight.message
        else:  # from a session without a journal
            assert self.waiting[flight.number] is flight.message

    def removed(self, flight: Flight) -> None:
        self.reported += 1
        assert self.waiting.pop(flight.number) is flight.message

    def assigned(self, flight: Flight, origin: QueueJournal) -> None:
        self.reported += 1
        assert isinstance(origin, Records)
        if flight.number:
            assert origin.waiting.pop(flight.number) is flight.message
        else:
            flight.number = next(self.numbers)
        origin.held.add(flight.number)
        assert flight.tag not in self.flights
        self.flights[flight.tag] = flight.message

    def given_up(self, flight: Flight, origin: QueueJournal) -> None:
        self.reported += 1
        del self.flights[flight.tag]
        self.flights[flight.tag] = None  # behind the others: its order is that of this step

    def ended(self, flight: Flight, origin: QueueJournal) -> None:
        self.reported += 1
        assert isinstance(origin, Records)
        del self.flights[flight.tag]
        if flight.number:
            origin.held.remove(flight.number)

    def messages(self) -> list[Message]:
        return [self.waiting[number] for number in sorted(self.waiting)]


class World:
    """A session with a journal and one without, both subscribed by themselves and members of one durable group."""

    def __init__(self, messages_max: int, *, drop_oldest: bool) -> None:
        self.ledger = Ledger(1 << 30, lambda: None)
        self.format, self.variants = LineFormat("lines"), Variants()
        self.queues = [Queue(self.ledger, messages_max, 1 << 20, drop_oldest) for _ in range(3)]
        self.journals = [Records(), Records()]
        self.queues[0].journal, self.queues[2].journal = self.journals
        self.windows = [Window(None, queue) for queue in self.queues[:2]]
        self.group = QueueGroup("g")
        for window in self.windows:
            self.group.add(Target(window, self.variants.of(self.format, 2), 1), self.queues[2])
        alone = [Target(window, self.variants.of(self.format, 2), 1) for window in self.windows]
        self.routes = [Route(b"\0t", alone, []), Route(b"\0t", [], [self.group])]
        self.now, self.published = 1.0, 0

    def publish(self, shared: bool, qos: int, lifetime: int) -> None:
        expires_at = self.now + lifetime if lifetime else float("inf")
        payload = b"%d" % self.published
        self.published += 1
        topic = b"unwritable" if lifetime == 7 and shared else b"t"  # met when it is sent: then it is dropped
        message = Message(self.format, topic, 0, payload, qos=qos, expires_at=expires_at)
        publish(self.routes[shared], self.ledger, None, message)

    def act(self, what: str, who: int, nth: int) -> None:
        window = self.windows[who]
        flights = window.flights()
        flight = flights[nth % len(flights)] if flights else None
        match what:
            case "connect" if not window.open:
                window.attach(Outbox(self.ledger, 400, "pause"), 1 + nth % 3)
                window.resume(self.now)
            case "leave" if window.open:
                for group in window.detach():
                    group.feed(self.now)
            case "read" if window.outbox is not None:
                window.outbox.read(1 << 20)
                window.advance(self.now)
            case "publish":
                self.publish(bool(nth & 1), 1 + (nth >> 1 & 1), nth % 9)
            case "acknowledge" if flight is not None and window.open:
                for step in (qos2.acknowledge, qos2.complete):
                    step(window, flight.tag, self.now)
            case "receive" if flight is not None and window.open:
                qos2.receive(window, flight.tag)
            case "refuse" if flight is not None and window.open:
                qos2.refuse(window, flight.tag, self.now)
            case "wait":
                self.now += nth % 4
            case "expire":
                for queue in self.queues:
                    expire(queue, self.now)

    def check(self) -> None:
        own, groups = self.journals
        assert own.messages() == self.queues[0].waiting()
        # Those on their way to the session without a journal are still in the group's queue, for its journal.
        at_other = [flight.message for flight in self.windows[1].flights() if flight.number]
        assert sorted(map(id, groups.messages())) == sorted(map(id, [*self.queues[2].waiting(), *at_other]))
        assert groups.held <= {flight.number for flight in self.windows[0].flights()}
        assert not groups.flights
        assert [*own.flights.items()] == [(flight.tag, flight.message) for flight in self.windows[0].flights()]

    def rebuilt(self) -> Window:
        """The durable session from its journal alone."""
        journal = self.journals[0]
        window = Window(None, Queue(self.ledger, 1_000, 1 << 20))
        variant = self.variants.of(self.format, 2)
        for tag, message in journal.flights.items():
            arrived = message is None
            message = message or Message(self.format, b"t", 0, b"", qos=2)
            restore_to_window(window, message, variant, tag, arrived)
        for message in journal.messages():
            restore_to_window(window, message, variant)
        return window


def image(window: Window) -> dict[str, Any]:
    return {
        "flights": [(flight.tag, flight.message, STATES[flight.state]) for flight in window.flights()],
        "waiting": window.queue.waiting(),
    }


ACTIONS = [*3 * ["publish"], "acknowledge", "receive", "refuse", "connect", "leave", "read", "wait", "expire"]
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1), st.integers(0, 40)), max_size=60)


@settings(max_examples=200, deadline=None)
@given(STEPS, st.integers(1, 5), st.booleans())
def test_a_journal_has_what_queue_and_inflight_have(
    steps: list[tuple[str, int, int]], messages_max: int, drop_oldest: bool
) -> None:
    world = World(messages_max, drop_oldest=drop_oldest)
    for step in [("connect", 0, 2), ("connect", 1, 0), *steps]:
        world.act(*step)
        world.check()
    assert image(world.rebuilt()) == image(world.windows[0])
    for window in world.windows:
        window.end()
        assert not window.queue.drop(1_000)
    assert not world.queues[2].drop(1_000)
    assert [(each.waiting, each.flights, each.held) for each in world.journals] == [({}, {}, set()), ({}, {}, set())]


def test_one_message_is_one_record_for_each_change() -> None:
    world = World(10, drop_oldest=False)
    journal = world.journals[0]
    world.publish(False, 2, 0)
    assert (journal.reported, len(journal.waiting)) == (1, 1)
    world.act("connect", 0, 0)
    assert (journal.reported, journal.waiting, len(journal.flights)) == (2, {}, 1)
    world.act("receive", 0, 0)
    world.act("acknowledge", 0, 0)
    assert (journal.reported, journal.flights) == (4, {})


def test_what_is_put_back_for_want_of_room_is_no_change() -> None:
    world = World(10, drop_oldest=False)
    window, journal = world.windows[0], world.journals[0]
    for _ in range(2):
        publish(world.routes[0], world.ledger, None, Message(world.format, b"t", 0, bytes(300), qos=1))
    window.attach(Outbox(world.ledger, 400, "drop_newest"), 10)
    window.resume(1.0)
    assert (window.sent, len(window.queue), journal.reported) == (1, 1, 3)
    for _ in range(5):
        window.advance(1.0)
    assert (window.sent, len(window.queue), journal.reported) == (1, 1, 3)
