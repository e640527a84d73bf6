"""A consumer of a stream: what it reads from the archive becomes basic.deliver, as long as its prefetch allows.

    consume --> start_of(x-stream-offset) --> core.StreamReading --taken--> waiting --room--> basic.deliver
                                                   '--------- ask <--- nothing waits, and there is room

An acknowledgement gives room, and nothing more: the position is the client's to keep. What is lost between a delivery
and its acknowledgement is read again from the offset that the client asks for. docs/decisions/0026-amqp-streams.md.
"""

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from fanlight_broker.core.content import Content
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.pools import Replaying
from fanlight_broker.core.streams import StreamReading, StreamStart, check_replayer
from fanlight_broker.protocols.amqp import convert
from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DELIVER_IDS, with_content
from fanlight_broker.protocols.amqp.data_types import UINT64, short_string
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import (
    LongInteger,
    Timestamp,
    encode_value,
    joined_entries,
    raw_entries,
)
from fanlight_broker.protocols.amqp.fields import TOPIC_EXCHANGE, MessageFields, pack_fields, read_fields, unpack_fields
from fanlight_broker.protocols.amqp.properties import (
    NO_PROPERTIES,
    encode_properties,
    joined_properties,
    raw_properties,
)
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.sides import ChannelSide
from fanlight_broker.protocols.amqp.vhost import DeclaredQueue

