"""Packets that are refused, in bytes, each with the reason code of its section; and those with two spellings."""

import pytest

from fanlight_broker.protocols.mqtt.codec import decode
from fanlight_broker.protocols.mqtt.errors import MalformedPacket, PacketError, ProtocolError, UnsupportedProtocol
from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import Auth, Connect, Disconnect, Packet, PubAck, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.corpus import entry


def octets_of(written: str) -> bytes:
    """Hexadecimal and 'text' to bytes, with the Remaining Length filled in behind the first byte."""
    body = entry("", V5, written[2:], Disconnect()).octets
    assert len(body) < 128
    return bytes.fromhex(written[:2]) + bytes((len(body),)) + body


def decoded(written: str, version: Version | None) -> Packet:
    decoder = PacketDecoder(256)
    decoder.feed(octets_of(written))
    raw = decoder.next_packet()
    assert raw is not None
    return decode(*raw, version)


def case(what: str, version: Version | None, written: str, code: R, *statements: tuple[str, int]):  # type: ignore[no-untyped-def]
    """A packet that is refused; a CONNECT is decoded without a version, as it tells its own."""
    marks = [pytest.mark.mqtt(statement, version=number) for statement, number in statements]
    spoken = version or (V5 if HEAD5 in written else V3)
    name = f"{PacketType(int(written[:2], 16) >> 4).name} {'5.0' if spoken is V5 else '3.1.1'}: {what}"
    return pytest.param(version, written, code, id=name, marks=marks)


MALFORMED = R.MALFORMED_PACKET
PROTOCOL = R.PROTOCOL_ERROR
NAME = R.TOPIC_NAME_INVALID
FILTER = R.TOPIC_FILTER_INVALID
HEAD3 = "0004'MQTT' 04"
HEAD5 = "0004'MQTT' 05"

