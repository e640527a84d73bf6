"""The content header and its properties (2.3.5.2), compared with pika's."""

import struct
from contextlib import suppress

import pika.spec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.properties import (
    BasicProperties,
    decode_properties,
    encode_header,
    encode_properties,
    read_header,
)
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from tests.broker.protocols.amqp.amqp_values import basic_properties


@given(properties=basic_properties, size=st.integers(0, 2**64 - 1))
def test_a_header_comes_back_as_it_was(properties: BasicProperties, size: int) -> None:
    encoded = encode_properties(properties)
    assert read_header(encode_header(size, encoded)) == (60, size, encoded, properties)
    assert decode_properties(encoded) == properties


def test_pika_reads_all_of_them() -> None:
    ours = BasicProperties(
        "text/plain", "gzip", {"a": 1}, 2, 9, "c", "r", "60000", "m", 1_700_000_000, "t", "u", "a", "k"
    )
    theirs = pika.spec.BasicProperties()
    theirs.decode(encode_properties(ours))
    assert theirs == pika.spec.BasicProperties(
        "text/plain", "gzip", {"a": 1}, 2, 9, "c", "r", "60000", "m", 1_700_000_000, "t", "u", "a", "k"
    )


@given(properties=basic_properties, data=st.data())
def test_a_header_that_is_cut_short_is_refused(properties: BasicProperties, data: st.DataObject) -> None:
    octets = encode_header(5, encode_properties(properties))
    refused(octets[: data.draw(st.integers(0, len(octets) - 1))])


@given(properties=basic_properties, tail=st.binary(min_size=1, max_size=3))
def test_a_header_with_a_tail_is_refused(properties: BasicProperties, tail: bytes) -> None:
    refused(encode_header(5, encode_properties(properties)) + tail)


@pytest.mark.parametrize("flags", [1, 2, 0x8001])
def test_properties_that_nobody_has_defined_are_refused(flags: int) -> None:
    refused(encode_header(0, struct.pack(">H", flags) + b"\x01a"))


def test_the_weight_is_0() -> None:
    refused(b"\x00\x3c\x00\x01" + bytes(10))


@given(octets=st.binary(max_size=60))
def test_any_bytes_are_properties_or_refused(octets: bytes) -> None:
    with suppress(AmqpError):
        decode_properties(octets)


def refused(octets: bytes) -> None:
    with pytest.raises(AmqpError) as caught:
        read_header(octets)
    assert caught.value.code in (ReplyCode.FRAME_ERROR, ReplyCode.SYNTAX_ERROR)
