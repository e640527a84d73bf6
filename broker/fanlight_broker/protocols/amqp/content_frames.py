"""The frames of one message to a consumer: method, content header, body frames of at most `frame_max` bytes (2.3.5)."""

from collections.abc import Callable
from typing import Final

from fanlight_broker.protocols.amqp.basic_methods import BasicDeliver, BasicGetOk
from fanlight_broker.protocols.amqp.data_types import UINT16, UINT32, short_string
from fanlight_broker.protocols.amqp.fields import unpack_fields
from fanlight_broker.protocols.amqp.frames import FRAME_END_OCTET, HEAD, OVERHEAD, FrameType, encode_frame
from fanlight_broker.protocols.amqp.methods import IDS, IDS_SIZE, AnyMethod
from fanlight_broker.protocols.amqp.properties import encode_header
from fanlight_broker.wire.message import Message

Writer = Callable[[Message], tuple[bytes, int, bytes]]

TAG_BYTES: Final = 9  # delivery tag and redelivered: filled in for each delivery


def ids_octets(kind: type[AnyMethod]) -> bytes:
    return b"".join(map(UINT16.pack, IDS[kind]))


def deliver_writer(channel: int, consumer_tag: str, frame_max: int) -> Writer:
    """Writes basic.deliver, with its tag and its flag left open."""
    before = ids_octets(BasicDeliver) + short_string(consumer_tag)
    tag_at = HEAD.size + len(before)

    def write(message: Message) -> tuple[bytes, int, bytes]:
        fields = unpack_fields(message.fields)
        method = before + bytes(TAG_BYTES) + fields.exchange + fields.routing_key
        head, body = with_content(channel, method, fields.encoded, message.payload, frame_max)
        return head, tag_at, body

    return write


def get_writer(channel: int, frame_max: int, waiting: Callable[[], int]) -> Writer:
    """Writes basic.get-ok. waiting: the messages that remain in the queue."""
    before, tag_at = ids_octets(BasicGetOk), HEAD.size + IDS_SIZE

    def write(message: Message) -> tuple[bytes, int, bytes]:
        fields = unpack_fields(message.fields)
        method = before + bytes(TAG_BYTES) + fields.exchange + fields.routing_key + UINT32.pack(waiting())
        head, body = with_content(channel, method, fields.encoded, message.payload, frame_max)
        return head, tag_at, body

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