REFUSED = [
    # 3.1 CONNECT
    case("reserved connect flag", None, f"10 {HEAD3} 03 0000 0000", MALFORMED, ("MQTT-3.1.2-3", 3)),
    case("reserved connect flag", None, f"10 {HEAD5} 03 0000 00 0000", MALFORMED, ("MQTT-3.1.2-3", 5)),
    case("will QoS 3", None, f"10 {HEAD3} 1e 0000 0000 0001'w' 0000", MALFORMED, ("MQTT-3.1.2-14", 3)),
    case("will QoS 3", None, f"10 {HEAD5} 1e 0000 00 0000 00 0001'w' 0000", MALFORMED, ("MQTT-3.1.2-12", 5)),
    case("will QoS without a will", None, f"10 {HEAD3} 0a 0000 0000", MALFORMED,
         ("MQTT-3.1.2-11", 3), ("MQTT-3.1.2-13", 3)),
    case("will QoS without a will", None, f"10 {HEAD5} 0a 0000 00 0000", MALFORMED, ("MQTT-3.1.2-11", 5)),
    case("will retain without a will", None, f"10 {HEAD3} 22 0000 0000", MALFORMED, ("MQTT-3.1.2-15", 3)),
    case("will retain without a will", None, f"10 {HEAD5} 22 0000 00 0000", MALFORMED, ("MQTT-3.1.2-13", 5)),
    case("password without user name", None, f"10 {HEAD3} 42 0000 0000 0001'p'", MALFORMED, ("MQTT-3.1.2-22", 3)),
    case("no client identifier", None, f"10 {HEAD3} 02 0000", MALFORMED, ("MQTT-3.1.3-3", 3)),
    case("no client identifier", None, f"10 {HEAD5} 02 0000 00", MALFORMED, ("MQTT-3.1.3-3", 5), ("MQTT-3.1.4-1", 5)),
    case("no will topic", None, f"10 {HEAD3} 06 0000 0000", MALFORMED, ("MQTT-3.1.2-9", 3)),
    case("no will properties", None, f"10 {HEAD5} 06 0000 00 0000", MALFORMED, ("MQTT-3.1.2-9", 5)),
    case("no will payload", None, f"10 {HEAD5} 06 0000 00 0000 00 0001'w'", MALFORMED, ("MQTT-3.1.2-9", 5)),
    case("no user name", None, f"10 {HEAD3} 82 0000 0000", MALFORMED, ("MQTT-3.1.2-19", 3)),
    case("no user name", None, f"10 {HEAD5} 82 0000 00 0000", MALFORMED, ("MQTT-3.1.2-17", 5)),
    case("a user name without its flag", None, f"10 {HEAD3} 02 0000 0000 0001'u'", MALFORMED, ("MQTT-3.1.2-18", 3)),
    case("a user name without its flag", None, f"10 {HEAD5} 02 0000 00 0000 0001'u'", MALFORMED, ("MQTT-3.1.2-16", 5)),
    case("no password", None, f"10 {HEAD3} c2 0000 0000 0001'u'", MALFORMED, ("MQTT-3.1.2-21", 3)),
    case("no password", None, f"10 {HEAD5} 42 0000 00 0000", MALFORMED, ("MQTT-3.1.2-19", 5)),
    case("a password without its flag", None, f"10 {HEAD3} 82 0000 0000 0001'u' 0001'p'", MALFORMED,
         ("MQTT-3.1.2-20", 3)),
    case("a password without its flag", None, f"10 {HEAD5} 82 0000 00 0000 0001'u' 0001'p'", MALFORMED,
         ("MQTT-3.1.2-18", 5)),
    case("client identifier no UTF-8", None, f"10 {HEAD3} 02 0000 0001 ff", MALFORMED, ("MQTT-3.1.3-4", 3)),
    case("client identifier no UTF-8", None, f"10 {HEAD5} 02 0000 00 0001 ff", MALFORMED, ("MQTT-3.1.3-4", 5)),
    case("will topic no UTF-8", None, f"10 {HEAD3} 06 0000 0000 0001 ff 0000", MALFORMED, ("MQTT-3.1.3-10", 3)),
    case("will topic no UTF-8", None, f"10 {HEAD5} 06 0000 00 0000 00 0001 ff 0000", MALFORMED, ("MQTT-3.1.3-11", 5)),
    case("user name no UTF-8", None, f"10 {HEAD3} 82 0000 0000 0001 ff", MALFORMED, ("MQTT-3.1.3-11", 3)),
    case("user name no UTF-8", None, f"10 {HEAD5} 82 0000 00 0000 0001 ff", MALFORMED, ("MQTT-3.1.3-12", 5)),
    case("will topic with a wildcard", None, f"10 {HEAD3} 06 0000 0000 0001'#' 0000", NAME, ("MQTT-4.7.1-1", 3)),
    case("authentication data alone", None, f"10 {HEAD5} 02 0000 04 16 0001 00 0000", PROTOCOL),
    # 3.2 CONNACK
    case("reserved acknowledge flag", V5, "20 02 00 00", MALFORMED),
    case("a session with a refusal", V3, "20 01 05", PROTOCOL, ("MQTT-3.2.2-4", 3)),
    case("a session with a refusal", V5, "20 01 87 00", PROTOCOL, ("MQTT-3.2.2-6", 5)),
    case("return code 6", V3, "20 00 06", PROTOCOL),
    case("no properties", V5, "20 00 00", MALFORMED, ("MQTT-2.2.2-1", 5)),
    # 3.3 PUBLISH
    case("wildcard in its topic", V3, "30 0003'a/+'", NAME, ("MQTT-3.3.2-2", 3), ("MQTT-4.7.1-1", 3)),
    case("wildcard in its topic", V5, "30 0001'#' 00", NAME, ("MQTT-3.3.2-2", 5), ("MQTT-4.7.0-1", 5)),
    case("empty topic", V3, "30 0000'x'", NAME, ("MQTT-4.7.3-1", 3)),
    case("neither topic nor alias", V5, "30 0000 00", PROTOCOL),
    case("topic no UTF-8", V3, "30 0001 ff", MALFORMED, ("MQTT-3.3.2-1", 3), ("MQTT-1.5.3-1", 3)),
    case("topic no UTF-8", V5, "30 0001 ff 00", MALFORMED, ("MQTT-3.3.2-1", 5), ("MQTT-1.5.4-1", 5)),
    case("no topic", V3, "30", MALFORMED, ("MQTT-3.3.2-1", 3)),
    case("a surrogate in its topic", V3, "30 0003 eda080", MALFORMED, ("MQTT-1.5.3-1", 3)),
    case("a surrogate in its topic", V5, "30 0003 edbfbf 00", MALFORMED, ("MQTT-1.5.4-1", 5)),
    case("an overlong code in its topic", V5, "30 0002 c080 00", MALFORMED, ("MQTT-1.5.4-1", 5)),
    case("U+0000 in its topic", V3, "30 0003'a'00'b'", MALFORMED, ("MQTT-1.5.3-2", 3), ("MQTT-4.7.3-2", 3)),
    case("U+0000 in its topic", V5, "30 0003'a'00'b' 00", MALFORMED, ("MQTT-1.5.4-2", 5), ("MQTT-4.7.3-2", 5)),
    case("packet identifier 0", V3, "32 0001'a' 0000", PROTOCOL, ("MQTT-2.3.1-1", 3)),
    case("packet identifier 0", V5, "34 0001'a' 0000 00", PROTOCOL, ("MQTT-2.2.1-3", 5)),
    case("no packet identifier", V3, "32 0001'a'", MALFORMED, ("MQTT-2.3.1-1", 3)),
    case("topic alias 0", V5, "30 0001'a' 03 23 0000", R.TOPIC_ALIAS_INVALID, ("MQTT-3.3.2-8", 5)),
    case("subscription identifier 0", V5, "30 0001'a' 02 0b 00", PROTOCOL),
    case("subscription identifier too long", V5, "30 0001'a' 05 0b ffffffff", MALFORMED),
    case("subscription identifier padded", V5, "30 0001'a' 03 0b 8100", MALFORMED, ("MQTT-1.5.5-1", 5)),
    case("wildcard in its response topic", V5, "30 0001'a' 04 08 0001'+'", NAME, ("MQTT-3.3.2-14", 5)),
    case("response topic no UTF-8", V5, "30 0001'a' 04 08 0001 ff", MALFORMED, ("MQTT-3.3.2-13", 5)),
    case("content type no UTF-8", V5, "30 0001'a' 04 03 0001 ff", MALFORMED, ("MQTT-3.3.2-19", 5)),
    case("a name no UTF-8", V5, "30 0001'a' 06 26 0001 ff 0000", MALFORMED, ("MQTT-1.5.7-1", 5)),
    case("a value no UTF-8", V5, "30 0001'a' 06 26 0000 0001 ff", MALFORMED, ("MQTT-1.5.7-1", 5)),
    case("properties longer than it", V5, "30 0001'a' 03 23 00", MALFORMED),
    case("a property over the end of the properties", V5, "30 0001'a' 02 23 0001", MALFORMED),
    # 3.4 to 3.7
    case("packet identifier 0", V3, "40 0000", PROTOCOL),
    case("more than a packet identifier", V3, "40 0001 00", MALFORMED),
    case("reason code of a PUBREL", V5, "40 0001 92", PROTOCOL, ("MQTT-3.4.2-1", 5)),
    case("reason code of a PUBREL", V5, "50 0001 92", PROTOCOL, ("MQTT-3.5.2-1", 5)),
    case("reason code of a PUBACK", V5, "62 0001 10", PROTOCOL, ("MQTT-3.6.2-1", 5)),
    case("reason code of a PUBACK", V5, "70 0001 10", PROTOCOL, ("MQTT-3.7.2-1", 5)),
    case("reason code that there is not", V5, "40 0001 ff", PROTOCOL, ("MQTT-3.4.2-1", 5)),
    # 3.8 SUBSCRIBE
    case("no filter", V3, "82 0001", PROTOCOL, ("MQTT-3.8.3-3", 3)),
    case("no filter", V5, "82 0001 00", PROTOCOL, ("MQTT-3.8.3-2", 5)),
    case("no options", V3, "82 0001 0001'a'", MALFORMED),
    case("filter no UTF-8", V3, "82 0001 0001 ff 00", MALFORMED, ("MQTT-3.8.3-1", 3)),
    case("filter no UTF-8", V5, "82 0001 00 0001 ff 00", MALFORMED, ("MQTT-3.8.3-1", 5)),
    case("empty filter", V3, "82 0001 0000 00", FILTER, ("MQTT-4.7.3-1", 3)),
    case("empty filter", V5, "82 0001 00 0000 00", FILTER, ("MQTT-4.7.3-1", 5)),
    case("requested QoS 3", V3, "82 0001 0001'a' 03", MALFORMED, ("MQTT-3.8.3-4", 3)),
    case("maximum QoS 3", V5, "82 0001 00 0001'a' 03", PROTOCOL),
    case("reserved option", V3, "82 0001 0001'a' 04", MALFORMED, ("MQTT-3.8.3-4", 3)),
    case("reserved option", V5, "82 0001 00 0001'a' 40", MALFORMED, ("MQTT-3.8.3-5", 5)),
    case("the other reserved option", V5, "82 0001 00 0001'a' 80", MALFORMED, ("MQTT-3.8.3-5", 5)),
    case("retain handling 3", V5, "82 0001 00 0001'a' 30", PROTOCOL),
    case("no local when shared", V5, "82 0001 00 000a'$share/g/t' 04", PROTOCOL, ("MQTT-3.8.3-4", 5)),
    case("subscription identifier 0", V5, "82 0001 02 0b 00 0001'a' 00", PROTOCOL),
    case("two subscription identifiers", V5, "82 0001 04 0b 01 0b 01 0001'a' 00", PROTOCOL),
    case("packet identifier 0", V3, "82 0000 0001'a' 00", PROTOCOL, ("MQTT-2.3.1-1", 3)),
    case("packet identifier 0", V5, "82 0000 00 0001'a' 00", PROTOCOL, ("MQTT-2.2.1-3", 5)),
    # 3.9 SUBACK
    case("return code 3", V3, "90 0001 03", PROTOCOL, ("MQTT-3.9.3-2", 3)),
    case("return code of 5.0", V3, "90 0001 87", PROTOCOL, ("MQTT-3.9.3-2", 3)),
    case("reason code 3", V5, "90 0001 00 03", PROTOCOL, ("MQTT-3.9.3-2", 5)),
    case("no reason code", V5, "90 0001 00", PROTOCOL),
    # 3.10 UNSUBSCRIBE
    case("no filter", V3, "a2 0001", PROTOCOL, ("MQTT-3.10.3-2", 3)),
    case("no filter", V5, "a2 0001 00", PROTOCOL, ("MQTT-3.10.3-2", 5)),
    case("filter no UTF-8", V3, "a2 0001 0001 ff", MALFORMED, ("MQTT-3.10.3-1", 3)),
    case("filter no UTF-8", V5, "a2 0001 00 0001 ff", MALFORMED, ("MQTT-3.10.3-1", 5)),
    case("packet identifier 0", V3, "a2 0000 0001'a'", PROTOCOL, ("MQTT-2.3.1-1", 3)),
    case("packet identifier 0", V5, "a2 0000 00 0001'a'", PROTOCOL, ("MQTT-2.2.1-3", 5)),
    # 3.11 UNSUBACK
    case("reason codes", V3, "b0 0001 00", MALFORMED),
    case("reason code of a SUBACK", V5, "b0 0001 00 01", PROTOCOL, ("MQTT-3.11.3-2", 5)),
    case("no reason code", V5, "b0 0001 00", PROTOCOL),
    # 3.12 to 3.15
    case("a body", V3, "c0 00", MALFORMED),
    case("a body", V5, "d0 00", MALFORMED),
    case("a body", V3, "e0 00", MALFORMED),
    case("reason code of a CONNACK", V5, "e0 84", PROTOCOL, ("MQTT-3.14.2-1", 5)),
    case("bytes behind its properties", V5, "e0 00 00 00", MALFORMED),
    case("AUTH", V3, "f0", MALFORMED),
    case("reason code of a DISCONNECT", V5, "f0 04 00", PROTOCOL, ("MQTT-3.15.2-1", 5)),
    case("no authentication method", V5, "f0 18 00", PROTOCOL),
    case("no properties", V5, "f0 18", MALFORMED),
    # 4.8.2
    *(
        case(f"{filter!r}", version, written.format(f"{len(filter):04x}'{filter}'"), FILTER,
             *([(f"MQTT-4.8.2-{number}", 5)] if version is V5 else []))
        for version, written in ((V3, "82 0001 {} 00"), (V5, "82 0001 00 {} 00"), (V5, "a2 0001 00 {}"))
        for filter, number in (("$share//t", 1), ("$share/", 1), ("$share/g", 2), ("$share/g/", 2), ("$share/+/t", 2),
                               ("$share/g#/t", 2))
    ),
]  # fmt: skip


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.id for case in REFUSED]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize(("version", "written", "code"), REFUSED)
def test_this_is_refused(version: Version | None, written: str, code: R) -> None:
    """With the reason code of its section, or the one that says most (4.13.1)."""
    with pytest.raises(PacketError) as refused:
        decoded(written, version)
    assert refused.value.reason_code == code, refused.value.text
    assert type(refused.value) is (MalformedPacket if code == MALFORMED else ProtocolError)


