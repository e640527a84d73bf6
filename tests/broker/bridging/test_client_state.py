"""The client's side of MQTT, in bytes: what it sends, and what a server's bytes make of it, however they are cut."""

from collections.abc import Iterator

import pytest

from fanlight_broker.bridging.client_state import (
    ClientState,
    Event,
    LinkOpened,
    LinkRefused,
    LinkState,
    Settled,
    Subscribed,
)
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PubAck,
    Publish,
    SubAck,
    Subscription,
    UnsubAck,
)
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version

PINGREQ = b"\xc0\x00"


def opening(version: Version = V5, **more: object) -> ClientState:
    properties = Properties(receive_maximum=2) if version is V5 else Properties()
    return ClientState(
        Connect("plant", version, clean_start=False, keep_alive=10, properties=properties), packet_max=1_000,
        **more,  # type: ignore[arg-type]
    )


def opened(version: Version = V5, **said: object) -> ClientState:
    state = opening(version)
    state.take()
    state.feed(encode(ConnAck(False, properties=Properties(**said)), version), 0.0)  # type: ignore[arg-type]
    assert isinstance(state.next_event(), LinkOpened)
    return state


def events(state: ClientState) -> Iterator[Event]:
    while (event := state.next_event()) is not None:
        yield event


def sent(state: ClientState, *packets: Packet, version: Version = V5) -> list[Event]:
    """What comes of packets of a server that arrive together."""
    state.feed(b"".join(encode(each, version) for each in packets), 0.0)
    return list(events(state))


def test_connect_is_what_the_specification_has() -> None:
    """3.1; of 3.1.1 with the bit that marks a bridge, in the Protocol Level."""
    assert opening().take() == bytes.fromhex("10 15 0004 4d515454 05 00 000a 03 21 0002 0005 706c616e74")
    assert opening(V3).take() == bytes.fromhex("10 11 0004 4d515454 04 00 000a 0005 706c616e74")
    assert opening(V3, bridge_bit=True).take() == bytes.fromhex("10 11 0004 4d515454 84 00 000a 0005 706c616e74")
    assert opening(V5, bridge_bit=True).take() == opening().take()


@pytest.mark.parametrize("version", [V5, V3])
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_the_same_comes_of_bytes_in_any_pieces(version: Version, size: int) -> None:
    """CONNACK, SUBACK, PUBLISH of both QoS, PUBACK; byte by byte, in threes, and all with the beginning of another."""
    state = opening(version)
    state.subscribe([Subscription("a/#", 1)], 7)
    state.state = LinkState.OPEN
    state.publish(Publish("up", b"x", 1), 9)
    state.state = LinkState.OPENING
    packets: list[Packet] = [
        ConnAck(True), SubAck(1, (ReasonCode.GRANTED_QOS_1,)), Publish("a/1", b"one"),
        Publish("a/2", b"two", 1, retain=True, packet_id=5), PubAck(2),
    ]
    octets = b"".join(encode(each, version) for each in packets) + encode(packets[2], version)[:-1]
    found: list[Event] = []
    for start in range(0, len(octets), size):
        state.feed(octets[start : start + size], 0.0)
        found += events(state)
    assert found[0] == LinkOpened(True, Properties())
    assert found[1] == Subscribed(7, (ReasonCode.GRANTED_QOS_1,))
    assert [(each.topic, each.payload, each.retain) for each in found if isinstance(each, Publish)] == [
        ("a/1", b"one", False), ("a/2", b"two", True),
    ]
    assert found[4] == Settled(9, ReasonCode.SUCCESS)
    assert len(found) == 5


def test_a_message_is_acknowledged_once() -> None:
    """[MQTT-4.3.2-4]; its identifier may be used again then."""
    state = opened()
    sent(state, Publish("a", b"", 1, packet_id=5))
    assert state.take() == b""
    for _ in range(2):
        state.acknowledge(5)
    assert state.take() == bytes.fromhex("40 02 0005")
    assert len(sent(state, Publish("a", b"", 1, packet_id=5))) == 1


def test_a_server_that_sends_more_than_the_receive_maximum_is_left() -> None:
    """[MQTT-3.3.4-9], with DISCONNECT 0x93."""
    state = opened()
    state.feed(b"".join(encode(Publish("a", b"", 1, packet_id=each), V5) for each in (1, 2, 3)), 0.0)
    with pytest.raises(PacketError, match="more than 2 messages"):
        list(events(state))
    assert state.take()[:3] == bytes.fromhex("e0 01 93")
    assert state.next_event() is None


