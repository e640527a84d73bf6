"""A subscription: a bounded queue between the connection and the program, and what happens when it is full.

    overflow       when `pending_messages` or `pending_bytes` is reached
    "pause"        stop reading from the socket until half is taken; the broker's slow policy then decides.
    Nothing
                   is lost here. It holds up the whole connection: give a slow consumer `credit`, or its own
                   client.
    "drop_newest"  drop what arrives, as is any single message above `pending_bytes`
    "drop_oldest"  drop what waits longest
    "error"        drop what arrives, and raise SubscriptionOverflow to the consumer

While an answer to this client is awaited, a "pause" subscription may grow to twice its limits, because the
answer may come behind the messages; then `ReadingPaused` is raised to whoever awaits.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import topics
from .errors import (
    ConnectionLost,
    FanlightError,
    MessageTimeout,
    NotPermitted,
    ReadingPaused,
    RequestTimeout,
    SubscriptionEnded,
    SubscriptionOverflow,
    Unsupported,
)
from .frames import Delivery, Ended, QueueDelivery, Replayed
from .message import Message
from .options import Overflow, Where
from .stats import SubscriptionStats

if TYPE_CHECKING:
    from .client import Client
    from .codec import Encoder
    from .subscriptions import Subscriptions

PENDING_MESSAGES = 65_536
PENDING_BYTES = 16 * 1024 * 1024
FEATURE = "where"

_OVERFLOWS = ("pause", "drop_newest", "drop_oldest", "error")


def check_selectors(info: Mapping[str, Any]) -> None:
    """Raises Unsupported if the broker with this WELCOME has no selectors: it would ignore one."""
    if FEATURE not in (info.get("features") or ()):
        raise Unsupported("this broker has no selectors: do without `where`", code="unsupported")


class Subscription:
    """Made by `client.subscribe`; in force inside `async with`, or once awaited."""

    message_type: type[Message] = Message

    def __init__(
        self,
        client: "Client",
        table: "Subscriptions",
        filter: topics.Topic,
        *,
        syntax: topics.Syntax,
        group: str | None,
        no_echo: bool,
        credit: int | None,
        after: int | None,
        pending_messages: int,
        pending_bytes: int,
        broker_pending_messages: int | None,
        overflow: Overflow,
        where: Where | None = None,
    ) -> None:
        if overflow not in _OVERFLOWS:
            raise ValueError(f"overflow is one of {', '.join(_OVERFLOWS)}; got {overflow!r}")
        if pending_messages < 1 or pending_bytes < 1:
            raise ValueError("pending_messages and pending_bytes must be at least 1")
        if credit is not None and credit < 1:
            raise ValueError(f"credit must be at least 1; got {credit}")
        if after is not None and after < 1:
            raise ValueError(f"after must be at least 1; got {after}")
        self.client = client
        self.number: int | None = None
        self.confirmed = False  # by the broker's OK, once: made again on each later connection
        self._table = table
        self.wire_filter = topics.checked(filter)
        self.stats = SubscriptionStats()
        self._syntax = topics.number(syntax)
        self._group = group
        self._no_echo = no_echo
        self.credit = credit
        self._after = after
        self._broker_pending = broker_pending_messages
        self._where = where
        # Credit already bounds what can arrive: the queue has room for all of it.
        self._limit = max(pending_messages, credit or 0)
        self._limit_bytes = pending_bytes
        self._overflow: Overflow = overflow
        self._queue: deque[Message] = deque()
        self._bytes = 0
        self._consumers: deque[asyncio.Future[None]] = deque()
        self._leaving = False  # its block was left: nobody will take what comes
        self._granting = 0  # taken since credit was last given back
        self._holding = False
        self._overflowed: SubscriptionOverflow | None = None
        self._ended: FanlightError | None = None
        self._emptied: asyncio.Future[None] | None = None

    # Beginning and ending.

    def __await__(self) -> Generator[Any, None, Self]:
        return self.begin().__await__()

    async def __aenter__(self) -> Self:
        return await self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """End it, and forget what is queued; what leaving its block does."""
        self._leaving = True
        self._release()
        try:
            await self.unsubscribe()
        except (ConnectionLost, ReadingPaused, RequestTimeout):
            # It is over for this side whatever the broker has heard: it forgets with the connection at the
            # latest.
            self._table.forget(self)

    async def begin(self) -> Self:
        """Subscribe, and wait for the broker's OK; what awaiting it does."""
        if self.number is None:
            await self._table.begin(self)
        return self

    async def unsubscribe(self, after: int | None = None) -> None:
        """End it: now, or when the broker has delivered `after` messages, counted from its start.

        What is queued can still be taken; then iterating ends. When the queue is full and overflow is
        "pause", this waits until another task has made room in it.
        Raises RequestTimeout, ConnectionLost.
        """
        if self._ended is None and self.number is not None:
            if after:
                self._after = after
            await self._table.end(self, after, patient=not self._leaving)

    async def drain(self, timeout: float | None = None) -> None:
        """Unsubscribe, and wait until everything queued was taken. Raises RequestTimeout."""
        await self.unsubscribe()
        if self._queue:
            if self._emptied is None:
                self._emptied = asyncio.get_running_loop().create_future()
            await self._table.within(timeout, asyncio.shield(self._emptied))

    @property
    def filter(self) -> str:
        """As it was given; octets that are not UTF-8 as in `message.topic`."""
        return topics.text(self.wire_filter)

    @property
    def syntax(self) -> topics.SyntaxName:
        return topics.NAMES[self._syntax]

    @property
    def pending(self) -> tuple[int, int]:
        """Messages and bytes waiting to be taken."""
        return len(self._queue), self._bytes

    # Taking.

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        if self._overflowed is not None:
            self._raise_overflow()
        while not self._queue:
            if self._overflowed is not None:
                self._raise_overflow()
            if self._ended is not None:
                if isinstance(self._ended, SubscriptionEnded):
                    raise StopAsyncIteration
                raise self._ended
            await self._arrival()
        return self._take()

    async def next(self, timeout: float | None = None) -> Message:
        """The next message; waits `timeout` seconds for it, or without a bound if that is None.

        Raises MessageTimeout, SubscriptionEnded, SubscriptionOverflow, ConnectionLost.
        """
        try:
            if timeout is None or self._queue:
                return await self.__anext__()
            async with asyncio.timeout(timeout):
                return await self.__anext__()
        except StopAsyncIteration:
            raise SubscriptionEnded(f"the subscription to {self.filter!r} has ended") from None
        except FanlightError:
            raise  # why it ended: some of them are TimeoutErrors
        except TimeoutError as error:
            raise MessageTimeout(
                f"no message on {self.filter!r} within {timeout:g} s", details={"seconds": timeout}
            ) from error

    async def _arrival(self) -> None:
        if self.number is None:
            raise FanlightError(
                f"the subscription to {self.filter!r} was not begun: use `async with`, or await it",
                code="not_begun",
            )
        consumer = asyncio.get_running_loop().create_future()
        self._consumers.append(consumer)
        try:
            await consumer
        except asyncio.CancelledError:
            if consumer.done() and not consumer.cancelled():
                self._wake()  # it was for us, and we leave: to the next one
            elif consumer in self._consumers:  # else a message that came after the cancellation has passed over it
                self._consumers.remove(consumer)
            raise

    def take_queued(self, at_most: int) -> list[Message]:
        """Up to `at_most` messages that wait already."""
        return [self._take() for _ in range(min(at_most, len(self._queue)))]

    def _take(self) -> Message:
        message = self._queue.popleft()
        self._bytes -= message.size
        self.stats.taken += 1
        if self.credit is not None:
            self._give_back_credit()
        if self._holding and 2 * len(self._queue) <= self._limit and 2 * self._bytes <= self._limit_bytes:
            self._release()
        if not self._queue:
            if self._emptied is not None and not self._emptied.done():
                self._emptied.set_result(None)
        elif self._consumers:
            self._wake()
        return message

    def _give_back_credit(self) -> None:
        assert self.credit is not None
        self._granting += 1
        # In halves: one frame for many messages, and the broker need never wait for the last one to be taken.
        if 2 * self._granting >= self.credit and self._ended is None:
            self._table.grant(self, self._granting)
            self._granting = 0

    def forget_queued(self) -> None:
        """Drop what was not taken."""
        self._queue.clear()
        self._bytes = 0
        self._release()

    def _raise_overflow(self) -> None:
        error, self._overflowed = self._overflowed, None
        if error is not None:
            raise error

    def _wake(self) -> None:
        while self._consumers:
            consumer = self._consumers.popleft()
            if not consumer.done():
                consumer.set_result(None)
                return

    # Called by the client.

    def deliver(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> None:
        self.stats.delivered += 1
        if self._leaving:
            self._table.count_unclaimed()
            return
        if self._overflow != "pause" and self._full_with(size) and not self._make_room(size):
            return
        self._queue.append(self.message_type(frame, self, size))
        self._bytes += size
        if self._consumers:
            self._wake()
        if self._overflow == "pause" and (len(self._queue) >= self._limit or self._bytes >= self._limit_bytes):
            self._holding = True
            bursting = len(self._queue) >= 2 * self._limit or self._bytes >= 2 * self._limit_bytes
            self._table.hold(self, bursting=bursting)

    def _full_with(self, size: int) -> bool:
        return len(self._queue) >= self._limit or self._bytes + size > self._limit_bytes

    def _make_room(self, size: int) -> bool:
        """The queue is full. Whether the message that came is to be let in."""
        if self._overflow == "drop_oldest" and size <= self._limit_bytes:
            while self._queue and self._full_with(size):
                self._bytes -= self._queue.popleft().size
                self._dropped()
            return True
        self._dropped()
        if self._overflow == "error":
            self._overflowed = SubscriptionOverflow(
                f"{self.filter!r}: the queue is full ({len(self._queue):,} messages, {self._bytes:,} bytes); "
                f"{self.stats.dropped:,} dropped so far",
                details={"messages": len(self._queue), "bytes": self._bytes, "dropped": self.stats.dropped},
            )
        return False

    def _dropped(self) -> None:
        self.stats.dropped += 1
        self._table.count_dropped()
        if self.credit is not None:
            self._give_back_credit()

    def _release(self) -> None:
        if self._holding:
            self._holding = False
            self._table.release(self)

    def request_frame(self, encoder: "Encoder", request: int, number: int) -> bytes:
        """What puts it in force on a connection. Raises BrokerError if this broker cannot."""
        self._check_where()
        return encoder.subscribe(request, number, self.wire_filter, self.wire_options() or {})

    def _check_where(self) -> None:
        """Raises Unsupported if this broker would ignore the selector, and send everything."""
        if self._where is not None:
            check_selectors(self.client.info)

    def answered(self, result: dict[str, Any]) -> None:
        """OK has come, with this."""

    def informed(self, info: dict[str, Any]) -> None:
        """CONSUMER_INFO has come, with this."""

    def wire_options(self) -> dict[str, Any] | None:
        """What SUBSCRIBE says, now; None when it had all its messages before."""
        after = None
        if self._after is not None:
            after = self._after - self.stats.delivered
            if after <= 0:
                return None
        credit = None
        if self.credit is not None:
            self._granting = 0
            credit = max(0, self.credit - len(self._queue))
        options = {
            "syntax": self._syntax or None,
            "group": self._group,
            "no_echo": self._no_echo or None,
            "credit": credit,
            "pending_messages": self._broker_pending,
            "after": after,
            "where": self._where,
        }
        return {key: value for key, value in options.items() if value is not None}

    def finish(self, error: FanlightError, *, dropped_by_broker: int = 0) -> None:
        """No message will come any more: consumers learn of it behind the last one."""
        self.stats.dropped_by_broker += dropped_by_broker
        if self._ended is None:
            self._ended = error
        self._release()  # nothing more can come: no reason to hold up the others
        while self._consumers:
            self._wake()

    def finish_ended(self, frame: Ended) -> None:
        if frame.reason == NotPermitted.default_code:  # by new permissions: no end that a consumer may take for its own
            self.finish(NotPermitted(f"no permission any more for the subscription to {self.filter!r}"),
                        dropped_by_broker=frame.dropped)
            return
        self.finish(
            SubscriptionEnded(f"the subscription to {self.filter!r} has ended ({frame.reason})", code=frame.reason),
            dropped_by_broker=frame.dropped,
        )

    def __repr__(self) -> str:
        return f"<Subscription {self.filter!r} {self.syntax} {len(self._queue)} pending>"
