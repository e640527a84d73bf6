"""Listeners behind a proxy that says who its clients are: HAProxy itself, and headers made here."""

import json
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests import require
from tests.broker.net.test_proxy_header import version_2
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker

WAIT_SECONDS = 60
CONNECT = b"\x10\x11\0\4MQTT\x04\x02\0\x3c\0\5alice"
CONNACK = b"\x20\x02\0\0"
REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
)
FRAME = b"\x82" + bytes([0x80 | len(CONNECT)]) + bytes(4) + CONNECT
V1 = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 1883\r\n"
V2 = version_2(0x21, 0x11, bytes([203, 0, 113, 7, 192, 0, 2, 1]) + (4711).to_bytes(2) + (1883).to_bytes(2))
ON = {"proxy_protocol": "all", "proxy_protocol_from": "127.0.0.0/8"}


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), WAIT_SECONDS, source_address=(source, 0))


def read(end: socket.socket, size: int) -> bytes:
    """So many bytes, or less where the broker closes; with something unread, it resets the connection."""
    found = b""
    with suppress(ConnectionResetError):
        while len(found) < size and (part := end.recv(size - len(found))):
            found += part
    return found


def connections(broker: TestBroker) -> list[dict[str, Any]]:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{broker.http_url}/connections") as answer:
        return list(json.load(answer)["connections"])


@pytest.mark.parametrize("header", [V1, V2], ids=["version 1", "version 2"])
@pytest.mark.parametrize("cut", [None, 1])
def test_a_client_has_the_address_that_its_proxy_names(
    start_broker: StartBroker, header: bytes, cut: int | None
) -> None:
    broker = start_broker(**ON)
    with connect(broker.mqtt_port) as end:
        octets = header + CONNECT
        for at in range(0, len(octets), cut or len(octets)):
            end.sendall(octets[at : at + (cut or len(octets))])
        assert read(end, len(CONNACK)) == CONNACK
        (row,) = connections(broker)
        assert (row["client"], row["address"]) == ("alice", "203.0.113.7")


def test_tls_begins_behind_the_header(start_broker: StartBroker, signed: Certificates) -> None:
    broker = start_broker(**ON, tls_certificate=signed.server, mqtt_tls_port=0)
    with connect(broker.addresses["mqtt_tls"][1]) as end:
        end.sendall(V2)
        with signed.context().wrap_socket(end, server_hostname="localhost") as secure:
            secure.sendall(CONNECT)
            assert secure.recv(len(CONNACK)) == CONNACK
            assert "203.0.113.7" in connections(broker)[0]["address"]


@pytest.mark.parametrize("tcp", ["auto", "uvloop"])
def test_a_websocket_begins_behind_the_header(start_broker: StartBroker, tcp: str) -> None:
    broker = start_broker(**ON, tcp=tcp)
    with connect(broker.addresses["mqtt_websocket"][1]) as end:
        end.sendall(V1 + REQUEST + FRAME)
        answer = b""
        while not answer.endswith(b"\x82\x04" + CONNACK):
            part = end.recv(4096)
            assert part, answer
            answer += part
        assert "203.0.113.7" in connections(broker)[0]["address"]