def test_it_sends_no_more_than_the_server_takes() -> None:
    """Receive Maximum (3.2.2.3.3) and Maximum Packet Size (3.2.2.3.6) of CONNACK."""
    state = opened(receive_maximum=2, maximum_packet_size=40)
    assert state.publish(Publish("a", b"", 1), 1)
    assert state.room
    assert state.publish(Publish("a", b"", 1), 2)
    assert not state.room
    assert not state.publish(Publish("a", bytes(40), 1), 3)
    assert sent(state, PubAck(1, ReasonCode.NOT_AUTHORIZED)) == [Settled(1, ReasonCode.NOT_AUTHORIZED)]
    assert state.room
    assert sent(state, PubAck(1)) == []  # there is none any more


def test_packet_identifiers_are_used_again_and_not_twice() -> None:
    """[MQTT-2.2.1-3], when all 65,535 have had their turn."""
    state = opened()
    state.publish(Publish("a", b"", 1), 1)
    for number in range(65_535):
        packet = Publish("a", b"", 1)
        state.publish(packet, 2)
        assert packet.packet_id != 1
        assert packet.packet_id is not None
        sent(state, PubAck(packet.packet_id))
        if number % 1_000 == 0:
            state.take()


def test_a_selector_and_an_identifier_go_with_a_subscription_if_the_server_has_them() -> None:
    state = opened()
    state.subscribe([Subscription("a", 1, no_local=True)], 3, identifier=3, where="x > 1")
    assert state.take() == bytes.fromhex("82 18 0001 11 0b03 26 0005 7768657265 0005 78203e2031 0001 61 05")
    without = opened(subscription_identifiers_available=False)
    without.subscribe([Subscription("a", 1)], 3, identifier=3)
    assert without.take() == bytes.fromhex("82 07 0001 00 0001 61 01")
    three = opened(V3)
    three.subscribe([Subscription("a", 1, no_local=True)], 3, identifier=3, where="x > 1")
    assert three.take() == bytes.fromhex("82 06 0001 0001 61 01")
    three.unsubscribe(["a"], 4)
    assert three.take() == bytes.fromhex("a2 05 0002 0001 61")
    assert sent(three, UnsubAck(2), version=V3) == [Subscribed(4, ())]


def test_keep_alive_asks_and_then_gives_up() -> None:
    """3.1.2.10: PINGREQ after half of it, the end after one and a half; the server may have another (3.2.2.3.14)."""
    state = opened(server_keep_alive=4)
    assert state.tick(1.0)
    assert state.take() == b""
    for _ in range(2):
        assert state.tick(2.0)
    assert state.take() == PINGREQ
    state.feed(b"\xd0\x00", 3.0)
    assert list(events(state)) == []
    assert state.tick(8.9)
    assert not state.tick(9.0)


def test_goodbye() -> None:
    """DISCONNECT of either version, and with the end of the session (3.14.2.2.2)."""
    for version, expiry, octets in (
        (V3, None, "e0 00"), (V5, None, "e0 00"), (V5, 0, "e0 07 00 05 11 00000000"), (V3, 0, "e0 00"),
    ):
        state = opened(version)
        state.disconnect(expiry=expiry)
        assert state.take() == bytes.fromhex(octets)
        assert state.state is LinkState.CLOSED


def test_refusals_of_the_server() -> None:
    state = opening()
    assert sent(state, ConnAck(False, ReasonCode.NOT_AUTHORIZED, Properties(reason_string="no"))) == [
        LinkRefused(ReasonCode.NOT_AUTHORIZED, "no")
    ]
    three = opening(V3)
    three.feed(bytes.fromhex("20 02 00 01"), 0.0)  # unacceptable protocol version: of a server without bridges
    assert list(events(three)) == [LinkRefused(ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, "")]
    assert sent(opened(), Disconnect(ReasonCode.SESSION_TAKEN_OVER)) == [
        LinkRefused(ReasonCode.SESSION_TAKEN_OVER, "")
    ]


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        ("30 04 0001 61 00", "before CONNACK"),
        ("20 03 00 00 00 34 07 0001 61 0001 00 00", "QoS 2"),
        ("20 03 00 00 00 30 07 0001 61 03 230001", "Topic Alias"),
        ("20 03 00 00 00 c0 00", "PINGREQ from a server"),
        ("20 03 00 00 00 82 06 0001 00 0001 61", "Subscription Options"),
        ("20 03 00 00 00 30 ff ff ff 7f", "at most 1000"),
        ("20 03 00 00 00 36 00", "QoS"),
    ],
)
def test_what_a_server_must_not_send_ends_the_link(octets: str, reason: str) -> None:
    state = opening()
    state.feed(bytes.fromhex(octets), 0.0)
    with pytest.raises(PacketError, match=reason):
        list(events(state))
    assert state.state is LinkState.CLOSED
