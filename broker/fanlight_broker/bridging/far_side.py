"""What a bridge connects to the other broker with, read from its files at each attempt; and which routes are a loop."""

import ssl
from collections.abc import Sequence

import matchcore
from fanlight_broker.bridging.bridge_file import Bridge
from fanlight_broker.bridging.topic_mapping import SYNTAX, BridgeRoute
from fanlight_broker.config.secret_file import SecretFileError, secret_in


class FarSideError(OSError):
    """A file of a bridge cannot be used. The text names it."""


def secret_of(bridge: Bridge) -> bytes | None:
    """The password. Raises FarSideError."""
    if bridge.password_file is None:
        return None
    try:
        return secret_in(bridge.password_file).encode()
    except SecretFileError as error:
        raise FarSideError(f"password_file {error}") from None


def far_tls(bridge: Bridge) -> ssl.SSLContext:
    """Raises FarSideError."""
    password = None
    if bridge.tls_key_password_file is not None:
        try:
            password = secret_in(bridge.tls_key_password_file)
        except SecretFileError as error:
            raise FarSideError(f"tls_key_password_file {error}") from None
    try:
        context = ssl.create_default_context(cafile=bridge.tls_ca)
    except (OSError, ValueError) as error:
        raise FarSideError(f"tls_ca {bridge.tls_ca}: {_said(error)}") from None
    if bridge.tls_certificate is not None:
        try:
            # Always with a password: without one OpenSSL would ask for it on the terminal.
            context.load_cert_chain(bridge.tls_certificate, bridge.tls_key, lambda: password or "")
        except (OSError, ValueError) as error:
            raise FarSideError(f"tls_certificate {bridge.tls_certificate}: {_said(error)}") from None
    return context


def check_files(bridge: Bridge) -> None:
    """Can all that the bridge names be read? Raises FarSideError."""
    secret_of(bridge)
    if bridge.tls:
        far_tls(bridge)


def overlapping(routes: Sequence[BridgeRoute]) -> frozenset[int]:
    """The numbers of routes in whose filter, on the far side, overlaps with that of a route out."""
    sent = [each.remote_filter for each in routes if each.goes_out]
    return frozenset(
        number for number, each in enumerate(routes, 1)
        if each.comes_in and any(
            matchcore.intersects(each.remote_filter, other, a_syntax=SYNTAX, b_syntax=SYNTAX) for other in sent
        )
    )


def _said(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "is not PEM, or the key is another one"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
