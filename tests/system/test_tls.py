"""A broker with TLS, as a process: clients, HTTPS, client certificates, and renewal by SIGHUP."""

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import fanlight
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker

BIN = Path(sys.executable).parent


def start(start_broker: StartBroker, certificates: Certificates, **settings: object) -> TestBroker:
    broker = start_broker(
        tls_certificate=certificates.server, native_tls_port=0, http_tls_port=0, **settings,
    )
    broker.wait_for(lambda: "https" in broker.addresses, 60)  # the last to be opened
    return broker


def mutual(start_broker: StartBroker, certificates: Certificates, **settings: object) -> TestBroker:
    return start(
        start_broker, certificates, tls_client_ca=certificates.ca, tls_client_certificates="required", **settings
    )


def url(broker: TestBroker, credentials: str = "") -> str:
    return f"fanlights://{credentials}127.0.0.1:{broker.addresses['native_tls'][1]}"


def https(broker: TestBroker, context: ssl.SSLContext, path: str = "/stats") -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({}))
    with opener.open(f"https://127.0.0.1:{broker.addresses['https'][1]}{path}", timeout=20) as answer:
        document: dict[str, Any] = json.load(answer)
    return document


def users(broker: TestBroker, context: ssl.SSLContext) -> set[str]:
    return {each["user"] for each in https(broker, context, "/connections")["connections"]}


async def test_a_message_goes_from_tls_to_plain_tcp_and_back(
    start_broker: StartBroker, signed: Certificates
) -> None:
    broker = start(start_broker, signed)
    async with fanlight.connect(url(broker), ca=signed.ca) as secured, fanlight.connect(broker.url) as plain:
        for here, there in ((secured, plain), (plain, secured)):
            async with here.subscribe("a.b") as messages:
                await there.publish("a.b", b"x" * 300_000)
                assert (await anext(messages)).payload == b"x" * 300_000


async def test_a_client_that_is_closed_has_let_go_of_its_socket(
    start_broker: StartBroker, signed: Certificates
) -> None:
    broker = start(start_broker, signed)
    client = await fanlight.connect(url(broker), ca=signed.ca, close_timeout=0.5)
    await client.flush()
    os.kill(broker.pid, signal.SIGSTOP)  # by TLS a close is an exchange, and nobody answers
    try:
        await client.close()
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert client.link._wire is None


async def test_a_client_refuses_a_broker_whose_certificate_it_does_not_trust(
    start_broker: StartBroker, signed: Certificates
) -> None:
    broker = start(start_broker, signed)
    with pytest.raises(fanlight.ConnectError, match="certificate"):
        await fanlight.connect(url(broker))  # the system's CAs
    with pytest.raises(fanlight.ConnectError, match="TLS"):
        await fanlight.connect(f"fanlights://127.0.0.1:{broker.port}", ca=signed.ca, connect_timeout=5)