@pytest.mark.mqtt("MQTT-3.1.0-1")
@pytest.mark.parametrize("written", ["c0", "30 0001'a'", "e0", "f0", "20 00 00"])
def test_before_connect_nothing_else_is_accepted(written: str) -> None:
    with pytest.raises(ProtocolError, match="before CONNECT"):
        decoded(written, None)


@pytest.mark.parametrize(
    ("written", "answer_in"),
    [
        pytest.param("10 0006'MQIsdp' 03 02 0000 0001'c'", V3, id="3.1"),
        pytest.param("10 0004'MQTT' 03 02 0000 0001'c'", V3, id="level 3"),
        pytest.param("10 0004'MQTT' 06 02 0000 00 0001'c'", V5, marks=pytest.mark.mqtt("MQTT-3.1.2-2", version=5)),
        pytest.param("10 0004'MQTT' 84 02 0000 0001'c'", V3, id="a bridge's try"),
        pytest.param("10 0004'mqtt' 04 02 0000 0001'c'", None, marks=pytest.mark.mqtt("MQTT-3.1.2-1")),
        pytest.param("10 0000 05", None, marks=pytest.mark.mqtt("MQTT-3.1.2-1")),
    ],
)
def test_another_protocol_is_refused_in_words_it_understands(written: str, answer_in: Version | None) -> None:
    with pytest.raises(UnsupportedProtocol) as refused:
        decoded(written, None)
    assert refused.value.answer_in is answer_in
    assert refused.value.reason_code == R.UNSUPPORTED_PROTOCOL_VERSION


