"""The rules between settings, and the exposure rule: who is admitted at which address.

A listener on a loopback address admits anonymous clients. On any other address the broker requires users, a
password or an explicit `allow_anonymous`, and does not start without one of them. Once there is a password, loopback
clients need it too: behind a proxy or an SSH tunnel every client is a loopback client. A TLS port that requires client
certificates is safe on any address.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from fanlight_broker.config.problems import Problem
from fanlight_broker.config.settings import ClientCertificates, Settings, protocol_ports
from fanlight_broker.config.values import show
from fanlight_broker.core.errors import InvalidFilter
from fanlight_broker.core.listening_port import ListeningPort

HTTP_PORTS = (ListeningPort("http"), ListeningPort("http", tls=True))  # named as those of a protocol are

REMEDY = (
    "refuses to listen there without a password; do one of these: "
    "`fanlightd user add FILE USER` and --users-file FILE, or FANLIGHT_PASSWORD in the environment, "
    "or, to let everybody in, --allow-anonymous"
)


class Finding(NamedTuple):
    """A broken rule between settings."""

    keys: tuple[str, ...]  # the settings it is about; the first is the one to name
    value: str
    text: str

    def problem(self, places: Mapping[str, str]) -> Problem:
        # The place is that of the first of them that is set explicitly.
        place = next((places[key] for key in self.keys if key in places), "default")
        return Problem(self.keys[0], self.value, place, self.text)


def check(settings: Settings) -> Iterator[Finding]:
    """Every broken rule."""
    yield from _sizes(settings)
    yield from _listeners(settings)
    yield from _tls(settings)
    yield from _payload_format(settings)
    yield from exposure(settings)
    yield from _users(settings)
    yield from _hook(settings)
    yield from _groups(settings)


def _groups(settings: Settings) -> Iterator[Finding]:
    if settings.tls_client_groups is not None:
        try:
            certificate_groups(settings.tls_client_groups)
        except ValueError as error:
            yield Finding(("tls_client_groups",), settings.tls_client_groups, str(error))


def certificate_groups(text: str) -> tuple[tuple[str, str], ...]:
    """Pattern and group, of each part of tls_client_groups. Raises ValueError."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(";"))):
        pattern, _, group = part.rpartition("=")
        pattern, group = pattern.strip(), group.strip()
        if not pattern or not group or group == "anonymous":
            raise ValueError(f"{part!r} is not pattern=group, with a group that users may have")
        found.append((pattern, group))
    return tuple(found)


def _hook(settings: Settings) -> Iterator[Finding]:
    if settings.auth_url is None:
        return
    try:
        url = urlsplit(settings.auth_url)
        sound = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        sound = False
    if not sound:
        yield Finding(("auth_url",), "(not shown)", "is no URL; write https://host/path")
    elif url.username is not None:
        text = "has a user name or password; put a token into auth_token_file instead"
        yield Finding(("auth_url",), "(not shown)", text)


def _users(settings: Settings) -> Iterator[Finding]:
    for file in ("password_file", "users_file"):
        if settings.password is not None and getattr(settings, file) is not None:
            what = file.replace("_", " ")
            text = f"use either one password for everybody or a {what}; with both, a user name would be ambiguous"
            yield Finding(("password", file), "(not shown)", text)
    if settings.users_file is not None and settings.password_file is not None:
        text = "use either a users file or a password file: `fanlightd user import` takes the users of the other over"
        yield Finding(("users_file", "password_file"), str(settings.users_file), text)


def checks_credentials(settings: Settings) -> bool:
    """Is there anything that credentials are checked against, certificates aside?"""
    return any(each is not None for each in (
        settings.users_file, settings.password_file, settings.password, settings.token_keys_file,
        settings.auth_url,
    ))  # fmt: skip


def _sizes(settings: Settings) -> Iterator[Finding]:
    limits = settings.limits
    pairs = [
        ("outbox_bytes_max", limits.outbox_bytes_max, "frame_bytes_max", limits.frame_bytes_max, 2,
         "an outbox must hold the largest frame while another is being sent"),
        ("outboxes_bytes_max", limits.outboxes_bytes_max, "outbox_bytes_max", limits.outbox_bytes_max, 1,
         "all outboxes together must hold at least one"),
        ("frame_bytes_max", limits.frame_bytes_max,
         "handshake_frame_bytes_max", limits.handshake_frame_bytes_max, 1,
         "a stranger must not be allowed more than a client"),
    ]  # fmt: skip
    for name, value, other, other_value, factor, why in pairs:
        if value < factor * other_value:
            unit = "bytes" if "bytes" in name else None
            times = f"{factor} times " if factor > 1 else ""
            text = f"must be at least {times}{other} ({show(factor * other_value, unit)}): {why}"
            yield Finding((name, other), show(value, unit), text)


