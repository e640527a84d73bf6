"""A fault in one delivery is its subscriber's: the publisher and all others notice nothing.

The fault is a format that raises, as one of a plug-in or a conversion could. Each test runs a stream of messages in
which one is poison for some targets, and compares what everybody gets.
"""

import pytest

from fanlight_broker.core.content import Content
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Format, Message, Variant, Variants
from fanlight_broker.wire.outbox import Outbox, Sink
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire import publisher
from tests.broker.wire.formats import LineFormat
from tests.broker.wire.publisher import Publisher, native_target

POISON = b"poison"


class WriteFails(LineFormat):
    """Cannot take poison from another format."""

    def write(self, content: Content) -> Message | None:
        if content.payload.startswith(POISON):
            raise RuntimeError("cannot be written")
        return super().write(content)


class TemplateFails(LineFormat):
    """Takes it, and cannot encode it."""

    def template(
        self, message: Message, variant: Variant, again: bool, now: float
    ) -> tuple[bytes, int, int, bytes] | None:
        if message.payload.startswith(POISON):
            raise RuntimeError("cannot be encoded")
        return super().template(message, variant, again, now)


class OutOfMemory(LineFormat):
    def template(
        self, message: Message, variant: Variant, again: bool, now: float
    ) -> tuple[bytes, int, int, bytes] | None:
        if message.payload.startswith(POISON):
            raise MemoryError
        return super().template(message, variant, again, now)


class StateFails(LineFormat):
    """Of one connection, as the one with topic aliases is."""

    def __init__(self) -> None:
        super().__init__("stateful lines", stateful=True)

    def template(
        self, message: Message, variant: Variant, again: bool, now: float
    ) -> tuple[bytes, int, int, bytes] | None:
        if message.payload.startswith(POISON):
            raise RuntimeError("cannot be encoded")
        return super().template(message, variant, again, now)

    def went(self, variant: Variant) -> None:
        pass


FORMATS = {
    "writing": lambda: WriteFails("lines"), "encoding": lambda: TemplateFails("lines"),
    "memory": lambda: OutOfMemory("lines"), "stateful": StateFails,
}
PLACES = {"first": {0}, "middle": {2}, "last": {4}, "several": {0, 2, 3}}


@pytest.fixture(params=FORMATS)
def faulty(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]()


class Floor:
    """Five targets on one route; those at `places` have the faulty format."""

    def __init__(self, faulty: Format, places: set[int]) -> None:
        self.ledger = Ledger(1 << 30, lambda: None)
        self.publisher = Publisher(self.ledger)
        self.variants = Variants()
        self.outboxes = [Outbox(self.ledger, 1 << 20, "drop_newest") for _ in range(5)]
        self.targets = [
            Target(outbox, self.variants.of(faulty), 1) if place in places else native_target(outbox, 1)
            for place, outbox in enumerate(self.outboxes)
        ]
        self.route = self.publisher.route(b"t", self.targets)

    def payloads(self, place: int) -> list[bytes]:
        """What one of the native ones got."""
        octets, found = self.outboxes[place].read(1 << 30), []
        while octets:
            size = 4 + int.from_bytes(octets[:4], "big")
            found.append(octets[:size])
            octets = octets[size:]
        return found


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_one_at_a_time_all_other_targets_get_what_one_cannot_be_given(faulty: Format, places: set[int]) -> None:
    floor = Floor(faulty, places)
    wanted = [b"1", POISON, b"2"]
    counts = [floor.publisher.routed(b"t", payload) for payload in wanted]
    assert counts == [5, 5 - len(places), 5]
    for place, target in enumerate(floor.targets):
        if place in places:
            assert (target.delivered, target.dropped, floor.outboxes[place].dropped) == (2, 1, 1)
            assert floor.outboxes[place].fault is not None
        else:
            assert floor.payloads(place) == [publisher.message(1, b"t", payload) for payload in wanted]
            assert floor.outboxes[place].fault is None
    assert floor.ledger.dropped_fault == len(places)
    assert floor.ledger.pop_faults() == [floor.outboxes[place] for place in sorted(places)]
    assert floor.ledger.pop_faults() == []


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_in_a_run_all_other_targets_get_what_one_cannot_be_given(faulty: Format, places: set[int]) -> None:
    floor = Floor(faulty, places)
    wanted = [b"%d" % n if n not in (50, 51) else POISON + b"%d" % n for n in range(100)]
    assert floor.publisher.send(b"".join(publisher.publish(b"t", payload) for payload in wanted))
    for place, target in enumerate(floor.targets):
        if place in places:
            assert (target.delivered, target.dropped) == (98, 2)
        else:
            assert floor.payloads(place) == [publisher.message(1, b"t", payload) for payload in wanted]
            assert target.delivered == 100
    if not faulty.stateful and len(places) < 3:
        assert floor.publisher.routes.batcher.joined > 50
    assert floor.ledger.dropped_fault == 2 * len(places)
    assert len(floor.ledger.pop_faults()) == len(places)
    for outbox in floor.outboxes:
        outbox.read(1 << 30)
    assert floor.ledger.used == floor.publisher.outbox.size == 0


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_published_from_python_all_other_targets_get_what_one_cannot_be_given(
    faulty: Format, places: set[int]
) -> None:
    floor = Floor(faulty, places)
    source = LineFormat("source")
    counts = [publish(floor.route, floor.ledger, None, Message(source, b"t", 0, payload)) for payload in (b"1", POISON)]
    assert counts == [5, 5 - len(places)]
    assert floor.ledger.dropped_fault == len(places)
    assert [len(floor.payloads(place)) for place in range(5) if place not in places] == [2] * (5 - len(places))


