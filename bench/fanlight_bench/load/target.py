"""Where the broker is that a load goes to: a URL.

    fanlight://host:7420            the native protocol; ?syntax=mqtt spells topics with slashes
    mqtt://user:password@host:1883  MQTT 3.1.1
    mqtt5://host                    MQTT 5
    nats://host:4222                the text protocol of NATS
    amqp://host:5672                AMQP 0-9-1, as guest unless the URL says otherwise

`mqtt://u:password@host?users=1000` connects as 1,000 users: u0, u1, ... u999, all of one password. Which of them a
connection is follows from its name, so that two runs have the same users do the same.

With `+tls` behind the protocol it is spoken by TLS, with `+ws` over WebSocket: mqtt+ws://host:8083. `fanlights` and
`mqtts` are other names of `fanlight+tls` and `mqtt+tls`.
"""

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit
from zlib import crc32

PORTS = {"fanlight": 7420, "mqtt": 1883, "mqtt5": 1883, "nats": 4222, "amqp": 5672}
TLS, WEBSOCKET = "tls", "ws"
CARRIER_PORTS = {TLS: {"fanlight": 7423, "mqtt": 8883, "mqtt5": 8883}, WEBSOCKET: {"mqtt": 8083, "mqtt5": 8083}}
NAMES = {"fanlights": "fanlight+tls", "mqtts": "mqtt+tls"}


class BadUrl(ValueError):
    """A URL that no broker can be reached by."""


@dataclass(frozen=True)
class Target:
    """A broker's address and what it is spoken to in. protocol: one of PORTS.

    syntax, of topics: "amqp" or "mqtt"; carrier: TLS, WEBSOCKET, or "" for a plain socket; users: 0, or as how many
    connections log in, whose names begin with `user`.
    """

    protocol: str
    host: str
    port: int
    user: str | None = None
    password: str | None = None
    syntax: str = "amqp"
    carrier: str = ""
    users: int = 0

    def user_of(self, client: str) -> str | None:
        """As whom a connection logs in."""
        if self.user is None or not self.users:
            return self.user
        own = client.rpartition("-")[2]  # without the number of the process
        return f"{self.user}{crc32(own.encode()) % self.users}"

    @property
    def url(self) -> str:
        """The URL without the password: it goes into results."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        asked = ["syntax=mqtt"] if self.protocol == "fanlight" and self.syntax == "mqtt" else []
        asked += [f"users={self.users}"] if self.users else []
        carrier = f"+{self.carrier}" if self.carrier else ""
        return f"{self.protocol}{carrier}://{user}{host}:{self.port}{'?' * bool(asked)}{'&'.join(asked)}"


def parse(url: str) -> Target:
    """The target that a URL names. Raises BadUrl."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadUrl(f"{url}: {error}") from None
    protocol, plus, carrier = NAMES.get(parts.scheme, parts.scheme).partition("+")
    if protocol not in PORTS or (plus and carrier not in CARRIER_PORTS):
        raise BadUrl(f"{url}: begin with one of {', '.join(f'{scheme}://' for scheme in PORTS)}")
    if not parts.hostname or parts.path not in ("", "/"):
        raise BadUrl(f"{url}: {parts.scheme}://host:port is wanted")
    asked = parse_qs(parts.query)
    syntax = asked.get("syntax", ["amqp"])[-1]
    users = asked.get("users", ["0"])[-1]
    if not (users.isascii() and users.isdigit()):
        raise BadUrl(f"{url}: users={users}; it is a number")
    if syntax not in ("amqp", "mqtt"):
        raise BadUrl(f"{url}: syntax={syntax}; amqp and mqtt are known")
    return Target(
        protocol,
        parts.hostname,
        port or CARRIER_PORTS.get(carrier, PORTS).get(protocol, PORTS[protocol]),
        unquote(parts.username) if parts.username else None,
        unquote(parts.password) if parts.password else None,
        syntax if protocol == "fanlight" else "mqtt",
        carrier,
        int(users),
    )
