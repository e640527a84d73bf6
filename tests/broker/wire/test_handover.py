"""What a consumer of a named queue is handed past the queue, and what happens where it cannot have it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DeliverWriter
from fanlight_broker.protocols.amqp.fields import SYNTAX, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT, AmqpDeliveryFormat
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.outbox import Outbox, Sink
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.window import Window


class Hub:
    """A queue, its consumers, and a publisher's route to it."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger or Ledger(1 << 30, lambda: None)
        self.queue = NamedQueue("q", Queue(self.ledger, 1_000, 1 << 20))
        self.route = Route(b"\0t", [], [self.queue])

    def consumer(self, *, automatic: bool, limit: int = 1 << 20, writer: Any = None, prefetch: int = 10) -> Window:
        outbox = Outbox(self.ledger, limit, "pause")
        tags = ChannelTags()
        made = AmqpDeliveryFormat(tags, writer or DeliverWriter(1, "c", 131_072), automatic=automatic)
        window = self.queue.add(outbox, Variant(made), 1, prefetch, 1e9, None, None)
        window.automatic = automatic
        self.queue.begin(window, 0.0)
        return window

    def publish(self, body: bytes = b"body") -> None:
        message = Message(FORMAT, b"t", SYNTAX, body, fields=pack_fields("", "q", b"\0\0"))
        assert publish(self.route, self.ledger, None, message) == 1


def unwritable(message: Message) -> Any:
    raise ValueError("no form for it")


@pytest.mark.parametrize("automatic", [True, False])
def test_a_message_that_cannot_be_written_is_its_consumers_fault(automatic: bool) -> None:
    hub = Hub()
    window = hub.consumer(automatic=automatic, writer=unwritable)
    hub.publish()
    assert window.outbox is not None
    assert isinstance(window.outbox.fault, ValueError)
    assert (len(hub.queue), hub.queue.discards, hub.ledger.stored) == (0, 1, 0)


def test_a_consumer_whose_outbox_is_full_does_not_keep_the_others_waiting() -> None:
    hub = Hub()
    small, large = hub.consumer(automatic=True, limit=300), hub.consumer(automatic=True)
    for number in range(12):
        hub.publish(b"%d" % number * 100)
    assert hub.queue.acknowledgements == 12
    assert len(hub.queue) == 0
    assert small.delivered < large.delivered
    assert small.outbox is not None
    assert small.outbox.refill


def test_what_no_consumer_has_room_for_waits_and_is_sent_when_one_has() -> None:
    hub = Hub()
    window = hub.consumer(automatic=True, limit=300)
    for _ in range(5):
        hub.publish(b"x" * 200)
    assert (window.delivered, len(hub.queue)) == (1, 4)
    assert window.outbox is not None
    for delivered in (2, 3, 4, 5):
        window.outbox.read(1 << 20)
        window.outbox.refill = False  # the core's flow does so, and tells the client
        hub.queue.go_on(window, 0.0)
        assert window.delivered == delivered
    assert len(hub.queue) == 0


def test_a_closed_outbox_takes_nothing_out_of_the_queue() -> None:
    hub = Hub()
    window = hub.consumer(automatic=True, limit=300)
    for _ in range(3):
        hub.publish(b"x" * 200)
    assert window.outbox is not None
    window.outbox.discard()
    hub.queue.go_on(window, 0.0)
    assert (window.delivered, len(hub.queue)) == (1, 2)


def test_prefetch_bounds_what_is_handed_over() -> None:
    hub = Hub()
    window = hub.consumer(automatic=False, prefetch=3)
    for _ in range(5):
        hub.publish()
    assert (window.in_flight, hub.queue.deliveries, len(hub.queue)) == (3, 3, 5)
    assert window.acknowledge_up_to(2, 0.0) == 2
    assert (window.in_flight, hub.queue.deliveries, len(hub.queue)) == (3, 5, 3)


