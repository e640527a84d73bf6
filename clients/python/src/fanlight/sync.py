"""The same client without `async`: the same names, blocking, for programs and threads that have no event
loop.

    with fanlight.sync.connect("fanlight://127.0.0.1:7420") as client:
        with client.subscribe("stock.*.AAPL") as quotes:
            client.publish("stock.nasdaq.AAPL", b"189.95")
            for message in quotes: ...

Each client has one background thread with an event loop of its own, in which the asyncio client runs; a call
is handed over and waited for. Clients and subscriptions may be used by several threads at once. `close` ends
the thread.
Fire-and-forget `publish` does not wait for that thread, unless 128 kB are on their way to it.
"""

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, overload
from weakref import WeakValueDictionary

from . import connecting
from . import tls as certificates
from .background import LoopThread
from .backoff import Backoff
from .client import Client as AsyncClient
from .client import pair
from .codec import FRAME_BYTES
from .connecting import DEFAULT_URL
from .delay import check_support as check_delay
from .delay import options_of
from .delayed import LISTED, PAYLOAD_BYTES, DelayedMessage, DelayedMessages
from .errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectError,
    ConnectionClosed,
    ConnectionLost,
    DrainTimeout,
    FanlightError,
    FrameTooLarge,
    InvalidFilter,
    InvalidSelector,
    InvalidTopic,
    InvalidURL,
    LimitExceeded,
    MessagesGone,
    MessageTimeout,
    NoResponders,
    NoSuchQueue,
    NoSuchSubscription,
    NotPermitted,
    ProtocolError,
    ProtocolViolation,
    QueueFull,
    QueueInUse,
    QueueNotEmpty,
    ReadingPaused,
    ReplayFailed,
    RequestTimeout,
    SerializationError,
    SubscriptionEnded,
    SubscriptionInUse,
    SubscriptionOverflow,
    Unsupported,
    UnsupportedVersion,
)
from .frames import Headers
from .handoff import Handoff
from .marks import Mark, Routed, check_support
from .options import Overflow, SlowPolicy, Where
from .queue import Deliver, FromArchive, QueueOptions
from .queue import QueueSubscription as AsyncQueueSubscription
from .queues import Moved, QueueInfo, QueueState, WaitingMessage
from .replay import Replay as AsyncReplay
from .serializers import BYTES, JSON, MSGPACK, Serializer
from .stats import Stats, SubscriptionStats
from .subscription import PENDING_BYTES, PENDING_MESSAGES
from .subscription import Subscription as AsyncSubscription
from .sync_message import Message, QueueMessage
from .sync_queues import Queues
from .sync_subscription import QueueSubscription, Replay, Subscription
from .topics import Syntax, Topic
from .url import Address

# What `fanlight` has, but for `Connecting`: here `connect` returns when the connection is open.
__all__ = [
    "BYTES",
    "DEFAULT_URL",
    "JSON",
    "MSGPACK",
    "AuthenticationFailed",
    "Backoff",
    "BrokerError",
    "Client",
    "ConnectError",
    "ConnectionClosed",
    "ConnectionLost",
    "DelayedMessage",
    "DelayedMessages",
    "DrainTimeout",
    "FanlightError",
    "FrameTooLarge",
    "FromArchive",
    "InvalidFilter",
    "InvalidSelector",
    "InvalidTopic",
    "InvalidURL",
    "LimitExceeded",
    "Mark",
    "Message",
    "MessageTimeout",
    "MessagesGone",
    "Moved",
    "NoResponders",
    "NoSuchQueue",
    "NoSuchSubscription",
    "NotPermitted",
    "ProtocolError",
    "ProtocolViolation",
    "QueueFull",
    "QueueInUse",
    "QueueInfo",
    "QueueMessage",
    "QueueNotEmpty",
    "QueueOptions",
    "QueueState",
    "QueueSubscription",
    "ReadingPaused",
    "Replay",
    "ReplayFailed",
    "RequestTimeout",
    "Routed",
    "SerializationError",
    "Serializer",
    "Stats",
    "Subscription",
    "SubscriptionEnded",
    "SubscriptionInUse",
    "SubscriptionOverflow",
    "SubscriptionStats",
    "Unsupported",
    "UnsupportedVersion",
    "WaitingMessage",
    "connect",
]  # fmt: skip

