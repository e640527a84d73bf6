"""Methods (1.3 to 1.9): as pika has them, which was generated from the specification; and what is malformed."""

import struct
from contextlib import suppress
from typing import Any

import pika.spec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import method_frames
from fanlight_broker.protocols.amqp.basic_methods import BasicAck, BasicConsumeOk
from fanlight_broker.protocols.amqp.connection_methods import ChannelFlowOk, ChannelOpenOk, ConnectionClose
from fanlight_broker.protocols.amqp.entity_methods import QueueDeclareOk
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import Timestamp
from fanlight_broker.protocols.amqp.frames import FrameType, encode_frame
from fanlight_broker.protocols.amqp.method_types import Wire
from fanlight_broker.protocols.amqp.methods import (
    BY_KIND,
    BY_OCTETS,
    LAYOUTS,
    AnyMethod,
    decode_fields,
    decode_method,
    encode_method,
    method_frame,
    name_of,
)
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.table_values import read_method
from tests.broker.protocols.amqp.amqp_values import FIELDS, methods

# pika writes what it decodes of connection.update-secret into other attributes than it has.
READ_BY_PIKA = sorted(set(LAYOUTS) - {(10, 70)})


@given(method=methods)
def test_a_method_comes_back_as_it_was(method: AnyMethod) -> None:
    assert decode_method(encode_method(method)) == method
    assert type(decode_method(encode_method(method))) is type(method)


def test_the_methods_and_their_ids_are_those_of_the_specification() -> None:
    known = {(index >> 16, index & 0xFFFF): kind for index, kind in pika.spec.methods.items()}
    assert set(known) == set(LAYOUTS)
    for ids, layout in LAYOUTS.items():
        assert known[ids].NAME.replace(".", "").lower() == layout.name.replace(".", "").replace("-", "").lower()


@pytest.mark.parametrize("ids", READ_BY_PIKA, ids=lambda ids: LAYOUTS[ids].name)
@given(data=st.data())
def test_pika_reads_the_same(ids: tuple[int, int], data: st.DataObject) -> None:
    layout = LAYOUTS[ids]
    fields = [data.draw(st.just({}) if wire is Wire.TABLE else FIELDS[wire]) for wire in layout.wires]
    theirs = pika.spec.methods[ids[0] << 16 | ids[1]]
    try:
        theirs = theirs()
    except TypeError:  # fields without a default
        theirs = theirs(*(None for _ in fields))
    theirs.decode(encode_method(layout.kind(*fields)), 4)
    found = list(vars(theirs).values())
    assert [comparable(value) for value in found[: len(fields)]] == [comparable(value) for value in fields]


def comparable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def test_bits_share_octets() -> None:
    declare = decode_method(bytes.fromhex("0032 000a 0000 0161 13 00000000"))
    assert (declare.queue, declare.passive, declare.durable, declare.exclusive) == ("a", True, True, False)
    assert (declare.auto_delete, declare.no_wait) == (False, True)


@given(method=methods, data=st.data())
def test_a_method_that_is_cut_short_is_refused(method: AnyMethod, data: st.DataObject) -> None:
    payload = encode_method(method)
    assert code_of(payload[: data.draw(st.integers(0, len(payload) - 1))]) in (
        ReplyCode.FRAME_ERROR, ReplyCode.SYNTAX_ERROR,
    )  # fmt: skip


@given(method=methods, tail=st.binary(min_size=1, max_size=3))
def test_a_method_with_a_tail_is_refused(method: AnyMethod, tail: bytes) -> None:
    assert code_of(encode_method(method) + tail) is ReplyCode.FRAME_ERROR


@pytest.mark.parametrize("ids", [(10, 12), (60, 41), (99, 10), (0, 0)])
def test_a_method_that_nobody_knows_is_a_command_invalid(ids: tuple[int, int]) -> None:
    assert code_of(struct.pack(">HH", *ids)) is ReplyCode.COMMAND_INVALID


def test_a_short_string_is_utf8() -> None:
    assert code_of(bytes.fromhex("003c 001e 01ff 00")) is ReplyCode.FRAME_ERROR


@given(ids=st.sampled_from(sorted(LAYOUTS)), rest=st.binary(max_size=60))
def test_any_bytes_are_a_method_or_refused(ids: tuple[int, int], rest: bytes) -> None:
    with suppress(AmqpError):
        method = decode_method(struct.pack(">HH", *ids) + rest)
        assert name_of(method) == LAYOUTS[ids].name


@given(ids=st.sampled_from(sorted(LAYOUTS)), rest=st.binary(max_size=60))
def test_what_the_short_way_reads_is_what_the_long_one_reads(ids: tuple[int, int], rest: bytes) -> None:
    payload = struct.pack(">HH", *ids) + rest
    found = read_method(BY_OCTETS, payload, Timestamp)
    assert found is None or found == decode_fields(LAYOUTS[ids], payload)


def test_most_methods_are_read_the_short_way() -> None:
    bind = bytes.fromhex("0032 0014 0000 0171 0178 0361 2e62 00 00000000")
    assert read_method(BY_OCTETS, bind, Timestamp) == decode_method(bind)


@given(method=methods, channel=st.integers(0, 65_535))
def test_a_frame_that_compiled_code_writes_is_the_one_that_python_writes(method: AnyMethod, channel: int) -> None:
    layout = BY_KIND[type(method)]
    found = method_frames.method_frame(channel, layout.ids, layout.letters, method)
    whole = encode_frame(FrameType.METHOD, channel, encode_method(method))
    assert found in (None, whole)
    assert method_frame(channel, method) == whole


@pytest.mark.parametrize("method", [
    BasicConsumeOk("ä" * 127), QueueDeclareOk("q", 2**32 - 1, 0), ConnectionClose(ReplyCode.NOT_FOUND, "x" * 255, 1, 2),
    ChannelOpenOk(), ChannelFlowOk(True), BasicAck(2**64 - 1, True),
])  # fmt: skip
def test_compiled_code_writes_most_answers(method: AnyMethod) -> None:
    layout = BY_KIND[type(method)]
    assert method_frames.method_frame(7, layout.ids, layout.letters, method) is not None


@pytest.mark.parametrize("method", [
    BasicConsumeOk("x" * 256), QueueDeclareOk("q", 2**32, 0), QueueDeclareOk("q", -1, 0), BasicAck(2**64, False),
    BasicConsumeOk("\ud800"),
])  # fmt: skip
def test_what_a_field_cannot_have_is_not_written(method: AnyMethod) -> None:
    with pytest.raises((ValueError, struct.error)):
        method_frame(1, method)


def code_of(payload: bytes) -> ReplyCode:
    with pytest.raises(AmqpError) as caught:
        decode_method(payload)
    return caught.value.code
