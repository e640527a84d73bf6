"""Who may see which path of the HTTP listener.

    /healthz, /readyz   everybody; details for clients that may see the rest
    /metrics            a token of its own (Bearer), or everybody if it is open; otherwise as the rest
    the rest            clients that the authenticator accepts, by Basic authentication, a token (JWT) or a certificate,
                        and that have the permission admin:read; admin:write for what changes something

Credentials are checked on each request. Without credentials, a listener on a loopback address answers only requests to
its address: a web page could point a host name of its own to 127.0.0.1, and read the answers (DNS rebinding).
"""

import base64
import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fanlight_broker import audit
from fanlight_broker.admin.forwarded import has_tls
from fanlight_broker.core.enforcement import Enforcement
from fanlight_broker.core.errors import AuthenticationFailed, NotPermitted
from fanlight_broker.core.identity import ANONYMOUS, Identity
from fanlight_broker.core.permissions import Action, Origin
from fanlight_broker.core.ports import Authenticator

if TYPE_CHECKING:
    from aiohttp import web


@dataclass(slots=True)
class MetricsAccess:
    """What gives access to /metrics, besides a user's credentials. A reload changes it."""

    token: str | None = None
    open: bool = False


class Gatekeeper:
    """certified    returns the name in the certificate of a request's connection
    enforcement  of the permissions in force; None: everything is permitted
    """

    def __init__(
        self, authenticator: Authenticator, metrics: MetricsAccess, certified: "Callable[[web.BaseRequest], str]",
        enforcement: Enforcement | None = None,
    ) -> None:
        self.metrics = metrics
        self.tokens_refused = 0
        self._authenticator = authenticator
        self._certified = certified
        self._enforcement = enforcement

    def use(self, metrics: MetricsAccess) -> None:
        """Apply a new access to /metrics to requests from now on."""
        self.metrics = metrics

    async def check(
        self, request: "web.BaseRequest", *, local: bool, action: Action = Action.ADMIN_READ, quiet: bool = False
    ) -> Identity:
        """Returns who it is. quiet: a denial is not counted.

        Raises AuthenticationFailed, or NotPermitted: also for a host name that is not this machine's.
        """
        identity = await self.identity(request, local=local)
        self.permit(request, identity, action, quiet=quiet)
        if action is Action.ADMIN_WRITE:
            audit.note("admin", user=identity.user, address=request.remote or "", protocol="http", action=request.path)
        return identity

    async def identity(self, request: "web.BaseRequest", *, local: bool) -> Identity:
        """Who it is, by the credentials of the request. Raises AuthenticationFailed, NotPermitted."""
        identity = await self._identity(request)
        if identity.anonymous and local and not _is_local_name(request.host):
            raise NotPermitted("without credentials, ask by address: http://127.0.0.1 or http://localhost")
        return identity

    def is_nobody(self, request: "web.BaseRequest") -> bool:
        """Does it show no credentials, where some are needed? `identity` would count it as a failed login."""
        return (
            "Authorization" not in request.headers and not self._certified(request)
            and not self._authenticator.stands(ANONYMOUS)
        )

    def permit(
        self, request: "web.BaseRequest", identity: Identity, action: Action, *, quiet: bool = False
    ) -> None:
        """Raises NotPermitted."""
        if self._enforcement is not None:
            origin = self.origin_of(request, identity)
            asker = origin.asker(identity.user if identity.verified else "", "", "http")
            self._enforcement.check_asker(asker, action, quiet=quiet)

    def origin_of(self, request: "web.BaseRequest", identity: Identity) -> Origin:
        """What permissions may know of who asks, beside the name."""
        return Origin(
            identity.groups, self._certified(request), request.remote or "", "https" if has_tls(request) else "http",
            own=identity.permissions,
        )

    async def login(self, request: "web.BaseRequest", user: str, password: str) -> Identity:
        """Who it is, by a user name and password that a page has sent. Raises AuthenticationFailed."""
        return await self._authenticator.authenticate(user, password, request.remote or "")

    def stands(self, identity: Identity) -> bool:
        """Are the credentials by which somebody has logged in still valid?"""
        return self._authenticator.stands(identity)

    async def check_metrics(self, request: "web.BaseRequest", *, local: bool) -> None:
        """The same for /metrics."""
        if self.metrics.open:
            return
        given = _bearer(request.headers.get("Authorization", ""))
        if given is None or _is_signed(given):
            await self.check(request, local=local)
        elif self.metrics.token is None or not hmac.compare_digest(given, self.metrics.token.encode()):
            self.tokens_refused += 1
            raise AuthenticationFailed("wrong token for /metrics (metrics_token_file)")

    async def _identity(self, request: "web.BaseRequest") -> Identity:
        header = request.headers.get("Authorization")
        user, password = _credentials(header) if header is not None else (None, None)
        return await self._authenticator.authenticate(
            user, password, request.remote or "", certified=self._certified(request), counted=False
        )


def _bearer(header: str) -> bytes | None:
    """The token of an Authorization header (RFC 6750); None if it is of another kind."""
    scheme, _, token = header.strip().partition(" ")
    return token.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else None


def _is_signed(token: bytes) -> bool:
    """Whether it has the form of a JWT, which the authenticator checks."""
    return token.startswith(b"eyJ") and token.count(b".") == 2


def _credentials(header: str) -> tuple[str | None, str]:
    """User and password of an Authorization header; no user with a token. Raises AuthenticationFailed."""
    token = _bearer(header)
    if token is not None and _is_signed(token):
        return None, token.decode(errors="surrogateescape")
    return _basic(header)


def _basic(header: str) -> tuple[str, str]:
    """User and password of an Authorization header (RFC 7617). Raises AuthenticationFailed."""
    scheme, _, encoded = header.strip().partition(" ")
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:  # binascii.Error and UnicodeDecodeError too
        colon = ""
    if scheme.lower() != "basic" or not colon:
        raise AuthenticationFailed("the Authorization header must be Basic: user:password, UTF-8, in base64")
    return user, password


def _is_local_name(host: str) -> bool:
    """Whether a Host header is `localhost` or a literal address, which DNS cannot point to another machine."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