@pytest.mark.parametrize("octets", [CONNECT, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0", V1[:20]])
def test_who_sends_no_header_is_closed_and_logged_once(start_broker: StartBroker, octets: bytes) -> None:
    broker = start_broker(**ON)
    with connect(broker.mqtt_port) as end:
        end.sendall(octets)
        end.shutdown(socket.SHUT_WR)
        assert read(end, 1) == b""
    assert broker.terminate() == 0
    assert sum('"handshake_failed"' in line and '"stage": "proxy"' in line for line in broker.lines) == 1


def test_nobody_but_the_proxies_is_believed(start_broker: StartBroker) -> None:
    broker = start_broker(proxy_protocol="mqtt", proxy_protocol_from="127.0.0.3, ::1")
    with connect(broker.mqtt_port, "127.0.0.2") as end:
        end.sendall(V1 + CONNECT)
        assert read(end, 1) == b""
    with connect(broker.mqtt_port, "127.0.0.3") as end:
        end.sendall(V1 + CONNECT)
        assert read(end, len(CONNACK)) == CONNACK
    assert broker.terminate() == 0
    assert any("proxy_protocol_from" in line for line in broker.lines)


def test_a_listener_that_is_not_named_takes_no_header(start_broker: StartBroker) -> None:
    broker = start_broker(proxy_protocol="mqtt_websocket", proxy_protocol_from="127.0.0.1")
    with connect(broker.mqtt_port) as end:
        end.sendall(CONNECT)
        assert read(end, len(CONNACK)) == CONNACK


def test_the_limit_of_an_address_is_that_of_the_client_and_its_place_is_free_again(start_broker: StartBroker) -> None:
    broker = start_broker(**ON, connections_per_address_max=1)
    other = V1.replace(b"203.0.113.7", b"203.0.113.8")
    with connect(broker.mqtt_port) as first, connect(broker.mqtt_port) as second, connect(broker.mqtt_port) as third:
        first.sendall(V1 + CONNECT)
        assert read(first, len(CONNACK)) == CONNACK
        second.sendall(V1 + CONNECT)
        assert read(second, 1) == b""
        third.sendall(other + CONNECT.replace(b"alice", b"carol"))
        assert read(third, len(CONNACK)) == CONNACK
        first.sendall(b"\xe0\0")
        assert read(first, 1) == b""
        first.close()
        while len(connections(broker)) > 1:
            pass  # until the broker has seen it
        with connect(broker.mqtt_port) as again:
            again.sendall(V1 + CONNECT)
            assert read(again, len(CONNACK)) == CONNACK


@pytest.mark.parametrize(("settings", "said"), [
    ({"proxy_protocol": "mqtt"}, "proxy_protocol_from"), ({"proxy_protocol_from": "10.0.0.0/8"}, "proxy_protocol"),
    ({"proxy_protocol": "smtp", "proxy_protocol_from": "::1"}, "'smtp' is not a listener"),
    ({"proxy_protocol": "all", "proxy_protocol_from": "everybody"}, "everybody"),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused_with_what_to_do(
    start_broker: StartBroker, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        start_broker(**settings)


@contextmanager
def haproxy(folder: Path, port: int, target: int, options: str) -> Iterator[None]:
    """HAProxy between two ports of this machine, once it listens."""
    program = require.command("haproxy", package="haproxy")
    (folder / "haproxy.cfg").write_text(
        "defaults\n mode tcp\n timeout connect 60s\n timeout client 600s\n timeout server 600s\n"
        f"frontend in\n bind 127.0.0.1:{port}\n default_backend out\n"
        f"backend out\n server broker 127.0.0.1:{target} {options}\n",
        encoding="utf-8",
    )
    # -W and -db: in the foreground; it has bound its port when the first connection is accepted.
    with subprocess.Popen([program, "-db", "-f", folder / "haproxy.cfg"], stderr=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(WAIT_SECONDS)


@pytest.mark.parametrize("options", ["send-proxy", "send-proxy-v2"])
def test_a_client_behind_haproxy_has_its_own_address(
    start_broker: StartBroker, tmp_path: Path, options: str
) -> None:
    broker = start_broker(**ON)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with haproxy(tmp_path, port, broker.mqtt_port, options), retried(lambda: connect(port, "127.0.0.9")) as end:
        end.sendall(CONNECT)
        assert read(end, len(CONNACK)) == CONNACK
        assert "127.0.0.9" in connections(broker)[0]["address"]


def retried(make: Callable[[], socket.socket]) -> socket.socket:
    """What `make` returns, as soon as something listens there."""
    while True:
        try:
            return make()
        except ConnectionRefusedError:
            pass


@pytest.mark.parametrize("listener", ["http", "https"])
def test_the_http_listener_is_behind_a_proxy_where_it_is_named(
    start_broker: StartBroker, signed: Certificates, tmp_path: Path, listener: str
) -> None:
    log = tmp_path / "audit.log"
    broker = start_broker(
        proxy_protocol="http, https", proxy_protocol_from="127.0.0.1", audit_log=log, tls_certificate=signed.server,
        http_tls_port=0,
    )
    broker.may_complain = True  # of the one without a header
    broker.wait_for(lambda: listener in broker.addresses, 60)  # the start waits for plain listeners alone
    port = broker.addresses[listener][1]
    body = b'{"level": "info"}'
    request = b"PUT /api/v1/log-level HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: " \
        b"application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with connect(port) as end:
        end.sendall(V1)
        whole = signed.context().wrap_socket(end, server_hostname="localhost") if listener == "https" else end
        whole.sendall(request)
        assert read(whole, 12) == b"HTTP/1.1 200"
        whole.close()
    with connect(port) as end:
        end.sendall(request)
        assert read(end, 1) == b""
    with connect(port, "127.0.0.9") as end:  # from no proxy that is believed
        end.sendall(V1 + request)
        assert read(end, 1) == b""
    noted: list[dict[str, Any]] = []
    while not noted:  # it is written behind
        noted = [note for line in log.read_text().splitlines() if (note := json.loads(line))["kind"] == "admin"]
    assert noted[0]["address"] == "203.0.113.7"
    with connect(port) as end:
        end.sendall(V2)
        whole = signed.context().wrap_socket(end, server_hostname="localhost") if listener == "https" else end
        whole.sendall(b"GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answer = read(whole, 1 << 20)
        whole.close()
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["http_proxy_headers_failed"] == 2
