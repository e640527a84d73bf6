"""Named queues: messages wait at the broker until a worker has acknowledged them (docs/queues.md).

    async with client.subscribe("orders.#", durable="billing", ack=True, prefetch=100) as orders:
        async for order in orders:
            ...                         # the work
            await order.ack()

Clients with the same durable name share its messages. What is not acknowledged, because its worker has gone, has
called `nack`, or took longer than `ack_wait`, is delivered again: a worker must expect a message more than once.
"""

import asyncio
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from . import topics
from .errors import MessageTimeout, Unsupported, from_broker
from .frames import Delivery, Ended, QueueDelivery, Replayed
from .message import Message
from .options import Where
from .replay import microseconds
from .subscription import Subscription

if TYPE_CHECKING:
    from .client import Client
    from .codec import Encoder
    from .subscriptions import Subscriptions

FEATURE = "queues"
PREFETCH = 100
_FAILURES = ("messages_gone", "replay_failed")
ANONYMOUS_SECONDS = 60.0  # that a queue without a durable name stays without its client, which may be reconnecting



@dataclass(frozen=True, kw_only=True)
class FromArchive:
    """Where in the broker's archive a new queue begins: at the message of this offset, or with what came then, or
    later: a datetime with a time zone, or seconds since 1970 UTC. With neither, with the oldest message there is.

    epoch: of the offset; it makes sure that the offset still names the same message.
    """

    offset: int | None = None
    epoch: int | None = None
    since: datetime | float | None = None

    def __post_init__(self) -> None:
        if self.offset is not None and self.since is not None:
            raise ValueError("a queue begins at an offset or at a time, not at both")

    def on_wire(self) -> dict[str, int]:
        since = None if self.since is None else microseconds(self.since)
        given = {"offset": self.offset, "epoch": self.epoch, "since": since}
        return {name: value for name, value in given.items() if value is not None}


Deliver = Literal["new", "last"] | FromArchive
WhenFull = Literal["refuse_publisher", "drop_newest", "drop_oldest", "dead_letter", "dead_letter_newest"]


@dataclass(frozen=True, kw_only=True)
class QueueOptions:
    """What a queue is made with, by the first who subscribes. None: the broker's default.

    messages_max, bytes_max: that wait; above that `overflow` decides. Default: an error for the publisher.
    message_ttl: seconds that a message may wait.
    expires: seconds without a subscriber after which the queue ends, with its messages.
    deliveries_max: of one message; then it is discarded.
    dead_letter: topic to which discarded messages are published, with headers that say why; dead_letter_syntax: how it
        is spelled.
    single_active: only the subscriber that came first gets messages; the next when that has gone.
    priorities: 2 to 10: messages with a higher header `priority`, 0 to one less than this, are delivered first.
    """

    messages_max: int | None = None
    bytes_max: int | None = None
    message_ttl: float | None = None
    expires: float | None = None
    overflow: WhenFull | None = None
    deliveries_max: int | None = None
    dead_letter: topics.Topic | None = None
    dead_letter_syntax: topics.Syntax = "amqp"
    single_active: bool = False
    priorities: int | None = None

    def on_wire(self) -> dict[str, Any]:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given["dead_letter_syntax"] = topics.number(self.dead_letter_syntax) or None
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
        where: Where | None,
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
            broker_pending_messages=None, overflow="pause", where=where,
        )  # fmt: skip
        self.queue = durable or f"client.{uuid4().hex}"
        """The queue's name."""
        self.connection = 0
        """Rises with each connection: what came by an earlier one cannot be acknowledged any more."""
        self._durable = durable is not None
        self._prefetch = prefetch
        self._ack_wait = ack_wait
        self._deliver = deliver.on_wire() if isinstance(deliver, FromArchive) else deliver
        self._options = (queue or QueueOptions()).on_wire()
        self._paused = False
        self._active = asyncio.Event()
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

    @property
    def active(self) -> bool:
        """Whether it may get messages: False while another is the single active one, or without a connection."""
        return self._active.is_set() and bool(self.client.connected)

    async def wait_active(self, timeout: float | None = None) -> None:
        """Wait until it is the active one of a queue with `single_active`, `timeout` seconds or without a bound.

        Raises MessageTimeout.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._active.wait()
        except TimeoutError as error:
            raise MessageTimeout(
                f"another subscriber of {self.queue!r} is active after {timeout:g} s", details={"seconds": timeout}
            ) from error

    @property
    def paused(self) -> bool:
        """Whether the broker delivers nothing to it, by `pause`."""
        return self._paused

    async def pause(self) -> None:
        """Let the broker deliver nothing more to this subscription. What is here can be taken and acknowledged."""
        await self.change(paused=True)

    async def resume(self) -> None:
        """Go on after a pause."""
        await self.change(paused=False)

    async def change(
        self, *, prefetch: int | None = None, ack_wait: float | None = None, paused: bool | None = None
    ) -> None:
        """Another prefetch, another `ack_wait` for what is delivered from now on, or a pause. None: as it is.

        Raises ValueError, BrokerError, RequestTimeout.
        """
        if prefetch is not None and prefetch < 1:
            raise ValueError(f"prefetch must be at least 1; got {prefetch}")
        options = {"prefetch": prefetch, "ack_wait": ack_wait, "paused": paused}
        await self._table.change(self, {key: value for key, value in options.items() if value is not None})
        if prefetch is not None:
            self._prefetch = prefetch
            self._limit = max(self._limit, 2 * prefetch)
        self._ack_wait = self._ack_wait if ack_wait is None else ack_wait
        self._paused = self._paused if paused is None else paused

    def request_frame(self, encoder: "Encoder", request: int, number: int) -> bytes:
        if FEATURE not in (self.client.info.get("features") or ()):
            raise Unsupported("this broker has no named queues", code="unsupported")
        self.connection += 1
        self._active.clear()
        self.forget_queued()  # it comes again, and could not be acknowledged
        return super().request_frame(encoder, request, number)

    def answered(self, result: dict[str, Any]) -> None:
        self.informed({"active": True, **result})  # brokers that do not say it deliver to all

    def informed(self, info: dict[str, Any]) -> None:
        if info.get("active"):
            self._active.set()

    def finish_ended(self, frame: Ended) -> None:
        if frame.reason in _FAILURES:
            self.finish(from_broker(frame.reason, f"the queue {self.queue!r} could not be filled: {frame.reason}"))
        else:
            super().finish_ended(frame)

    def deliver(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> None:
        if type(frame) is QueueDelivery:
            super().deliver(frame, size)

    def wire_options(self) -> dict[str, Any] | None:
        options = {
            "syntax": self._syntax or None,
            "where": self._where,
            "consumer": self.queue,
            "durable": self._durable or None,
            "ack": True,
            "prefetch": self._prefetch,
            "ack_wait": self._ack_wait,
            "deliver": self._deliver,
            "queue": self._options or None,
            "paused": self._paused or None,
        }
        return {key: value for key, value in options.items() if value is not None}

    def __repr__(self) -> str:
        return f"<QueueSubscription {self.queue!r} {self.filter!r} {len(self._queue)} pending>"