def test_a_queue_group_gives_the_message_to_another_member(faulty: Format) -> None:
    floor = Floor(faulty, {0})
    group = QueueGroup("g")
    for target in floor.targets[:3]:
        group.add(target)
    floor.publisher.route(b"g", [], [group])
    assert [floor.publisher.routed(b"g", POISON) for _ in range(6)] == [1] * 6
    assert (floor.targets[0].delivered, floor.ledger.dropped_fault) == (0, 1)  # asked once: it is closed after the turn
    assert [floor.targets[1].delivered, floor.targets[2].delivered] == [3, 3]


def test_a_queue_group_of_nobody_who_can_take_the_message_is_not_asked_for_ever(faulty: Format) -> None:
    floor = Floor(faulty, {0, 1})
    group = QueueGroup("g")
    for target in floor.targets[:2]:
        group.add(target)
    floor.publisher.route(b"g", [], [group])
    assert floor.publisher.routed(b"g", POISON) == 0
    assert floor.ledger.dropped_fault == 2


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_session_that_a_message_cannot_be_written_for_is_not_asked_again_when_it_comes_back(
    faulty: Format, qos: int
) -> None:
    """It would end every connection of that session."""
    ledger = Ledger(1 << 30, lambda: None)
    variants, native = Variants(), Publisher(ledger)
    queue = Queue(ledger, 100, 1 << 20)
    window = Window(Outbox(ledger, 1 << 20, "pause"), queue)
    window.attach(Outbox(ledger, 1 << 20, "pause"), 2)
    window.resume(0.0)
    other = native_target(Outbox(ledger, 1 << 20, "pause"), 1)
    target = Target(window, variants.of(faulty, qos), 1)
    route = Route(RouteCache.key_of(0, b"t"), [target, other], [])
    native.routes.add(route)
    for payload in (b"1", POISON, b"2"):
        assert native.publish(b"t", payload)
    assert (other.delivered, ledger.dropped_fault) == (3, 1)
    assert window.outbox.fault is not None
    # While the client is away the poison waits in its queue with the others, of a publisher with acknowledgements.
    window.leave()
    source = LineFormat("source")
    for payload in (POISON, b"3"):
        message = Message(source, b"t", 0, payload, qos=qos)
        publish(Route(b"\0t", [target], []), ledger, None, message)
    window.attach(Outbox(ledger, 1 << 20, "pause"), 10)
    window.resume(0.0)
    sent = window.outbox.read(1 << 20)
    assert (b" 3" in sent) == (qos > 0)
    assert POISON not in sent
    assert (window.outbox.fault is not None) == (qos > 0)
    assert len(queue) == 0
    # The next connection is not ended for it.
    window.leave()
    window.attach(Outbox(ledger, 1 << 20, "pause"), 10)
    window.resume(0.0)
    assert window.outbox.fault is None


def test_a_retained_message_that_cannot_be_written_is_the_fault_of_who_was_to_get_it(faulty: Format) -> None:
    floor = Floor(faulty, {0})
    target = floor.targets[0]
    target.send(Message(LineFormat("source"), b"t", 0, POISON, retain=True), target.variant, 0.0)
    target.send(Message(LineFormat("source"), b"t", 0, b"1", retain=True), target.variant, 0.0)
    assert floor.ledger.pop_faults() == [floor.outboxes[0]]
    assert (target.delivered, target.dropped, floor.ledger.dropped_fault) == (1, 1, 1)


class ClosingSink(Sink):
    """Finds at its first flush that the peer has gone, as a socket does."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.flushed = 0

    def flush_now(self) -> None:
        self.flushed += 1
        self.outbox.discard()


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "disconnect", "pause"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_sink_that_closes_in_the_middle_of_a_fan_out_costs_the_others_nothing(policy: str, place: int) -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publishing = Publisher(ledger)
    outboxes = [Outbox(ledger, 300 if at == place else 1 << 20, policy) for at in range(5)]
    closing = outboxes[place]
    sink = ClosingSink(closing)
    closing.sink = sink
    targets = [native_target(outbox, 1) for outbox in outboxes]
    publishing.route(b"t", targets)
    payloads = [b"%d" % number * 100 for number in range(6)]
    assert all(publishing.publish(b"t", payload) for payload in payloads)
    assert sink.flushed == 1
    assert (closing.closed, closing.size, closing.messages) == (True, 0, 0)
    for target, outbox in zip(targets, outboxes, strict=True):
        if outbox is not closing:
            assert target.delivered == outbox.messages == 6
            assert outbox.read(1 << 20).count(b"\x94\x04\xce") == 6
    assert ledger.pop_faults() == []
    assert closing.dropped == closing.lost + 1  # what was unsent, and the message at hand; later ones are not for it
    assert ledger.used == 0


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_whose_sink_closes_in_the_middle_keeps_the_message_in_its_queue(qos: int) -> None:
    ledger = Ledger(1 << 30, lambda: None)
    outbox = Outbox(ledger, 300, "pause")
    outbox.sink = ClosingSink(outbox)
    window = Window(outbox, Queue(ledger, 100, 1 << 20))
    window.attach(outbox, 100)
    window.resume(0.0)
    lines = LineFormat("lines")
    target = Target(window, Variants().of(lines, qos), 1)
    other = native_target(Outbox(ledger, 1 << 20, "pause"), 2)
    for _ in range(4):
        publish(Route(b"\0t", [target, other], []), ledger, None, Message(lines, b"t", 0, b"x" * 100, qos=qos))
    assert outbox.closed
    assert (len(window.flights()) + len(window.queue), other.delivered + other.dropped) == (4, 4)
    assert ledger.used == other.outbox.size
