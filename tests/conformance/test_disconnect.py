"""PINGREQ, DISCONNECT and errors (3.12, 3.14, 4.13; 3.1.1: 4.8): how connections end, and that only they do."""

import pytest

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, PingReq, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.conformance.clients import assert_closed, versions

# What closes a connection, in both versions: octets, and the reason that 5.0 is told.
WRONG = {
    "type 0": ("0000", ReasonCode.MALFORMED_PACKET),
    "flags of PINGREQ": ("c100", ReasonCode.MALFORMED_PACKET),
    "flags of SUBSCRIBE": ("80060001000161 00", ReasonCode.MALFORMED_PACKET),
    "QoS 3": ("360600016100010078", ReasonCode.MALFORMED_PACKET),
    "remaining length": ("30ffffffff7f", ReasonCode.MALFORMED_PACKET),
    "packet identifier 0": ("3207000161 0000 0078", ReasonCode.PROTOCOL_ERROR),
    "wildcard in a name": ("30050001 2b 0078", ReasonCode.TOPIC_NAME_INVALID),
    "filter": ("8208 0001 00 0002612b 01", ReasonCode.TOPIC_FILTER_INVALID),
    "no filter": ("8203 0001 00", ReasonCode.PROTOCOL_ERROR),
    "CONNACK of a client": ("2003000000", ReasonCode.PROTOCOL_ERROR),
    "PINGRESP of a client": ("d000", ReasonCode.PROTOCOL_ERROR),
    "PINGREQ with a body": ("c00100", ReasonCode.MALFORMED_PACKET),
}


@versions
@pytest.mark.mqtt("MQTT-3.12.4-1")
def test_a_pingreq_is_answered_with_a_pingresp(version: Version) -> None:
    peer = World().connect("a", version)
    peer.send(bytes.fromhex("c000"))
    assert peer.received == bytes.fromhex("d000")
    peer.send(b"\xc0", b"\x00\xc0\x00")
    assert peer.received == bytes.fromhex("d000") * 3


@versions
@pytest.mark.mqtt("MQTT-4.8.0-1", version=3)
@pytest.mark.mqtt("MQTT-4.13.1-1", version=5)
@pytest.mark.mqtt("MQTT-4.13.2-1", version=5)
@pytest.mark.mqtt("MQTT-3.14.4-1", version=5)
@pytest.mark.mqtt("MQTT-3.14.4-2", version=5)
@pytest.mark.mqtt("MQTT-3.14.2-2", version=5)
@pytest.mark.parametrize("case", WRONG)
def test_an_error_closes_the_connection_it_came_on_and_no_other(version: Version, case: str) -> None:
    octets, reason = WRONG[case]
    world = World()
    listener, peer = world.connect("l", version), world.connect("a", version)
    listener.subscribe("a")
    behind = encode(Publish("a", b"behind"), version) + encode(PingReq(), version)
    peer.send(encode(Publish("a", b"before"), version) + bytes.fromhex(octets) + behind)
    goodbye = peer.received
    assert_closed(peer, reason)
    assert [message.payload for message in listener.messages()] == [b"before"]
    assert not listener.gone
    assert sum(world.counts.errors.values()) == 1
    if version is V5:
        assert goodbye[0] == 0xE0
        assert goodbye[2] == reason


@versions
@pytest.mark.mqtt("MQTT-3.14.4-1", version=5)
@pytest.mark.mqtt("MQTT-3.14.4-2", version=5)
def test_nothing_behind_a_clients_disconnect_is_processed_or_answered(version: Version) -> None:
    world = World()
    listener, peer = world.connect("l", version), world.connect("a", version)
    listener.subscribe("a")
    peer.say(Publish("a", b"before"), Disconnect(), PingReq(), Publish("a", b"behind"))
    assert peer.gone
    assert peer.received == b""
    assert [message.payload for message in listener.messages()] == [b"before"]


