"""The table of properties, written out a second time from table 2-4, and what it makes of bytes (5.0: 2.2.2)."""

import dataclasses

import pytest

from fanlight_broker.protocols.mqtt.data_types import Reader
from fanlight_broker.protocols.mqtt.errors import MalformedPacket, ProtocolError, Unencodable
from fanlight_broker.protocols.mqtt.properties import (
    BINARY,
    BYTE,
    FLAG,
    FOUR_BYTES,
    NONE,
    PAIR,
    PROPERTIES,
    STRING,
    TWO_BYTES,
    VARIABLE,
    Properties,
    Property,
    PropertyPlace,
    decode_properties,
    encode_properties,
)

# Identifier, type, and places as table 2-4 lists them; a type's value in bytes.
TABLE = """
1  byte     PUBLISH WILL
2  four     PUBLISH WILL
3  string   PUBLISH WILL
8  string   PUBLISH WILL
9  binary   PUBLISH WILL
11 variable PUBLISH SUBSCRIBE
17 four     CONNECT CONNACK DISCONNECT
18 string   CONNACK
19 two      CONNACK
21 string   CONNECT CONNACK AUTH
22 binary   CONNECT CONNACK AUTH
23 byte     CONNECT
24 four     WILL
25 byte     CONNECT
26 string   CONNACK
28 string   CONNACK DISCONNECT
31 string   CONNACK PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK DISCONNECT AUTH
33 two      CONNECT CONNACK
34 two      CONNECT CONNACK
35 two      PUBLISH
36 byte     CONNACK
37 byte     CONNACK
38 pair     CONNECT CONNACK PUBLISH WILL PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK UNSUBSCRIBE UNSUBACK DISCONNECT AUTH
39 four     CONNECT CONNACK
40 byte     CONNACK
41 byte     CONNACK
42 byte     CONNACK
"""  # noqa: E501  as the specification has it, a row a line
ROWS = {int(row.split()[0]): (row.split()[1], set(row.split()[2:])) for row in TABLE.strip().splitlines()}
TYPES = {
    "byte": (BYTE, FLAG), "two": (TWO_BYTES,), "four": (FOUR_BYTES,), "variable": (VARIABLE,), "string": (STRING,),
    "binary": (BINARY,), "pair": (PAIR,),
}  # fmt: skip
VALUES = {
    "byte": "01", "two": "0001", "four": "00000001", "variable": "01", "string": "0001 61", "binary": "0001 00",
    "pair": "0001 61 0001 62",
}  # fmt: skip

each_row = pytest.mark.parametrize("row", PROPERTIES, ids=lambda row: row.name)


def one(row: Property) -> bytes:
    return bytes((row.identifier,)) + bytes.fromhex(VALUES[ROWS[row.identifier][0]])


def decoded(octets: bytes, place: PropertyPlace) -> Properties:
    reader = Reader(bytes((len(octets),)) + octets, place.name)
    properties = decode_properties(reader, place)
    reader.finish()
    return properties


def test_there_are_the_27_of_the_specification() -> None:
    assert [row.identifier for row in PROPERTIES] == sorted(ROWS)
    assert len(ROWS) == 27
    for row in PROPERTIES:
        kind, places = ROWS[row.identifier]
        assert row.type in TYPES[kind]
        assert {place.name for place in row.places} == places


def test_each_is_an_attribute_and_no_attribute_is_without_one() -> None:
    assert {row.name for row in PROPERTIES} == {field.name for field in dataclasses.fields(Properties)}
    assert len({row.name for row in PROPERTIES}) == 27


@pytest.mark.parametrize("place", PropertyPlace)
@each_row
def test_it_is_legal_where_the_table_says_and_malformed_elsewhere(row: Property, place: PropertyPlace) -> None:
    octets = one(row)
    if place.name not in ROWS[row.identifier][1]:
        with pytest.raises(MalformedPacket, match=f"{row.identifier:#04x}"):
            decoded(octets, place)
        return
    properties = decoded(octets, place)
    assert properties != NONE
    assert encode_properties(properties, place) == bytes((len(octets),)) + octets


@pytest.mark.parametrize("place", PropertyPlace)
@each_row
def test_it_is_written_only_where_it_is_legal(row: Property, place: PropertyPlace) -> None:
    properties = decoded(one(row), next(iter(row.places)))
    if place not in row.places:
        with pytest.raises(Unencodable):
            encode_properties(properties, place)


