"""The file of bridges, TOML (docs/bridge.md).

    broker = "plant-7"                    the name of this broker in marks of origin

    [[bridge]]
    name = "cloud"
    address = "mqtt.example.com:8883"     or several, tried in turn
    tls_ca = "ca.pem"
    user = "plant-7"
    password_file = "cloud.password"

    [[bridge.route]]
    filter = "sensors/#"
    direction = "out"
    remote_prefix = "plant/7/"

All that is wrong is said at once, each with its place. Files that it names are beside it if their paths are relative.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import matchcore
from fanlight_broker.bridging.names import GROUP, LOCAL_CLIENT, LOCAL_USER
from fanlight_broker.bridging.topic_mapping import SYNTAX, BridgeRoute, Direction
from fanlight_broker.core.limits import MIB, QueuePolicy
from fanlight_broker.core.selectors import condition_of
from fanlight_broker.parsing import did_you_mean, file_text
from fanlight_broker.protocols.mqtt.version import V3, V5, Version

FILE_BYTES_MAX: Final = 1024 * 1024
BRIDGES_MAX: Final = 100
ROUTES_MAX: Final = 1_000  # of one bridge
NAME_MAX: Final = 64
VERSIONS: Final = {"5.0": V5, "5": V5, "3.1.1": V3}


class BridgeFileError(Exception):
    """A file of bridges that cannot be put in force. `problems` has a sentence for each, with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class WrongBridge(ValueError):
    """One thing that is wrong in an entry."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """One [[bridge]]. Two that are equal do the same, so a reload leaves them alone."""

    name: str
    addresses: tuple[tuple[str, int], ...]
    routes: tuple[BridgeRoute, ...]
    version: Version = V5
    client_id: str = ""
    user: str | None = None
    password_file: Path | None = None
    tls: bool = False
    tls_ca: Path | None = None  # None: the system's
    tls_certificate: Path | None = None
    tls_key: Path | None = None  # None: in the certificate's file
    tls_key_password_file: Path | None = None
    tls_server_name: str | None = None  # None: the host of the address
    local_user: str = ""
    local_groups: frozenset[str] = frozenset()
    keep_alive_seconds: int = 60
    connect_seconds: float = 10.0
    backoff_seconds_min: float = 1.0
    backoff_seconds_max: float = 60.0
    session_seconds: int = 0xFFFF_FFFF  # of the far session, in 5.0; the largest: it does not expire
    window: int = 1_000
    packet_bytes_max: int = 16 * MIB
    queue_messages_max: int = 1_000_000
    queue_bytes_max: int = 512 * MIB
    queue_policy: QueuePolicy = QueuePolicy.DROP_NEWEST
    only_wanted: bool = False

    @property
    def local_client_id(self) -> str:
        return LOCAL_CLIENT + self.name


@dataclass(frozen=True, slots=True)
class BridgeFile:
    broker: str = ""
    bridges: tuple[Bridge, ...] = field(default_factory=tuple)


def load(path: Path) -> BridgeFile:
    """The bridges of a file. Raises BridgeFileError."""
    try:
        text = file_text(path, FILE_BYTES_MAX)
    except ValueError as error:
        raise BridgeFileError([str(error)]) from None
    return parse_bridges(text, str(path), path.parent)


def parse_bridges(text: str, name: str, folder: Path) -> BridgeFile:
    """`name` is for errors; `folder`: where relative paths begin. Raises BridgeFileError, with all that is wrong."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BridgeFileError([f"{name}: {error}"]) from None
    problems: list[str] = []
    broker, rows = table.pop("broker", ""), table.pop("bridge", [])
    if table:
        problems.append(f"{name}: there is no {next(iter(table))!r} in a file of bridges, but broker and [[bridge]]")
    if not isinstance(broker, str) or len(broker) > NAME_MAX:
        problems.append(f"{name}: broker is a text of at most {NAME_MAX} characters, the name of this broker")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BridgeFileError([*problems, f"{name}: begin each bridge with a line [[bridge]]"])
    if len(rows) > BRIDGES_MAX:
        raise BridgeFileError([*problems, f"{name}: {len(rows)} bridges; at most {BRIDGES_MAX}"])
    bridges: dict[str, Bridge] = {}
    for number, row in enumerate(rows, 1):
        try:
            bridge = _bridge(row, broker if isinstance(broker, str) else "", folder)
            if bridge.name in bridges:
                raise WrongBridge(f"name: there are two bridges {bridge.name!r}")
            bridges[bridge.name] = bridge
        except WrongBridge as error:
            problems.append(f"{name}, bridge {row.get('name', number)}: {error}")
    if problems:
        raise BridgeFileError(problems)
    return BridgeFile(broker, tuple(bridges.values()))


