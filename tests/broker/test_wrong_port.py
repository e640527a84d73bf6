"""Who speaks another protocol than the port it has come to is recognised, and sent on."""

import pytest

from fanlight_broker.assembly import PROTOCOLS
from fanlight_broker.protocols.amqp.part import AmqpPart
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.part import MqttPart
from fanlight_broker.protocols.mqtt.version import V3, V5
from fanlight_broker.protocols.native.part import NativePart
from fanlight_broker.wrong_port import HTTP, NOT_SPOKEN, TLS, PortGuide
from tests.broker.protocols.mqtt.world import connect
from tests.system.wire import hello

BEGINNINGS = {
    HTTP: [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.0\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"OPTIONS * HT"],
    TLS: [bytes.fromhex("16030100c8010000c40303"), bytes.fromhex("160303004a")],
    AmqpPart.title: [b"AMQP\x00\x00\x09\x01", b"AMQP\x03\x01\x00\x00"],
    NOT_SPOKEN[b"STOMP\n"]: [b"STOMP\naccept-version:1.2\n"],
    MqttPart.title: [
        encode(connect("c", V3), V3), encode(connect("c"), V5), encode(connect("c" * 300), V5),
        encode(connect("c" * 40_000), V5), bytes.fromhex("1011 0006 4d5149736470 03 02 003c 0003 616263"),
    ],
    NativePart.title: [hello(), hello(client="a" * 60, user="u" * 300)],
}
CASES = [
    pytest.param(kind, octets, id=f"{kind}-{n}") for kind, known in BEGINNINGS.items() for n, octets in enumerate(known)
]
PORTS = {
    "native": 7420, "native_tls": 7423, "native_websocket": 7425, "native_websocket_tls": 7426,
    "mqtt": 1883, "mqtt_tls": 8883, "mqtt_websocket": 8083,
    "mqtt_websocket_tls": 8084, "amqp": 5672, "amqp_tls": 5671, "amqp_websocket": 15678,
    "amqp_websocket_tls": 15677, "http": 7421, "https": 7424,
}  # fmt: skip


def guide(*names: str) -> PortGuide:
    made = PortGuide(PROTOCOLS)
    for name in names or PORTS:
        made.opened(name, PORTS[name])
    return made


def said(listener: str, octets: bytes, *names: str) -> str:
    wrong = guide(*names).check(listener, octets)
    assert wrong is not None
    return wrong.text


@pytest.mark.parametrize(("kind", "octets"), CASES)
def test_each_protocol_is_recognised_by_eight_bytes(kind: str, octets: bytes) -> None:
    assert guide().spoken(octets) == kind
    assert guide().spoken(octets[:8]) == kind
    assert all(guide().spoken(octets[:size]) in (kind, None) for size in range(8))


@pytest.mark.parametrize("octets", [b"", b"\0", b"\x10", b"\x10\xff\xff\xff\xff", b"SSH-2.0-x\r\n", b"GETX", bytes(24)])
def test_what_is_none_of_them_is_the_listeners_to_judge(octets: bytes) -> None:
    assert guide().spoken(octets) is None
    assert all(guide().check(listener, octets) is None for listener in PORTS)


@pytest.mark.parametrize(("kind", "octets"), CASES)
@pytest.mark.parametrize("listener", PORTS)
def test_a_listeners_own_protocol_is_right_and_every_other_is_wrong(listener: str, kind: str, octets: bytes) -> None:
    assert (guide().check(listener, octets) is None) == (guide().expected[listener] == kind)


@pytest.mark.parametrize(
    ("listener", "kind", "text"),
    [
        ("native", MqttPart.title, "this is MQTT; the broker speaks it on port 1883, by TLS on port 8883"),
        ("native", HTTP, "this is HTTP; the broker speaks it on port 7421, by TLS on port 7424, and Fanlight's native "
                         "protocol over WebSocket on port 7425"),
        ("native", TLS, "this is TLS; the broker speaks the protocol of this port by TLS on port 7423"),
        ("native", NOT_SPOKEN[b"STOMP\n"], "this is STOMP; the broker does not speak it"),
        ("native", AmqpPart.title, "this is AMQP; the broker speaks it on port 5672, by TLS on port 5671"),
        ("mqtt", HTTP, "this is HTTP; the broker speaks it on port 7421, by TLS on port 7424, and MQTT over "
                              "WebSocket on port 8083"),
        ("mqtt", NativePart.title, "this is Fanlight's native protocol; the broker speaks it on port 7420, by TLS on "
                                "port 7423"),
        ("http", TLS, "this is TLS; the broker speaks the protocol of this port by TLS on port 7424"),
        ("mqtt_tls", MqttPart.title, "this is MQTT without TLS; the broker speaks it on port 1883, by TLS on port "
                                     "8883"),
    ],
)  # fmt: skip
def test_the_text_names_the_protocol_and_its_ports(listener: str, kind: str, text: str) -> None:
    assert said(listener, BEGINNINGS[kind][0]) == text


def test_what_is_not_open_is_said_to_be_turned_off() -> None:
    mqtt, tls = BEGINNINGS[MqttPart.title][0], BEGINNINGS[TLS][0]
    assert said("native", mqtt, "native") == "this is MQTT; it is turned off in this broker (mqtt)"
    assert said("native", tls, "native") == "this is TLS; TLS is turned off (tls_certificate)"
    assert said("native", mqtt, "native", "mqtt").endswith("speaks it on port 1883")


def test_every_port_of_a_protocol_and_of_http_is_known() -> None:
    assert set(guide().expected) == set(PORTS)
