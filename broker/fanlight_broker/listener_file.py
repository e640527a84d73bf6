"""The file of further listeners of a protocol, with settings of their own, TOML (docs/listeners.md).

    [[listener]]
    name = "plant"                      in permissions, the log, metrics and views
    protocol = "mqtt"
    host = "10.0.7.1"
    port = 1884
    tls_certificate = "plant.pem"       one of its own; or tls = true: that of the broker
    connections_max = 500

All that is wrong is said at once, each with its place. Files that it names are beside it if their paths are relative.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from fanlight_broker.config.checks import is_loopback
from fanlight_broker.net.proxies import Network, networks_of
from fanlight_broker.net.tls import CLIENTS, TlsFiles
from fanlight_permissions.reading import did_you_mean, file_text

FILE_BYTES_MAX: Final = 1024 * 1024
LISTENERS_MAX: Final = 100
NAME_MAX: Final = 64
RESERVED: Final = frozenset({"all", "http", "https"})
LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


class ListenerFileError(Exception):
    """A file of listeners that cannot be put in force. `problems` has a sentence for each, with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class WrongListener(ValueError):
    """One thing that is wrong in an entry."""


@dataclass(frozen=True, slots=True)
class OwnListener:
    """One [[listener]]. tls: with the broker's certificate; tls_...: with one of its own."""

    name: str
    protocol: str
    port: int
    host: str = "127.0.0.1"
    websocket: bool = False
    websocket_origins: str | None = None
    tls: bool = False
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_key_password_file: Path | None = None
    tls_client_ca: Path | None = None
    tls_client_certificates: str = "none"
    proxy_protocol_from: tuple[Network, ...] = ()
    connections_max: int | None = None

    @property
    def secure(self) -> bool:
        return self.tls or self.tls_certificate is not None

    @property
    def files(self) -> TlsFiles | None:
        """What its own TLS is made of; None: it is the broker's, or there is none."""
        if self.tls_certificate is None:
            return None
        return TlsFiles(
            self.tls_certificate, self.tls_key, self.tls_key_password_file, self.tls_client_ca,
            self.tls_client_certificates,
        )

    def __str__(self) -> str:
        words = [self.protocol, "over WebSocket" * self.websocket, "with TLS" * self.secure]
        words.append(f"on {self.host}:{self.port}")
        if self.connections_max is not None:
            words.append(f"at most {self.connections_max} connections")
        if self.proxy_protocol_from:
            words.append(f"behind proxies of {', '.join(map(str, self.proxy_protocol_from))}")
        return f"{self.name}: {' '.join(filter(None, words))}"

    @property
    def exposed(self) -> bool:
        """May clients of other machines come without a certificate?"""
        return not is_loopback(self.host) and self.tls_client_certificates != "required"


def load(path: Path, protocols: Collection[str], taken: Collection[str]) -> tuple[OwnListener, ...]:
    """The listeners of a file. protocols: those that are turned on; taken: names of listeners that there are.

    Raises ListenerFileError, with all that is wrong.
    """
    try:
        table = tomllib.loads(file_text(path, FILE_BYTES_MAX))
    except ValueError as error:  # TOMLDecodeError is one
        raise ListenerFileError([f"{path}: {error}"]) from None
    rows, problems = table.pop("listener", []), []
    if table:
        problems.append(f"{path}: there is no {next(iter(table))!r} in a file of listeners, but [[listener]]")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ListenerFileError([*problems, f"{path}: begin each listener with a line [[listener]]"])
    if len(rows) > LISTENERS_MAX:
        raise ListenerFileError([*problems, f"{path}: {len(rows)} listeners; at most {LISTENERS_MAX}"])
    found: dict[str, OwnListener] = {}
    for number, row in enumerate(rows, 1):
        try:
            one = _listener(row, protocols, path.parent)
            if one.name in found or one.name in taken or one.name in RESERVED:
                raise WrongListener(f"name: there is a listener {one.name!r} already")
            found[one.name] = one
        except WrongListener as error:
            problems.append(f"{path}, listener {row.get('name', number)}: {error}")
    if problems:
        raise ListenerFileError(problems)
    return tuple(found.values())


KEYS: Final = tuple(each.name for each in fields(OwnListener))
PATHS: Final = ("tls_certificate", "tls_key", "tls_key_password_file", "tls_client_ca")


def _listener(row: Mapping[str, Any], protocols: Collection[str], folder: Path) -> OwnListener:
    """Raises WrongListener."""
    for key in row:
        if key not in KEYS:
            raise WrongListener(f"there is no {key!r}{did_you_mean(key, KEYS)}")
    name = _text(row, "name")
    if not 0 < len(name) <= NAME_MAX or not LETTERS.issuperset(name):
        raise WrongListener(f"name: 1 to {NAME_MAX} of the letters a to z, digits, - _ .")
    protocol = _text(row, "protocol")
    if protocol not in protocols:
        raise WrongListener(f"protocol: one of {', '.join(protocols)}, which are turned on; got {protocol!r}")
    if "port" not in row:
        raise WrongListener("port: say which, or 0 for a free one")
    found: dict[str, Any] = {key: folder / _text(row, key) for key in PATHS if key in row}
    found |= {key: _flag(row, key) for key in ("websocket", "tls") if key in row}
    found |= {key: _text(row, key) for key in ("host", "websocket_origins", "tls_client_certificates") if key in row}
    if "connections_max" in row:
        found["connections_max"] = _number(row, "connections_max", 1, 10_000_000)
    try:
        found["proxy_protocol_from"] = networks_of(_text(row, "proxy_protocol_from"))
    except ValueError as error:
        raise WrongListener(f"proxy_protocol_from: {error}") from None
    one = OwnListener(name=name, protocol=protocol, port=_number(row, "port", 0, 65_535), **found)
    _check_tls(one)
    if one.websocket_origins is not None and not one.websocket:
        raise WrongListener("websocket_origins: is of no use without websocket = true")
    return one


def _check_tls(one: OwnListener) -> None:
    if one.tls_certificate is None:
        given = [key for key in (*PATHS[1:], "tls_client_certificates") if getattr(one, key) not in (None, "none")]
        if given:
            raise WrongListener(f"{given[0]}: is of no use without a tls_certificate of its own")
    elif one.tls:
        raise WrongListener("tls: true is the broker's certificate; leave it out beside a tls_certificate of its own")
    if one.tls_client_certificates not in CLIENTS:
        raise WrongListener(f"tls_client_certificates: one of {', '.join(CLIENTS)}")
    if (one.tls_client_certificates == "none") != (one.tls_client_ca is None):
        raise WrongListener("tls_client_certificates: goes together with tls_client_ca")


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key, "")
    if not isinstance(value, str) or "\0" in value:
        raise WrongListener(f"{key}: is a text; got {value!r}")
    return value.strip()


def _flag(row: Mapping[str, Any], key: str) -> bool:
    value = row[key]
    if not isinstance(value, bool):
        raise WrongListener(f"{key}: is true or false; got {value!r}")
    return value


def _number(row: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WrongListener(f"{key}: a whole number from {least:,} to {most:,}; got {value!r}")
    return value
