"""SUBSCRIBE and UNSUBSCRIBE taken apart in C: as the codec takes them, for whatever it takes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.data_types import encode_variable
from fanlight_broker.protocols.mqtt.encoding import options_byte
from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.packets import Subscribe, Subscription, Unsubscribe
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.subscribe_body import filters_of
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.test_lane_publish import INTERESTING, mutated

VERSIONS = st.sampled_from([V3, V5])
# Wildcards, separators, the parts of a Shared Subscription, and octets that are in no UTF-8, alone and together.
PIECES = [
    b"a", b"+", b"#", b"/", b"$share/", b"$share", b"g/", b"\0", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"$SYS/", b"?",
]
FILTERS = st.lists(st.sampled_from(PIECES), max_size=5).map(b"".join)
OPTIONS = st.integers(0, 255) | st.sampled_from([0, 1, 2, 3, 4, 8, 0x10, 0x20, 0x2E, 0x30])
PROPERTIES = st.sampled_from(
    [b"\0", b"\x02\x0b\x01", b"\x03\x0b\x80\x01", b"\x05\x0b\xff\xff\xff\x7f", b"\x02\x0b\0", b"\x03\x0b\x80\0",
     b"\x07\x26\0\1a\0\1b", b"\x04\x0b\x01\x0b\x02", b"\x80\0", b"\x02\x01\0", b"\x06\x0b\x80\x80\x80\x80\1"]
)
# Parts of properties, sound and not, in any order: identifiers, pairs, values of `where`, strings that end too late.
PARTS = st.lists(st.sampled_from([
    b"\x0b\x01", b"\x0b\x80\x01", b"\x0b\0", b"\x26\0\1a\0\1b", b"\x26\0\5where\0\5a = 1", b"\x26\0\5where\0\0",
    b"\x26\0\5wherf\0\2\xc3\xa9", b"\x26\0\5where\0\1\xff", b"\x26\0\1\0\0\0", b"\x26\0\0\0\x09x", b"\x26", b"\x26\0",
    b"\xa6\0\0\0\0\0", b"\x1f\0\1a", b"\x26\0\0\0\x7e" + b"x" * 126,
]), max_size=4).map(b"".join)


def plainly(
    body: bytes, version: Version, most: int, *, subscribe: bool, suffix: bool
) -> tuple[int, bytes, list[str], list[tuple[bytes, int]]] | None:
    """By the codec: packet identifier, the property as encoded, selectors, filters with their options.

    None: it refuses it.
    """
    try:
        packet = decode(0x82 if subscribe else 0xA2, body, version, most, filter_suffix=suffix)
    except PacketError:
        return None
    assert isinstance(packet, Subscribe | Unsubscribe)
    wheres = [value for name, value in packet.properties.user_properties if name == "where"]
    if isinstance(packet, Subscribe):
        numbers = packet.properties.subscription_identifiers
        one = Subscribe(1, (Subscription("t"),), Properties(subscription_identifiers=numbers))
        identifier = encode(one, V5)[5:-4] if numbers else b""
        filters = [(each.filter.encode(), options_byte(each, version)) for each in packet.subscriptions]
        return packet.packet_id, identifier, wheres, filters
    return packet.packet_id, b"", wheres, [(filter.encode(), 0) for filter in packet.filters]


def agrees(body: bytes, version: Version, *, subscribe: bool, suffix: bool = False, most: int = 1_000) -> bool:
    """The compiled one takes what the codec takes, and takes it alike. True if both do."""
    expected = plainly(body, version, most, subscribe=subscribe, suffix=suffix)
    found = filters_of(
        body, subscribe=subscribe, has_properties=version is V5, filter_suffix=suffix, user_properties_max=most
    )
    if found is None:
        assert expected is None
        return False
    assert expected is not None
    assert expected == (found.packet_id, found.identifier, found.wheres, list(found))
    assert found.count == len(expected[-1])
    assert list(found) == []
    return True


@settings(max_examples=600, deadline=None)
@given(VERSIONS, st.booleans(), st.integers(0, 0xFFFF), PROPERTIES, st.lists(st.tuples(FILTERS, OPTIONS), max_size=4))
@example(V3, True, 1, b"\0", [(b"$share/g/a/+/#", 1)])
@example(V5, True, 1, b"\x03\x0b\x80\x01", [(b"a", 0x2E), (b"$share/g/a", 0)])
@example(V5, True, 1, b"\0", [(b"$share/g/a", 4)])
@example(V3, False, 1, b"\0", [(b"$share//a", 0)])
@example(V5, True, 1, b"\0", [(b"a/#?/+#?\xc3\xa9", 0), (b"$share/g/a?", 0)])
@example(V3, True, 1, b"\0", [(b"a?\xff", 0)])
@example(V3, True, 1, b"\0", [(b"a?\0", 0)])
@example(V3, True, 1, b"\0", [(b"$share?/g/a", 0)])
@example(V3, True, 1, b"\0", [(b"?", 0)])
def test_it_takes_what_the_codec_takes(
    version: Version, subscribe: bool, packet_id: int, properties: bytes, wanted: list[tuple[bytes, int]]
) -> None:
    body = packet_id.to_bytes(2, "big") + (properties if version is V5 else b"")
    for filter, options in wanted:
        body += len(filter).to_bytes(2, "big") + filter + (bytes((options,)) if subscribe else b"")
    for suffix in (False, True):
        agrees(body, version, subscribe=subscribe, suffix=suffix)


@settings(max_examples=600, deadline=None)
@given(st.booleans(), PARTS, st.integers(-3, 3), st.sampled_from([0, 1, 2, 1_000]))
@example(True, b"\x26\0\0\0\x7e" + b"x" * 126, 0, 1)  # a length of two octets
@example(True, b"\x26\0\1a\0\1b" * 2, 0, 1)
@example(True, b"\x26\0\1a\0\1b", 0, 0)
@example(False, b"\x26\0\5where\0\5a = 1", 0, 1)
def test_properties_are_taken_as_by_the_codec(subscribe: bool, parts: bytes, off: int, most: int) -> None:
    length = encode_variable(max(len(parts) + off, 0))
    for filters in (b"\0\1a" + b"\1" * subscribe, b""):
        agrees(b"\0\7" + length + parts + filters, V5, subscribe=subscribe, most=most)


def test_properties_cut_and_padded() -> None:
    pairs = (("where", "a = 1"), ("b", "\u00e9"))
    packet = Subscribe(7, (Subscription("a"),), Properties(subscription_identifiers=(300,), user_properties=pairs))
    octets = encode(packet, V5)[2:]
    assert agrees(octets, V5, subscribe=True)
    assert [agrees(octets[:size], V5, subscribe=True) for size in range(len(octets))].count(True) == 0
    for at in range(len(octets)):
        for octet in (0, 1, 0x0B, 0x26, 0x7F, 0x80, 0xFF):
            agrees(octets[:at] + bytes((octet,)) + octets[at + 1 :], V5, subscribe=True)
            agrees(octets[:at] + bytes((octet,)) + octets[at:], V5, subscribe=True)


@settings(max_examples=600, deadline=None)
@given(
    VERSIONS, st.booleans(), st.booleans(),
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(["set", "cut", "add"]), st.sampled_from(INTERESTING)), max_size=3
    ),
)
def test_mutated_ones_are_taken_as_by_the_codec(
    version: Version, subscribe: bool, suffix: bool, edits: list[tuple[int, str, int]]
) -> None:
    filters = ("a/+/b", "$share/group/c/#?x=/+" if suffix else "$share/group/c/#", "d?")
    if subscribe:
        octets = encode(Subscribe(7, tuple(Subscription(each, n) for n, each in enumerate(filters))), version)
    else:
        octets = encode(Unsubscribe(7, filters), version)
    agrees(mutated(octets[2:], edits), version, subscribe=subscribe, suffix=suffix)


@pytest.mark.parametrize("version", [V3, V5])
def test_every_cut_of_a_packet_is_taken_as_by_the_codec(version: Version) -> None:
    octets = encode(Subscribe(7, (Subscription("a/+", 1), Subscription("b/#", 2))), version)[2:]
    taken = [agrees(octets[:size], version, subscribe=True) for size in range(len(octets) + 1)]
    assert taken.count(True) == 2  # behind the first filter, and all of it


def test_usual_packets_are_not_left_to_the_codec() -> None:
    wanted = (Subscription("a", 1), Subscription("$share/g/#", 2))
    identified = Properties(subscription_identifiers=(300,))
    for version, properties in ((V3, Properties()), (V5, Properties()), (V5, identified)):
        assert agrees(encode(Subscribe(7, wanted, properties), version)[2:], version, subscribe=True)
        assert agrees(encode(Unsubscribe(7, ("a", "$share/g/#")), version)[2:], version, subscribe=False)


@pytest.mark.parametrize("version", [V3, V5])
def test_nor_are_those_whose_filters_have_suffixes(version: Version) -> None:
    filters = ("sensor/#?location=a/+/#?&value>25", "$share/g/+/t?\u00e9=1", "plain", "?")
    body = encode(Subscribe(7, tuple(map(Subscription, filters[:3]))), version)[2:]
    assert agrees(body, version, subscribe=True, suffix=True)
    assert agrees(encode(Unsubscribe(7, filters[:3]), version)[2:], version, subscribe=False, suffix=True)
    assert not agrees(body, version, subscribe=True)
    assert not agrees(encode(Unsubscribe(7, filters), version)[2:], version, subscribe=False, suffix=True)
