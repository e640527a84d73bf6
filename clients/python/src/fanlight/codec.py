"""Frames to bytes and back, without I/O: `Encoder` one way, `Decoder` the other.

A frame is a big-endian u32 length and one msgpack array (docs/native-protocol.md, section 2). The decoder
owns the read buffer: a transport writes into `get_buffer()`, says how much with `advance()`, and takes frames
out until `next_frame()` is None. It may stop in between, which is how a subscription that is full holds up
the connection without anything being decoded that nobody wants yet.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ._msgpack import Packer, unpack
from .errors import FrameTooLarge, InvalidTopic, ProtocolError
from .frames import (
    NESTING_MAX,
    REQUIRED,
    SPECS,
    U32_MAX,
    VERSION,
    Delivery,
    Frame,
    FrameType,
    Headers,
    QueueDelivery,
    Receipt,
    Replayed,
    is_bin,
    is_headers,
    is_syntax,
    is_topic,
    is_u32,
    is_u64,
)
from .topics import Topic

_new_tuple = tuple.__new__
_LENGTH = struct.Struct(">I")
_read_length = _LENGTH.unpack_from
_CONTAINERS = (list, dict)
_VALUES = (type(None), bool, int, float, str, bytes, list, dict)

READ_BYTES = 256 * 1024
"""Read buffer in bytes: a full socket buffer in one call, several thousand small messages."""

FRAME_BYTES = 64 * 1024 * 1024 + 1024
"""Largest frame accepted by default, in bytes: that of the largest MESSAGE that a broker can be set to forward."""


class Encoder:
    """Makes frames. `frame_bytes` is the broker's limit, once it is known; a larger frame raises
    FrameTooLarge."""

    def __init__(self, frame_bytes: int = FRAME_BYTES) -> None:
        self.frame_bytes = frame_bytes
        self._pack = Packer().pack

    def frame(self, *fields: Any) -> bytes:
        """One frame: the type and its fields; trailing None are left out. Raises FrameTooLarge."""
        last = len(fields)
        while fields[last - 1] is None:
            last -= 1
        body: bytes = self._pack(fields[:last])
        if len(body) > self.frame_bytes:
            raise self._too_large(len(body))
        return _LENGTH.pack(len(body)) + body

    def publish(
        self,
        topic: Topic,
        payload: bytes,
        headers: Headers | None = None,
        syntax: int = 0,
        reply: Topic | None = None,
        request: int | None = None,
        mark: Sequence[Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> bytes:
        """PUBLISH. The arguments are taken as checked. Raises FrameTooLarge, InvalidTopic."""
        body: bytes
        try:
            if options is not None:
                body = self._pack((3, request, topic, payload, headers, syntax or None, reply, mark, options))
            elif mark is not None:
                body = self._pack((3, request, topic, payload, headers, syntax or None, reply, mark))
            elif reply is not None or syntax:
                body = self._pack((3, request, topic, payload, headers, syntax, reply))
            elif headers is not None:
                body = self._pack((3, request, topic, payload, headers))
            else:  # the commonest form, and the shortest
                body = self._pack((3, request, topic, payload))
        except UnicodeEncodeError as error:
            raise InvalidTopic(
                f"topic or header is not text: {error}; give its octets as bytes",
                details={"position": error.start},
            ) from None
        if len(body) > self.frame_bytes:
            raise self._too_large(len(body))
        return _LENGTH.pack(len(body)) + body

    def hello(self, options: Mapping[str, Any]) -> bytes:
        return self.frame(FrameType.HELLO, VERSION, options)

    def subscribe(self, request: int, subscription: int, filter: Topic, options: Mapping[str, Any]) -> bytes:
        return self.frame(FrameType.SUBSCRIBE, request, subscription, filter, options or None)

    def replay(self, request: int, subscription: int, filter: Topic, options: Mapping[str, Any]) -> bytes:
        return self.frame(FrameType.REPLAY, request, subscription, filter, options or None)

    def unsubscribe(self, request: int | None, subscription: int, after: int | None = None) -> bytes:
        return self.frame(FrameType.UNSUBSCRIBE, request, subscription, after)

    def credit(self, subscription: int, messages: int) -> bytes:
        return self.frame(FrameType.CREDIT, subscription, messages)

    def ack(self, subscription: int, sequence: int, all: bool | None = None) -> bytes:
        return self.frame(FrameType.ACK, subscription, sequence, {"all": True} if all else None)

    def nack(self, subscription: int, sequence: int, delay: float | None = None) -> bytes:
        return self.frame(FrameType.NACK, subscription, sequence, delay)

    def term(self, subscription: int, sequence: int, reason: str | None = None) -> bytes:
        return self.frame(FrameType.TERM, subscription, sequence, reason)

    def in_progress(self, subscription: int, sequence: int) -> bytes:
        return self.frame(FrameType.IN_PROGRESS, subscription, sequence)

    def queue(self, request: int, verb: str, arguments: Mapping[str, Any]) -> bytes:
        return self.frame(FrameType.QUEUE, request, verb, arguments or None)

    def consumer(self, request: int | None, subscription: int, options: Mapping[str, Any]) -> bytes:
        return self.frame(FrameType.CONSUMER, request, subscription, options or None)

    def ping(self, token: int | None) -> bytes:
        return self.frame(FrameType.PING, token)

    def pong(self, token: int | None) -> bytes:
        return self.frame(FrameType.PONG, token)

    def goodbye(self, reason: str, text: str | None = None) -> bytes:
        return self.frame(FrameType.GOODBYE, reason, text)

    def _too_large(self, size: int) -> FrameTooLarge:
        return FrameTooLarge(
            f"frame of {size:,} bytes; this broker accepts at most {self.frame_bytes:,}. "
            "Send less at once, or raise the broker's frame limit",
            details={"size": size, "limit": self.frame_bytes},
        )


def check_headers(headers: Headers) -> None:
    """Raise TypeError or ValueError for headers that would cost the connection (sections 3.3 and 8)."""
    if not is_headers(headers if type(headers) is dict else dict(headers)):
        raise TypeError(
            "headers map str keys of up to 255 bytes to None, bool, int, float, str, bytes, "
            f"or lists of these; got {headers!r}"
        )
    for key in headers:
        if key.startswith("$"):
            raise ValueError(f"the header {key!r} is reserved: keys that begin with $ are the broker's")


class Decoder:
    """Bytes in, frames out. `frame_bytes` bounds one frame, and with it the memory held."""

    def __init__(self, frame_bytes: int = FRAME_BYTES, read_bytes: int = READ_BYTES) -> None:
        self.frame_bytes = frame_bytes
        self.frame_size = 0  # of the frame last returned, its length prefix included, in bytes
        self._read_bytes = read_bytes
        self._buffer = memoryview(bytearray(read_bytes))
        self._start = 0  # the first byte not decoded yet
        self._end = 0  # behind the last byte received

    @property
    def pending_bytes(self) -> int:
        """Bytes received and not decoded."""
        return self._end - self._start

    def peek(self, size: int) -> bytes:
        """The first bytes that are not decoded, at most `size` of them."""
        return bytes(self._buffer[self._start : min(self._start + size, self._end)])

    def get_buffer(self) -> memoryview:
        """Room to receive into; never empty."""
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > self._read_bytes:  # grown for one large frame, which is gone
                self._buffer = memoryview(bytearray(self._read_bytes))
        elif self._end == len(self._buffer):
            self._make_room()
        return self._buffer[self._end :]

    def advance(self, received: int) -> None:
        """So many bytes were written into the last `get_buffer()`."""
        self._end += received

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Receive `data` and return the frames that it completes."""
        frames: list[Frame] = []
        rest = memoryview(data)
        while rest:
            room = self.get_buffer()
            taken = min(len(room), len(rest))
            room[:taken] = rest[:taken]
            rest = rest[taken:]
            self.advance(taken)
            while (frame := self.next_frame()) is not None:
                frames.append(frame)
        return frames

    def next_frame(self) -> Frame | None:
        """The next whole frame of a known type, or None until more is received. Raises ProtocolError."""
        start = self._start
        while self._end - start >= 4:
            (size,) = _read_length(self._buffer, start)
            if not 0 < size <= self.frame_bytes:
                raise self._bad_length(size)
            stop = start + 4 + size
            if stop > self._end:
                return None
            self._start = stop
            self.frame_size = size + 4
            frame = decode_body(self._buffer[start + 4 : stop])
            if frame is not None:
                return frame
            start = stop
        return None

    def _make_room(self) -> None:
        """The buffer is full to its end: move what is left to the front, into a larger one where a frame
        needs it."""
        left = self._end - self._start
        needed = self._read_bytes
        if left >= 4:
            (size,) = _LENGTH.unpack_from(self._buffer, self._start)
            needed = max(needed, min(size, self.frame_bytes) + 4)
        if needed > len(self._buffer) or self._start == 0:
            grown = memoryview(bytearray(max(needed, left + self._read_bytes)))
            grown[:left] = self._buffer[self._start : self._end]
            self._buffer = grown
        else:
            self._buffer[:left] = self._buffer[self._start : self._end]
        self._start, self._end = 0, left

    def _bad_length(self, size: int) -> ProtocolError:
        if size == 0:
            return ProtocolError("frame of length 0: a body has at least one byte")
        return ProtocolError(
            f"frame of {size:,} bytes; this client accepts at most {self.frame_bytes:,} (option frame_bytes)",
            code="frame_too_large",
            details={"size": size, "limit": self.frame_bytes},
        )


