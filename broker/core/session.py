"""A session: what is kept of a client when its connection is gone (MQTT 5, 4.1).

    Client   one connection ......... the outbox, the speaker
    Session  many, one at a time .... subscriptions, window and queue, identifiers received, will, expiry

Clients whose protocol has no sessions have none: what they hold ends with their connection.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from broker.core.client import Client
from broker.core.retained import Cursor
from broker.core.will import Will
from broker.wire.message import Format
from broker.wire.outbox import Outbox
from broker.wire.subscriptions import Subscriptions
from broker.wire.window import Window


@dataclass(frozen=True, slots=True)
class Connect:
    """What a client says of itself and of its session."""

    client_id: str
    format: Format
    protocol: str
    address: str
    user: str = ""
    verified: bool = False
    label: str = ""
    agent: str = ""
    clean_start: bool = True
    expiry: float = 0.0  # seconds the session outlives its connection; inf: for ever
    receive_max: int = 65_535
    frame_max: int | None = None  # bytes of the largest packet the client takes
    will: Will | None = None


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session's client wants the messages of one subscription."""

    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: bytes = b""  # the subscription identifier, as the client's format encodes it
    group: str | None = None


@dataclass(slots=True, eq=False)
class Session:
    name: str  # the client identifier
    user: str
    client: Client  # of the present connection, or of the last
    window: Window
    expiry: float = 0.0
    connected: bool = False
    ended: bool = False
    will: Will | None = None
    subscriptions: Subscriptions = field(default_factory=lambda: Subscriptions(by_filter=True))  # one for each filter
    unreleased: AbstractSet[int] = frozenset()  # identifiers received with QoS 2
    # Retained messages still to be sent, by the number of the subscription; one after the other.
    cursors: dict[int, Cursor] = field(default_factory=dict)
    numbers: int = 0

    def receive(self, identifier: int) -> bool:
        """A PUBLISH with QoS 2 has come. False if it was received before: it is not published again (4.3.3)."""
        if identifier in self.unreleased:
            return False
        if not isinstance(self.unreleased, set):
            self.unreleased = set()  # not before: most sessions never have any
        self.unreleased.add(identifier)
        return True

    def release(self, identifier: int) -> bool:
        """A PUBREL has come. False if no message with this identifier was received."""
        if identifier not in self.unreleased:
            return False
        assert isinstance(self.unreleased, set)
        self.unreleased.remove(identifier)
        return True

    @property
    def outbox(self) -> Outbox:
        return self.window.outbox
