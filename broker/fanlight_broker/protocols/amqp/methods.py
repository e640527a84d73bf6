"""All methods by class and method id, and their encoding: two ids, then the fields without a gap (2.3.5.1).

The classes of the methods are in connection_methods, entity_methods and basic_methods; their annotations say how each
field is encoded. Who may send a method, and when, is in state.py.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, get_type_hints

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp import method_frames
from fanlight_broker.protocols.amqp.data_types import (
    UINT16,
    UINT32,
    UINT64,
    OctetReader,
    long_string,
    short_string,
)
from fanlight_broker.protocols.amqp.errors import AmqpError, frame_error
from fanlight_broker.protocols.amqp.field_table import Timestamp, encode_table, read_table
from fanlight_broker.protocols.amqp.frames import FrameType, encode_frame
from fanlight_broker.protocols.amqp.method_types import Wire
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.table_values import read_method

AnyMethod = Any  # one of the classes of METHODS
IDS_SIZE: Final = 4  # bytes
BOTH_IDS: Final = struct.Struct(">HH")

METHODS: Final[dict[tuple[int, int], type[AnyMethod]]] = {
    (10, 10): first.ConnectionStart,
    (10, 11): first.ConnectionStartOk,
    (10, 20): first.ConnectionSecure,
    (10, 21): first.ConnectionSecureOk,
    (10, 30): first.ConnectionTune,
    (10, 31): first.ConnectionTuneOk,
    (10, 40): first.ConnectionOpen,
    (10, 41): first.ConnectionOpenOk,
    (10, 50): first.ConnectionClose,
    (10, 51): first.ConnectionCloseOk,
    (10, 60): first.ConnectionBlocked,
    (10, 61): first.ConnectionUnblocked,
    (10, 70): first.ConnectionUpdateSecret,
    (10, 71): first.ConnectionUpdateSecretOk,
    (20, 10): first.ChannelOpen,
    (20, 11): first.ChannelOpenOk,
    (20, 20): first.ChannelFlow,
    (20, 21): first.ChannelFlowOk,
    (20, 40): first.ChannelClose,
    (20, 41): first.ChannelCloseOk,
    (30, 10): first.AccessRequest,
    (30, 11): first.AccessRequestOk,
    (40, 10): entity.ExchangeDeclare,
    (40, 11): entity.ExchangeDeclareOk,
    (40, 20): entity.ExchangeDelete,
    (40, 21): entity.ExchangeDeleteOk,
    (40, 30): entity.ExchangeBind,
    (40, 31): entity.ExchangeBindOk,
    (40, 40): entity.ExchangeUnbind,
    (40, 51): entity.ExchangeUnbindOk,  # 51, as RabbitMQ has it
    (50, 10): entity.QueueDeclare,
    (50, 11): entity.QueueDeclareOk,
    (50, 20): entity.QueueBind,
    (50, 21): entity.QueueBindOk,
    (50, 30): entity.QueuePurge,
    (50, 31): entity.QueuePurgeOk,
    (50, 40): entity.QueueDelete,
    (50, 41): entity.QueueDeleteOk,
    (50, 50): entity.QueueUnbind,
    (50, 51): entity.QueueUnbindOk,
    (60, 10): basic.BasicQos,
    (60, 11): basic.BasicQosOk,
    (60, 20): basic.BasicConsume,
    (60, 21): basic.BasicConsumeOk,
    (60, 30): basic.BasicCancel,
    (60, 31): basic.BasicCancelOk,
    (60, 40): basic.BasicPublish,
    (60, 50): basic.BasicReturn,
    (60, 60): basic.BasicDeliver,
    (60, 70): basic.BasicGet,
    (60, 71): basic.BasicGetOk,
    (60, 72): basic.BasicGetEmpty,
    (60, 80): basic.BasicAck,
    (60, 90): basic.BasicReject,
    (60, 100): basic.BasicRecoverAsync,
    (60, 110): basic.BasicRecover,
    (60, 111): basic.BasicRecoverOk,
    (60, 120): basic.BasicNack,
    (85, 10): entity.ConfirmSelect,
    (85, 11): entity.ConfirmSelectOk,
    (90, 10): entity.TxSelect,
    (90, 11): entity.TxSelectOk,
    (90, 20): entity.TxCommit,
    (90, 21): entity.TxCommitOk,
    (90, 30): entity.TxRollback,
    (90, 31): entity.TxRollbackOk,
}
IDS: Final = {kind: ids for ids, kind in METHODS.items()}

READERS: Final[dict[Wire, Callable[[OctetReader], Any]]] = {
    Wire.OCTET: OctetReader.octet,
    Wire.SHORT: OctetReader.short,
    Wire.LONG: OctetReader.long,
    Wire.LONGLONG: OctetReader.longlong,
    Wire.SHORT_STRING: OctetReader.short_string,
    Wire.LONG_STRING: OctetReader.long_string,
    Wire.TABLE: read_table,
}
WRITERS: Final[dict[Wire, Callable[[Any], bytes]]] = {
    Wire.OCTET: lambda value: bytes((value,)),
    Wire.SHORT: UINT16.pack,
    Wire.LONG: UINT32.pack,
    Wire.LONGLONG: UINT64.pack,
    Wire.SHORT_STRING: short_string,
    Wire.LONG_STRING: long_string,
    Wire.TABLE: encode_table,
}


class MethodLayout(NamedTuple):
    kind: type[AnyMethod]
    name: str  # as the specification writes it: queue.declare-ok
    wires: tuple[Wire, ...]
    readers: tuple[Callable[[OctetReader], Any] | None, ...]  # of the wires; None of a bit
    writers: tuple[Callable[[Any], bytes] | None, ...]
    letters: bytes  # of the wires
    ids: bytes


def layout_of(ids: tuple[int, int], kind: type[AnyMethod]) -> MethodLayout:
    hints = get_type_hints(kind, include_extras=True)
    wires = tuple(hints[each].__metadata__[0] for each in kind._fields)
    return MethodLayout(
        kind, spelled(kind.__name__), wires, tuple(map(READERS.get, wires)), tuple(map(WRITERS.get, wires)),
        "".join(each.value for each in wires).encode(), BOTH_IDS.pack(*ids),
    )


def spelled(name: str) -> str:
    """`QueueDeclareOk` as queue.declare-ok."""
    words = "".join(f" {each.lower()}" if each.isupper() else each for each in name).split()
    return f"{words[0]}.{'-'.join(words[1:])}"


LAYOUTS: Final = {ids: layout_of(ids, kind) for ids, kind in METHODS.items()}
BY_OCTETS: Final = {layout.ids: layout for layout in LAYOUTS.values()}
BY_KIND: Final = {layout.kind: layout for layout in LAYOUTS.values()}


def ids_of(payload: bytes) -> tuple[int, int]:
    """Class and method of a method frame. Raises AmqpError."""
    if len(payload) < IDS_SIZE:
        raise frame_error(f"a method frame of {len(payload)} bytes")
    return BOTH_IDS.unpack_from(payload)


def name_of(method: AnyMethod | type[AnyMethod]) -> str:
    return BY_KIND[method if isinstance(method, type) else type(method)].name


def decode_method(payload: bytes) -> AnyMethod:
    """Of a method frame. Raises AmqpError: 503 for a method that nobody knows, 501 or 502 for one that is malformed."""
    found = read_method(BY_OCTETS, payload, Timestamp)
    if found is not None:
        return found
    layout = BY_OCTETS.get(payload[:IDS_SIZE])
    if layout is None:
        ids = ids_of(payload)
        raise AmqpError(ReplyCode.COMMAND_INVALID, f"there is no method {ids[0]},{ids[1]}")
    return decode_fields(layout, payload)


def decode_fields(layout: MethodLayout, payload: bytes) -> AnyMethod:
    """Raises AmqpError, with what is wrong."""
    reader = OctetReader(payload, layout.name, IDS_SIZE)
    values: list[Any] = []
    bits, mask = 0, 0
    for read in layout.readers:
        if read is None:
            if mask in (0, 1 << 8):
                bits, mask = reader.octet(), 1
            values.append(bits & mask != 0)
            mask <<= 1
        else:
            mask = 0
            values.append(read(reader))
    reader.check_end()
    return layout.kind(*values)


def encode_method(method: AnyMethod) -> bytes:
    """The payload of its frame. Raises ValueError for a value that its field cannot have."""
    layout = BY_KIND[type(method)]
    parts = [layout.ids]
    mask = 0
    for write, value in zip(layout.writers, method, strict=True):
        if write is None:
            if mask in (0, 1 << 8):
                parts.append(b"\0")
                mask = 1
            if value:
                parts[-1] = bytes((parts[-1][0] | mask,))
            mask <<= 1
        else:
            mask = 0
            parts.append(write(value))
    return b"".join(parts)


METHOD_TYPE: Final = int(FrameType.METHOD)


def method_frame(channel: int, method: AnyMethod) -> bytes:
    """Raises ValueError as `encode_method` does."""
    layout = BY_KIND[type(method)]
    return method_frames.method_frame(channel, layout.ids, layout.letters, method) or encode_frame(
        METHOD_TYPE, channel, encode_method(method)
    )
