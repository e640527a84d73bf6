"""Who comes to the wrong port: one line in the log says what it is and where to go, and so does the answer."""

import asyncio
import json
import socket
from typing import Any, Final

import pytest

import fanlight
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import ConnAck
from fanlight_broker.protocols.mqtt.version import V3, V5
from fanlight_broker.wrong_port import TLS_ALERT
from tests.broker.protocols.mqtt.world import connect, packets_of
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker
from tests.system.wire import hello

GET: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST: Final = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
TLS: Final = bytes.fromhex("16030100050100000100")
AMQP: Final = b"AMQP\x00\x00\x09\x01"
MQTT3, MQTT5, NATIVE = encode(connect("c", V3), V3), encode(connect("c"), V5), hello()
WAIT_SECONDS: Final = 60.0  # for what comes at once, on a machine that is busy with something else


@pytest.fixture(scope="module")
def secure(start_module_broker: StartBroker, signed: Certificates) -> TestBroker:
    """A broker with every port open."""
    broker = start_module_broker(tls_certificate=signed.server, native_tls_port=0, http_tls_port=0)
    broker.wait_for(lambda: "https" in broker.addresses, WAIT_SECONDS)
    return broker


def say(broker: TestBroker, listener: str, octets: bytes) -> tuple[bytes, int]:
    """What a listener answers until it closes, and the port it was asked from."""
    answer = b""
    with socket.create_connection(("127.0.0.1", broker.addresses[listener][1]), WAIT_SECONDS) as peer:
        mine: int = peer.getsockname()[1]
        peer.sendall(octets)
        try:
            while more := peer.recv(4_096):
                answer += more
        except ConnectionResetError:
            pass
    return answer, mine


def lines_of(broker: TestBroker, port: int) -> list[dict[str, Any]]:
    """The lines of the log about a client, by its port; there is one at least."""
    found: list[dict[str, Any]] = []

    def look() -> bool:
        entries = [json.loads(line) for line in list(broker.lines) if line.startswith("{")]
        found[:] = [entry for entry in entries if entry.get("port") == port and "address" in entry]
        return bool(found)

    broker.wait_for(look, WAIT_SECONDS)
    return found


CASES: Final = [
    ("native", MQTT3, "this is MQTT; ", "mqtt"), ("native", MQTT5, "this is MQTT; ", "mqtt"),
    ("native", GET, "this is HTTP; ", "http"), ("native", TLS, "this is TLS; ", "native_tls"),
    ("native", AMQP, "this is AMQP; ", "amqp"), ("mqtt", AMQP, "this is AMQP; ", "amqp"),
    ("amqp", MQTT5, "this is MQTT; ", "mqtt"), ("amqp", GET, "this is HTTP; ", "http"),
    ("amqp", TLS, "this is TLS; ", "amqp_tls"), ("amqp_tls", AMQP, "this is AMQP without TLS; ", "amqp"),
    ("mqtt", GET, "this is HTTP; ", "http"), ("mqtt", POST, "this is HTTP; ", "http"),
    ("mqtt", NATIVE, "this is Fanlight's native protocol; ", "native"), ("mqtt", TLS, "this is TLS; ", "mqtt_tls"),
    ("mqtt_websocket", MQTT5, "this is MQTT; ", "mqtt"), ("mqtt_websocket", TLS, "this is TLS; ", "mqtt_websocket_tls"),
    ("http", MQTT3, "this is MQTT; ", "mqtt"), ("http", NATIVE, "this is Fanlight's native protocol; ", "native"),
    ("http", TLS, "this is TLS; ", "https"),
    ("native_tls", GET, "this is HTTP without TLS; ", "http"),
    ("native_tls", NATIVE, "this is Fanlight's native protocol without TLS; ", "native"),
    ("mqtt_tls", MQTT5, "this is MQTT without TLS; ", "mqtt"), ("https", GET, "this is HTTP without TLS; ", "http"),
    ("mqtt_websocket_tls", GET, "this is HTTP without TLS; ", "http"),
]  # fmt: skip


@pytest.mark.parametrize(("listener", "octets", "begins", "spoken_at"), CASES)
def test_one_line_of_the_log_says_what_it_is_and_where_that_is_spoken(
    secure: TestBroker, listener: str, octets: bytes, begins: str, spoken_at: str
) -> None:
    answer, port = say(secure, listener, octets)
    (line,) = lines_of(secure, port)
    text = str(line.get("text") or line.get("reason"))
    assert text.startswith(begins)
    assert not spoken_at or f"port {secure.addresses[spoken_at][1]}" in text
    assert "_max" not in text  # no limit is to be raised for it
    assert line["address"] == "127.0.0.1"
    if octets in (GET, POST):
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(text.encode() + b"\n")
    elif octets is NATIVE:
        assert text.encode() in answer
    elif octets is MQTT5:
        (connack,) = packets_of(answer, V5)
        assert isinstance(connack, ConnAck)
        assert connack.properties.reason_string == text
    elif octets is TLS:
        assert answer == TLS_ALERT
    else:
        assert answer == b""


def test_http_without_an_upgrade_is_told_what_the_port_of_websockets_is(secure: TestBroker) -> None:
    answer, _ = say(secure, "mqtt_websocket", GET)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"this port speaks MQTT over WebSocket" in answer
    assert f"port {secure.addresses['http'][1]}".encode() in answer


@pytest.mark.parametrize(
    ("listener", "says"),
    [("mqtt", "native protocol; the broker speaks it on port"), ("http", "the broker speaks it on port"),
     ("mqtt_websocket", "the broker speaks it on port")],
)  # fmt: skip
async def test_the_sdk_says_what_the_broker_says(secure: TestBroker, listener: str, says: str) -> None:
    url = f"fanlight://127.0.0.1:{secure.addresses[listener][1]}"
    with pytest.raises(fanlight.FanlightError, match=says):
        async with asyncio.timeout(WAIT_SECONDS), fanlight.connect(url):
            pass


def test_a_client_of_the_right_protocol_is_known_by_its_address_and_port(secure: TestBroker) -> None:
    with socket.create_connection(("127.0.0.1", secure.addresses["mqtt"][1]), WAIT_SECONDS) as peer:
        peer.sendall(MQTT5)
        assert isinstance(packets_of(peer.recv(4_096), V5)[0], ConnAck)
        (line,) = lines_of(secure, peer.getsockname()[1])
        assert line["event"] == "client_connected"
