"""The asyncio client: what programs call.

    async with fanlight.connect("fanlight://127.0.0.1:7420") as client:
        async with client.subscribe("stock.*.AAPL") as quotes:
            async for message in quotes: ...

What survives a lost connection: subscriptions (made again on the next one; what was published in between is
missed) and fire-and-forget messages not yet handed to the socket (sent on the next one, up to
`pending_bytes`, beyond which `publish` waits). What had been handed over may or may not have arrived: it is
never sent twice, and `client.stats.unconfirmed` counts it. Calls that await an answer raise ConnectionLost,
and may be made again.
"""

import asyncio
import reprlib
from collections.abc import AsyncIterable, Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, overload

from . import topics
from .codec import check_headers
from .delay import check_support as check_delay
from .delay import options_of
from .delayed import LISTED, PAYLOAD_BYTES, DelayedMessages, cancel_delayed, list_delayed
from .errors import (
    ConnectionLost,
    DrainTimeout,
    FanlightError,
    InvalidTopic,
    ReadingPaused,
    SubscriptionEnded,
)
from .frames import ConsumerInfo, Delivery, Ended, Headers, QueueDelivery, Replayed, ReplayEnd
from .inbox import Inbox
from .link import Link, State
from .marks import Mark, Routed, check_support
from .message import Message
from .options import Options, Overflow, Where
from .queue import Deliver, QueueOptions, QueueSubscription
from .queues import Queues
from .replay import Replay
from .serializers import BYTES, Serializer
from .stats import Stats
from .subscription import PENDING_BYTES, PENDING_MESSAGES, Subscription
from .subscriptions import Subscriptions
from .topics import Syntax, Topic
from .url import Address

# A publisher in a loop yields to the event loop whenever this number of bytes waits: one system call's worth, so that a
# tight loop of `await publish` neither starves the reader nor pays for a turn per message.
YIELD_BYTES = 128 * 1024

Content = tuple[Topic, bytes, Headers | None, int, Topic | None]
"""Of a PUBLISH: topic, payload, headers, syntax, reply."""


