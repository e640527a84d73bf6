"""A protocol is one part: one of the test's own gets listeners, metrics, settings and advice from that alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

import pytest

from fanlight_broker.assembly import PROTOCOLS
from fanlight_broker.authentication import Authentication
from fanlight_broker.config import Settings
from fanlight_broker.config.settings import protocol_ports
from fanlight_broker.core.listening_port import ListeningPort, ProtocolSettings
from fanlight_broker.core.protocol_part import PluginError, ProtocolPart
from fanlight_broker.core_part import Core
from fanlight_broker.encryption import Encryption
from fanlight_broker.listeners import Listeners
from fanlight_broker.parts import PartError, Parts
from fanlight_broker.protocols.native.connection import NativeConnection
from tests.captured_logs import capture_logs
from tests.system.wire import Peer, publish


@dataclass(frozen=True)
class ExtraSettings(ProtocolSettings):
    ports: ClassVar[tuple[ListeningPort, ...]] = (ListeningPort("extra"), ListeningPort("extra", tls=True))

    extra_host: str = "127.0.0.1"
    extra_port: int = 0
    extra_tls_host: str | None = None
    extra_tls_port: int = 0


@dataclass(frozen=True)
class AllSettings(ExtraSettings, Settings):
    pass


class ExtraPart(ProtocolPart):
    """A protocol that differs from the native one in its name, and in how it begins."""

    name = "extra"
    title = "Extra"
    settings = ExtraSettings
    connection = NativeConnection
    counters_help: ClassVar = {"extra_greetings": "Greetings"}

    def example(self, port: ListeningPort, host: str, number: int, *, credentials: bool) -> str:
        return f"extra {host}:{number}"

    @staticmethod
    def recognises(first: bytes) -> bool:
        return first.startswith(b"XTRA")

    @staticmethod
    def refusal(first: bytes, text: str) -> bytes:
        return b"XTRA " + text.encode()

    def counters(self) -> dict[str, int]:
        return {"extra_greetings": 3}


class Plugged(ExtraPart):
    def __init__(self, settings: ExtraSettings) -> None:
        raise PluginError("extra_method: no such module")


def parts_of(settings: Settings, *protocols: type[ProtocolPart]) -> tuple[Parts, Listeners]:
    access, encryption, core = Authentication(settings), Encryption(settings), Core(settings)
    listeners = Listeners(settings, protocols, core, access, encryption)
    return Parts([access, encryption, core, listeners]), listeners


@asynccontextmanager
async def listening(*protocols: type[ProtocolPart]) -> AsyncIterator[tuple[Listeners, dict[str, int]]]:
    """The listeners, and their ports by name."""
    parts, listeners = parts_of(AllSettings(native_port=0, native_websocket=False, mqtt=False, amqp=False), *protocols)
    with capture_logs() as lines:
        await parts.open()
        await parts.start()
    try:
        yield listeners, {line["listener"]: line["port"] for line in lines if line["event"] == "listening"}
    finally:
        await parts.stop()


async def test_it_has_its_ports_and_its_connections() -> None:
    async with listening(ExtraPart) as (listeners, ports):
        assert set(ports) == {"extra"}  # no certificate, no TLS
        async with await Peer.connect(ports["extra"]) as peer:
            await peer.subscribe(1, "a")
            await peer.send(publish("a", b"x"))
            assert (await peer.message()).payload == b"x"
        assert listeners.ready


async def test_it_has_its_metrics() -> None:
    async with listening(ExtraPart) as (listeners, ports), await Peer.connect(ports["extra"]):
        own = {name: count for source in listeners.metrics() for name, count in source.counters().items()}
        assert own["extra_greetings"] == 3
        families = {family.name: family for source in listeners.metrics() for family in source.families()}
        assert ({"protocol": "extra", "listener": "extra"}, 1) in families["connections"].samples


async def test_its_clients_are_recognised_at_the_wrong_port() -> None:
    async with listening(*PROTOCOLS, ExtraPart) as (_, ports):
        assert set(ports) == {"native", "extra"}
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["native"])
        writer.write(b"XTRA 1.0\r\n")
        said = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        assert said == f"XTRA this is Extra; the broker speaks it on port {ports['extra']}".encode()


async def test_a_plugin_that_cannot_be_imported_is_the_listeners_refusal() -> None:
    parts, _ = parts_of(AllSettings(native_port=0, native_websocket=False, mqtt=False, amqp=False), Plugged)
    with pytest.raises(PartError, match=r"^listeners: extra_method: no such module$"):
        await parts.open()


def test_every_protocol_that_is_assembled_has_its_settings_and_ports() -> None:
    assert all(issubclass(Settings, each.settings) for each in PROTOCOLS)
    assert protocol_ports() == [port for each in PROTOCOLS for port in each.settings.ports]
    for port in protocol_ports():
        assert hasattr(Settings(), port.setting)
        assert port.host(Settings()) == "127.0.0.1"