def connect(
    url: str = DEFAULT_URL,
    *,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ca: certificates.Path | None = None,
    certificate: certificates.Path | None = None,
    key: certificates.Path | None = None,
    tls: ssl.SSLContext | None = None,
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
    on_reconnect: Callable[[AsyncClient], Any] | None = None,
    on_error: Callable[[FanlightError], Any] | None = None,
) -> "Client":
    """An open client: to be used in `with`, or closed. Options and errors as in `fanlight.connect`.

    The hooks run on the background thread, and may not make blocking calls to this client.
    """
    opening = connecting.connect(
        url,
        name=name,
        user=user,
        password=password,
        ca=ca,
        certificate=certificate,
        key=key,
        tls=tls,
        slow_policy=slow_policy,
        reconnect=reconnect,
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
    thread = LoopThread()
    try:
        return Client(thread, thread.run(opening.open()))
    except BaseException:
        thread.stop()
        raise


class Client:
    """An open client; made by `connect`. May be used by several threads."""

    def __init__(self, thread: LoopThread, client: AsyncClient) -> None:
        self._thread = thread
        self._inner = client
        self._handoff = Handoff(client.link, thread.loop)
        self._subscriptions: WeakValueDictionary[AsyncSubscription, Subscription] = WeakValueDictionary()
        self._naming = threading.Lock()  # one face for each subscription, whoever asks first
        self._queues = Queues(thread, client.queues)
        self.options = client.options

    @property
    def address(self) -> Address:
        return self._inner.address

    @property
    def connected(self) -> bool:
        return self._inner.connected

    @property
    def closed(self) -> bool:
        return self._inner.closed

    @property
    def stats(self) -> Stats:
        """Counters, live."""
        return self._inner.stats

    @property
    def info(self) -> dict[str, Any]:
        """What the broker said in its last WELCOME."""
        return self._inner.info

    @property
    def queues(self) -> Queues:
        """As `fanlight.Client.queues`."""
        return self._queues

    def cancel(self, message: Routed | int, *, timeout: float | None = None) -> bool:
        """As `fanlight.Client.cancel`."""
        return self._thread.run(self._inner.cancel(message, timeout=timeout))

    def delayed(
        self, count: int = LISTED, *, payload_bytes: int = PAYLOAD_BYTES, timeout: float | None = None
    ) -> DelayedMessages:
        """As `fanlight.Client.delayed`."""
        return self._thread.run(self._inner.delayed(count, payload_bytes=payload_bytes, timeout=timeout))

    @property
    def subscriptions(self) -> "tuple[Subscription, ...]":
        """Those in force."""
        return tuple(self._blocking(each) for each in self._inner.subscriptions)

    def _blocking(self, subscription: AsyncSubscription) -> "Subscription":
        with self._naming:
            known = self._subscriptions.get(subscription)
            if known is None:  # a new one, or one without other references
                kind: type[Subscription] = Subscription
                if isinstance(subscription, AsyncReplay):
                    kind = Replay
                elif isinstance(subscription, AsyncQueueSubscription):
                    kind = QueueSubscription
                known = self._subscriptions[subscription] = kind(self, self._thread, subscription)
            return known

    @property
    def unsent(self) -> tuple[int, int]:
        """Fire-and-forget messages, and bytes of all frames, not yet handed to the socket."""
        messages, size = self._inner.unsent
        waiting, waiting_size = self._handoff.waiting
        return messages + waiting, size + waiting_size

    @overload
    def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: Literal[False] = ..., serializer: Serializer | None = ...,
        timeout: float | None = ..., mark: Mark | None = ..., delay: float | None = ...,
        deliver_at: datetime | float | None = ...,
    ) -> None: ...  # fmt: skip

    @overload
    def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: Literal[True], serializer: Serializer | None = ...,
        timeout: float | None = ..., mark: Mark | None = ..., delay: float | None = ...,
        deliver_at: datetime | float | None = ...,
    ) -> Routed: ...  # fmt: skip

    @overload
    def publish(
        self, topic: Topic, payload: Any = ..., *, headers: Headers | None = ..., syntax: Syntax = ...,
        reply: Topic | None = ..., receipt: bool, serializer: Serializer | None = ...,
        timeout: float | None = ..., mark: Mark | None = ..., delay: float | None = ...,
        deliver_at: datetime | float | None = ...,
    ) -> Routed | None: ...  # fmt: skip

    def publish(
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
        """As `fanlight.Client.publish`."""
        if receipt:
            publishing = self._inner.publish(
                topic, payload, headers=headers, syntax=syntax, reply=reply, receipt=True, serializer=serializer,
                timeout=timeout, mark=mark, delay=delay, deliver_at=deliver_at,
            )  # fmt: skip
            return self._thread.run(publishing)
        if self._inner.closed:
            raise self._inner.link.not_connected()
        content = self._inner.content(topic, payload, headers, syntax, reply, serializer)
        if mark is not None:
            check_support(self._inner.link.welcome)
            mark = mark.checked()
        options = options_of(delay, deliver_at) if delay or deliver_at else None
        if options is not None:
            check_delay(self._inner.link.welcome)
        try:
            full = self._handoff.put(*content, mark=mark, options=options)
        except RuntimeError:  # the loop is closed
            raise ConnectionClosed("the client is closed") from None
        if full:
            self._thread.run(self._handoff.settle())
        return None

    def publish_many(
        self,
        messages: Iterable[tuple[Topic, Any]],
        *,
        headers: Headers | None = None,
        syntax: Syntax = "amqp",
        serializer: Serializer | None = None,
    ) -> int:
        """As `fanlight.Client.publish_many`."""
        count = 0
        for item in messages:
            topic, payload = pair(item, count)
            self.publish(topic, payload, headers=headers, syntax=syntax, serializer=serializer)
            count += 1
        return count

    def request(
        self,
        topic: Topic,
        payload: Any = b"",
        *,
        timeout: float | None = None,
        headers: Headers | None = None,
        syntax: Syntax = "amqp",
        serializer: Serializer | None = None,
    ) -> Message:
        """As `fanlight.Client.request`."""
        answer = self._thread.run(
            self._inner.request(topic, payload, timeout=timeout, headers=headers, syntax=syntax, serializer=serializer)
        )
        return Message(answer, self)

    @overload
    def subscribe(
        self, filter: Topic, *, ack: Literal[True], durable: str | None = ..., prefetch: int | None = ...,
        ack_wait: float | None = ..., deliver: Deliver | None = ..., queue: QueueOptions | None = ...,
        where: Where | None = ..., syntax: Syntax = ..., pending_messages: int = ..., pending_bytes: int = ...,
    ) -> "QueueSubscription": ...  # fmt: skip

    @overload
    def subscribe(
        self, filter: Topic, *, syntax: Syntax = ..., group: str | None = ..., no_echo: bool = ...,
        credit: int | None = ..., after: int | None = ..., pending_messages: int = ..., pending_bytes: int = ...,
        broker_pending_messages: int | None = ..., overflow: Overflow = ..., where: Where | None = ...,
        ack: bool = ...,
        durable: str | None = ..., prefetch: int | None = ..., ack_wait: float | None = ...,
        deliver: Deliver | None = ..., queue: QueueOptions | None = ...,
    ) -> "Subscription": ...  # fmt: skip

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
    ) -> "Subscription":
        """As `fanlight.Client.subscribe`, in force when this returns."""
        subscription = self._inner.subscribe(
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
            ack=ack,
            durable=durable,
            prefetch=prefetch,
            ack_wait=ack_wait,
            deliver=deliver,
            queue=queue,
        )
        self._thread.run(subscription.begin())
        return self._blocking(subscription)

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
    ) -> "Replay":
        """As `fanlight.Client.replay`, begun when this returns."""
        replay = self._inner.replay(
            filter, offset=offset, epoch=epoch, since=since, end=end, past_only=past_only, where=where, syntax=syntax
        )
        self._thread.run(replay.begin())
        found = self._blocking(replay)
        assert isinstance(found, Replay)
        return found

    def flush(self, timeout: float | None = None) -> None:
        """As `fanlight.Client.flush`."""
        self._thread.run(self._inner.flush(timeout))

    def drain(self, timeout: float | None = None) -> None:
        """As `fanlight.Client.drain`: other threads take what is queued. Closes."""
        try:
            self._thread.run(self._inner.drain(timeout))
        finally:
            self._thread.stop()

    def close(self) -> None:
        """As `fanlight.Client.close`; the background thread has ended when this returns. May be called
        twice."""
        try:
            with contextlib.suppress(ConnectionClosed):  # a second time
                self._thread.run(self._inner.close())
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<fanlight.sync.Client of {self._inner!r}>"
