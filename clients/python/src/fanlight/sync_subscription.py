"""The subscriptions of the blocking client: the same names as the asyncio client's, each with a subscription of it."""

import contextlib
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .background import LoopThread
from .errors import ConnectionClosed, SubscriptionEnded
from .frames import Replayed
from .message import Message as AsyncMessage
from .queue import QueueMessage as AsyncQueueMessage
from .queue import QueueSubscription as AsyncQueueSubscription
from .replay import Replay as AsyncReplay
from .stats import SubscriptionStats
from .subscription import Subscription as AsyncSubscription
from .sync_message import Message, QueueMessage
from .topics import SyntaxName

if TYPE_CHECKING:
    from .sync import Client

# Messages fetched from the loop's thread in one trip, where they wait already. Not with credit: there, what
# is taken is what the program has really asked for.
BATCH_MESSAGES = 100


class Subscription:
    """A subscription in force; made by `Client.subscribe`. Iterating blocks, and ends when it does."""

    def __init__(self, client: "Client", thread: LoopThread, subscription: AsyncSubscription) -> None:
        self.client = client
        self._thread = thread
        self._inner = subscription
        self._fetched: deque[AsyncMessage] = deque()

    @property
    def filter(self) -> str:
        return self._inner.filter

    @property
    def syntax(self) -> SyntaxName:
        return self._inner.syntax

    @property
    def stats(self) -> SubscriptionStats:
        """Counters, live."""
        return self._inner.stats

    @property
    def pending(self) -> tuple[int, int]:
        """Messages and bytes waiting to be taken."""
        messages, size = self._inner.pending
        fetched = list(self._fetched)
        return messages + len(fetched), size + sum(message.size for message in fetched)

    def next(self, timeout: float | None = None) -> Message:
        """As `fanlight.Subscription.next`."""
        try:
            message = self._fetched.popleft()
        except IndexError:
            message = self._thread.run(self._fetch(timeout))
        return Message(message, self.client, self)

    async def _fetch(self, timeout: float | None) -> AsyncMessage:
        message = await self._inner.next(timeout)
        if self._inner.credit is None and not isinstance(self._inner, AsyncQueueSubscription):
            self._fetched.extend(self._inner.take_queued(BATCH_MESSAGES - 1))
        return message

    def unsubscribe(self, after: int | None = None) -> None:
        """As `fanlight.Subscription.unsubscribe`."""
        self._thread.run(self._inner.unsubscribe(after))

    def drain(self, timeout: float | None = None) -> None:
        """As `fanlight.Subscription.drain`: other threads take what is queued."""
        self._thread.run(self._inner.drain(timeout))

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        try:
            return self.next()
        except SubscriptionEnded:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ConnectionClosed):  # its client was closed first
            self._thread.run(self._inner.leave())

    def __repr__(self) -> str:
        return f"<fanlight.sync.Subscription {self.filter!r}>"


class QueueSubscription(Subscription):
    """Made by `Client.subscribe(..., ack=True)`: its messages are to be acknowledged."""

    _inner: AsyncQueueSubscription

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._inner.queue

    @property
    def active(self) -> bool:
        """As `fanlight.QueueSubscription.active`."""
        return self._inner.active

    @property
    def paused(self) -> bool:
        """As `fanlight.QueueSubscription.paused`."""
        return self._inner.paused

    def wait_active(self, timeout: float | None = None) -> None:
        """As `fanlight.QueueSubscription.wait_active`."""
        self._thread.run(self._inner.wait_active(timeout))

    def pause(self) -> None:
        """As `fanlight.QueueSubscription.pause`."""
        self._thread.run(self._inner.pause())

    def resume(self) -> None:
        """As `fanlight.QueueSubscription.resume`."""
        self._thread.run(self._inner.resume())

    def change(
        self, *, prefetch: int | None = None, ack_wait: float | None = None, paused: bool | None = None
    ) -> None:
        """As `fanlight.QueueSubscription.change`."""
        self._thread.run(self._inner.change(prefetch=prefetch, ack_wait=ack_wait, paused=paused))

    def next(self, timeout: float | None = None) -> QueueMessage:
        """As `fanlight.QueueSubscription.next`."""
        message = self._thread.run(self._inner.next(timeout))
        assert isinstance(message, AsyncQueueMessage)
        return QueueMessage(message, self.client, self)

    def __iter__(self) -> Iterator[QueueMessage]:
        return self

    def __next__(self) -> QueueMessage:
        try:
            return self.next()
        except SubscriptionEnded:
            raise StopIteration from None


class Replay(Subscription):
    """Made by `Client.replay`: what the broker has archived, then what is published."""

    _inner: AsyncReplay

    @property
    def live(self) -> bool:
        return self._inner.live

    @property
    def next_offset(self) -> int | None:
        return self._inner.next_offset

    @property
    def epoch(self) -> int | None:
        return self._inner.epoch

    def archived(self, at_most: int) -> list[Replayed]:
        """As `fanlight.Replay.archived`."""
        return self._thread.run(self._inner.archived(at_most))