def ended(how: str, world: World) -> Peer:
    """A 5.0 connection that the broker ends."""
    peer = world.connect("a", keep_alive=10, session_expiry_interval=60)
    if how == "taken over":
        world.connect("a")
    elif how == "silent":
        world.pass_time(15)
    elif how == "shutting down":
        peer.protocol.say_goodbye("shutting_down", "the broker stops")
        world.turn()
    else:
        peer.send(bytes.fromhex("0000"))
    return peer


@pytest.mark.mqtt("MQTT-3.14.2-2", version=5)
@pytest.mark.mqtt("MQTT-3.14.4-1", version=5)
@pytest.mark.mqtt("MQTT-3.14.4-2", version=5)
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("taken over", ReasonCode.SESSION_TAKEN_OVER), ("silent", ReasonCode.KEEP_ALIVE_TIMEOUT),
        ("shutting down", ReasonCode.SERVER_SHUTTING_DOWN), ("malformed", ReasonCode.MALFORMED_PACKET),
    ],
)  # fmt: skip
def test_the_brokers_disconnect_is_its_last_packet_and_says_nothing_of_the_sessions_expiry(
    how: str, reason: ReasonCode
) -> None:
    world = World()
    peer = ended(how, world)
    assert peer.gone
    goodbye = peer.next()
    assert isinstance(goodbye, Disconnect)
    assert goodbye.reason_code == reason
    assert goodbye.properties.session_expiry_interval is None
    world.connect("p").publish("a", b"x", 1)
    world.pass_time(1)
    assert peer.received == b""


def test_clients_are_sent_to_another_server_where_one_is_known() -> None:
    world = World(options=MqttOptions(server_reference="other.example.com:1883"))
    here, waiting = world.connect("a"), world.open()
    waiting.log_in = False
    waiting.say(connect("b"))
    for peer in (here, waiting):
        peer.protocol.say_goodbye("shutting_down", "the broker stops")
    world.turn()
    goodbye, refusal = here.next(), waiting.next()
    assert isinstance(goodbye, Disconnect)
    assert isinstance(refusal, ConnAck)
    for answer in (goodbye, refusal):  # 4.11
        assert answer.reason_code == ReasonCode.USE_ANOTHER_SERVER
        assert answer.properties.server_reference == "other.example.com:1883"
    assert waiting.gone


@pytest.mark.mqtt("MQTT-3.14.1-1", version=5)
@pytest.mark.parametrize("flags", [1, 2, 4, 8])
def test_reserved_bits_of_a_disconnect_get_0x81(flags: int) -> None:
    peer = World().connect("a")
    peer.send(bytes([0xE0 | flags, 0]))
    assert_closed(peer, ReasonCode.MALFORMED_PACKET)


@pytest.mark.mqtt("MQTT-3.14.2-1", version=5)
@pytest.mark.parametrize("code", [0x01, 0x8B, 0x8E, 0x9C, 0xFF])
def test_a_code_that_is_no_clients_is_a_protocol_error(code: int) -> None:
    peer = World().connect("a")
    peer.send(bytes([0xE0, 1, code]))
    assert_closed(peer, ReasonCode.PROTOCOL_ERROR)


@versions
def test_a_client_that_vanishes_in_the_middle_of_a_packet_leaves_nothing_behind(version: Version) -> None:
    world = World()
    peer = world.connect("a", version)
    peer.send(encode(Publish("a", b"x" * 1000), version)[:-1])
    peer.vanish()
    assert not len(world.broker.sessions)
    assert not world.broker.clients
    assert world.broker.ledger.used == 0


@pytest.mark.mqtt("MQTT-3.14.4-2", version=5)
def test_a_disconnect_with_an_error_ends_the_connection_and_not_the_session() -> None:
    world = World()
    peer = world.connect("a", session_expiry_interval=60)
    peer.say(Disconnect(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, Properties(reason_string="oh")))
    assert peer.gone
    assert peer.received == b""
    assert world.broker.sessions.get("a") is not None


def test_3_1_1_clients_are_never_sent_a_disconnect() -> None:
    world = World()
    for how in ("taken_over", "shutting_down", "idle_timeout", "slow_consumer"):
        peer = world.connect("a", V3)
        peer.protocol.say_goodbye(how, "for a test")
        world.turn()
        assert peer.gone
        assert peer.received == b""
