"""Which web pages may open a WebSocket.

Browsers connect from any page to any address that they reach, this machine's included, and say whose page it is in
Origin. So a request with an Origin is refused unless it is listed. Most programs send none, but some name where they
connect to (paho-mqtt does), as a page from this very port would; we serve none. That is believed where no foreign page
could say it: a page can lead its own name to 127.0.0.1, so an Origin that agrees with Host is no excuse for a name;
but an address is no name, browsers know themselves where localhost is, and with TLS a foreign name has no certificate
here.
"""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

ANY_ORIGIN: Final = "*"


def may_connect(origin: str, listed: Sequence[str], host: str, *, secure: bool) -> bool:
    """Whether a request with these headers is accepted. `secure`: it came by TLS."""
    if ANY_ORIGIN in listed or origin in listed:
        return True
    if origin != f"{'https' if secure else 'http'}://{host}":
        return False
    return secure or is_no_name(host)


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