KEYS: Final = tuple(
    {"addresses": "address", "routes": "route"}.get(each.name, each.name) for each in fields(Bridge)
)
ROUTE_KEYS: Final = tuple(each.name for each in fields(BridgeRoute))
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "keep_alive_seconds": (0, 65_535), "connect_seconds": (0.1, 300), "backoff_seconds_min": (0.01, 3_600),
    "backoff_seconds_max": (0.01, 86_400), "session_seconds": (1, 0xFFFF_FFFF), "window": (1, 10_000),
    "packet_bytes_max": (256, 256 * MIB), "queue_messages_max": (1, 100_000_000),
    "queue_bytes_max": (4_096, 1 << 40),
}
PATHS: Final = ("password_file", "tls_ca", "tls_certificate", "tls_key", "tls_key_password_file")


def _bridge(row: Mapping[str, Any], broker: str, folder: Path) -> Bridge:
    """Raises WrongBridge."""
    _known(row, KEYS)
    found: dict[str, Any] = {}
    name = _text(row, "name")
    if not name or len(name) > NAME_MAX or any(each in "/+#\0" or not each.isprintable() for each in name):
        raise WrongBridge(f"name: 1 to {NAME_MAX} characters, without / + #")
    for key in ("user", "tls_server_name"):
        if key in row:
            found[key] = _text(row, key)
    for key in PATHS:
        if key in row:
            found[key] = folder / _text(row, key)
    for key in ("tls", "only_wanted"):
        if key in row:
            found[key] = _flag(row, key)
    for key, (least, most) in RANGES.items():
        if key in row:
            default = next(each.default for each in fields(Bridge) if each.name == key)
            found[key] = _number(row, key, least, most, whole=isinstance(default, int))
    given_tls = [key for key in PATHS if key.startswith("tls") and key in row]
    if given_tls and row.get("tls") is False:
        raise WrongBridge(f"{given_tls[0]}: and tls = false")
    found["tls"] = found.get("tls", bool(given_tls))
    if "tls_key" in row and "tls_certificate" not in row:
        raise WrongBridge("tls_key: needs tls_certificate")
    if "password_file" in row and "user" not in row:
        raise WrongBridge("password_file: needs a user")
    version = row.get("version", "5.0")
    if version not in VERSIONS:
        raise WrongBridge(f'version: "5.0" or "3.1.1"; got {version!r}')
    policy = row.get("queue_policy", QueuePolicy.DROP_NEWEST.value)
    if policy not in [each.value for each in QueuePolicy]:
        raise WrongBridge(f"queue_policy: one of {', '.join(QueuePolicy)}; got {policy!r}")
    bridge = Bridge(
        name=name, addresses=_addresses(row, tls=found["tls"]), routes=_routes(row),
        version=VERSIONS[version], client_id=_text(row, "client_id") or f"{broker or 'fanlight'}-{name}",
        local_user=_text(row, "local_user") or LOCAL_USER + name,
        local_groups=frozenset((GROUP, *_texts(row, "local_groups"))), queue_policy=QueuePolicy(policy),
        **found,
    )
    if bridge.backoff_seconds_max < bridge.backoff_seconds_min:
        raise WrongBridge("backoff_seconds_max: is less than backoff_seconds_min")
    if "anonymous" in bridge.local_groups:
        raise WrongBridge("local_groups: a bridge has a user, so it is not in the group anonymous")
    if bridge.only_wanted and bridge.version is not V5:
        raise WrongBridge('only_wanted: needs version "5.0", and a Fanlight on the other side')
    return bridge