@pytest.mark.parametrize("place", PropertyPlace)
@each_row
def test_twice_it_is_a_protocol_error_unless_the_section_allows_it(row: Property, place: PropertyPlace) -> None:
    if place not in row.places:
        return
    twice = one(row) * 2
    if row.identifier == 38 or (row.identifier == 11 and place is PropertyPlace.PUBLISH):
        assert encode_properties(decoded(twice, place), place) == bytes((len(twice),)) + twice
    else:
        with pytest.raises(ProtocolError, match="more than once"):
            decoded(twice, place)


@pytest.mark.parametrize("identifier", [0, 4, 10, 27, 30, 43, 127])
def test_an_unknown_identifier_is_malformed(identifier: int) -> None:
    with pytest.raises(MalformedPacket, match="which is none"):
        decoded(bytes((identifier, 0)), PropertyPlace.CONNECT)


def test_an_identifier_in_more_bytes_than_it_needs_is_malformed() -> None:
    with pytest.raises(MalformedPacket):
        decoded(b"\xa1\0\0\x14", PropertyPlace.CONNECT)  # 0x21, padded


AT_MOST_ONE = (1, 23, 25, 36, 37, 40, 41, 42)
AT_LEAST_ONE = (11, 33, 35, 39)


@each_row
def test_a_byte_that_says_yes_or_no_says_nothing_else(row: Property) -> None:
    if row.identifier not in AT_MOST_ONE:
        assert ROWS[row.identifier][0] != "byte"
        return
    for value in (2, 255):
        with pytest.raises(ProtocolError, match=f"is {value}"):
            decoded(bytes((row.identifier, value)), next(iter(row.places)))


@each_row
def test_zero_is_a_protocol_error_where_the_section_says_so(row: Property) -> None:
    """3.1.2.11.3 Receive Maximum, 3.1.2.11.4 Maximum Packet Size, 3.3.2.3.4 Topic Alias, 3.8.2.1.2 Subscription
    Identifier."""
    sizes = {"byte": 1, "two": 2, "four": 4, "variable": 1}
    size = sizes.get(ROWS[row.identifier][0])
    if size is None:
        return
    octets = bytes((row.identifier,)) + bytes(size)
    for place in row.places:
        if row.identifier in AT_LEAST_ONE:
            with pytest.raises(ProtocolError, match="is 0"):
                decoded(octets, place)
        else:
            assert encode_properties(decoded(octets, place), place) == bytes((len(octets),)) + octets


def test_user_properties_keep_their_order_and_their_repetitions() -> None:
    pairs = (("b", "1"), ("a", "2"), ("b", "1"), ("", ""))
    octets = encode_properties(Properties(user_properties=pairs), PropertyPlace.PUBLISH)
    assert decode_properties(Reader(octets, "PUBLISH"), PropertyPlace.PUBLISH).user_properties == pairs


@pytest.mark.mqtt("MQTT-2.2.2-1", version=5)
def test_no_properties_are_a_length_of_zero() -> None:
    assert encode_properties(Properties(), PropertyPlace.CONNECT) == b"\0"
    assert decode_properties(Reader(b"\0", "CONNECT"), PropertyPlace.CONNECT) is NONE


def test_only_what_is_there_is_shown() -> None:
    assert repr(Properties(topic_alias=3, subscription_identifiers=(1,))) == (
        "Properties(subscription_identifiers=(1,), topic_alias=3)"
    )


@pytest.mark.parametrize(
    ("place", "properties"),
    [
        (PropertyPlace.CONNECT, Properties(receive_maximum=65536)),
        (PropertyPlace.CONNECT, Properties(session_expiry_interval=2**32)),
        (PropertyPlace.CONNECT, Properties(session_expiry_interval=-1)),
        (PropertyPlace.PUBLISH, Properties(subscription_identifiers=(268_435_456,))),
        (PropertyPlace.SUBSCRIBE, Properties(subscription_identifiers=(1, 2))),
        (PropertyPlace.PUBLISH, Properties(correlation_data=b"x" * 65_536)),
        (PropertyPlace.PUBLISH, Properties(content_type="x" * 65_536)),
        (PropertyPlace.PUBLISH, Properties(content_type="\0")),
        (PropertyPlace.PUBLISH, Properties(content_type="\ud800")),
        (PropertyPlace.PUBLISH, Properties(user_properties=(("a", "\0"),))),
        (PropertyPlace.PUBLISH, Properties(payload_format_indicator=256)),
        (PropertyPlace.CONNECT, Properties(receive_maximum=0)),
        (PropertyPlace.PUBLISH, Properties(payload_format_indicator=2)),
        (PropertyPlace.PUBLISH, Properties(topic_alias=0)),
    ],
)
def test_what_has_no_bytes_is_not_written(place: PropertyPlace, properties: Properties) -> None:
    with pytest.raises(Unencodable):
        encode_properties(properties, place)
