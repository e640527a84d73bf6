"""Permissions over real sockets: what a rule may ask about a connection is what the transport knows of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import fanlight
from fanlight_broker.assembly import assemble
from fanlight_broker.config import Settings
from fanlight_broker.config.settings import ClientCertificates
from fanlight_broker.core.broker import Broker
from fanlight_broker.core_part import Core
from fanlight_broker.listeners import Listeners
from fanlight_broker.parts import Parts
from tests.broker.core.reference import Reference, allow, deny
from tests.certificates import Certificates

ALL = allow("all")


class Running:
    """A whole broker in this process."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.core = next(part for part in parts._parts if isinstance(part, Core))
        self.listeners = next(part for part in parts._parts if isinstance(part, Listeners))

    @property
    def broker(self) -> Broker:
        return self.core.broker

    def url(self, name: str, credentials: str = "") -> str:
        scheme = "fanlights" if name.endswith("tls") else "fanlight"
        return f"{scheme}://{credentials}127.0.0.1:{self.listeners.port_guide._ports[name]}"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
async def running(certificates: Certificates) -> AsyncIterator[Running]:
    settings = Settings(
        native_port=0, native_tls_port=0, native_websocket=False, mqtt=False, amqp=False, http=False,
        tls_certificate=certificates.server, tls_client_ca=certificates.ca,
        tls_client_certificates=ClientCertificates.OPTIONAL,
    )  # fmt: skip
    parts = assemble(settings).parts
    await parts.open()
    try:
        await parts.start()
        yield Running(parts)
    finally:
        await parts.drain(1.0)
        await parts.stop()


async def test_address_listener_and_certificate_are_those_of_the_connection(
    running: Running, certificates: Certificates
) -> None:
    running.broker.use_permissions(Reference(
        allow("connect"), allow("publish", "plain/#", listener="native", address="127.0.0.1"),
        allow("publish", "secured/#", certificate="alice", listener="native_tls", user="alice"),
    ))  # fmt: skip
    alice = certificates.sign("alice", "alice.example.com", common_name="alice")
    async with (
        fanlight.connect(running.url("native")) as plain,
        fanlight.connect(running.url("native_tls"), ca=certificates.ca, certificate=alice) as secured,
    ):
        for client, topic, other in ((plain, "plain.a", "secured.a"), (secured, "secured.a", "plain.a")):
            for _ in range(2):
                await client.publish(topic, b"", receipt=True)
                with pytest.raises(fanlight.NotPermitted):
                    await client.publish(other, b"", receipt=True)


async def test_a_reload_ends_a_subscription_and_closes_a_connection(running: Running) -> None:
    running.broker.use_permissions(Reference(ALL))
    async with fanlight.connect(running.url("native"), name="reader") as reader:
        async with reader.subscribe("secret.#") as messages:
            await reader.publish("secret.a", b"1")
            assert (await anext(messages)).payload == b"1"
            running.broker.use_permissions(Reference(deny("subscribe", "secret/#", client="reader"), ALL))
            with pytest.raises(fanlight.NotPermitted):
                await anext(messages)
            with pytest.raises(fanlight.NotPermitted):
                await messages.next()
        running.broker.use_permissions(Reference(deny("connect", client="reader"), ALL))
        with pytest.raises(fanlight.FanlightError):
            await reader.subscribe("open.#")
    with pytest.raises(fanlight.NotPermitted):
        await fanlight.connect(running.url("native"), name="reader")