STREAM_OFFSET: Final = "x-stream-offset"  # argument of basic.consume, and header of what is delivered
INTERVAL: Final = re.compile(r"(\d{1,9})([YMDhms])")
SECONDS: Final = {"Y": 365 * 86_400, "M": 30 * 86_400, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
UNSENT_BYTES: Final = 32 * 1024  # in the outbox: with so many, the rest waits until it is empty
ENTRY_BYTES: Final = 64  # of what waits, beside its octets
NOT_RECORDED: Final = unpack_fields(pack_fields(TOPIC_EXCHANGE, "", encode_properties(NO_PROPERTIES)))
TIMES_MAX: Final = 2**63 // 1_000_000 - 1  # seconds that the archive can be asked for


class StreamEntry(NamedTuple):
    """A message of a stream, without what each delivery has of its own."""

    offset: int
    fields: MessageFields
    payload: bytes


def size_of(entry: StreamEntry) -> int:
    return len(entry.payload) + len(entry.fields.encoded) + ENTRY_BYTES


def start_of(wanted: Any, utc: float, refuse: Callable[[str], AmqpError]) -> StreamStart:
    """Where a consumer begins, of its argument x-stream-offset; None: with the next message. Raises AmqpError 406.

    utc  the time in seconds, for an interval that ends now
    """
    match wanted:
        case None | "next":
            return StreamStart(next=True)
        case "first":
            return StreamStart()
        case "last":
            return StreamStart(last=True)
        case Timestamp():
            return StreamStart(since=1_000_000 * min(int(wanted), TIMES_MAX))
        case bool():
            raise refuse(": a boolean is no offset")
        case int() if wanted >= 0:
            return StreamStart(offset=int(wanted))
        case str() if (found := INTERVAL.fullmatch(wanted)) is not None:
            return StreamStart(since=max(0, int(1e6 * (utc - int(found[1]) * SECONDS[found[2]]))))
    raise refuse(": first, last, next, an offset, a timestamp, or an interval such as 1h")


def entry_of(
    offset: int, timestamp: int, topic: bytes, syntax: int, payload: bytes, content: Content | None
) -> StreamEntry:
    """Of what the archive has, in the thread that reads it. Whatever that is: an error would end every consumer."""
    recorded = dict(content.headers).get(convert.RECORDED) if content is not None else None
    if isinstance(recorded, str):  # octets that are text
        recorded = recorded.encode()
    try:
        fields = read_fields(recorded if isinstance(recorded, bytes) else b"")
        encoded = with_offset(fields.encoded, offset)
    except AmqpError:  # it came in another way, on a topic below the stream's
        fields = NOT_RECORDED
        encoded = with_offset(fields.encoded, offset)
    return StreamEntry(offset, fields._replace(encoded=encoded), payload)


def with_offset(encoded: bytes, offset: int) -> bytes:
    """Properties with the header x-stream-offset."""
    properties = raw_properties(encoded)
    entries = raw_entries(properties["headers"]) if "headers" in properties else {}
    entries[STREAM_OFFSET] = encode_value(LongInteger(offset))
    return joined_properties({**properties, "headers": joined_entries(entries)})


class StreamDeliveries:
    """Of one consumer. Raises AmqpError, NotPermitted, LimitExceeded.

    may_send  does the prefetch of the channel allow more?
    failed    called if the stream cannot be read any more
    """

    def __init__(
        self, channel: ChannelSide, tags: ChannelTags, number: int, tag: str, queue: DeclaredQueue, prefetch: int,
        start: StreamStart, may_send: Callable[[], bool], failed: Callable[[FanlightError], None],
    ) -> None:
        connection = channel.connection
        broker, client = connection.broker, connection.core_client
        self.prefetch = prefetch
        self.held = 0  # deliveries that are not acknowledged
        self._channel, self._connection, self._tags, self._number = channel, connection, tags, number
        self._method = DELIVER_IDS + short_string(tag)
        self._may_send = may_send
        self._started = self._over = False
        self._waiting: deque[StreamEntry] = deque()  # a part of some 32 KiB
        check_replayer(broker.enforcement, connection.subscriber, queue.work)
        if broker.replay_source is None:
            raise no_archive(queue.name, connection.vhost.name)
        place = Replaying(broker.shares, connection.subscriber.share, client.memberships)
        self._reading = StreamReading(
            queue.work, broker.replay_source, start, place, entry_of, size_of, self._taken, failed,
            connection.subscriber,
        )

    def start(self) -> None:
        """Its client has consume-ok."""
        self._started = True
        self.pump()

    def acknowledged(self, count: int) -> None:
        self.held -= count
        self.pump()

    def close(self) -> None:
        self._over = True
        self._waiting.clear()
        self._reading.close()

    def pump(self) -> None:
        """Deliver what there is room for, and read more if there is room then."""
        outbox, flow = self._connection.outbox, self._connection.broker.flow
        if not self._started or self._over or outbox.closed:
            return
        now = flow.ledger.now
        while self._has_room:
            if not self._waiting:
                self._reading.ask()
                break
            pace = outbox.delivery
            if outbox.size >= UNSENT_BYTES or (pace is not None and pace.owing(now) is not None):
                flow.refill(outbox)  # which `pump` follows
                break
            octets = self._deliver(self._waiting.popleft())
            if pace is not None:  # the outbox takes it for an answer
                pace.take(1, octets, now)

    @property
    def _has_room(self) -> bool:
        return self.held < self.prefetch and self._may_send() and self._channel.is_open

    def _deliver(self, entry: StreamEntry) -> int:
        """Returns the bytes that were written."""
        self.held += 1
        fields, connection = entry.fields, self._connection
        tag = UINT64.pack(self._tags.assign(self._number, entry.offset))
        method = b"".join((self._method, tag, b"\0", fields.exchange, fields.routing_key))
        head, body = with_content(
            self._channel.number, method, fields.encoded, entry.payload, connection.frame_max
        )
        octets = head + body
        connection.outbox.write(octets)
        return len(octets)

    def _taken(self, entries: Sequence[StreamEntry]) -> None:
        if not self._over:
            self._waiting.extend(entries)
            self.pump()
            self._connection.broker.finish()


def no_archive(queue: str, vhost: str) -> AmqpError:
    return AmqpError(
        ReplyCode.PRECONDITION_FAILED,
        f"queue '{queue}' in vhost '{vhost}': streams are kept in the archive, and this broker has none; the setting "
        "archive (FANLIGHT_ARCHIVE) names its folder",
    )


def check_consume(queue: DeclaredQueue, vhost: str, prefetch: int, *, automatic: bool, together: bool) -> None:
    """Is this how a stream can be consumed? together: the channel has one prefetch for all. Raises AmqpError."""
    named = f"queue '{queue.name}' in vhost '{vhost}'"
    if automatic:
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, f"automatic acknowledgement not supported by stream {named}")
    if together:
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, f"{named} does not support global qos")
    if not prefetch:
        raise AmqpError(ReplyCode.PRECONDITION_FAILED, f"consumer prefetch count is not set for stream {named}")


def not_supported(method: str, queue: DeclaredQueue, vhost: str) -> AmqpError:
    return AmqpError(
        ReplyCode.NOT_IMPLEMENTED, f"{method} not supported by stream queues queue '{queue.name}' in vhost '{vhost}'"
    )
