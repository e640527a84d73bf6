"""A replay: a subscription that begins with what the broker has archived (docs/native-protocol.md, 3.7).

    async with client.replay("stock.#", since=datetime.now(UTC) - timedelta(hours=1)) as quotes:
        async for message in quotes:
            print(message.offset, message.timestamp, message.payload)     # None and None once it is live

After a reconnect it goes on where it was. Once it is live it is an ordinary subscription, and what is published while
there is no connection does not come: keep `next_offset`, and replay from there, where that matters.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from . import topics
from .errors import SubscriptionEnded, Unsupported, from_broker
from .frames import U64_MAX, Delivery, Ended, QueueDelivery, Replayed, ReplayEnd
from .options import Overflow, Where
from .subscription import Subscription

if TYPE_CHECKING:
    from .client import Client
    from .codec import Encoder
    from .subscriptions import Subscriptions

FEATURE = "replay"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAILURES = ("messages_gone", "replay_failed", "not_permitted")


class Replay(Subscription):
    """Made by `client.replay`; in force inside `async with`, or once awaited."""

    def __init__(
        self,
        client: "Client",
        table: "Subscriptions",
        filter: topics.Topic,
        *,
        offset: int | None,
        epoch: int | None,
        since: datetime | float | None,
        end: int | None,
        past_only: bool,
        where: Where | None,
        syntax: topics.Syntax,
        pending_messages: int,
        pending_bytes: int,
        overflow: Overflow,
    ) -> None:
        if offset is not None and since is not None:
            raise ValueError("give an offset or a time to begin with, or neither; got both")
        if epoch is not None and offset is None:
            raise ValueError("an epoch is that of an offset; give the offset, too")
        if offset is not None and not 0 <= offset <= U64_MAX:
            raise ValueError(f"offset must be from 0 up; got {offset}")
        if end is not None and not 0 <= end <= U64_MAX:
            raise ValueError(f"end must be an offset, from 0 up; got {end}")
        super().__init__(
            client, table, filter, syntax=syntax, group=None, no_echo=False, credit=None, after=None,
            pending_messages=pending_messages, pending_bytes=pending_bytes, broker_pending_messages=None,
            overflow=overflow, where=where,
        )  # fmt: skip
        self.next_offset = offset
        """Of the first archived message that has not come; None before one has."""
        self.epoch = epoch
        """Of `next_offset`."""
        self.live = False
        """All that was archived has come, or all before `end`."""
        self.kept: dict[str, Any] = {}
        """What the broker said of its archive when this began: `archive`, `start`, `end`; `offset`, its first; newer
        brokers also `bytes` and `oldest_end` (docs/native-protocol.md, 3.7)."""
        self._since = None if since is None else microseconds(since)
        self._end = end
        self._past_only = past_only

    def request_frame(self, encoder: "Encoder", request: int, number: int) -> bytes:
        if self.live:
            return super().request_frame(encoder, request, number)
        if FEATURE not in (self.client.info.get("features") or ()):
            raise Unsupported("this broker keeps no archive: there is nothing to replay", code="unsupported")
        self._check_where()
        at_offset = self.next_offset is not None
        options = {
            "syntax": self._syntax or None,
            "offset": self.next_offset,
            "epoch": self.epoch if at_offset else None,
            "since": None if at_offset else self._since,
            "end": self._end,
            "past_only": self._past_only or None,
            "where": self._where,
        }
        return encoder.replay(
            request, number, self.wire_filter, {key: value for key, value in options.items() if value is not None}
        )

    def answered(self, result: dict[str, Any]) -> None:
        epoch = result.get("epoch")
        if not self.live and isinstance(epoch, int):
            self.epoch = epoch
        if "archive" in result:  # which may be live by now, if there was little to send
            self.kept = {name: value for name, value in result.items() if name != "epoch"}

    def wire_options(self) -> dict[str, Any] | None:
        if self.live and (self._past_only or self._end is not None):
            return None  # the connection was lost before its ENDED
        return super().wire_options()

    async def archived(self, at_most: int) -> list[Replayed]:
        """At least one archived message, as frames, for callers that read many; none at the end.

        Raises as iterating does.
        """
        try:
            found = [await self.__anext__()]
        except StopAsyncIteration:
            return []
        found += self.take_queued(at_most - 1)
        return [frame for message in found if type(frame := message._frame) is Replayed]

    def deliver(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> None:
        if type(frame) is Replayed:
            self.next_offset = frame.offset + 1
        super().deliver(frame, size)

    def gone_live(self, frame: ReplayEnd) -> None:
        self.live = True
        self.next_offset, self.epoch = frame.offset, frame.epoch

    def finish_ended(self, frame: Ended) -> None:
        if frame.reason in _FAILURES:
            self.finish(from_broker(frame.reason, f"the replay of {self.filter!r} was broken off: {frame.reason}"))
            return
        self.finish(
            SubscriptionEnded(f"the replay of {self.filter!r} has ended ({frame.reason})", code=frame.reason),
            dropped_by_broker=frame.dropped,
        )


def microseconds(when: datetime | float) -> int:
    """A time, or seconds since 1970 UTC, as the protocol has them. Raises ValueError for one before, or naive."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"{when} is in no time zone; use datetime.now(UTC), or .astimezone()")
        found = (when - _EPOCH) // timedelta(microseconds=1)
    else:
        found = round(when * 1_000_000)
    if not 0 <= found <= U64_MAX:
        raise ValueError(f"a time from 1970 on is wanted; got {when}")
    return found
