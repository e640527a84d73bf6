"""Publishing with receipts, many at a time: a window of messages, each kept until its receipt has come.

      publish -->  [ oldest | ... | newest ]  --> broker        receipts take from the left, in order
                        ^-- when the connection is lost, all of them are published again on the next one, in order

What had arrived and lost only its receipt is published twice then: at least once. With marks, which number the rows,
the broker passes over what it has taken already. They have to go out in order: so nothing goes out on a new connection
before what the old one may have lost. The window is bounded in messages and in bytes; while it is full, nothing more is
taken. What the broker refuses ends it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from fanlight_spark.broker import sdk
from fanlight_spark.message import Outgoing

if TYPE_CHECKING:
    from fanlight_spark.broker import Connection

Mark = tuple[str, int, int]  # producer, batch, sequence: docs/native-protocol.md, 3.8

WINDOW: Final = 8_192  # messages: at 20 ms to the broker and back, and a receipt each, 400,000/s
WINDOW_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Marking:
    """Who publishes, and which batch: with a row's number, its mark."""

    producer: str
    batch: int


class Refused(Exception):
    """The broker will not have a message: `row`, from 0, of those that were given, its mark, and why."""

    def __init__(self, row: int, topic: str, reason: Exception, mark: Mark | None = None) -> None:
        super().__init__(f"row {row} of the partition, to {topic!r}, was refused: {reason}")
        self.row, self.topic, self.reason, self.mark = row, topic, reason, mark


class Publisher:
    """For one task; its coroutines run in the connection's thread."""

    def __init__(
        self,
        connection: "Connection",
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        marking: Marking | None = None,
        marked: bool = False,
    ) -> None:
        """marking: the rows are numbered. marked: their marks are given. Raises Unsupported for marks that the broker
        does not know."""
        self._connection = connection
        self._client = connection.client
        self._marking, self._marked = marking, marked or marking is not None
        self._window, self._window_bytes = window, window_bytes
        self._waiting: deque[tuple[Outgoing, Mark | None, asyncio.Future[Any]]] = deque()
        self._bytes = 0
        self.acknowledged = 0
        """The number of messages, from the first, whose receipts have arrived."""
        self.again = 0
        """How often a message was published once more, because the connection was lost."""
        self.repeated = 0
        """Messages that the broker says it had taken before."""
        self._check_marks()

    async def publish(self, messages: Iterable[Outgoing], marks: Iterable[Mark] | None = None) -> None:
        """Take them all into the window. Raises Refused, RequestTimeout, and why there will be no connection again.

        marks: of each message, in their order; without them those of the rows, if there is a marking
        """
        for message, mark in zip(messages, repeat(None) if marks is None else marks, strict=False):
            while self._waiting and (self._full or _failed(self._waiting[-1][2])):
                await self._receipt()
            self._bytes += len(message.payload)
            row = self.acknowledged + len(self._waiting)
            if self._marking is not None:
                mark = (self._marking.producer, self._marking.batch, row)
            self._waiting.append((message, mark, self._ask(message, mark, row)))

    async def settle(self) -> None:
        """Wait until every one has its receipt. Raises as `publish`."""
        while self._waiting:
            await self._receipt()

    @property
    def _full(self) -> bool:
        return len(self._waiting) >= self._window or self._bytes >= self._window_bytes

    async def _receipt(self) -> None:
        """Wait for that of the oldest, and take all that have come with it."""
        from fanlight import BrokerError, ConnectionLost, RequestTimeout

        seconds = self._connection.address.timeout
        message, mark, answer = self._waiting[0]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(answer)
        except ConnectionLost:
            await self._again()
            return
        except BrokerError as error:
            raise Refused(self.acknowledged, message.topic, error, mark) from error
        except TimeoutError as error:
            raise RequestTimeout(
                f"no receipt for row {self.acknowledged} of the partition within {seconds:g} s (option timeout); "
                f"{self.acknowledged} have theirs",
                details={"seconds": seconds},
            ) from error
        while self._waiting:
            message, _, answer = self._waiting[0]
            if not answer.done() or _failed(answer):
                break
            self._waiting.popleft()
            self.repeated += answer.result().repeated
            self._bytes -= len(message.payload)
            self.acknowledged += 1

    async def _again(self) -> None:
        """There is no connection: on the next one, all that wait, in their order."""
        await self._connection.connected()
        self._check_marks()
        waiting, self._waiting = self._waiting, deque()
        self.again += len(waiting)
        for message, mark, _ in waiting:
            row = self.acknowledged + len(self._waiting)
            self._waiting.append((message, mark, self._ask(message, mark, row)))

    def _ask(self, message: Outgoing, mark: Mark | None, row: int) -> "asyncio.Future[Any]":
        """Publish one. If there is no connection just now, its future says so when its turn comes."""
        from fanlight import BrokerError, ConnectionLost
        from fanlight.codec import check_headers

        link = self._client.link
        try:
            if message.headers is not None:
                check_headers(message.headers)
            return link.ask(lambda request: link.encoder.publish(*message, request=request, mark=mark))
        except ConnectionLost as error:
            lost: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            lost.set_exception(error)
            lost.exception()  # seen: the next receipt that is waited for is of an older one
            return lost
        except (BrokerError, ValueError, TypeError) as error:
            raise Refused(row, message.topic, error, mark) from error

    def _check_marks(self) -> None:
        from fanlight.marks import FEATURE

        if self._marked and FEATURE not in (self._client.info.get("features") or ()):
            raise sdk().Unsupported(
                "this broker knows no marks, and a row that is published again would be taken again: "
                "with the option marks=false the sink publishes at least once"
            )


def _failed(answer: "asyncio.Future[Any]") -> bool:
    return answer.done() and answer.exception() is not None
