"""Who is refused by a listener gets the whole answer: there is no reset while a client still sends."""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final

import pytest

from fanlight_broker.net.handshake import UNREAD_BYTES_MAX
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.protocols.mqtt.world import connect
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker
from tests.system.views import stats

KIB: Final = 1024
GET: Final = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPGRADE: Final = (  # without the subprotocol that is wanted
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
MQTT5: Final = encode(connect("c"), V5)
WAIT_SECONDS: Final = 60.0  # a safety net
LISTENERS: Final = [
    ("mqtt_tls", MQTT5, b"without TLS"), ("native_tls", GET, b"without TLS"), ("https", GET, b"without TLS"),
    ("mqtt_websocket_tls", GET, b"without TLS"), ("mqtt_websocket", MQTT5, b"this is MQTT"),
    ("mqtt_websocket", GET, b"MQTT over WebSocket"), ("mqtt_websocket", UPGRADE, b"subprotocols"),
    ("mqtt", GET, b"this is HTTP"), ("native", GET, b"this is HTTP"),
]  # fmt: skip


@pytest.fixture(scope="module")
def patient(start_module_broker: StartBroker, signed: Certificates) -> TestBroker:
    """A broker with every port open, whose clock plays no part."""
    broker = start_module_broker(
        tls_certificate=signed.server, native_tls_port=0, http_tls_port=0, mqtt_websocket_tls_port=0,
        linger_seconds_max=300, handshake_seconds_max=300,
    )
    broker.wait_for(lambda: "https" in broker.addresses, WAIT_SECONDS)
    return broker


@pytest.fixture(scope="module")
def hasty(start_module_broker: StartBroker, signed: Certificates) -> TestBroker:
    """One that waits for nobody."""
    broker = start_module_broker(
        tls_certificate=signed.server, native_tls_port=0, http_tls_port=0, mqtt_websocket_tls_port=0,
        linger_seconds_max=0.05, handshake_seconds_max=0.1,
    )
    broker.wait_for(lambda: "https" in broker.addresses, WAIT_SECONDS)
    return broker


def visit(broker: TestBroker, listener: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.addresses[listener][1]), WAIT_SECONDS)


def rest(peer: socket.socket) -> bytes:
    """All that comes until the broker has ended its half. Raises ConnectionResetError."""
    answer = b""
    while more := peer.recv(64 * KIB):
        answer += more
    return answer


@pytest.mark.parametrize(("listener", "octets", "text"), LISTENERS)
def test_a_client_that_sends_on_behind_its_first_bytes_gets_the_whole_answer(
    patient: TestBroker, listener: str, octets: bytes, text: bytes
) -> None:
    """The socket was closed at once. What came then was answered with a reset, and a client may lose the answer."""
    with visit(patient, listener) as peer:
        peer.sendall(octets)
        assert peer.recv(1, socket.MSG_PEEK)  # the answer is there; a close, too, if there was one
        for _ in range(16):
            peer.sendall(bytes(4 * KIB))
        assert text in rest(peer)
        peer.sendall(b"one more")


@pytest.mark.parametrize(("listener", "octets", "text"), LISTENERS[:-2])  # the others are bounded by time alone
def test_one_that_sends_without_end_is_cut_off(patient: TestBroker, listener: str, octets: bytes, text: bytes) -> None:
    with visit(patient, listener) as peer:
        peer.sendall(octets)
        sent = 0
        with suppress(ConnectionResetError, BrokenPipeError):
            while sent < 64 * UNREAD_BYTES_MAX:
                sent += peer.send(bytes(64 * KIB))
        assert sent < 64 * UNREAD_BYTES_MAX


@pytest.mark.parametrize(
    ("listener", "octets", "counter"),
    [("mqtt_tls", MQTT5, "tls_handshakes_failed"), ("https", GET, "http_tls_handshakes_failed"),
     ("mqtt_websocket", MQTT5, "websocket_handshakes_failed"), ("mqtt_websocket", GET, "websocket_handshakes_failed")],
)  # fmt: skip
def test_one_that_never_closes_keeps_its_place_for_its_time_alone(
    hasty: TestBroker, listener: str, octets: bytes, counter: str
) -> None:
    def failed() -> int:
        return int(asyncio.run(stats(hasty))[counter])

    before = failed()
    with visit(hasty, listener) as peer:
        peer.sendall(octets)
        hasty.wait_for(lambda: failed() > before, WAIT_SECONDS)


def test_by_tls_too_a_client_of_another_protocol_gets_its_answer(patient: TestBroker, signed: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(signed.ca))
    with visit(patient, "mqtt_websocket_tls") as plain, context.wrap_socket(plain, server_hostname="localhost") as peer:
        peer.sendall(MQTT5)
        answer = peer.recv(64 * KIB)
        peer.sendall(bytes(64 * KIB))
        assert b"this is MQTT" in answer
        with suppress(ssl.SSLError, OSError):  # which end is the first is a matter of time
            assert peer.recv(1) == b""


async def test_a_refused_peer_that_resets_is_no_error_of_ours(patient: TestBroker) -> None:
    for listener, octets, _ in LISTENERS:
        with visit(patient, listener) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
            peer.sendall(octets)
    assert (await stats(patient))["connections"] == 0
    assert not [line for line in patient.lines if "internal_error" in line or "Traceback" in line]
