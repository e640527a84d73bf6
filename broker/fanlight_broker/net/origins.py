"""Which web pages may open a WebSocket: those that are listed, and the broker's own.

Browsers connect from any page to any address that they reach, this machine's included, and say whose page it is in
Origin. So a request with an Origin is refused unless it is listed. Most programs send none, but some name where they
connect to (paho-mqtt does), as a page from this very port would, and the broker's HTTP listener serves pages from
another port. Both are believed where no foreign page could say it: a page can lead its own name to 127.0.0.1, so an
Origin that agrees with Host is no excuse for a name; but an address is no name, browsers know themselves where
localhost is, and with TLS a foreign name has no certificate here.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

ANY_ORIGIN: Final = "*"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}  # a browser leaves them out of an origin


NO_PAGES: Final[Mapping[str, int]] = {}


def may_connect(
    origin: str, listed: Sequence[str], host: str, *, secure: bool, pages: Mapping[str, int] = NO_PAGES
) -> bool:
    """Whether a request with these headers is accepted.

    secure  it came by TLS
    pages   where the broker itself serves pages: ports by scheme, "http" and "https"
    """
    if ANY_ORIGIN in listed or origin in listed:
        return True
    scheme = "https" if secure else "http"
    if origin != f"{scheme}://{host}" and not _is_own(origin, scheme, host, pages.get(scheme)):
        return False
    return secure or is_no_name(host)


def _is_own(origin: str, scheme: str, host: str, port: int | None) -> bool:
    """Whether it is the origin of a page that this broker serves, under the name by which the request came."""
    try:
        page, here = urlsplit(origin), urlsplit(f"//{host}")
        return (
            port is not None and page.scheme == scheme and page.hostname is not None and page.hostname == here.hostname
            and (page.port or DEFAULT_PORTS[scheme]) == port and not (page.path or page.query or page.username)
        )  # fmt: skip
    except ValueError:
        return False


def is_no_name(host: str) -> bool:
    """Whether the host of a Host header cannot be pointed to another machine by DNS."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost":
            return True
        ip_address(name)
    except ValueError:
        return False
    return True
