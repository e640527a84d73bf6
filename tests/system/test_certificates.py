"""Clients' certificates: user names, groups and revocation, over real TLS."""

import asyncio
import datetime
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.net.tls import name_of
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker
from tests.system.test_credentials import ACCEPTED, MqttClient, reload
from tests.system.test_tls import mutual

SUBJECT = ((("organizationName", "Plant, 1"),), (("commonName", "dev"),))
NAMES = (("DNS", "d.example.com"), ("email", "a@example.com"), ("URI", "spiffe://x/dev"), ("email", "b@example.com"))


@pytest.mark.parametrize(
    ("which", "name"),
    [("common_name", "dev"), ("email", "a@example.com"), ("dns", "d.example.com"), ("uri", "spiffe://x/dev"),
     ("subject", "CN=dev,O=Plant\\, 1")],
)
def test_the_user_is_the_name_that_the_settings_say(which: str, name: str) -> None:
    certificate = {"subject": SUBJECT, "subjectAltName": NAMES, "serialNumber": "0A"}
    assert name_of(certificate, which) == name
    bare = {"subject": (), "subjectAltName": (), "serialNumber": "0A"}
    assert name_of(bare, which) == "certificate 0A"
    assert name_of(None, which) == ""


async def test_groups_follow_from_the_name() -> None:
    groups = (("*.plant1", "plant1"), ("*", "devices"), ("[x].plant2", "x"))
    authenticator = PasswordAuthenticator(Credentials(certificate_groups=groups))
    try:
        found = await authenticator.authenticate(None, None, "192.0.2.1", certified="a.plant1")
        assert found.groups == {"plant1", "devices"}
        assert authenticator.stands(found)
        authenticator.reload(Credentials(certificate_groups=groups[:1]))
        assert not authenticator.stands(found)
    finally:
        await authenticator.close()


def write_list(signed: Certificates, file: Path, *revoked: Path) -> None:
    """A revocation list with the certificates in these files."""
    now = datetime.datetime.now(datetime.UTC)
    authority = x509.load_pem_x509_certificate(signed.ca.read_bytes())
    builder = x509.CertificateRevocationListBuilder(
        authority.subject, now - datetime.timedelta(days=1), now + datetime.timedelta(days=30)
    )
    for each in revoked:
        serial = x509.load_pem_x509_certificates(each.read_bytes())[0].serial_number
        builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder(serial, now).build())
    key = load_pem_private_key(signed.authority.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    file.write_bytes(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))


async def not_logged_in(broker: TestBroker, context: ssl.SSLContext) -> MqttClient:
    """After its TLS handshake."""
    port = broker.addresses["mqtt_tls"][1]
    return MqttClient(
        V5, *await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    )


@asynccontextmanager
async def client(broker: TestBroker, context: ssl.SSLContext) -> AsyncIterator[MqttClient]:
    one = await not_logged_in(broker, context)
    try:
        await one.connect("")
        yield one
    finally:
        one.writer.close()


async def page(stack: AsyncExitStack, broker: TestBroker, context: ssl.SSLContext) -> Callable[[], Awaitable[int]]:
    """Asks for a page, each time by the same connection. Returns the status."""
    host, port = broker.addresses["https"]
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname="localhost")
    stack.callback(writer.close)

    async def ask() -> int:
        writer.write(b"GET /connections HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        (size,) = re.findall(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(size))
        return int(head.split()[1])

    return ask


async def test_a_revoked_certificate_ends_its_connection_and_lets_in_no_more(
    start_broker: StartBroker, signed: Certificates, tmp_path: Path
) -> None:
    lists, nobody = tmp_path / "ca.crl", tmp_path / "users.toml"
    nobody.touch(0o600)
    alice, bob = (signed.sign(name, common_name=name) for name in ("alice", "bob"))
    write_list(signed, lists)
    broker = await asyncio.to_thread(
        mutual, start_broker, signed, tls_client_crl=lists, mqtt_tls_port=0, users_file=nobody
    )
    async with (
        client(broker, signed.context(alice)) as one, client(broker, signed.context(bob)) as other,
        AsyncExitStack() as stack,
    ):
        assert (one.code, other.code) == (ACCEPTED, ACCEPTED)
        pages = [await page(stack, broker, signed.context(each)) for each in (alice, bob)]
        assert [await each() for each in pages] == [200, 200]
        late = await not_logged_in(broker, signed.context(alice))
        stack.callback(late.writer.close)
        write_list(signed, lists, alice)
        await asyncio.to_thread(reload, broker)
        assert (await one.rest())[:3:2] == bytes((0xE0, ReasonCode.NOT_AUTHORIZED))
        other.writer.write(b"\xc0\x00")  # PINGREQ
        await other.answered(0xD0)
        late.code = ReasonCode.NOT_AUTHORIZED
        with suppress(OSError, asyncio.IncompleteReadError):  # if it was closed before the broker had read this
            await late.connect("")
        assert late.code == ReasonCode.NOT_AUTHORIZED
        assert [await each() for each in pages] == [401, 200]  # over connections that were there before
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        async with client(broker, signed.context(alice)):
            pass
    async with client(broker, signed.context(bob)) as again:
        assert again.code == ACCEPTED