def _routes(row: Mapping[str, Any]) -> tuple[BridgeRoute, ...]:
    rows = row.get("route", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(each, dict) for each in rows):
        raise WrongBridge("route: a bridge has one [[bridge.route]] or more")
    if len(rows) > ROUTES_MAX:
        raise WrongBridge(f"route: {len(rows)} of them; at most {ROUTES_MAX}")
    routes = []
    for number, each in enumerate(rows, 1):
        try:
            routes.append(_route(each))
        except WrongBridge as error:
            raise WrongBridge(f"route {number}: {error}") from None
    for place, side in (("local_filter", "goes_out"), ("remote_filter", "comes_in")):
        filters = [getattr(each, place) for each in routes if getattr(each, side)]
        twice = next((each for each in filters if filters.count(each) > 1), None)
        if twice is not None:
            raise WrongBridge(f"route: two routes of one direction have the filter {twice!r} on one side")
    return tuple(routes)


def _route(row: Mapping[str, Any]) -> BridgeRoute:
    _known(row, ROUTE_KEYS)
    if "filter" not in row:
        raise WrongBridge("filter: say which topics, such as sensors/#")
    direction = row.get("direction", Direction.OUT.value)
    if direction not in [each.value for each in Direction]:
        raise WrongBridge(f"direction: one of {', '.join(Direction)}; got {direction!r}")
    route = BridgeRoute(
        filter=_text(row, "filter"), direction=Direction(direction),
        qos=_number(row, "qos", 0, 1, whole=True) if "qos" in row else 1,
        local_prefix=_text(row, "local_prefix"), remote_prefix=_text(row, "remote_prefix"),
        where=_text(row, "where") or None, retained=_flag(row, "retained") if "retained" in row else True,
    )
    for prefix in ("local_prefix", "remote_prefix"):
        if any(each in getattr(route, prefix) for each in "+#\0"):
            raise WrongBridge(f"{prefix}: is the beginning of a topic, without + and #")
    for filter in (route.local_filter, route.remote_filter):
        if filter.startswith("$share/"):
            raise WrongBridge("filter: a bridge takes no part in shared subscriptions")
        try:
            matchcore.parse_filter(filter, SYNTAX)
        except matchcore.InvalidFilter as error:
            raise WrongBridge(f"filter {filter!r}: {error}") from None
    if route.where is not None:
        try:
            condition_of(route.where)
        except ValueError as error:
            raise WrongBridge(f"where: {error}") from None
    return route


def _addresses(row: Mapping[str, Any], *, tls: bool) -> tuple[tuple[str, int], ...]:
    found = []
    for text in _texts(row, "address"):
        host, colon, port = text.rpartition(":")
        if not colon or (host.count(":") and not host.endswith("]")):
            host, port = text, "8883" if tls else "1883"
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
            raise WrongBridge(f"address: host:port, such as mqtt.example.com:8883; got {text!r}")
        found.append((host, int(port)))
    if not found:
        raise WrongBridge("address: say where the other broker is, such as mqtt.example.com:8883")
    return tuple(found)


def _known(row: Mapping[str, Any], names: Sequence[str]) -> None:
    for key in row:
        if key not in names:
            raise WrongBridge(f"there is no {key!r}{did_you_mean(key, names)}")


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key, "")
    if not isinstance(value, str) or "\0" in value:
        raise WrongBridge(f"{key}: is a text; got {value!r}")
    return value


def _texts(row: Mapping[str, Any], key: str) -> list[str]:
    value = row.get(key, [])
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise WrongBridge(f"{key}: is a text or a list of texts; got {value!r}")
    return value


def _flag(row: Mapping[str, Any], key: str) -> bool:
    value = row[key]
    if not isinstance(value, bool):
        raise WrongBridge(f"{key}: is true or false; got {value!r}")
    return value


def _number(row: Mapping[str, Any], key: str, least: float, most: float, *, whole: bool) -> Any:
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not least <= value <= most:
        raise WrongBridge(f"{key}: a {'whole ' if whole else ''}number from {least:g} to {most:g}; got {value!r}")
    return value
