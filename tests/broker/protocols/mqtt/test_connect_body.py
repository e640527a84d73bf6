"""A plain CONNECT taken apart in C: as the codec takes it, for whatever it takes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.connect_body import plain_connect
from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.fixed_header import FIRST_BYTES, PacketType
from fanlight_broker.protocols.mqtt.on_connect import packet_of
from fanlight_broker.protocols.mqtt.packets import Connect, WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.test_lane_publish import INTERESTING, mutated

VERSIONS = st.sampled_from([V3, V5])
# With octets that are in no UTF-8, U+0000, and a character of each length.
PIECES = [b"a", b"client 7", b"\0", b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\xa6\x9c", b"\xff", b"\xed\xa0\x80"]
CLIENT_IDS = st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join)


def body_of(packet: Connect) -> bytes:
    """Without its fixed header of two bytes."""
    return encode(packet, packet.protocol_version)[2:]


def agrees(body: bytes) -> bool:
    """The compiled one takes nothing that the codec refuses, and what it takes it takes alike. True if it takes it."""
    found = plain_connect(body)
    if found is None:
        return False
    assert decode(FIRST_BYTES[PacketType.CONNECT], body, None) == packet_of(*found)
    return True


@settings(max_examples=200, deadline=None)
@given(VERSIONS, st.integers(0, 255), st.integers(0, 0xFFFF), CLIENT_IDS, st.sampled_from([b"", b"\0", b"x"]))
@example(V3, 2, 60, b"", b"")
@example(V5, 0, 0, b"\xed\xa0\x80", b"")
def test_it_takes_what_the_codec_takes(
    version: Version, flags: int, keep_alive: int, client_id: bytes, behind: bytes
) -> None:
    body = b"\0\4MQTT" + bytes((version, flags)) + keep_alive.to_bytes(2, "big") + (b"\0" if version is V5 else b"")
    body += len(client_id).to_bytes(2, "big") + client_id + behind
    if agrees(body):
        return
    try:
        decode(FIRST_BYTES[PacketType.CONNECT], body, None)
    except PacketError:
        return
    assert flags & ~2  # a sound one that it leaves to the codec has a will, a user name or a password


@settings(max_examples=200, deadline=None)
@given(
    VERSIONS,
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["set", "cut", "add"]), st.sampled_from(INTERESTING)), max_size=3
    ),
)
def test_mutated_ones_are_taken_as_by_the_codec(version: Version, edits: list[tuple[int, str, int]]) -> None:
    agrees(mutated(body_of(Connect("client 1", version, keep_alive=30)), edits))


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("clean_start", [True, False])
def test_a_plain_one_is_taken(version: Version, *, clean_start: bool) -> None:
    packet = Connect("client 1", version, clean_start, keep_alive=300)
    assert packet_of(*plain_connect(body_of(packet)) or ()) == packet


@pytest.mark.parametrize(
    "packet",
    [
        Connect("c", V3, will=WillFields("t", b"x")),
        Connect("c", V3, user_name="u"),
        Connect("c", V5, password=b"p"),
        Connect("c", V5, properties=Properties(receive_maximum=7)),
    ],
    ids=["will", "user name", "password", "property"],
)
def test_one_that_asks_for_more_is_left_to_the_codec(packet: Connect) -> None:
    assert plain_connect(body_of(packet)) is None
