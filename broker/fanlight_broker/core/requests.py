"""What a client asks for when it connects, and for each subscription of its session."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import TYPE_CHECKING, Final

from fanlight_broker.core.permissions import NOWHERE, Asker, Origin
from fanlight_broker.core.will import Will
from fanlight_broker.wire.message import Format

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

SESSION_BYTES: Final = 3_072  # of a session and its present client, beside what it is charged for one by one


@dataclass(slots=True)  # not frozen: one is made for each connection, and that takes twice as long
class ConnectRequest:
    """What a client says of itself and of its session."""

    client_id: str
    format: Format
    protocol: str
    address: str
    user: str = ""
    verified: bool = False
    label: str = ""
    agent: str = ""
    port: int = 0  # the peer's
    clean_start: bool = True
    expiry: float = 0.0  # seconds the session outlives its connection; inf: it never expires
    receive_max: int = 65_535
    frame_max: int | None = None  # bytes of the largest packet the client accepts
    will: Will | None = None
    origin: Origin = NOWHERE
    limits: Mapping[str, int] | None = None  # quotas that are known of the user alone

    @property
    def asker(self) -> Asker:
        """Who wants it, as rules of permissions may ask."""
        return self.origin.asker(self.user if self.verified else "", self.client_id, self.protocol)

    @property
    def nbytes(self) -> int:
        """What a session takes that begins with this."""
        return session_bytes(self.client_id, self.user, self.label, self.will, self.origin.own)


def session_bytes(name: str, user: str, label: str, will: Will | None, own: str) -> int:
    """own: the text of its rules, which equal ones share; it is counted for each."""
    nbytes = SESSION_BYTES + getsizeof(name) + getsizeof(user) + getsizeof(label) + len(own)
    return nbytes if will is None else nbytes + will.message.nbytes


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session's client wants the messages of one subscription."""

    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: bytes = b""  # the subscription identifier, as the client's format encodes it
    group: str | None = None
    condition: "Condition | None" = None  # on the content of its messages
