"""SASL mechanisms in connection.start-ok: what a response says, for the broker's own authentication (1.4.2.3)."""

from typing import Final, NamedTuple

from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.protocols.amqp.data_types import OctetReader, long_string
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import read_table

MECHANISMS: Final = ("PLAIN", "AMQPLAIN", "ANONYMOUS")
EXTERNAL: Final = "EXTERNAL"  # by the certificate of the client


class AmqpCredentials(NamedTuple):
    user: str | None
    password: str | None


NOBODY: Final = AmqpCredentials(None, None)  # by a certificate, or anonymous


def offered(certified: str) -> tuple[str, ...]:
    """What is offered to a client, with the name in its certificate ("" without one)."""
    return (EXTERNAL, *MECHANISMS) if certified else MECHANISMS


def credentials_of(mechanism: str, response: bytes, certified: str) -> AmqpCredentials:
    """Raises AuthenticationFailed for a mechanism that was not offered, and for a response that is malformed."""
    if mechanism not in offered(certified):
        raise AuthenticationFailed(f"login with the mechanism {mechanism!r}, which was not offered")
    try:
        match mechanism:
            case "PLAIN":
                return plain(response)
            case "AMQPLAIN":
                return amqplain(response)
            case _:
                return NOBODY
    except (ValueError, AmqpError) as error:
        raise AuthenticationFailed(f"a response that is no {mechanism}") from error


def plain(response: bytes) -> AmqpCredentials:
    """RFC 4616: authorization identity, user, password, with a NUL between them. Raises ValueError."""
    _, user, password = response.decode().split("\0")
    return AmqpCredentials(user, password)


def amqplain(response: bytes) -> AmqpCredentials:
    """A table without its length. Raises ValueError, AmqpError."""
    table = read_table(OctetReader(long_string(response), "AMQPLAIN"))
    user, password = table.get("LOGIN"), table.get("PASSWORD")
    if not isinstance(user, str) or not isinstance(password, str):
        raise ValueError("LOGIN and PASSWORD are texts")
    return AmqpCredentials(user, password)
