"""Connections that end because of their credentials: what the client hears, and the audit log."""

from typing import Final

from fanlight_broker import audit
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.identity import Identity
from fanlight_broker.net.connection import Connection

FAILED: Final = "authentication_failed"
NOT_VALID: Final = "these credentials are no longer valid; log in again"


def end_invalid(connection: Connection, protocol: ProtocolConnection, identity: Identity) -> None:
    """It may no longer get what is in its outbox."""
    _note(connection, protocol, identity, "the credentials are no longer valid")
    protocol.cut_off(FAILED, NOT_VALID)


def end_expired(connection: Connection, protocol: ProtocolConnection) -> None:
    _note(connection, protocol, connection.identity, "the credentials have expired")
    protocol.cut_off("credentials_expired", "these credentials have expired; log in with new ones")


def _note(connection: Connection, protocol: ProtocolConnection, identity: Identity | None, reason: str) -> None:
    audit.note(
        "connection_ended", user=identity.user if identity is not None else "", client=protocol.who,
        address=connection.address, listener=connection.traffic.name, reason=reason,
    )