def decode_body(body: memoryview | bytes) -> Frame | None:
    """One frame from its body, or None for a type this version does not know. Raises ProtocolError."""
    try:
        fields = unpack(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise ProtocolError(f"frame body is not one msgpack value: {type(error).__name__}: {error}") from error
    if type(fields) is not list or not fields:
        raise ProtocolError(f"frame body must be an array with a type in front; got {_shown(fields)}")
    # The array header is one byte, or 3 (dc) or 5 (dd); the type behind it is one byte of 0 to 127 (section
    # 2).
    kind = body[1 if body[0] < 0xA0 else 3 if body[0] == 0xDC else 5]
    if kind == 4:
        return _delivery(fields)
    if kind == 32:
        return _queue_delivery(fields)
    if kind == 5 and len(fields) == 3 and is_u32(fields[1]) and is_u32(fields[2]):
        return Receipt(fields[1], fields[2])  # without the table's loop, too, at a quarter of the time
    if kind > 127:
        raise ProtocolError(f"frame type must be an integer from 0 to 127 in one byte; got {_shown(fields[0])}")
    spec = SPECS.get(kind)
    if spec is None:
        return None
    values: list[Any] = []
    for position, field in enumerate(spec.fields, 1):
        value = fields[position] if position < len(fields) else None
        if value is None:
            if field.default is REQUIRED:
                raise ProtocolError(f"{FrameType(kind).name} lacks its field {field.name!r}")
            value = field.default
        elif not field.kind(value):
            raise ProtocolError(f"{FrameType(kind).name} field {field.name!r} is malformed: {_shown(value)}")
        values.append(value)
    _check_nesting(fields)
    return spec.frame(*values)


def _delivery(fields: list[Any]) -> Delivery | Replayed:
    """MESSAGE, by hand: the table's loop costs three times as much, and this is the frame that comes in
    millions."""
    count = len(fields)
    if count == 4:
        _, subscription, topic, payload = fields
        # The kinds of frames.py spelled out, and the tuple made without its __new__: half of the time is
        # calls.
        if (
            type(subscription) is int
            and 0 <= subscription <= U32_MAX
            and (type(topic) is str or type(topic) is bytes)
            and type(payload) is bytes
        ):
            return _new_tuple(Delivery, (subscription, topic, payload, None, 0, None))
        raise ProtocolError(f"MESSAGE is malformed: {_shown(fields)}")
    if count < 4:
        raise ProtocolError(f"MESSAGE is malformed: {_shown(fields)}")
    _, subscription, topic, payload, headers, syntax, reply = [*fields, None, None][:7]
    syntax = 0 if syntax is None else syntax
    well_formed = (
        is_u32(subscription)
        and is_topic(topic)
        and is_bin(payload)
        and (headers is None or is_headers(headers))
        and is_syntax(syntax)
        and (reply is None or is_topic(reply))
    )
    if not well_formed:
        raise ProtocolError(f"MESSAGE is malformed: {_shown(fields)}")
    if count > 7:
        _check_nesting(fields)
    if count > 8 and fields[7] is not None:
        if not (is_u64(fields[7]) and is_u64(fields[8])):
            raise ProtocolError(f"MESSAGE is malformed: {_shown(fields)}")
        return Replayed(subscription, topic, payload, headers, syntax, reply, fields[7], fields[8])
    return Delivery(subscription, topic, payload, headers, syntax, reply)


def _queue_delivery(fields: list[Any]) -> QueueDelivery:
    """DELIVERY, by hand as MESSAGE is."""
    if len(fields) < 6:
        raise ProtocolError(f"DELIVERY is malformed: {_shown(fields)}")
    _, subscription, sequence, attempt, topic, payload, headers, syntax, reply = [*fields, None, None, None][:9]
    syntax = 0 if syntax is None else syntax
    well_formed = (
        is_u32(subscription)
        and is_u64(sequence)
        and is_u32(attempt)
        and is_topic(topic)
        and is_bin(payload)
        and (headers is None or is_headers(headers))
        and is_syntax(syntax)
        and (reply is None or is_topic(reply))
    )
    if not well_formed:
        raise ProtocolError(f"DELIVERY is malformed: {_shown(fields)}")
    if len(fields) > 9:
        _check_nesting(fields)
    return QueueDelivery(subscription, sequence, attempt, topic, payload, headers, syntax, reply)


def _check_nesting(fields: list[Any]) -> None:
    """Nothing deeper than 8 levels, no extension types, wherever they are (section 2)."""
    level: list[Any] = [fields]
    for _ in range(NESTING_MAX):
        deeper: list[Any] = []
        for container in level:
            for value in container.values() if type(container) is dict else container:
                if type(value) in _CONTAINERS:
                    deeper.append(value)
                elif type(value) not in _VALUES:
                    raise ProtocolError(f"extension types are not used in version 1; got {_shown(value)}")
        if not deeper:
            return
        level = deeper
    raise ProtocolError(f"frame is nested deeper than {NESTING_MAX} levels")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
