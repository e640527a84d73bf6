"""Further listeners of a protocol, from a file: names in permissions, bounds, TLS and proxies of their own."""

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from fanlight_broker.cli import main
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker
from tests.system.http_api import ApiClient
from tests.system.mqtt_peer import MqttPeer
from tests.system.test_proxies import CONNACK, CONNECT, FRAME, REQUEST, V1, connect, read
from tests.system.views import ask

PERMISSIONS = """\
[[deny]]
listener = "plant"
publish = "shut/#"

[[allow]]
everything = "#"
admin = ["read", "write"]
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("listeners"))
    made.sign("client", common_name="anna")
    return made


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker, own: Certificates) -> TestBroker:
    folder = own.folder
    (folder / "permissions.toml").write_text(PERMISSIONS)
    (folder / "listeners.toml").write_text("""
[[listener]]
name = "plant"
protocol = "mqtt"
port = 0
connections_max = 1

[[listener]]
name = "partners"
protocol = "mqtt"
port = 0
tls_certificate = "server.pem"
tls_client_ca = "ca.pem"
tls_client_certificates = "required"

[[listener]]
name = "pages"
protocol = "mqtt"
port = 0
websocket = true

[[listener]]
name = "behind"
protocol = "mqtt"
port = 0
proxy_protocol_from = "127.0.0.0/8"
""")
    started = start_module_broker(permissions=folder / "permissions.toml", listeners=folder / "listeners.toml")
    started.may_complain = True  # of those who are refused
    return started


def port(broker: TestBroker, name: str) -> int:
    return broker.addresses[name][1]


async def test_permissions_know_the_listener_by_its_name(broker: TestBroker) -> None:
    for number, code in ((port(broker, "plant"), 0x87), (broker.mqtt_port, 0x10)):  # not authorized; no subscriber
        async with await MqttPeer.connect(number, f"to-{number}") as peer:
            await peer.send(Publish("shut/1", b"x", qos=1, packet_id=1))
            answer = await peer.packet()
            assert isinstance(answer, PubAck)
            assert answer.reason_code == code


async def test_a_listener_may_have_a_bound_of_its_own(broker: TestBroker) -> None:
    api = ApiClient(broker.http_url)
    async with await MqttPeer.connect(port(broker, "plant"), "one"):
        with connect(port(broker, "plant")) as second:
            second.sendall(CONNECT)
            assert await asyncio.to_thread(read, second, len(CONNACK)) != CONNACK
        async with await MqttPeer.connect(broker.mqtt_port, "elsewhere"):
            (row,) = await asyncio.to_thread(api.items, "/listeners?listener=plant")
            assert (row["connections"], row["connections_max"], row["protocol"]) == (1, 1, "mqtt")


def test_all_ports_are_shown(broker: TestBroker) -> None:
    rows = {row["listener"]: row for row in ApiClient(broker.http_url).items("/listeners")}
    assert {"native", "mqtt", "mqtt_websocket", "amqp", "plant", "partners", "pages", "behind"} <= set(rows)
    assert (rows["partners"]["tls"], rows["pages"]["websocket"], rows["behind"]["proxied"]) == (True, True, True)
    assert rows["plant"]["port"] == port(broker, "plant")


def test_a_certificate_of_its_own_and_those_of_its_clients(broker: TestBroker, own: Certificates) -> None:
    strange = own.context().wrap_socket(connect(port(broker, "partners")), server_hostname="localhost")
    with strange, suppress(OSError):
        strange.sendall(CONNECT)
        assert strange.recv(len(CONNACK)) == b""
    with connect(port(broker, "partners")) as end:
        context = own.context(own.folder / "client.pem")
        with context.wrap_socket(end, server_hostname="localhost") as secure:
            secure.sendall(CONNECT)
            assert secure.recv(len(CONNACK)) == CONNACK
            (row,) = ApiClient(broker.http_url).items("/connections?client=alice")
            assert row["user"] == "anna"
    broken = (own.folder / "server.pem").read_text()
    (own.folder / "server.pem").write_text("none")
    assert "listener partners" in ApiClient(broker.http_url).refused(409, "POST", "/reload")
    (own.folder / "server.pem").write_text(broken)
    ApiClient(broker.http_url).ok("POST", "/reload")


def test_websocket_and_the_header_of_a_proxy(broker: TestBroker) -> None:
    with connect(port(broker, "pages")) as end:
        end.sendall(REQUEST + FRAME)
        assert read(end, 12) == b"HTTP/1.1 101"
    with connect(port(broker, "behind")) as end:
        end.sendall(V1 + CONNECT)
        assert read(end, len(CONNACK)) == CONNACK
        (row,) = ApiClient(broker.http_url).items("/connections?address=203.0.113.7")
        assert row["client"] == "alice"


def test_metrics_have_each_port_and_each_protocol_once(broker: TestBroker) -> None:
    text = ask(f"{broker.http_url}/metrics")[1]
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert [line for line, count in Counter(lines).items() if count > 1] == []
    assert any('listener="plant"' in line for line in lines)


@pytest.mark.parametrize(("text", "why"), [
    ("colour = 1\n", "there is no 'colour'"),
    ('[[listener]]\nname = "mqtt"\nprotocol = "mqtt"\nport = 0\n', "already"),
    ('[[listener]]\nname = "a"\nprotocol = "smtp"\nport = 0\n', "protocol: one of native, mqtt, amqp"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\n', "port: say which"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\nport = 0\nports = 3\n', "did you mean port?"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\nport = 0\ntls = true\n', "see tls_certificate"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\nport = 0\nhost = "0.0.0.0"\n', "refuses to listen there"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\nport = 0\ntls_key = "k"\n', "of no use without"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\nport = 0\nproxy_protocol_from = "x"\n', "proxy_protocol_from"),
    ('[[listener]]\nname = "a"\nprotocol = "mqtt"\nport = 0\nconnections_max = 0\n', "from 1 to"),
])  # fmt: skip
def test_what_is_wrong_is_said(text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "listeners.toml").write_text(text)
    assert main(["check-config", "--listeners", str(tmp_path / "listeners.toml")]) == 1
    assert why in capsys.readouterr().err


def test_check_config_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[[listener]]\nname = "plant"\nprotocol = "mqtt"\nport = 1884\nwebsocket = true\nconnections_max = 5\n'
    (tmp_path / "listeners.toml").write_text(text)
    assert main(["check-config", "--listeners", str(tmp_path / "listeners.toml")]) == 0
    assert "# plant: mqtt over WebSocket on 127.0.0.1:1884 at most 5 connections" in capsys.readouterr().out
