"""Named queues: messages wait at the broker until a worker has acknowledged them (docs/queues.md).

    async with client.subscribe("orders.#", durable="billing", ack=True, prefetch=100) as orders:
        async for order in orders:
            ...                         # the work
            await order.ack()

Clients with the same durable name share its messages. What is not acknowledged, because its worker has gone, has
called `nack`, or took longer than `ack_wait`, is delivered again: a worker must expect a message more than once.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from . import topics
from .errors import Unsupported
from .frames import Delivery, QueueDelivery, Replayed
from .message import Message
from .subscription import Subscription

if TYPE_CHECKING:
    from .client import Client
    from .codec import Encoder
    from .subscriptions import Subscriptions

FEATURE = "queues"
PREFETCH = 100
ANONYMOUS_SECONDS = 60.0  # that a queue without a durable name stays without its client, which may be reconnecting

Deliver = Literal["new", "last"]
WhenFull = Literal["refuse_publisher", "drop_newest", "drop_oldest", "dead_letter"]


@dataclass(frozen=True, kw_only=True)
class QueueOptions:
    """What a queue is made with, by the first who subscribes. None: the broker's default.

    messages_max, bytes_max: that wait; above that `overflow` decides. Default: an error for the publisher.
    message_ttl: seconds that a message may wait.
    expires: seconds without a subscriber after which the queue ends, with its messages.
    deliveries_max: of one message; then it is discarded.
    dead_letter: topic to which discarded messages are published, with headers that say why.
    single_active: only the subscriber that came first gets messages; the next when that has gone.
    """

    messages_max: int | None = None
    bytes_max: int | None = None
    message_ttl: float | None = None
    expires: float | None = None
    overflow: WhenFull | None = None
    deliveries_max: int | None = None
    dead_letter: topics.Topic | None = None
    single_active: bool = False

    def on_wire(self) -> dict[str, Any]:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value is not None and value is not False}


class QueueMessage(Message):
    """A message of a queue: acknowledge it when the work is done.

    Each of these returns whether it was sent: False if the connection that the message came by is lost. The broker
    delivers the message again then.
    """

    __slots__ = ("_connection",)

    def __init__(self, frame: Any, source: Any, size: int) -> None:
        super().__init__(frame, source, size)
        self._connection = source.connection

    @property
    def sequence(self) -> int:
        """Of this delivery, in its queue."""
        sequence: int = self._delivery.sequence
        return sequence

    @property
    def attempt(self) -> int:
        """How often it was delivered, this time included."""
        attempt: int = self._delivery.attempt
        return attempt

    @property
    def redelivered(self) -> bool:
        """It was delivered before, and may have been worked on."""
        return self.attempt > 1

    @property
    def _delivery(self) -> Any:
        return self._frame

    async def ack(self, *, all: bool = False) -> bool:
        """It is done: it will not come again. all: so are all that this subscription got before it."""
        return await self._send(self._encoder.ack, all or None)

    async def nack(self, delay: float | None = None) -> bool:
        """Deliver it again: to another subscriber if there is one, and not before `delay` seconds."""
        return await self._send(self._encoder.nack, delay)

    async def term(self, reason: str | None = None) -> bool:
        """It can never be done: discard it, for all subscribers. It is a dead letter if the queue has a topic for
        them."""
        return await self._send(self._encoder.term, reason)

    async def in_progress(self) -> bool:
        """It takes longer: `ack_wait` begins anew."""
        return await self._send(self._encoder.in_progress)

    @property
    def _encoder(self) -> "Encoder":
        encoder: Encoder = self._source.client.link.encoder
        return encoder

    async def _send(self, make: Any, *more: Any) -> bool:
        source = self._source
        if self._connection != source.connection or not source.client.connected or source.number is None:
            return False
        link = source.client.link
        link.post(make(source.number, self.sequence, *more))
        if link.outbox.full:
            await link.room()
        return True


class QueueSubscription(Subscription):
    """Made by `client.subscribe(..., ack=True)`; in force inside `async with`, or once awaited."""

    message_type = QueueMessage

    def __init__(
        self,
        client: "Client",
        table: "Subscriptions",
        filter: topics.Topic,
        *,
        syntax: topics.Syntax,
        durable: str | None,
        prefetch: int | None,
        ack_wait: float | None,
        deliver: Deliver | None,
        queue: QueueOptions | None,
        pending_messages: int,
        pending_bytes: int,
    ) -> None:
        if prefetch is not None and prefetch < 1:
            raise ValueError(f"prefetch must be at least 1; got {prefetch}")
        if durable == "":
            raise ValueError("the name of a queue is not empty; leave `durable` out for a queue of this client alone")
        super().__init__(
            client, table, filter, syntax=syntax, group=None, no_echo=False, credit=None, after=None,
            pending_messages=max(pending_messages, 2 * (prefetch or PREFETCH)), pending_bytes=pending_bytes,
            broker_pending_messages=None, overflow="pause",
        )  # fmt: skip
        self.queue = durable or f"client.{uuid4().hex}"
        """The queue's name."""
        self.connection = 0
        """Rises with each connection: what came by an earlier one cannot be acknowledged any more."""
        self._durable = durable is not None
        self._prefetch = prefetch
        self._ack_wait = ack_wait
        self._deliver = deliver
        self._options = (queue or QueueOptions()).on_wire()
        if durable is None:
            self._options.setdefault("expires", ANONYMOUS_SECONDS)

    async def __anext__(self) -> QueueMessage:
        message = await super().__anext__()
        assert isinstance(message, QueueMessage)
        return message

    async def next(self, timeout: float | None = None) -> QueueMessage:
        """As `Subscription.next`."""
        message = await super().next(timeout)
        assert isinstance(message, QueueMessage)
        return message

    def request_frame(self, encoder: "Encoder", request: int, number: int) -> bytes:
        if FEATURE not in (self.client.info.get("features") or ()):
            raise Unsupported("this broker has no named queues", code="unsupported")
        self.connection += 1
        self.forget_queued()  # it comes again, and could not be acknowledged
        return super().request_frame(encoder, request, number)

    def deliver(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> None:
        if type(frame) is QueueDelivery:
            super().deliver(frame, size)

    def wire_options(self) -> dict[str, Any] | None:
        options = {
            "syntax": self._syntax or None,
            "consumer": self.queue,
            "durable": self._durable or None,
            "ack": True,
            "prefetch": self._prefetch,
            "ack_wait": self._ack_wait,
            "deliver": self._deliver,
            "queue": self._options or None,
        }
        return {key: value for key, value in options.items() if value is not None}

    def __repr__(self) -> str:
        return f"<QueueSubscription {self.queue!r} {self.filter!r} {len(self._queue)} pending>"