def test_a_consumer_whose_outbox_has_nothing_to_send_is_not_waited_for() -> None:
    """It was to drain, and has: nobody will say so again, so what comes next must not wait for that."""
    hub = Hub()
    window = hub.consumer(automatic=True, limit=300)
    for _ in range(3):
        hub.publish(b"x" * 200)
    assert window.outbox is not None
    assert (window.outbox.refill, window.delivered) == (True, 1)
    hub.queue.purge()
    window.outbox.read(1 << 20)
    hub.publish(b"y")
    assert (window.delivered, len(hub.queue)) == (2, 0)


@pytest.mark.parametrize("automatic", [True, False])
def test_an_outbox_that_is_closed_meanwhile_gets_nothing_and_the_others_do(automatic: bool) -> None:
    hub = Hub()
    closed = hub.consumer(automatic=automatic)
    hub.publish()
    assert closed.outbox is not None
    closed.outbox.discard()
    hub.publish(b"waits")
    assert (closed.delivered, hub.queue.published) == (1, 2)
    other = hub.consumer(automatic=automatic)
    hub.publish(b"next")
    assert (closed.delivered, other.delivered) == (1, 2)
    hub.queue.remove(closed, 0.0)
    assert other.delivered == (2 if automatic else 3), "what the closed one had not acknowledged goes to the other"


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_the_last_queue_has_no_room_for_is_refused_for_all(count: int, charged: bool) -> None:
    """The queues before it filled the room that was left, so it dropped a message that was confirmed."""
    ledger, account = Ledger(1 << 30, lambda: None), Account()
    queues = [NamedQueue("q", Queue(ledger, 10, 1 << 20, account=account if charged else None)) for _ in range(count)]
    for queue in queues:
        queue.refuse_publishers(True)
    route = Route(b"\0t", [], queues)
    message = Message(FORMAT, b"t", SYNTAX, b"body", fields=pack_fields("", "q", b"\0\0"))
    assert publish(route, ledger, None, message) == count
    taken = ledger.stored
    for queue in queues:
        queue.purge()
    for left in (taken, taken - 1):
        if charged:
            account.most = left
        else:
            ledger.stored_limit = left
        assert route.is_refused(ledger, message) == (left < taken)
    publish(route, ledger, None, message)
    assert [len(queue) for queue in queues] == [1] * (count - 1) + [0], "the room was for all but the last"


bodies = st.sampled_from((0, 1, 100, 3_900, 4_088, 4_089, 4_096, 4_097, 9_000)).map(lambda size: b"x" * size)
names = st.text(max_size=40)
frame_sizes = st.sampled_from((4_096, 131_072))
consumers = st.lists(st.tuples(st.integers(1, 65_535), names, frame_sizes), min_size=1, max_size=5)
messages = st.lists(st.tuples(names, names, st.sampled_from((2, 60, 5_000)), bodies), min_size=1, max_size=4)