def test_the_version_of_a_connect_is_its_own() -> None:
    """A second CONNECT decodes as well; that it comes at all is for the connection to refuse."""
    connect = decoded(f"10 {HEAD3} 02 0000 0001'c'", V5)
    assert connect == Connect("c", V3)


@pytest.mark.parametrize(
    ("written", "packet"),
    [
        ("40 0001 00", PubAck(1)),  # success, said
        ("40 0001 00 00", PubAck(1)),  # and that there are no properties
        ("40 0001 91 00", PubAck(1, R.PACKET_IDENTIFIER_IN_USE)),
        ("e0 00", Disconnect()),
        ("e0 00 00", Disconnect()),
        ("f0 18 04 15 0001'm'", Auth(R.CONTINUE_AUTHENTICATION, Properties(authentication_method="m"))),
    ],
)
def test_what_may_be_left_out_may_be_there(written: str, packet: Packet) -> None:
    """3.4.2.1, 3.14.2.1: the reason code and the Property Length of a success may be left out, and need not be."""
    assert decoded(written, V5) == packet


@pytest.mark.mqtt("MQTT-1.5.3-3", version=3)
@pytest.mark.mqtt("MQTT-1.5.4-3", version=5)
def test_a_byte_order_mark_stays_in_its_string() -> None:
    assert decoded("30 0006 efbbbf'a'62'c'", V3) == Publish("\ufeffabc")
    assert decoded("30 0006 efbbbf'abc' 00", V5) == Publish("\ufeffabc")


def test_a_character_outside_the_basic_plane_is_one() -> None:
    """The example of figure 1.2 (3.1.1: 1.5.3.1; 5.0: 1.5.4): A and U+2A6D4."""
    assert decoded("30 0005'A' f0aa9b94", V3) == Publish("A\U0002a6d4")


@pytest.mark.mqtt("MQTT-2.3.1-5", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-2", version=5)
def test_a_publish_of_qos_0_has_no_packet_identifier() -> None:
    assert decoded("30 0001'a' 0001", V3) == Publish("a", b"\0\1")
    assert decoded("30 0001'a' 00 0001", V5) == Publish("a", b"\0\1")


def test_an_error_says_which_field_was_wrong_and_where() -> None:
    with pytest.raises(MalformedPacket) as refused:
        decoded("30 0009'a'", V3)
    assert refused.value.text == "PUBLISH: Topic Name takes 9 bytes at 2, and the packet's body has 3"


def test_a_password_is_in_no_representation() -> None:
    assert "secret" not in repr(decoded(f"10 {HEAD3} c2 0000 0000 0001'u' 0006'secret'", None))
