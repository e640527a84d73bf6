"""Where a broker is: `fanlight://[user:password@]host[:port]`, or `fanlights://` by TLS.

Several servers stand between commas, as in `fanlights://anna:secret@one,two:7000`; they are tried in turn.
User and password are percent-decoded; an IPv6 address stands in brackets. There is no path or query in
version 1 of the protocol, and an address with one is refused rather than half understood.
"""

from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, unquote, urlsplit

from .errors import InvalidURL

SCHEME = "fanlight"
DEFAULT_PORT = 7420
TLS_SCHEME = "fanlights"
DEFAULT_TLS_PORT = 7423

_MQTT = "MQTT clients, such as mosquitto_pub and mosquitto_sub"
OTHERS = {"mqtt": _MQTT, "mqtts": _MQTT, "nats": "clients of NATS", "amqp": "clients of AMQP", "http": "the HTTP views"}


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int = DEFAULT_PORT
    user: str | None = None
    password: str | None = field(default=None, repr=False)  # never in a log line
    tls: bool = False
    others: "tuple[Address, ...]" = ()  # further servers, tried when this one cannot be reached

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{TLS_SCHEME if self.tls else SCHEME}://{host}:{self.port}"


def parse(url: str) -> Address:
    """Read an address. Raises InvalidURL, which shows the URL without its password."""
    check_credentials(url)
    first, *others = (_parsed(each) for each in each_server(url))
    return replace(first, others=tuple(others))


def each_server(url: str) -> list[str]:
    """A URL for each of the servers in one: the hosts between commas, with the same user, scheme and path."""
    scheme, mark, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    user, at, hosts = place.rpartition("@")
    return [f"{scheme}{mark}{user}{at}{host}{slash}{path}" for host in hosts.split(",")]


def _parsed(url: str) -> Address:
    parts, port = split(url)
    if parts.scheme in OTHERS:
        raise InvalidURL(
            f"the address {shown(url)!r} is for {OTHERS[parts.scheme]}; this client speaks the native protocol, as in "
            f"{SCHEME}://127.0.0.1:{DEFAULT_PORT}"
        )
    if parts.scheme not in (SCHEME, TLS_SCHEME):
        raise InvalidURL(
            f"the address {shown(url)!r} must begin with {SCHEME}://, as in {SCHEME}://127.0.0.1:{DEFAULT_PORT}, "
            f"or with {TLS_SCHEME}:// for TLS"
        )
    if not parts.hostname:
        raise InvalidURL(f"the address {shown(url)!r} names no host")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InvalidURL(f"the address {shown(url)!r} may have nothing behind host and port")
    tls = parts.scheme == TLS_SCHEME
    return Address(
        host=parts.hostname,
        port=port if port is not None else DEFAULT_TLS_PORT if tls else DEFAULT_PORT,
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        tls=tls,
    )


def split(url: str) -> tuple[SplitResult, int | None]:
    """The parts of a URL, and its port. Raises InvalidURL."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidURL(f"cannot read the address {shown(url)!r}: {error}") from error
    try:
        return parts, parts.port
    except ValueError:
        raise InvalidURL(
            f"cannot read the address {shown(url)!r}: a port is a whole number from 0 to 65535"
        ) from None


def check_credentials(url: str) -> None:
    """Raises InvalidURL where user or password hold what would end them: else a part of the password would be
    taken for the port, and shown."""
    credentials = url.partition("://")[2].rpartition("@")[0]
    if any(mark in credentials for mark in "/?#"):
        raise InvalidURL(
            f"cannot read the address {shown(url)!r}: in its user name and password, "
            "write %2F for /, %3F for ? and %23 for #"
        )


def shown(url: str) -> str:
    """The URL for a message: without user and password."""
    scheme, mark, rest = url.partition("://")
    if "@" not in rest:
        return url
    return f"{scheme}{mark}***@{rest.rpartition('@')[2]}"
