"""Who a request is from, and how it came, where a proxy before the HTTP listener says so by X-Forwarded-...

A proxy that ends TLS hands on plain HTTP. A browser says `Origin: https://...` then, which is not what came here, and
without these headers each change that a page makes would be refused. They are looked at where the connection is from a
proxy of `http_forwarded_from`: from anybody else they could be made up.
"""

import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp import web

FOR: Final = "X-Forwarded-For"
PROTO: Final = "X-Forwarded-Proto"
HOST: Final = "X-Forwarded-Host"


class Forwarded:
    """believes: whether an address is that of a proxy"""

    def __init__(self, believes: Callable[[str], bool]) -> None:
        self._believes = believes

    def seen(self, request: "web.BaseRequest") -> "web.BaseRequest":
        """The request, as its client has sent it to the first proxy that is believed."""
        if request.remote is None or not self._believes(request.remote):
            return request
        scheme, host = _words(request, PROTO)[-1:], _words(request, HOST)[-1:]
        return request.clone(
            remote=self._client(request), host=host[0] if host else request.host,
            scheme=scheme[0].lower() if scheme and scheme[0].lower() in ("http", "https") else request.scheme,
        )

    def _client(self, request: "web.BaseRequest") -> str:
        """The last address that is no proxy's: what stands before it could be made up by that client."""
        found = request.remote or ""
        for address in reversed(_words(request, FOR)):
            try:
                found = str(ipaddress.ip_address(address))
            except ValueError:  # a name, or made up before it came to a proxy that does not look at it
                break
            if not self._believes(address):
                break
        return found


def _words(request: "web.BaseRequest", name: str) -> list[str]:
    """What stands between commas, in all headers of a name."""
    return [word.strip() for value in request.headers.getall(name, ()) for word in value.split(",") if word.strip()]


def has_tls(request: "web.BaseRequest") -> bool:
    """Did it come here by TLS? `request.secure` is how its client has sent it."""
    transport = request.transport
    return transport is not None and transport.get_extra_info("sslcontext") is not None
