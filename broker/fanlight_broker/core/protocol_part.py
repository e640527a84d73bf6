"""What a protocol brings to a broker: ports, connections, metrics, and how its clients are recognised.

    protocols/<name>/part.py      a subclass of ProtocolPart
    protocols/<name>/settings.py  the settings that it is made from, which become part of config.Settings

The composition (assembly.py) lists the subclasses. The listeners, the settings' checks and the advice for clients at
the wrong port work from this page alone, so that none of them names a protocol.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.core.listening_port import ListeningPort, ProtocolSettings
from fanlight_broker.core.ports import Transport
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_broker.wire.message import Format

ConnectionFactory = Callable[[Broker, Transport, ReceiveBuffer, float], ProtocolConnection]


class PluginError(ValueError):
    """A setting names a plug-in that cannot be imported. The text names the setting."""


class ProtocolPart(ABC):
    """One protocol of one broker. Made from the settings; raises PluginError."""

    name: ClassVar[str]  # of its listener, in logs, metrics and the names of its settings
    title: ClassVar[str]  # as people call it
    settings: ClassVar[type[ProtocolSettings]]  # what it is made from, and its ports
    subprotocols: ClassVar[tuple[str, ...]] = ()  # of WebSocket
    counters_help: ClassVar[Mapping[str, str]] = {}
    formats: ClassVar[tuple[Format, ...]] = ()  # one of each family, for messages that are read from the disk

    connection: ConnectionFactory

    def __init__(self, settings: Any) -> None:
        self.origins: str | None = None  # of web pages that may connect by WebSocket, with commas between
        self.durability: StoreDurability | None = None  # of what is acknowledged to its clients; None: as the broker's

    def begin(self, broker: Broker) -> None:  # noqa: B027  most have nothing to do
        """What is from before a restart is there, and no port is open yet."""

    @abstractmethod
    def example(self, port: ListeningPort, host: str, number: int, *, credentials: bool) -> str:
        """A command to try the port with, for the log; with placeholders if it needs credentials."""

    @staticmethod
    @abstractmethod
    def recognises(first: bytes) -> bool:
        """Whether a connection that begins like this speaks the protocol; False if there are too few bytes."""

    @staticmethod
    @abstractmethod
    def refusal(first: bytes, text: str) -> bytes:
        """The text as an answer in the protocol, to a client that began like this; empty if it has no answer."""

    def counters(self) -> Mapping[str, int]:
        """The protocol's own counters, by the names of `counters_help`."""
        return {}

    def views(self) -> Mapping[str, Callable[[Mapping[str, str]], Any]]:
        """What it shows by HTTP, by path: admin/view.py has what one is asked with and what it may return."""
        return {}

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        """What a POST makes it do, by path (parts.Part.actions); with the body, where admin/requests.py says so."""
        return {}

    def reasons(self) -> Mapping[str, Mapping[str, int]]:
        """Counters with a count for each reason: name -> reason -> count."""
        return {}
