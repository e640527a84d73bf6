"""Messages that wait without flights (wire/flight_row.pxd) beside the same in a queue that has a flight for each. Also
where what is behind the first ones is packed, unless many queues share it.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DeliverWriter
from fanlight_broker.protocols.amqp.fields import SYNTAX, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT, AmqpDeliveryFormat
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import NEVER, Message, Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.packed_row import PackedRow
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.window import Window

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from([0, 1, 90, 5_000]), st.sampled_from([0, 0, 0, 1, 3])),
        st.tuples(st.just("wait"), st.integers(1, 2), st.none()),
        st.tuples(st.just("consume"), st.booleans(), st.sampled_from([400, 20_000])),
        st.tuples(st.sampled_from(["leave", "read", "acknowledge"]), st.integers(0, 2), st.none()),
        st.tuples(st.just("purge"), st.integers(1, 3), st.none()),
        st.tuples(st.sampled_from(["look", "sweep", "drained"]), st.none(), st.none()),
    ),
    max_size=40,
)


@dataclass
class Hub:
    """A queue, its consumers, and a publisher's route to this and other queues, of which nobody consumes those."""

    flights: bool
    drop_oldest: bool
    seconds: float
    others: int
    packs: bool
    now: float = 1.0
    consumers: list[Window] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(1 << 30, lambda: None, 1 << 30 if self.packs else 40_000)
        self.account = Account()
        self.queues = [NamedQueue(str(number), self._queue()) for number in range(1 + self.others)]
        self.queue = self.queues[0]
        self.queue.buries = True
        self.route = Route(b"\0t", [], list(self.queues))
        self.tags = ChannelTags()

    def _queue(self) -> Queue:
        made = Queue(self.ledger, 8, 12_000, self.drop_oldest, self.account)
        made.in_order = True
        made.ttl = self.seconds
        if self.flights:
            made.prioritize(1)
        elif self.packs:
            made.backlog = PackedRow(self.ledger, self.account)
            made.backlog.head = 2
        return made

    def do(self, what: str, first: Any, second: Any) -> None:
        self.ledger.now = self.now
        match what:
            case "publish":
                until = self.now + second if second else NEVER
                fields = pack_fields("", "q", b"\0\0")
                publish(
                    self.route, self.ledger, None,
                    Message(FORMAT, b"t", SYNTAX, b"x" * first, fields=fields, expires_at=until),
                )  # fmt: skip
            case "wait":
                self.now += first
            case "consume" if len(self.consumers) < 3:
                self.consume(automatic=first, limit=second)
            case "purge":
                self.queue.purge(first)
            case "look":  # at those in memory
                found = self.queue.queue.waiting()
                self.received += [] if self.packs else [message.payload for message in found]
            case "sweep":
                self.queue.sweep(self.now)
            case "drained":
                self.queue.queue.wanting = 2
            case _ if self.consumers:
                self.use(what, self.consumers[first % len(self.consumers)])

    def consume(self, *, automatic: bool, limit: int) -> None:
        made = AmqpDeliveryFormat(self.tags, DeliverWriter(1, "c", 131_072), automatic=automatic)
        window = self.queue.add(Outbox(self.ledger, limit, "pause"), Variant(made), 1, 2, 1e9, None, None)
        window.automatic = automatic
        self.consumers.append(window)
        self.queue.begin(window, self.now)

    def use(self, what: str, window: Window) -> None:
        assert window.outbox is not None
        match what:
            case "leave":
                self.consumers.remove(window)
                self.queue.remove(window, self.now)
            case "read":
                self.received.append(window.outbox.read(1 << 20))
                window.outbox.refill = False
                self.queue.go_on(window, self.now)
            case "acknowledge":
                window.acknowledge_up_to(1 << 62, self.now)

    def outcome(self) -> list[Any]:
        named, queue, ledger = self.queue, self.queue.queue, self.ledger
        return [
            self.received, len(named), queue.nbytes, queue.dropped, queue.expired, named.published,
            named.discards, named.buried, named.deliveries, named.redeliveries, named.acknowledgements,
            [(window.delivered, window.ended_flights, window.in_flight) for window in self.consumers],
            ledger.acknowledged, ledger.payload_out, ledger.used, ledger.turned_away, ledger.dropped_share,
            ledger.graves.count(named), self._kept(),
        ]  # fmt: skip

    def _kept(self) -> list[int]:
        """What it takes, as long as that is the same."""
        if self.packs:
            return []
        return [self.ledger.stored, self.ledger.stored_messages, self.account.stored, self.queue.queue.mortal]


@settings(max_examples=100, deadline=None)
@given(STEPS, st.booleans(), st.sampled_from([NEVER, NEVER, 2.0, 0.0]), st.sampled_from([1, 8]), st.booleans())
def test_without_flights_all_is_as_with_them(
    steps: list[tuple[str, Any, Any]], drop_oldest: bool, seconds: float, others: int, packs: bool
) -> None:
    plain, flights = (Hub(each, drop_oldest, seconds, others, packs) for each in (False, True))
    for step in steps:
        plain.do(*step)
        flights.do(*step)
        assert plain.outcome() == flights.outcome(), step
