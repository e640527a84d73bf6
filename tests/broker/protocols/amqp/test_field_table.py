"""Field tables (4.2.5.5): every type of RabbitMQ's; lies about lengths; depth."""

import struct
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.data_types import OctetReader
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import (
    DEPTH_MAX,
    FieldTable,
    Timestamp,
    encode_table,
    raw_entries,
    read_entries,
    read_table,
)
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from tests.broker.protocols.amqp.amqp_values import is_text, octets, tables


def decoded(octets: bytes) -> FieldTable:
    reader = OctetReader(octets, "a test")
    found = read_table(reader)
    reader.check_end()
    return found


def one(value: bytes) -> Any:
    """The value of a table with the field `k`."""
    field = b"\x01k" + value
    return decoded(struct.pack(">I", len(field)) + field)["k"]


@given(table=tables)
def test_a_table_comes_back_as_it_was(table: FieldTable) -> None:
    found = decoded(encode_table(table))
    assert found == table
    assert list(found) == list(table)


@pytest.mark.parametrize(
    ("octets", "value"),
    [
        (b"t\x00", False), (b"t\x02", True),
        (b"b\xff", -1), (b"B\xff", 255),
        (b"s\xff\xfe", -2), (b"u\xff\xfe", 65_534),
        (b"I\xff\xff\xff\xfd", -3), (b"i\xff\xff\xff\xfd", 2**32 - 3),
        (b"l" + b"\xff" * 8, -1), (b"L" + b"\xff" * 8, -1),
        (b"f\x3f\x80\x00\x00", 1.0), (b"d\x3f\xf8" + bytes(6), 1.5),
        (b"D\x02\x00\x00\x01\x00", Decimal("2.56")),
        (b"S\x00\x00\x00\x02\xc3\xa9", "é"), (b"S\x00\x00\x00\x01\xff", b"\xff"),
        (b"x\x00\x00\x00\x02ab", b"ab"),
        (b"T" + bytes(7) + b"\x05", Timestamp(5)),
        (b"V", None),
        (b"F\x00\x00\x00\x04\x01at\x01", {"a": True}),
        (b"A\x00\x00\x00\x03Vt\x00", [None, False]),
    ],
)  # fmt: skip
def test_each_type_is_read(octets: bytes, value: Any) -> None:
    found = one(octets)
    assert found == value
    assert type(found) is type(value)


@given(value=octets)
def test_a_long_string_is_text_if_it_can_be(value: bytes) -> None:
    assert one(b"S" + struct.pack(">I", len(value)) + value) == (value.decode() if is_text(value) else value)


def test_of_a_name_that_comes_twice_the_last_value_counts() -> None:
    assert decoded(b"\x00\x00\x00\x08\x01at\x00\x01at\x01") == {"a": True}


@pytest.mark.parametrize("letter", [b"U", b"c", b"\x00", b"\xff"])
def test_an_unknown_type_is_a_syntax_error(letter: bytes) -> None:
    assert code_of(b"\x00\x00\x00\x03\x01k" + letter) is ReplyCode.SYNTAX_ERROR


@pytest.mark.parametrize(
    "octets",
    [
        b"", b"\x00\x00\x00", b"\x00\x00\x00\x01", b"\xff\xff\xff\xff",  # the length of the table
        b"\x00\x00\x00\x02\x05a",  # of the name
        b"\x00\x00\x00\x02\x01a",  # no value
        b"\x00\x00\x00\x05\x01aI\x00\x00",
        b"\x00\x00\x00\x08\x01aS\x00\x00\x00\x02x",
        b"\x00\x00\x00\x08\x01aF\x00\x00\x00\x09x",
        b"\x00\x00\x00\x07\x01aA\xff\xff\xff\xff",
        b"\x00\x00\x00\x04\x01aD\x00",
        b"\x00\x00\x00\x03\x01\xffV",  # the name is no UTF-8
    ],
)  # fmt: skip
def test_a_lie_about_a_length_is_refused(octets: bytes) -> None:
    assert code_of(octets) in (ReplyCode.FRAME_ERROR, ReplyCode.SYNTAX_ERROR)


@given(table=tables.filter(bool), data=st.data())
def test_a_table_that_is_cut_short_is_refused(table: FieldTable, data: st.DataObject) -> None:
    octets = encode_table(table)
    code_of(octets[: data.draw(st.integers(0, len(octets) - 1))])


@given(octets=st.binary(max_size=80))
def test_any_bytes_are_a_table_or_refused(octets: bytes) -> None:
    with suppress(AmqpError):
        decoded(struct.pack(">I", len(octets)) + octets)


@given(table=tables, data=st.data())
def test_compiled_code_reads_what_python_reads(table: FieldTable, data: st.DataObject) -> None:
    made = bytearray(encode_table(table))
    if made and data.draw(st.booleans()):
        made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    encoded = bytes(made)
    found: list[Any] = []
    for read in (read_table, read_entries):
        reader = OctetReader(encoded, "a test")
        try:
            found.append((repr(read(reader)), reader.at))  # with the types, and a NaN is like another
        except AmqpError as error:
            found.append(str(error))
    assert found[0] == found[1]
    if isinstance(found[0], str):
        with pytest.raises(AmqpError, match="a table"):
            raw_entries(encoded)
    else:
        entries = raw_entries(encoded)
        assert repr({name: one(value) for name, value in entries.items()}) == found[0][0]


def code_of(octets: bytes) -> ReplyCode:
    with pytest.raises(AmqpError) as caught:
        decoded(octets)
    return caught.value.code


@pytest.mark.parametrize("as_array", [False, True])
def test_nesting_has_a_bound(as_array: bool) -> None:
    assert decoded(nested(DEPTH_MAX, as_array))
    assert code_of(nested(DEPTH_MAX + 1, as_array)) is ReplyCode.SYNTAX_ERROR


def nested(depth: int, as_array: bool) -> bytes:
    """A table of that many levels, the inner ones tables or arrays."""
    value: Any = "innermost"
    for _ in range(depth - 1):
        value = [value] if as_array else {"k": value}
    return encode_table({"k": value})


@pytest.mark.parametrize(
    "value",
    [2**63, -(2**63) - 1, Decimal(-1), Decimal("1e3"), Decimal("NaN"), Decimal(2**32), {1, 2}, Timestamp(-1)],
)
def test_what_a_table_cannot_have_is_not_written(value: Any) -> None:
    with pytest.raises((ValueError, struct.error)):
        encode_table({"k": value})


def test_a_name_has_255_bytes_at_most() -> None:
    with pytest.raises(ValueError, match="256 bytes"):
        encode_table({"k" * 256: 1})
