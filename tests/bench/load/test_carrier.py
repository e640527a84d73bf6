"""TLS and WebSocket below the generator: the bytes of frames, and whole runs against the real broker."""

import dataclasses
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.carrier", reason="needs epoll")
from fanlight_bench.load import carry
from fanlight_bench.load.carrier import Carrier
from fanlight_bench.load.run import run
from fanlight_bench.load.scenario import Scenario, load
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.target import BadUrl, Target, parse
from tests.certificates import Certificates
from tests.conftest import TestBroker

PAIRS = Scenario("two", "two pairs", "dev/{i}", publishers=2, subscribers=2, topics=2, window=64)
LARGE = dataclasses.replace(PAIRS, payload_bytes=100_000, window=8, batch=2)  # several records, a length of 64 bits
KEY = b"\x37\xfa\x21\x3d"


@contextmanager
def framed() -> Iterator[tuple[Carrier, socket.socket]]:
    """A carrier of WebSocket, and the other end of its socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield Carrier(ours.fileno(), framed=True), theirs


def masked(payload: bytes) -> bytes:
    return bytes(octet ^ KEY[at % 4] for at, octet in enumerate(payload))


@pytest.mark.parametrize(
    ("size", "head"),
    [
        (125, b"\x82\xfd"), (126, b"\x82\xfe\0\x7e"), (65_535, b"\x82\xfe\xff\xff"),
        (65_536, b"\x82\xff\0\0\0\0\0\1\0\0"),
    ],
)  # fmt: skip
def test_each_write_is_a_masked_binary_message(size: int, head: bytes) -> None:
    payload = bytes(at % 251 for at in range(size))
    with framed() as (carrier, peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sent = threading.Thread(target=_send, args=(carrier, payload))
        sent.start()
        wanted = head + KEY + masked(payload)
        assert peer.recv(len(wanted), socket.MSG_WAITALL) == wanted
        sent.join(10)
        assert not sent.is_alive()


def _send(carrier: Carrier, payload: bytes) -> None:
    """As the generator does: the same bytes again until they are gone."""
    while True:
        try:
            assert carrier.send(payload) == len(payload)
        except BlockingIOError:
            continue
        return


def test_payloads_are_put_together_however_they_arrive() -> None:
    frames = b"\x02\x03abc" + b"\x89\x04ping" + b"\x80\x02de" + b"\x82\x7e\0\xc8" + b"x" * 200 + b"\x82\0"
    with framed() as (carrier, peer):
        whole = b""
        for at in range(len(frames)):
            peer.send(frames[at : at + 1])
            whole += _received(carrier)
        assert whole == b"abcde" + b"x" * 200
        peer.send(frames * 3)
        assert _received(carrier) == whole * 3


def _received(carrier: Carrier) -> bytes:
    try:
        return carrier.recv(65_536)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("frame", [b"\x88\0", b"\x81\x01a", b"\x82\x81" + KEY + b"a"], ids=["close", "text", "masked"])
def test_anything_else_ends_the_connection(frame: bytes) -> None:
    with framed() as (carrier, peer):
        peer.send(frame)
        assert carrier.recv(100) == b""


@pytest.mark.parametrize(
    ("url", "protocol", "carrier", "port", "said"),
    [
        ("mqtts://h", "mqtt", "tls", 8883, "mqtt+tls://h:8883"),
        ("fanlights://h", "fanlight", "tls", 7423, "fanlight+tls://h:7423"),
        ("mqtt5+ws://h", "mqtt5", "ws", 8083, "mqtt5+ws://h:8083"),
        ("nats+tls://h", "nats", "tls", 4222, "nats+tls://h:4222"),
        ("mqtt://h", "mqtt", "", 1883, "mqtt://h:1883"),
    ],
)
def test_a_url_says_what_is_between(url: str, protocol: str, carrier: str, port: int, said: str) -> None:
    target = parse(url)
    assert (target.protocol, target.carrier, target.port, target.url) == (protocol, carrier, port, said)


@pytest.mark.parametrize("url", ["mqtt+quic://h", "mqtt+://h", "https+tls://h"])
def test_a_url_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(BadUrl, match="begin with one of"):
        parse(url)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    path = Certificates(tmp_path_factory.mktemp("certificates")).server
    with TestBroker(tls_certificate=path, native_tls_port=0, http_tls_port=0) as started:
        yield started
        assert started.complaints() == []


@pytest.mark.parametrize("scenario", [PAIRS, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("scheme", "listener"),
    [("mqtts", "mqtt_tls"), ("fanlights", "native_tls"), ("mqtt+ws", "mqtt_websocket"), ("mqtt5+ws", "mqtt_websocket")],
)
def test_a_stream_goes_through_whole(broker: TestBroker, scheme: str, listener: str, scenario: Scenario) -> None:
    url = f"{scheme}://127.0.0.1:{broker.addresses[listener][1]}"
    result = run(scenario, url, duration=0.2, warmup=0.0, drain=10.0)
    assert result.ok, result
    assert result.delivered > 0


def test_what_is_no_stream_is_refused(broker: TestBroker) -> None:
    with pytest.raises(Refused, match="only streams"):
        run(load("connect-storm"), f"mqtts://127.0.0.1:{broker.addresses['mqtt_tls'][1]}", duration=0.1)


def test_a_port_that_speaks_something_else_is_an_error(broker: TestBroker) -> None:
    for scheme in ("mqtt+tls", "mqtt+ws"):
        with pytest.raises(OSError, match=r"TLS|WebSocket|handshake"):
            carry.opened(parse(f"{scheme}://127.0.0.1:{broker.mqtt_port}"), ("127.0.0.1", broker.mqtt_port))


def test_nats_says_its_first_word_in_the_clear(tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(Certificates(tmp_path).server)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard: list[bytes] = []

        def serve() -> None:
            plain, _ = listener.accept()
            plain.sendall(b'INFO {"tls_required": true}\r\n')
            with context.wrap_socket(plain, server_side=True) as connection:
                heard.append(connection.recv(100))
                connection.sendall(b"PONG\r\n")

        server = threading.Thread(target=serve)
        server.start()
        port = listener.getsockname()[1]
        connection, carrier = carry.opened(Target("nats", "127.0.0.1", port, carrier="tls"), ("127.0.0.1", port))
        with connection:
            assert carrier.send(b"PING\r\n") == 6
            answer = b""
            while not answer:  # records of TLS itself come first
                select.select([connection], [], [], 10)
                answer = _received(carrier)
            assert answer == b"PONG\r\n"
        server.join(10)
        assert heard == [b"PING\r\n"]
