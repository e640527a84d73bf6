"""The frames of one message to a consumer: method, content header, body frames of at most `frame_max` bytes (2.3.5)."""

from collections.abc import Callable
from typing import Any, Final

from fanlight_broker.protocols.amqp.basic_methods import BasicDeliver, BasicGetOk
from fanlight_broker.protocols.amqp.data_types import UINT32, short_string
from fanlight_broker.protocols.amqp.field_table import LongInteger, encode_value, joined_entries, raw_entries
from fanlight_broker.protocols.amqp.fields import unpack_fields
from fanlight_broker.protocols.amqp.frames import FRAME_END_OCTET, HEAD, OVERHEAD, FrameType, encode_frame
from fanlight_broker.protocols.amqp.methods import BY_KIND, IDS_SIZE, METHOD_TYPE
from fanlight_broker.protocols.amqp.properties import encode_header, joined_properties, raw_properties
from fanlight_broker.wire.message import Message

Writer = Callable[[Message], tuple[Any, ...]]
"""Makes head, place of the tag in it, body; counted: and the place of `x-delivery-count`."""

DELIVERY_COUNT: Final = "x-delivery-count"
COUNT_BYTES: Final = 8
FLAGS_BYTES: Final = 2
HEADER_BYTES: Final = 12  # class, weight and size of the body, in front of the properties
BEFORE_HEADERS: Final = ("content_type", "content_encoding")
DELIVER_IDS: Final = BY_KIND[BasicDeliver].ids
GET_OK_IDS: Final = BY_KIND[BasicGetOk].ids
TAG_BYTES: Final = 9  # delivery tag and redelivered: filled in for each delivery


def counted_properties(encoded: bytes) -> tuple[bytes, int]:
    """Properties with the header `x-delivery-count`, as quorum queues send it, and the place of its 8 octets."""
    properties = raw_properties(encoded)
    entries = raw_entries(properties["headers"]) if "headers" in properties else {}
    entries.pop(DELIVERY_COUNT, None)
    properties["headers"] = joined_entries({**entries, DELIVERY_COUNT: encode_value(LongInteger(0))})
    before = sum(len(properties.get(name, b"")) for name in BEFORE_HEADERS)
    at = FLAGS_BYTES + before + len(properties["headers"]) - COUNT_BYTES
    return joined_properties(properties), at


def finished(
    channel: int, method: bytes, tag_at: int, encoded: bytes, payload: bytes, frame_max: int, *, counted: bool
) -> tuple[Any, ...]:
    """What a Writer makes."""
    if not counted:
        head, body = with_content(channel, method, encoded, payload, frame_max)
        return head, tag_at, body
    encoded, count_at = counted_properties(encoded)
    head, body = with_content(channel, method, encoded, payload, frame_max)
    return head, tag_at, body, len(method) + OVERHEAD + HEAD.size + HEADER_BYTES + count_at


class DeliverWriter:
    """Writes basic.deliver, with its tag and its flag left open. counted: and the header x-delivery-count.

    before: its frame up to the tag, the size in it left open; None if compiled code cannot write what follows.
    """

    __slots__ = ("_counted", "_method", "before", "channel", "frame_max")

    def __init__(self, channel: int, consumer_tag: str, frame_max: int, *, counted: bool = False) -> None:
        self.channel = channel
        self.frame_max = frame_max
        self._counted = counted
        self._method = DELIVER_IDS + short_string(consumer_tag)
        self.before = None if counted else HEAD.pack(METHOD_TYPE, channel, 0) + self._method

    def __call__(self, message: Message) -> tuple[Any, ...]:
        fields = unpack_fields(message.fields)
        method = self._method + bytes(TAG_BYTES) + fields.exchange + fields.routing_key
        tag_at = HEAD.size + len(self._method)
        return finished(
            self.channel, method, tag_at, fields.encoded, message.payload, self.frame_max, counted=self._counted
        )


def get_writer(channel: int, frame_max: int, waiting: Callable[[], int], *, counted: bool = False) -> Writer:
    """Writes basic.get-ok. waiting: the messages that remain in the queue."""
    before, tag_at = GET_OK_IDS, HEAD.size + IDS_SIZE

    def write(message: Message) -> tuple[bytes, int, bytes]:
        fields = unpack_fields(message.fields)
        method = before + bytes(TAG_BYTES) + fields.exchange + fields.routing_key + UINT32.pack(waiting())
        return finished(channel, method, tag_at, fields.encoded, message.payload, frame_max, counted=counted)

    return write


def with_content(channel: int, method: bytes, encoded: bytes, payload: bytes, frame_max: int) -> tuple[bytes, bytes]:
    """Head and body of a template: the body begins with the payload, if there is one."""
    header = encode_header(len(payload), encoded)
    head = encode_frame(FrameType.METHOD, channel, method) + encode_frame(FrameType.HEADER, channel, header)
    if not payload:
        return head, b""
    most = frame_max - OVERHEAD
    if len(payload) <= most:
        return head + HEAD.pack(FrameType.BODY, channel, len(payload)), payload + FRAME_END_OCTET
    pieces = [payload[at : at + most] for at in range(0, len(payload), most)]
    parts = [pieces[0], FRAME_END_OCTET]
    for piece in pieces[1:]:
        parts += [HEAD.pack(FrameType.BODY, channel, len(piece)), piece, FRAME_END_OCTET]
    return head + HEAD.pack(FrameType.BODY, channel, most), b"".join(parts)