def test_the_views_are_there_by_https(start_broker: StartBroker, signed: Certificates) -> None:
    broker = start(start_broker, signed)
    assert https(broker, signed.context())["version"]
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        https(broker, ssl.create_default_context())
    shown = subprocess.run(
        [BIN / "fanlight", "explain", "a.b", "--json", "--ca", signed.ca,
         "--http", f"https://127.0.0.1:{broker.addresses['https'][1]}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["topic"] == "a.b"


def test_the_command_publishes_by_tls(start_broker: StartBroker, signed: Certificates) -> None:
    broker = mutual(start_broker, signed)
    alice = signed.sign("alice", "alice.example.com", common_name="alice")
    command = [BIN / "fanlight", "pub", "a.b", "1", "--receipt", "--url", url(broker), "--ca", signed.ca]
    done = subprocess.run([*command, "--cert", alice], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "0", done.stderr
    without = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert without.returncode == 3, without.stderr


async def test_the_certificate_is_the_user_and_no_password_is_needed(
    start_broker: StartBroker, certificates: Certificates, tmp_path: Path
) -> None:
    password = {"FANLIGHT_PASSWORD": "s3cret"}
    broker = mutual(start_broker, certificates, environment=password)
    alice = certificates.sign("alice", "alice.example.com", common_name="alice")
    device = certificates.sign("device", "device-7.example.com")
    async with (
        fanlight.connect(url(broker), ca=certificates.ca, certificate=alice),
        fanlight.connect(url(broker), ca=certificates.ca, certificate=device, user="device-7.example.com"),
        fanlight.connect(url(broker, "bob:s3cret@"), ca=certificates.ca, certificate=alice),
    ):
        found = await asyncio.to_thread(users, broker, certificates.context(alice))
        assert found == {"alice", "device-7.example.com", "bob"}
    counters = (await asyncio.to_thread(https, broker, certificates.context(alice)))
    assert counters["logins"] == 1
    assert counters["logins_certified"] >= 2


async def test_a_certificate_is_nobody_else_and_a_wrong_password_does_not_fall_back_to_it(
    start_broker: StartBroker, certificates: Certificates
) -> None:
    broker = mutual(start_broker, certificates, environment={"FANLIGHT_PASSWORD": "s3cret"})
    alice = certificates.sign("alice", "alice.example.com", common_name="alice")
    for credentials in ("bob@", "alice:wrong@", ":wrong@"):
        with pytest.raises(fanlight.AuthenticationFailed):
            await fanlight.connect(url(broker, credentials), ca=certificates.ca, certificate=alice)


async def test_without_a_certificate_of_the_ca_nobody_gets_through(
    start_broker: StartBroker, certificates: Certificates, tmp_path: Path
) -> None:
    broker = mutual(start_broker, certificates)
    (tmp_path / "other").mkdir()
    stranger = Certificates(tmp_path / "other").sign("eve", "eve", common_name="eve")
    for certificate in (None, stranger):
        with pytest.raises((fanlight.ConnectError, fanlight.ConnectionLost)):
            await fanlight.connect(url(broker), ca=certificates.ca, certificate=certificate)
        with pytest.raises(OSError, match=r"."):
            await asyncio.to_thread(https, broker, certificates.context(certificate))
    plain = json.loads(
        await asyncio.to_thread(lambda: urllib.request.urlopen(f"{broker.http_url}/stats", timeout=60).read())
    )
    assert plain["tls_handshakes_failed"] == 2
    assert plain["http_tls_handshakes_failed"] == 2


async def test_an_optional_certificate_serves_where_it_is_shown(
    start_broker: StartBroker, certificates: Certificates
) -> None:
    broker = start(
        start_broker, certificates, tls_client_ca=certificates.ca, tls_client_certificates="optional",
        environment={"FANLIGHT_PASSWORD": "s3cret"},
    )
    alice = certificates.sign("alice", "alice.example.com", common_name="alice")
    async with await fanlight.connect(url(broker), ca=certificates.ca, certificate=alice):
        pass
    async with await fanlight.connect(url(broker, "x:s3cret@"), ca=certificates.ca):
        pass
    with pytest.raises(fanlight.AuthenticationFailed):
        await fanlight.connect(url(broker), ca=certificates.ca)


async def test_passwords_are_asked_for_by_tls_as_they_are_without(
    start_broker: StartBroker, signed: Certificates
) -> None:
    broker = start(start_broker, signed, environment={"FANLIGHT_PASSWORD": "s3cret"})
    with pytest.raises(fanlight.AuthenticationFailed):
        await fanlight.connect(url(broker), ca=signed.ca)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        await asyncio.to_thread(https, broker, signed.context())
    async with await fanlight.connect(url(broker, "x:s3cret@"), ca=signed.ca):
        pass


def served(broker: TestBroker, context: ssl.SSLContext, port: str) -> int:
    """The serial number of the certificate that a listener shows now."""
    address = ("127.0.0.1", broker.addresses[port][1])
    with socket.create_connection(address, timeout=20) as plain, context.wrap_socket(
        plain, server_hostname="localhost"
    ) as secured:
        certificate = secured.getpeercert()
    assert certificate is not None
    return int(str(certificate["serialNumber"]), 16)


async def test_a_renewed_certificate_is_used_from_sighup_on_and_connections_stay(
    start_broker: StartBroker, certificates: Certificates
) -> None:
    broker = start(start_broker, certificates)
    context = certificates.context()
    async with fanlight.connect(url(broker), ca=certificates.ca, reconnect=False) as before:
        old = served(broker, context, "native_tls")
        certificates.sign("server", "localhost", "127.0.0.1")
        assert served(broker, context, "native_tls") == old
        os.kill(broker.pid, signal.SIGHUP)
        await asyncio.to_thread(broker.wait_for_line, '"reloaded"')
        assert served(broker, context, "native_tls") != old
        assert served(broker, context, "https") == served(broker, context, "native_tls")
        await before.publish("a", b"", receipt=True)


async def test_a_bad_certificate_is_logged_and_the_old_one_stays(
    start_broker: StartBroker, certificates: Certificates
) -> None:
    broker = start(start_broker, certificates)
    broker.may_complain = True
    old = served(broker, certificates.context(), "native_tls")
    certificates.server.write_text("-----BEGIN CERTIFICATE-----\n")
    os.kill(broker.pid, signal.SIGHUP)
    await asyncio.to_thread(broker.wait_for_line, "reload_failed")
    assert any(str(certificates.server) in line for line in broker.lines if "reload_failed" in line)
    assert served(broker, certificates.context(), "native_tls") == old
    async with await fanlight.connect(url(broker), ca=certificates.ca):
        pass


def serve(*flags: object) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "fanlightd"), "serve", "--log-format", "json", *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_broker_with_a_certificate_that_cannot_be_used_does_not_start(tmp_path: Path) -> None:
    done = serve("--tls-certificate", tmp_path / "missing.pem")
    assert done.returncode == 2
    assert "No such file" in done.stderr
    check = [str(BIN / "fanlightd"), "check-config", "--tls-certificate", str(tmp_path / "missing.pem")]
    checked = subprocess.run(check, capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 1
    assert f"tls_certificate {tmp_path / 'missing.pem'}: No such file" in checked.stderr


def test_tls_alone_lets_nobody_listen_to_other_machines_but_required_certificates_do(
    start_broker: StartBroker, certificates: Certificates
) -> None:
    done = serve("--tls-certificate", certificates.server, "--native-tls-host", "0.0.0.0")
    assert done.returncode == 2
    assert "native_tls_host" in done.stderr
    broker = mutual(start_broker, certificates, native_tls_host="0.0.0.0")
    assert broker.addresses["native_tls"][0] == "0.0.0.0"
