"""What an MQTT listener is told beside the broker's limits, and what it counts for all its connections."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from broker.protocols.mqtt.reason_codes import ReasonCode


class Exchange(Protocol):
    """One enhanced authentication of one client (MQTT 5, 4.12): SCRAM, Kerberos, a challenge of your own."""

    def step(self, data: bytes | None) -> tuple[bytes | None, str | None]:
        """Answer the client's Authentication Data with (data for the client, None to go on, or the user when done).

        Raises AuthenticationFailed to end it. It must not block: it runs in the loop.
        """
        ...


class AuthenticationMethod(Protocol):
    """The plug-in point for enhanced authentication: makes an Exchange for each client that names the method."""

    def __call__(self, user: str | None, address: str) -> Exchange: ...


@dataclass(frozen=True, slots=True)
class Options:
    keep_alive_max: int = 0  # seconds; told to clients that want more, or none, as Server Keep Alive; 0: their choice
    topic_alias_max: int = 64  # topics a client may give a number to, on one connection
    server_reference: str | None = None  # where clients are sent to when this broker stops (4.11)
    methods: Mapping[str, AuthenticationMethod] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(slots=True)
class Counts:
    """Of all connections of the protocol together, monotonic."""

    errors: Counter[ReasonCode] = field(default_factory=Counter)  # connections closed for what their client did
    refused: Counter[ReasonCode] = field(default_factory=Counter)  # CONNECTs, by the reason in CONNACK
    unknown_acknowledgements: int = 0  # for packet identifiers that were not in use
    oversized: int = 0  # answers that the client's Maximum Packet Size left no room for
