"""What is left out to stay within a Maximum Packet Size, what 3.1.1 has no bytes for, and what nothing has."""

from dataclasses import replace

import pytest

from fanlight_broker.protocols.mqtt import codec
from fanlight_broker.protocols.mqtt.codec import decode, encode, encode_within, without_problem_information
from fanlight_broker.protocols.mqtt.encoding import plain_suback, plain_unsuback
from fanlight_broker.protocols.mqtt.errors import Unencodable
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
    WillFields,
)
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import CARRIED_BY, ERROR
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version

EXPLAINED = Properties(reason_string="because", user_properties=(("key", "value"),))
METHOD = Properties(authentication_method="m", reason_string="because", user_properties=(("key", "value"),))

EXPLAINING = [
    pytest.param(packet, marks=[pytest.mark.mqtt(statement, version=5) for statement in statements.split()])
    for packet, statements in (
        (ConnAck(False, R.NOT_AUTHORIZED, EXPLAINED), "MQTT-3.2.2-19 MQTT-3.2.2-20"),
        (PubAck(1, R.SUCCESS, EXPLAINED), "MQTT-3.4.2-2 MQTT-3.4.2-3"),
        (PubRec(1, R.SUCCESS, EXPLAINED), "MQTT-3.5.2-2 MQTT-3.5.2-3"),
        (PubRel(1, R.SUCCESS, EXPLAINED), "MQTT-3.6.2-2 MQTT-3.6.2-3"),
        (PubComp(1, R.SUCCESS, EXPLAINED), "MQTT-3.7.2-2 MQTT-3.7.2-3"),
        (SubAck(1, (R.GRANTED_QOS_1,), EXPLAINED), "MQTT-3.9.2-1 MQTT-3.9.2-2"),
        (UnsubAck(1, (R.SUCCESS,), EXPLAINED), "MQTT-3.11.2-1 MQTT-3.11.2-2"),
        (Disconnect(R.SERVER_BUSY, EXPLAINED), "MQTT-3.14.2-3 MQTT-3.14.2-4"),
        (Auth(R.CONTINUE_AUTHENTICATION, METHOD), "MQTT-3.15.2-2 MQTT-3.15.2-3"),
    )
]


def read(octets: bytes, version: Version) -> Packet:
    decoder = PacketDecoder(len(octets))
    decoder.feed(octets)
    raw = decoder.next_packet()
    assert raw is not None
    return decode(*raw, version)


@pytest.mark.parametrize("packet", EXPLAINING)
def test_explanations_are_left_out_before_the_packet_becomes_too_large(packet: ConnAck) -> None:
    whole = encode(packet, V5)
    some = replace(packet, properties=replace(packet.properties, user_properties=()))
    bare = replace(packet, properties=replace(some.properties, reason_string=None))
    sizes = {size: encode_within(packet, V5, size) for size in range(len(whole) + 1)}
    seen = []
    for size, octets in sizes.items():
        if octets is None:
            assert size < len(encode(bare, V5))
            continue
        assert len(octets) <= size
        seen.append(read(octets, V5))
    assert sizes[len(encode(bare, V5))] is not None
    assert [one for at, one in enumerate(seen) if at == 0 or seen[at - 1] != one] == [bare, some, packet]
    assert encode_within(packet, V5, None) == whole


def test_a_message_is_sent_with_all_its_user_properties_or_not_at_all() -> None:
    publish = Publish("t", b"payload", properties=Properties(user_properties=(("key", "value"),)))
    whole = encode(publish, V5)
    assert encode_within(publish, V5, len(whole)) == whole
    assert encode_within(publish, V5, len(whole) - 1) is None


@pytest.mark.parametrize("packet", EXPLAINING)
def test_who_wants_no_problem_information_gets_it_in_connack_and_disconnect_only(packet: PubAck) -> None:
    sent = without_problem_information(packet)
    if isinstance(packet, ConnAck | Disconnect):
        assert sent == packet
    else:
        assert sent == replace(packet, properties=replace(packet.properties, reason_string=None, user_properties=()))


def test_who_wants_no_problem_information_still_gets_the_user_properties_of_messages() -> None:
    publish = Publish("t", properties=Properties(user_properties=(("a", "b"),)))
    assert without_problem_information(publish) is publish


@pytest.mark.parametrize("reason", sorted(CARRIED_BY[ConnAck.type]))
def test_a_connack_of_3_1_1_has_a_return_code_that_applies_or_is_not_sent(reason: R) -> None:
    expected = {R.SUCCESS: 0, R.UNSUPPORTED_PROTOCOL_VERSION: 1, R.CLIENT_IDENTIFIER_NOT_VALID: 2,
                R.SERVER_UNAVAILABLE: 3, R.SERVER_BUSY: 3, R.QUOTA_EXCEEDED: 3, R.USE_ANOTHER_SERVER: 3,
                R.SERVER_MOVED: 3, R.CONNECTION_RATE_EXCEEDED: 3, R.BAD_USER_NAME_OR_PASSWORD: 4,
                R.NOT_AUTHORIZED: 5, R.BANNED: 5}  # fmt: skip
    if reason in expected:
        assert encode(ConnAck(False, reason), V3) == bytes((0x20, 2, 0, expected[reason]))
    else:
        with pytest.raises(Unencodable, match=reason.name):
            encode(ConnAck(False, reason), V3)


@pytest.mark.mqtt("MQTT-3.9.3-2", version=3)
@pytest.mark.parametrize("reason", sorted(CARRIED_BY[SubAck.type]))
def test_a_suback_of_3_1_1_knows_one_failure(reason: R) -> None:
    assert encode(SubAck(1, (reason,)), V3) == bytes((0x90, 3, 0, 1, 0x80 if reason >= ERROR else reason))