def _listeners(settings: Settings) -> Iterator[Finding]:
    ports = {port.setting: port.number(settings) for port in ports_of(settings)}
    seen: dict[int, str] = {}
    for key, port in ports.items():
        if port and port in seen:
            text = f"is {seen[port]} as well; two listeners cannot share a port"
            yield Finding((key, seen[port]), str(port), text)
        seen.setdefault(port, key)


def _tls(settings: Settings) -> Iterator[Finding]:
    asked = settings.tls_client_certificates
    if settings.tls_certificate is None:
        names = ("tls_key", "tls_key_password_file", "tls_client_ca", "tls_client_crl", "tls_client_groups")
        for name in [each for each in names if getattr(settings, each) is not None]:
            text = "is of no use without tls_certificate"
            yield Finding((name, "tls_certificate"), str(getattr(settings, name)), text)
        if asked is not ClientCertificates.NONE:
            yield Finding(("tls_client_certificates", "tls_certificate"), asked, "is of no use without tls_certificate")
    elif asked is not ClientCertificates.NONE and settings.tls_client_ca is None:
        text = "requires tls_client_ca: the CA certificates that clients' certificates are checked against"
        yield Finding(("tls_client_certificates", "tls_client_ca"), asked, text)
    elif asked is ClientCertificates.NONE and settings.tls_client_ca is not None:
        text = "is of no use while tls_client_certificates is none; set it to optional or required"
        yield Finding(("tls_client_ca", "tls_client_certificates"), str(settings.tls_client_ca), text)


def _payload_format(settings: Settings) -> Iterator[Finding]:
    if settings.payload_format is not None:
        from fanlight_broker.core.payload_formats import PayloadFormats  # compiled code, for those who use it

        try:
            PayloadFormats(settings.payload_format)
        except InvalidFilter as error:
            yield Finding(("payload_format",), settings.payload_format, error.text)


def exposure(settings: Settings) -> Iterator[Finding]:
    """The listeners that would admit unauthenticated clients from other machines."""
    if checks_credentials(settings) or settings.allow_anonymous:
        return
    for key, host in _exposed(settings).items():
        text = f"can be reached from other machines, and fanlightd {REMEDY}"
        yield Finding((key, "users_file", "password_file", "password", "allow_anonymous"), host, text)


def exposure_warnings(settings: Settings) -> list[str]:
    """Warnings about access that is allowed explicitly."""
    exposed = _exposed(settings)
    found = [
        f"everybody who can reach {key} {host} is admitted without credentials (allow_anonymous)"
        for key, host in exposed.items() if settings.allow_anonymous
    ]
    if settings.auth_url is not None:
        url = urlsplit(settings.auth_url)
        if url.scheme == "http" and not is_loopback(url.hostname or ""):
            found.append("passwords go to auth_url unencrypted; use https, or a service on this machine")
    if settings.metrics_open and not settings.allow_anonymous:
        found += [
            f"everybody who can reach {key} {host} can read /metrics (metrics_open)"
            for key, host in exposed.items() if key.startswith("http")
        ]
    return found


def _exposed(settings: Settings) -> dict[str, str]:
    """The hosts, by key, that other machines can reach."""
    hosts: dict[str, str] = {}
    for port in ports_of(settings):
        certified = port.tls and settings.tls_client_certificates is ClientCertificates.REQUIRED
        if not certified:
            hosts[port.host_setting(settings)] = port.host(settings)
    return {key: host for key, host in hosts.items() if not is_loopback(host)}


def ports_of(settings: Settings) -> list[ListeningPort]:
    """Every port that the settings open."""
    return [port for port in (*protocol_ports(), *HTTP_PORTS) if port.wanted(settings)]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`. A name other than localhost counts as reachable."""
    if host.lower().rstrip(".") == "localhost":  # RFC 6761, 6.3: always loopback
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
