"""SASL mechanisms in connection.start-ok: what a response says, for the broker's own authentication (1.4.2.3)."""

from functools import lru_cache
from typing import Final, NamedTuple

from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.protocols.amqp.data_types import OctetReader, long_string
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import read_table

EXTERNAL: Final = "EXTERNAL"  # by the certificate of the client
SCRAM: Final = "SCRAM-SHA-256"  # of several messages (RFC 7677)
ANONYMOUS: Final = "ANONYMOUS"


class AmqpCredentials(NamedTuple):
    user: str | None
    password: str | None


NOBODY: Final = AmqpCredentials(None, None)  # by a certificate, or anonymous


@lru_cache(maxsize=16)
def offered(certified: bool, offers: frozenset[str]) -> tuple[str, ...]:
    """What is offered to a client. certified: it has a certificate.

    offers: what the authenticator has beside passwords and certificates. PLAIN is before SCRAM, which takes two more
    round trips, and which the clients in use do not know.
    """
    wanted = {EXTERNAL: certified, SCRAM: SCRAM in offers, ANONYMOUS: ANONYMOUS in offers}
    return tuple(each for each in (EXTERNAL, "PLAIN", "AMQPLAIN", SCRAM, ANONYMOUS) if wanted.get(each, True))


def credentials_of(mechanism: str, response: bytes) -> AmqpCredentials:
    """Of a mechanism of one message. Raises AuthenticationFailed for a response that is malformed."""
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