@settings(max_examples=60)
@given(consumers, messages)
def test_each_of_many_consumers_gets_the_frames_that_python_writes(
    consumers: list[tuple[int, str, int]], messages: list[tuple[str, str, int, bytes]]
) -> None:
    """What is alike for all of them is laid out once for a message; channels, tags, sizes of frames are their own."""
    ledger = Ledger(1 << 30, lambda: None)
    writers = [DeliverWriter(channel, tag, frame_max) for channel, tag, frame_max in consumers]
    hubs = [Hub(ledger) for _ in writers]
    windows = [hub.consumer(automatic=True, writer=writer) for hub, writer in zip(hubs, writers, strict=True)]
    route = Route(b"\0t", [], [hub.queue for hub in hubs])
    for number, (exchange, key, octets, body) in enumerate(messages, 1):
        message = Message(FORMAT, b"t", SYNTAX, body, fields=pack_fields(exchange, key, b"\0\0" + b"h" * (octets - 2)))
        assert publish(route, ledger, None, message) == len(hubs)
        for window, writer in zip(windows, writers, strict=True):
            head, tag_at, rest = writer(message)
            expected = head[:tag_at] + number.to_bytes(8, "big") + b"\0" + head[tag_at + 9 :] + rest
            assert window.outbox is not None
            assert window.outbox.read(1 << 20) == expected
    assert [(hub.queue.published, hub.queue.acknowledgements, len(hub.queue)) for hub in hubs] == [
        (len(messages), len(messages), 0)
    ] * len(hubs)
    assert ledger.stored == 0


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_frames_at_the_limit_of_what_is_kept_for_all_are_those_that_python_writes(over: int) -> None:
    """Consumers' tags differ in length: for some of them the same message is too long to be kept, for others not."""
    ledger = Ledger(1 << 30, lambda: None)
    writers = [DeliverWriter(number, tag, 131_072) for number, tag in enumerate(("x" * 255, "x", "y", "x" * 255), 1)]
    hubs = [Hub(ledger) for _ in writers]
    windows = [hub.consumer(automatic=True, writer=writer) for hub, writer in zip(hubs, writers, strict=True)]
    other = Message(FORMAT, b"t", SYNTAX, b"", fields=pack_fields("", "q", b"\0\0"))
    size = sum(len(part) for part in (writers[1](other)[0], writers[1](other)[2]))
    fields = pack_fields("", "q", b"\0" * (2 + 8_192 + over - size - 4_096 - 8))
    message = Message(FORMAT, b"t", SYNTAX, b"b" * 4_096, fields=fields)
    publish(Route(b"\0t", [], [hub.queue for hub in hubs]), ledger, None, message)
    for window, writer in zip(windows, writers, strict=True):
        head, tag_at, rest = writer(message)
        assert window.outbox is not None
        assert window.outbox.read(1 << 20) == head[:tag_at] + b"\0" * 7 + b"\1\0" + head[tag_at + 9 :] + rest


def test_a_flush_in_the_middle_of_a_fan_out_may_feed_consumers_and_take_them_away() -> None:
    """What is laid out once for the consumers of a message is of that one, whatever is sent between two copies."""
    ledger = Ledger(1 << 30, lambda: None)
    writers = [DeliverWriter(number, "c", 131_072) for number in range(1, 6)]
    hubs = [Hub(ledger) for _ in writers]
    windows = [
        hub.consumer(automatic=True, writer=writer, limit=250 if at == 2 else 1 << 20)
        for at, (hub, writer) in enumerate(zip(hubs, writers, strict=True))
    ]
    boxes = [window.outbox for window in windows]
    route = Route(b"\0t", [], [hub.queue for hub in hubs])
    first, within, outer, last = (
        Message(FORMAT, b"t", SYNTAX, body, fields=pack_fields("", body[:1].decode(), b"\0\0"))
        for body in (b"x" * 150, b"within", b"outer" * 20, b"last")
    )
    read = [b""] * 5

    def take(at: int) -> None:
        outbox = boxes[at]
        assert outbox is not None
        read[at] += outbox.read(1 << 20)

    class Flush(Sink):
        def flush_now(self) -> None:
            take(2)
            if not windows[4].ended:
                hubs[3].queue.begin(windows[3], 0.0)
                hubs[4].queue.remove(windows[4], 0.0)

    assert boxes[2] is not None
    boxes[2].sink = Flush()
    assert publish(route, ledger, None, first) == 5
    hubs[3].queue.pause(windows[3])
    assert publish(hubs[3].route, ledger, None, within) == 1
    assert len(hubs[3].queue) == 1
    for message in (outer, last):
        assert publish(route, ledger, None, message) == 5
    for at, writer in enumerate(writers):
        take(at)
        got = [first, within, outer, last] if at == 3 else [first] if at == 4 else [first, outer, last]
        assert read[at] == b"".join(
            head[:tag_at] + number.to_bytes(8, "big") + b"\0" + head[tag_at + 9 :] + rest
            for number, (head, tag_at, rest) in enumerate(map(writer, got), 1)
        )
    assert [len(hub.queue) for hub in hubs] == [0, 0, 0, 0, 2], "nobody is there for what came later"