def pair(item: tuple[Topic, Any], number: int) -> tuple[Topic, Any]:
    """Item `number` of `publish_many`, which must be a pair: a `str` of two characters would be one, too."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise TypeError(f"publish_many takes pairs (topic, payload); item {number} is {reprlib.repr(item)}")
    return item


class Client:
    """An open client; made by `connect`. Belongs to one event loop."""

    def __init__(self, address: Address, options: Options) -> None:
        self.options = options
        self.serializer = options.serializer
        self.link = Link(address, options, self)
        self._subscriptions = Subscriptions(self.link)
        self._inbox = Inbox(self, self.link, self._subscriptions.next_number)
        self._queues = Queues(self.link)
        self._plain = options.serializer is BYTES
        self._yield_bytes = min(YIELD_BYTES, options.pending_bytes)

    # What it is.

    @property
    def address(self) -> Address:
        return self.link.address

    @property
    def connected(self) -> bool:
        return self.link.state is State.CONNECTED

    @property
    def closed(self) -> bool:
        """Closed by `close`, or given up: no further attempt is made."""
        return self.link.state is State.CLOSED

    @property
    def stats(self) -> Stats:
        """Counters, live."""
        return self.link.stats

    @property
    def info(self) -> dict[str, Any]:
        """What the broker said in its last WELCOME: `server`, `connection`, `client`, `limits`, ..."""
        return dict(self.link.welcome.info) if self.link.welcome else {}

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """Those in force."""
        return tuple(self._subscriptions)

    @property
    def queues(self) -> Queues:
        """Named queues for operators: add, list, look at, empty, move and remove them."""
        return self._queues

    async def cancel(self, message: Routed | int, *, timeout: float | None = None) -> bool:
        """Cancel a delayed message: its receipt, or its id. False: it does not wait any more, it was routed.

        With a store it is on the broker's disk when the call returns. Raises NotPermitted for a message of another
        user, unless this client may subscribe to everything; Unsupported, ConnectionLost, RequestTimeout.
        """
        return await cancel_delayed(self.link, message, timeout)

    async def delayed(
        self, count: int = LISTED, *, payload_bytes: int = PAYLOAD_BYTES, timeout: float | None = None
    ) -> DelayedMessages:
        """How many delayed messages wait, and the first of them. Fewer than `count` if they are large."""
        return await list_delayed(self.link, count, payload_bytes, timeout)

    @property
    def unsent(self) -> tuple[int, int]:
        """Fire-and-forget messages, and bytes of all frames, not yet handed to the socket."""
        return self.link.outbox.messages, self.link.outbox.size

    # Publishing.

    @overload
    async def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: Literal[False] = ..., serializer: Serializer | None = ...,
        timeout: float | None = ..., mark: Mark | None = ..., delay: float | None = ...,
        deliver_at: datetime | float | None = ...,
    ) -> None: ...  # fmt: skip

    @overload
    async def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: Literal[True], serializer: Serializer | None = ...,
        timeout: float | None = ..., mark: Mark | None = ..., delay: float | None = ...,
        deliver_at: datetime | float | None = ...,
    ) -> Routed: ...  # fmt: skip

    @overload
    async def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: bool, serializer: Serializer | None = ...,
        timeout: float | None = ..., mark: Mark | None = ..., delay: float | None = ...,
        deliver_at: datetime | float | None = ...,
    ) -> Routed | None: ...  # fmt: skip

    async def publish(
        self,
        topic: Topic,
        payload: Any = b"",
        *,
        headers: Headers | None = None,
        syntax: Syntax = "amqp",
        reply: Topic | None = None,
        receipt: bool = False,
        serializer: Serializer | None = None,
        timeout: float | None = None,
        mark: Mark | None = None,
        delay: float | None = None,
        deliver_at: datetime | float | None = None,
    ) -> Routed | None:
        """Publish a message. A payload of bytes goes as it is, any other value through the serialiser.

        Without `receipt` it is put into the outbox, written within a turn of the loop, and None is returned;
        waits only while the outbox is full. What the broker refuses of it goes to `on_error`.
        With `receipt`, waits up to `timeout` seconds for the broker to accept it, and returns the number of
        subscriptions it was routed to.
        With `mark`, a broker that has taken a message of this mark, or a higher one of its producer, does not take
        it again; the receipt's `repeated` says so.
        With `delay` seconds, or `deliver_at` (an aware datetime, or seconds since 1970 UTC), the broker keeps it and
        delivers it then; the receipt's `delayed` says so.

        Raises TypeError and ValueError for what cannot be sent, FrameTooLarge, SerializationError,
        ConnectionClosed; with `receipt` also BrokerError, ConnectionLost, RequestTimeout; with `mark`, `delay` or
        `deliver_at` also Unsupported, where the broker knows none.
        """
        link = self.link
        options = options_of(delay, deliver_at) if delay or deliver_at else None
        if receipt:
            content = self.content(topic, payload, headers, syntax, reply, serializer)
            routed: Routed = await link.answer(lambda request: self._encoded(content, request, mark, options), timeout)
            link.stats.published += 1
            return routed
        if link.state is State.CLOSED:
            raise link.not_connected()
        usual = type(payload) is bytes and type(topic) is str and syntax == "amqp"
        plain = usual and self._plain and not (headers or reply or serializer or mark or options)
        try:
            frame = link.encoder.publish(topic, payload) if plain else None  # nothing to check: by far the commonest
        except InvalidTopic:
            frame = None  # no UTF-8: it may be the topic of a message that came
        if frame is None:
            content = self.content(topic, payload, headers, syntax, reply, serializer)
            frame = self._encoded(content, None, mark, options)
        link.post_message(frame)
        link.stats.published += 1
        if link.outbox.size >= self._yield_bytes:
            await link.room()
        return None

    async def publish_many(
        self,
        messages: Iterable[tuple[Topic, Any]] | AsyncIterable[tuple[Topic, Any]],
        *,
        headers: Headers | None = None,
        syntax: Syntax = "amqp",
        serializer: Serializer | None = None,
    ) -> int:
        """Publish (topic, payload) pairs, fire-and-forget, with the same headers and spelling; returns their
        number.

        Raises as `publish` does, and TypeError for an item that is no pair; what came before has been published.
        """
        count = 0
        if isinstance(messages, AsyncIterable):
            async for item in messages:
                topic, payload = pair(item, count)
                await self.publish(topic, payload, headers=headers, syntax=syntax, serializer=serializer)
                count += 1
            return count
        for item in messages:
            topic, payload = pair(item, count)
            await self.publish(topic, payload, headers=headers, syntax=syntax, serializer=serializer)
            count += 1
        return count

    async def request(
        self,
        topic: Topic,
        payload: Any = b"",
        *,
        timeout: float | None = None,
        headers: Headers | None = None,
        syntax: Syntax = "amqp",
        serializer: Serializer | None = None,
    ) -> Message:
        """Publish with a reply topic of our own, and return the first answer.

        Raises NoResponders at once when nobody is subscribed; RequestTimeout after `timeout` seconds; else as
        `publish` with a receipt.
        """
        send = self._inbox.request(topic, payload, headers, syntax, serializer)
        return await self.link.within(timeout, send)  # type: ignore[no-any-return]

    def content(
        self,
        topic: Topic,
        payload: Any,
        headers: Headers | None,
        syntax: Syntax,
        reply: Topic | None,
        serializer: Serializer | None,
    ) -> Content:
        """The fields of a PUBLISH, checked: what the broker would close the connection for is refused
        here."""
        # Bytes are a payload already, whatever the serialiser; they go without a content type, and come out
        # as bytes.
        serializer = BYTES if isinstance(payload, bytes) else serializer or self.serializer
        payload = serializer.encode(payload)
        if serializer.content_type is not None and (headers is None or "content-type" not in headers):
            headers = {**(headers or {}), "content-type": serializer.content_type}
        if headers is not None:
            check_headers(headers)
        reply = None if reply is None else topics.checked(reply)
        return topics.checked(topic), payload, headers, topics.number(syntax), reply

    def _encoded(
        self, content: Content, request: int | None, mark: Mark | None, options: dict[str, Any] | None
    ) -> bytes:
        if mark is not None:
            check_support(self.link.welcome)
            mark = mark.checked()
        if options is not None:
            check_delay(self.link.welcome)
        return self.link.encoder.publish(*content, request=request, mark=mark, options=options)

    # Subscribing.

    @overload
    def subscribe(
        self, filter: Topic, *, ack: Literal[True], durable: str | None = ..., prefetch: int | None = ...,
        ack_wait: float | None = ..., deliver: Deliver | None = ..., queue: QueueOptions | None = ...,
        where: Where | None = ..., syntax: Syntax = ..., pending_messages: int = ..., pending_bytes: int = ...,
    ) -> QueueSubscription: ...  # fmt: skip

    @overload
    def subscribe(
        self, filter: Topic, *, syntax: Syntax = ..., group: str | None = ..., no_echo: bool = ...,
        credit: int | None = ..., after: int | None = ..., pending_messages: int = ..., pending_bytes: int = ...,
        broker_pending_messages: int | None = ..., overflow: Overflow = ..., where: Where | None = ...,
        ack: bool = ...,
        durable: str | None = ..., prefetch: int | None = ..., ack_wait: float | None = ...,
        deliver: Deliver | None = ..., queue: QueueOptions | None = ...,
    ) -> Subscription: ...  # fmt: skip

    def subscribe(
        self,
        filter: Topic,
        *,
        syntax: Syntax = "amqp",
        group: str | None = None,
        no_echo: bool = False,
        credit: int | None = None,
        after: int | None = None,
        pending_messages: int = PENDING_MESSAGES,
        pending_bytes: int = PENDING_BYTES,
        broker_pending_messages: int | None = None,
        overflow: Overflow = "pause",
        where: Where | None = None,
        ack: bool = False,
        durable: str | None = None,
        prefetch: int | None = None,
        ack_wait: float | None = None,
        deliver: Deliver | None = None,
        queue: QueueOptions | None = None,
    ) -> Subscription:
        """A subscription: `async with client.subscribe(...) as sub`, or `sub = await client.subscribe(...)`.

        filter: with wildcards as its `syntax` spells them (docs/topics.md).
        group: each message goes to one of the subscriptions with this group, this filter and this selector.
        no_echo: not what this client itself publishes.
        credit: at most this number of messages arrive unread; more is granted as they are read.
        after: end after this number of messages.
        pending_messages, pending_bytes, overflow: the local queue's limits, and what happens when it is full:
            "pause",
            "drop_newest", "drop_oldest", "error" (see subscription.py).
        broker_pending_messages: with `credit`, how many may wait at the broker; None: its limit.
        where: only messages of which this selector is true, "price > 100 AND region IN ('eu', 'us')" or a dict in the
            form of EventBridge (docs/selectors.md). Names are headers; `payload.price` is a field of the body.
        ack: messages wait in a queue until they are acknowledged by `message.ack()`: see queue.py.
            It goes with `where`, which decides what comes into the queue, and with the following, and not with group,
            no_echo, credit, after and overflow.
        durable: the queue's name. All who subscribe with it share the queue's messages, and it stays when none of
            them is connected. Without a name the queue is this client's own, and ends soon after it.
        prefetch: at most this number of messages are here and unacknowledged; the broker's default is 100.
        ack_wait: seconds after which an unacknowledged message is delivered again; the broker's default is 30.
        deliver: what a new queue begins with: "new", with what is published from now on; "last", with the retained
            messages that match; `FromArchive(...)`, with archived ones from an offset or a time on. Then with what is
            published, without a gap. A queue that exists goes on where it is.
        queue: what a new queue is made with.

        Raises ValueError here; when entered or awaited InvalidFilter, InvalidSelector, LimitExceeded,
        ConnectionLost, RequestTimeout.
        """
        if ack:
            if group or no_echo or credit or after or broker_pending_messages or overflow != "pause":
                raise ValueError("ack=True goes with where, durable, prefetch, ack_wait, deliver and queue alone")
            return QueueSubscription(
                self, self._subscriptions, filter, syntax=syntax, durable=durable, prefetch=prefetch,
                ack_wait=ack_wait, deliver=deliver, queue=queue, where=where,
                pending_messages=pending_messages, pending_bytes=pending_bytes,
            )  # fmt: skip
        if durable is not None or prefetch is not None or ack_wait is not None or deliver or queue:
            raise ValueError("durable, prefetch, ack_wait, deliver and queue need ack=True")
        return Subscription(
            self,
            self._subscriptions,
            filter,
            syntax=syntax,
            group=group,
            no_echo=no_echo,
            credit=credit,
            after=after,
            pending_messages=pending_messages,
            pending_bytes=pending_bytes,
            broker_pending_messages=broker_pending_messages,
            overflow=overflow,
            where=where,
        )

    def replay(
        self,
        filter: Topic,
        *,
        offset: int | None = None,
        epoch: int | None = None,
        since: datetime | float | None = None,
        end: int | None = None,
        past_only: bool = False,
        where: Where | None = None,
        syntax: Syntax = "amqp",
        pending_messages: int = PENDING_MESSAGES,
        pending_bytes: int = PENDING_BYTES,
        overflow: Overflow = "pause",
    ) -> Replay:
        """A subscription that begins with what the broker has archived, and goes on with what is published: no gap
        between the two, and nothing twice. To be used as `subscribe`.

        offset, epoch: begin with this one; `epoch` makes sure that it still names the message that it named.
        since: begin with what came then, or later: a datetime with a time zone, or seconds since 1970 UTC.
            With neither, with the oldest message there is.
        end: end before the message of this offset, or with what was archived when it was asked for.
        past_only: end with what was archived when it was asked for.
        where: only messages of which this selector is true, as in `subscribe`; the archive has headers as text.

        Raises ValueError here; when entered or awaited as `subscribe`, and Unsupported where there is no archive,
        MessagesGone where what is asked for is not kept any more.
        """
        return Replay(
            self, self._subscriptions, filter, offset=offset, epoch=epoch, since=since, end=end,
            past_only=past_only, where=where, syntax=syntax, pending_messages=pending_messages,
            pending_bytes=pending_bytes, overflow=overflow,
        )  # fmt: skip

    # Waiting and ending.

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has processed everything sent before, up to `timeout` seconds.

        Raises ConnectionLost, RequestTimeout.
        """
        await self.link.answer(self.link.encoder.ping, timeout)

    async def drain(self, timeout: float | None = None) -> None:
        """End in good order: unsubscribe, let the program take what is queued, flush, close; in `timeout`
        seconds.

        To be called from another task than those that take messages. Raises DrainTimeout, when something was
        left; the client is closed then, too.
        """
        seconds = self.options.timeout if timeout is None else timeout
        subscriptions = self.subscriptions
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(subscription.drain(seconds) for subscription in subscriptions))
                if self.connected:
                    await self.flush(seconds)
        except (TimeoutError, ConnectionLost, ReadingPaused) as error:
            unread = sum(subscription.pending[0] for subscription in subscriptions)
            unsent = self.link.outbox.messages
            raise DrainTimeout(
                f"not drained within {seconds:g} s: {unread:,} messages unread, {unsent:,} unsent",
                details={"unread": unread, "unsent": unsent, "seconds": seconds},
            ) from error
        finally:
            await self.close()

    async def close(self) -> None:
        """Send what waits (for at most `close_timeout` seconds), say goodbye, close. May be called twice."""
        self._subscriptions.finish_all(SubscriptionEnded("the client was closed", code="closed"))
        await self.link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Called by the link and by subscriptions.

    def delivery_received(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> None:
        self.link.stats.delivered += 1
        if not self._subscriptions.delivered(frame, size) and not self._inbox.delivered(frame, size):
            self.link.stats.unclaimed += 1

    def replay_ended_received(self, frame: ReplayEnd) -> None:
        self._subscriptions.replay_ended(frame)

    def ended_received(self, frame: Ended) -> None:
        self._subscriptions.ended(frame)

    def consumer_info_received(self, frame: ConsumerInfo) -> None:
        self._subscriptions.informed(frame)

    async def resume(self) -> None:
        await self._subscriptions.resume()

    def reconnected(self) -> None:
        self.link.tasks.call(self.options.on_reconnect, self)

    def link_failed(self, error: FanlightError) -> None:
        self._subscriptions.finish_all(error)

    def __repr__(self) -> str:
        return f"<fanlight.Client {self.address} {self.link.state.name.lower()}>"
