"""The asyncio client: what programs call.

    async with fanlight.connect("fanlight://127.0.0.1:7420") as client:
        async with client.subscribe("stock.*.AAPL") as quotes:
            async for message in quotes: ...

What survives a lost connection: subscriptions (made again on the next one; what was published in between is missed)
and fire-and-forget messages not yet handed to the socket (sent on the next one, up to `pending_bytes`, beyond which
`publish` waits). What had been handed over may or may not have arrived: it is never sent twice, and
`client.stats.unconfirmed` counts it. Calls that await an answer raise ConnectionLost, and may be made again.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Literal, Self, overload

from . import topics
from .backoff import Backoff
from .codec import FRAME_BYTES, check_headers
from .errors import (
    BrokerError,
    ConnectionLost,
    DrainTimeout,
    FanlightError,
    InvalidTopic,
    ReadingPaused,
    SubscriptionEnded,
)
from .frames import Delivery, Ended, Headers
from .inbox import Inbox
from .link import Link, State
from .message import Message
from .options import Options, Overflow, SlowPolicy
from .serializers import BYTES, Serializer
from .stats import Stats
from .subscription import PENDING_BYTES, PENDING_MESSAGES, Subscription
from .topics import Syntax, Topic
from .url import Address, parse

DEFAULT_URL = "fanlight://127.0.0.1:7420"

# A publisher in a loop hands the loop a turn whenever so many bytes wait: one system call's worth, so that a tight
# loop of `await publish` neither starves the reader nor pays for a turn per message.
YIELD_BYTES = 128 * 1024


def connect(
    url: str = DEFAULT_URL,
    *,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    slow_policy: SlowPolicy | None = None,
    reconnect: bool | Backoff = True,
    retry_first_connect: bool = False,
    connect_timeout: float = 10.0,
    timeout: float = 10.0,
    close_timeout: float = 5.0,
    ping_interval: float = 15.0,
    pending_bytes: int = 8 * 1024 * 1024,
    pending_requests: int = 65_536,
    frame_bytes: int = FRAME_BYTES,
    serializer: Serializer = BYTES,
    on_disconnect: Callable[[FanlightError], Any] | None = None,
    on_reconnect: "Callable[[Client], Any] | None" = None,
    on_error: Callable[[FanlightError], Any] | None = None,
) -> "Connecting":
    """A connection to a broker: `async with fanlight.connect(url) as client`, or `client = await fanlight.connect(url)`.

    url: `fanlight://[user:password@]host[:port]`; `user` and `password` go before those in it.
    name: for the broker's logs and views, up to 64 bytes.
    slow_policy: what the broker does when this client falls behind; None: its listener's default.
    reconnect: True, False, or a Backoff. After a loss; the first connection fails at once unless `retry_first_connect`.
    connect_timeout, timeout, close_timeout: seconds to connect, to await any answer, to send the rest when closing.
    ping_interval: seconds between PINGs; a peer that is silent for two of them is given up.
    pending_bytes: unsent bytes held, connected or not; `publish` waits beyond.
    pending_requests: answers awaited at once; beyond, LimitExceeded.
    frame_bytes: the largest frame accepted from the broker.
    serializer: turns values into payloads: fanlight.BYTES, JSON, MSGPACK or your own.
    on_disconnect(error), on_reconnect(client), on_error(error): functions or coroutine functions, called on the loop;
        on_error gets what the broker refused of the things sent without awaiting an answer.

    Raises, when entered or awaited: InvalidURL, ConnectError, ConnectionLost, AuthenticationFailed, UnsupportedVersion.
    """
    options = Options(
        name=name,
        user=user,
        password=password,
        slow_policy=slow_policy,
        reconnect=reconnect if isinstance(reconnect, Backoff) else Backoff() if reconnect else None,
        retry_first_connect=retry_first_connect,
        connect_timeout=connect_timeout,
        timeout=timeout,
        close_timeout=close_timeout,
        ping_interval=ping_interval,
        pending_bytes=pending_bytes,
        pending_requests=pending_requests,
        frame_bytes=frame_bytes,
        serializer=serializer,
        on_disconnect=on_disconnect,
        on_reconnect=on_reconnect,
        on_error=on_error,
    )
    return Connecting(parse(url), options)


class Connecting:
    """What `connect` returns: to be awaited, or entered with `async with`, which closes it at the end."""

    def __init__(self, address: Address, options: Options) -> None:
        self._address = address
        self._options = options
        self._client: Client | None = None

    async def _open(self) -> "Client":
        client = Client(self._address, self._options)
        await client._link.open()
        return client

    def __await__(self) -> "Generator[Any, None, Client]":
        return self._open().__await__()

    async def __aenter__(self) -> "Client":
        self._client = await self._open()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()


class Client:
    """An open client; made by `connect`. Belongs to one event loop."""

    def __init__(self, address: Address, options: Options) -> None:
        self.options = options
        self.serializer = options.serializer
        self._link = Link(address, options, self)
        self._subscriptions: dict[int, Subscription] = {}
        self._last_number = 0
        self._inbox = Inbox(self, self._link)

    # What it is.

    @property
    def address(self) -> Address:
        return self._link.address

    @property
    def connected(self) -> bool:
        return self._link.state is State.CONNECTED

    @property
    def closed(self) -> bool:
        """Closed by `close`, or given up: no further attempt is made."""
        return self._link.state is State.CLOSED

    @property
    def stats(self) -> Stats:
        """Counters, live."""
        return self._link.stats

    @property
    def info(self) -> dict[str, Any]:
        """What the broker said in its last WELCOME: `server`, `connection`, `client`, `limits`, ..."""
        return dict(self._link.welcome.info) if self._link.welcome else {}

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """Those in force."""
        return tuple(self._subscriptions.values())

    @property
    def unsent(self) -> tuple[int, int]:
        """Fire-and-forget messages, and bytes of all frames, not yet handed to the socket."""
        return self._link.outbox.messages, self._link.outbox.size

    # Publishing.

    @overload
    async def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: Literal[False] = ..., serializer: Serializer | None = ...,
        timeout: float | None = ...,
    ) -> None: ...  # fmt: skip

    @overload
    async def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: Literal[True], serializer: Serializer | None = ...,
        timeout: float | None = ...,
    ) -> int: ...  # fmt: skip

    @overload
    async def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: bool, serializer: Serializer | None = ...,
        timeout: float | None = ...,
    ) -> int | None: ...  # fmt: skip

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
    ) -> int | None:
        """Publish a message.

        Without `receipt` it is put into the outbox, written within a turn of the loop, and None is returned; waits only
        while the outbox is full. What the broker refuses of it goes to `on_error`.
        With `receipt`, waits up to `timeout` seconds for the broker to accept it, and returns the number of subscriptions
        it was routed to.

        Raises TypeError and ValueError for what cannot be sent, FrameTooLarge, SerializationError, ConnectionClosed;
        with `receipt` also BrokerError, ConnectionLost, RequestTimeout.
        """
        link = self._link
        if receipt:
            make = self._publisher(topic, payload, headers, syntax, reply, serializer)
            routed = await link.answer(make, timeout)
            link.stats.published += 1
            return int(routed)
        if link.state is State.CLOSED or link.state is State.NEW:
            raise link.not_connected()
        link.post_message(self._publisher(topic, payload, headers, syntax, reply, serializer)(None))
        link.stats.published += 1
        if link.outbox.size >= YIELD_BYTES or link.outbox.full:
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
        """Publish (topic, payload) pairs, fire-and-forget, with the same headers and spelling; returns their number.

        Raises as `publish` does; what came before has been published.
        """
        count = 0
        if isinstance(messages, AsyncIterable):
            async for topic, payload in messages:
                await self.publish(topic, payload, headers=headers, syntax=syntax, serializer=serializer)
                count += 1
            return count
        for topic, payload in messages:
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
        return await self._within(timeout, send)  # type: ignore[no-any-return]

    def _publisher(
        self,
        topic: Topic,
        payload: Any,
        headers: Headers | None,
        syntax: Syntax,
        reply: Topic | None,
        serializer: Serializer | None,
    ) -> Callable[[int | None], bytes]:
        """The PUBLISH frame but for its request number, with everything checked."""
        serializer = serializer or self.serializer
        if serializer is not BYTES or type(payload) is not bytes:
            payload = serializer.encode(payload)
        if serializer.content_type is not None and (headers is None or "content-type" not in headers):
            headers = {**(headers or {}), "content-type": serializer.content_type}
        if headers is not None:
            check_headers(headers)
        if type(topic) is not str:
            topic = topics.checked(topic)
        if reply is not None:
            reply = topics.checked(reply)
        spelling = 0 if syntax == "amqp" else topics.number(syntax)

        def frame(request: int | None) -> bytes:
            try:
                return self._link.encoder.publish(topic, payload, headers, spelling, reply, request)
            except UnicodeEncodeError as error:
                raise InvalidTopic(f"topic or header is not text: {error}", details={"position": error.start}) from None

        return frame

    # Subscribing.

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
    ) -> Subscription:
        """A subscription: `async with client.subscribe(...) as sub`, or `sub = await client.subscribe(...)`.

        filter: with wildcards as its `syntax` spells them (docs/topics.md).
        group: each message goes to one of the subscriptions with this group and this filter.
        no_echo: not what this client itself publishes.
        credit: at most so many messages come that were not taken; more is granted as they are.
        after: end after so many messages.
        pending_messages, pending_bytes, overflow: the local queue's limits, and what happens when it is full: "pause",
            "drop_newest", "drop_oldest", "error" (see subscription.py).
        broker_pending_messages: with `credit`, how many may wait at the broker; None: its limit.

        Raises ValueError here; when entered or awaited InvalidFilter, LimitExceeded, ConnectionLost, RequestTimeout.
        """
        return Subscription(
            self,
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
        )

    async def _begin(self, subscription: Subscription) -> None:
        number = self._next_number()
        subscription._number = number
        self._subscriptions[number] = subscription  # before OK: messages may come right behind it
        try:
            await self._within(None, self._subscribe_confirmed(number, subscription))
        except BaseException as error:
            self._subscriptions.pop(number, None)
            subscription._number = None
            if not isinstance(error, BrokerError):  # given up here, and perhaps in force there
                self._link.post(self._link.encoder.unsubscribe(None, number))
            raise
        subscription._confirmed = True

    async def _subscribe_confirmed(self, number: int, subscription: Subscription) -> None:
        while True:
            await self._link.connected()
            try:
                await self._ask_subscribe(number, subscription)
                return
            except ConnectionLost:
                if self._link.state is not State.RECONNECTING:
                    raise

    def _ask_subscribe(self, number: int, subscription: Subscription) -> "asyncio.Future[Any]":
        options = subscription._options() or {}
        return self._link.ask(
            lambda request: self._link.encoder.subscribe(request, number, subscription.filter, options)
        )

    async def _end(self, subscription: Subscription, after: int | None) -> None:
        number = subscription._number
        if number is None or self._subscriptions.get(number) is not subscription:
            return
        if self._link.state is not State.CONNECTED:
            if not after:
                self._forget(subscription)
            return  # said in the SUBSCRIBE of the next connection
        result = await self._within(
            None, self._link.ask(lambda request: self._link.encoder.unsubscribe(request, number, after))
        )
        if not after:
            dropped = result.get("dropped", 0) if isinstance(result, dict) else 0
            self._forget(subscription, dropped_by_broker=dropped if isinstance(dropped, int) else 0)

    def _forget(self, subscription: Subscription, *, dropped_by_broker: int = 0) -> None:
        if subscription._number is not None:
            self._subscriptions.pop(subscription._number, None)
        subscription._finish(
            SubscriptionEnded(f"the subscription to {subscription.filter!r} has ended"),
            dropped_by_broker=dropped_by_broker,
        )

    def _grant(self, subscription: Subscription, messages: int) -> None:
        if subscription._number in self._subscriptions:
            self._link.post(self._link.encoder.credit(subscription._number, messages))

    def _next_number(self) -> int:
        self._last_number += 1  # 2**32 of them outlast any process
        return self._last_number

    # Waiting and ending.

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has processed everything sent before, up to `timeout` seconds.

        Raises ConnectionLost, RequestTimeout.
        """
        await self._link.answer(self._link.encoder.ping, timeout)

    async def drain(self, timeout: float | None = None) -> None:
        """End in good order: unsubscribe, let the program take what is queued, flush, close; in `timeout` seconds.

        To be called from another task than those that take messages. Raises DrainTimeout, when something was left; the
        client is closed then, too.
        """
        seconds = self.options.timeout if timeout is None else timeout
        subscriptions = self.subscriptions
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(subscription.drain(seconds) for subscription in subscriptions))
                if self.connected:
                    await self.flush(seconds)
        except (TimeoutError, ConnectionLost) as error:
            unread = sum(subscription.pending[0] for subscription in subscriptions)
            unsent = self._link.outbox.messages
            raise DrainTimeout(
                f"not drained within {seconds:g} s: {unread:,} messages unread, {unsent:,} unsent",
                details={"unread": unread, "unsent": unsent, "seconds": seconds},
            ) from error
        finally:
            await self.close()

    async def close(self) -> None:
        """Send what waits (for at most `close_timeout` seconds), say goodbye, close. May be called twice."""
        self._finish_all(SubscriptionEnded("the client was closed", code="closed"))
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _within(self, timeout: float | None, awaitable: Any) -> Any:
        return await self._link.within(timeout, awaitable)

    # Called by the link and by subscriptions.

    def delivery_received(self, frame: Delivery, size: int) -> None:
        self._link.stats.delivered += 1
        subscription = self._subscriptions.get(frame.subscription)
        if subscription is not None:
            subscription._deliver(frame, size)
        elif not self._inbox.delivered(frame, size):
            self._link.stats.unclaimed += 1

    def ended_received(self, frame: Ended) -> None:
        subscription = self._subscriptions.pop(frame.subscription, None)
        if subscription is not None:
            subscription._finish_ended(frame)

    async def resume(self) -> None:
        """Subscribe again on a new connection; a filter that is refused now ends its subscription with that error."""
        asked: list[tuple[Subscription, asyncio.Future[Any]]] = []
        for number, subscription in list(self._subscriptions.items()):
            if not subscription._confirmed:
                continue  # its own caller asks again
            if subscription._options() is None:
                self._forget(subscription)
            else:
                asked.append((subscription, self._ask_subscribe(number, subscription)))
        if not asked:
            return
        await asyncio.wait([future for _, future in asked], timeout=self.options.timeout)
        for subscription, future in asked:
            error = future.exception() if future.done() else None
            if isinstance(error, ConnectionLost):
                raise error
            if error is not None and not isinstance(error, ReadingPaused):
                self._subscriptions.pop(subscription._number or 0, None)
                subscription._finish(error if isinstance(error, FanlightError) else FanlightError(str(error)))

    def reconnected(self) -> None:
        self._link.call_hook(self.options.on_reconnect, self)

    def link_failed(self, error: FanlightError) -> None:
        self._finish_all(error)

    def _finish_all(self, error: FanlightError) -> None:
        for subscription in list(self._subscriptions.values()):
            subscription._finish(error)
        self._subscriptions.clear()

    def _hold(self, subscription: Subscription, *, bursting: bool) -> None:
        self._link.hold(subscription, bursting=bursting)

    def _release(self, subscription: Subscription) -> None:
        self._link.release(subscription)

    def __repr__(self) -> str:
        return f"<fanlight.Client {self.address} {self._link.state.name.lower()}>"


__all__ = ["DEFAULT_URL", "Client", "Connecting", "connect"]