def test_3_1_1_leaves_out_what_it_has_no_place_for() -> None:
    assert encode(Publish("t", b"x", properties=EXPLAINED), V3) == b"\x30\x04\0\1tx"
    assert encode(PubAck(1, R.QUOTA_EXCEEDED, EXPLAINED), V3) == b"\x40\2\0\1"
    assert encode(Disconnect(R.SERVER_BUSY), V3) == b"\xe0\0"
    assert encode(Subscribe(1, (Subscription("t", 1, True, True, 2),)), V3) == b"\x82\6\0\1\0\1t\1"
    assert encode(UnsubAck(1, (R.SUCCESS,)), V3) == b"\xb0\2\0\1"


QOS_3 = Subscription("t", 3)
UNENCODABLE = [
    pytest.param(Publish("t", qos=1), V3, id="QoS 1 without a packet identifier"),
    pytest.param(Publish("t", packet_id=1), V3, id="QoS 0 with a packet identifier"),
    pytest.param(Publish("t", dup=True), V3, marks=pytest.mark.mqtt("MQTT-3.3.1-2")),
    pytest.param(Publish("t", qos=3, packet_id=1), V3, marks=pytest.mark.mqtt("MQTT-3.3.1-4")),
    pytest.param(Publish("t" * 65_536), V3, marks=pytest.mark.mqtt("MQTT-4.7.3-3")),
    pytest.param(Publish("\0"), V3, marks=pytest.mark.mqtt("MQTT-4.7.3-2")),
    pytest.param(Publish(""), V3, id="no topic"),
    pytest.param(Publish(""), V5, id="neither topic nor alias"),
    pytest.param(Publish("", properties=Properties(topic_alias=1)), V3, id="an alias in 3.1.1"),
    pytest.param(Publish("a/#"), V5, marks=pytest.mark.mqtt("MQTT-3.3.2-2")),
    pytest.param(PubAck(0), V5, id="packet identifier 0"),
    pytest.param(PubAck(65_536), V5, id="packet identifier 65536"),
    pytest.param(PubAck(1, R.NO_SUBSCRIPTION_EXISTED), V5, marks=pytest.mark.mqtt("MQTT-3.4.2-1", version=5)),
    pytest.param(ConnAck(False, R.GRANTED_QOS_1), V5, marks=pytest.mark.mqtt("MQTT-3.2.2-8", version=5)),
    pytest.param(ConnAck(True, R.NOT_AUTHORIZED), V5, marks=pytest.mark.mqtt("MQTT-3.2.2-6", version=5)),
    pytest.param(ConnAck(True, R.NOT_AUTHORIZED), V3, marks=pytest.mark.mqtt("MQTT-3.2.2-4", version=3)),
    pytest.param(Disconnect(R.GRANTED_QOS_2), V5, marks=pytest.mark.mqtt("MQTT-3.14.2-1", version=5)),
    pytest.param(Auth(), V3, id="AUTH in 3.1.1"),
    pytest.param(Auth(R.CONTINUE_AUTHENTICATION), V5, id="no authentication method"),
    pytest.param(Connect("c", V5, properties=Properties(authentication_data=b"")), V5, id="data without a method"),
    pytest.param(Connect("c", V3, will=WillFields("+", b"")), V3, id="a wildcard in the will topic"),
    pytest.param(Subscribe(1, ()), V5, marks=pytest.mark.mqtt("MQTT-3.8.3-2", version=5)),
    pytest.param(Subscribe(1, (QOS_3,)), V3, id="QoS 3"),
    pytest.param(Subscribe(1, (QOS_3,)), V5, id="QoS 3"),
    pytest.param(Subscribe(1, (Subscription("t", retain_handling=3),)), V5, id="retain handling 3"),
    pytest.param(SubAck(1, ()), V5, id="no reason codes"),
    pytest.param(Unsubscribe(1, ()), V3, marks=pytest.mark.mqtt("MQTT-3.10.3-2")),
    pytest.param(UnsubAck(1, ()), V5, id="no reason codes"),
    pytest.param(Connect("c", V5), V3, id="of another version"),
    pytest.param(Connect("c", V3, password=b"p"), V3, marks=pytest.mark.mqtt("MQTT-3.1.2-22", version=3)),
    pytest.param(Connect("c", V3, keep_alive=65_536), V3, id="keep alive 65536"),
    pytest.param(Connect("c", V3, will=WillFields("w", b"", 3)), V3, id="will QoS 3"),
    pytest.param(Connect("c", V5, will=WillFields("w", b"x" * 65_536)), V5, id="will of 65536 bytes"),
]


@pytest.mark.parametrize(("packet", "version"), UNENCODABLE)
def test_what_the_specification_forbids_has_no_bytes(packet: Packet, version: Version) -> None:
    with pytest.raises(Unencodable):
        encode(packet, version)


def test_a_body_longer_than_a_remaining_length_can_say_has_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a lower limit than 256 MiB, which the test need not take."""
    monkeypatch.setattr(codec, "VARIABLE_BYTE_INTEGER_MAX", 1000)
    assert len(encode(Publish("t", b"x" * 997), V3)) == 1003
    with pytest.raises(Unencodable, match="1001"):
        encode(Publish("t", b"x" * 998), V3)


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("count", [1, 130])
def test_plain_acknowledgements_are_those_of_the_encoder(version: Version, count: int) -> None:
    granted = [R(qos) for qos in (0, 1, 2)] * count
    assert plain_suback(258, granted, version) == encode(SubAck(258, tuple(granted)), version)
    ended = [R.SUCCESS, R.NO_SUBSCRIPTION_EXISTED] * count
    assert plain_unsuback(258, ended, version) == encode(UnsubAck(258, tuple(ended)), version)
