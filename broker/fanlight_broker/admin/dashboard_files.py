"""The files of the dashboard, as they are served: a fixed table, read once when the first HTTP client comes.

    /                   index.html, for those who accept text/html; for others it is the list of paths (inspection.py)
    /dashboard/<name>   a file of the folder dashboard/
    /dashboard/fanlight/<name>   the client for JavaScript (clients/js/src), which dashboard/fanlight is a link to

A path is looked up in the table and never becomes a file name, so no path leads out of the folder. The files are the
same for everybody and have no secret, so they need no credentials; all that they show they ask the API for, which does.
The policy of the page (CSP) allows what this broker serves and nothing else: no inline script or style, no frame.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from aiohttp import web

FOLDER: Final = Path(__file__).parent / "dashboard"
TYPES: Final = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}
INDEX: Final = "index.html"
CLIENT: Final = "fanlight"
PREFIX: Final = "/dashboard/"
HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}")
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src {connect}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class File(NamedTuple):
    body: bytes
    content_type: str
    etag: str


class DashboardFiles:
    """sockets  the ports that the page may connect to by WebSocket, by scheme; folder: where the files are"""

    def __init__(self, sockets: Mapping[str, int] = MappingProxyType({}), folder: Path = FOLDER) -> None:
        self._sockets = tuple(f"{scheme}:{port}" for scheme, port in sockets.items())
        self._files = {
            each.relative_to(folder).as_posix(): _read(each)
            for place in (folder, folder / CLIENT) for each in sorted(place.iterdir()) if each.suffix in TYPES
        }
        page = self._files[INDEX]
        self._files[INDEX] = _file(page.body.replace(b"{sockets}", " ".join(self._sockets).encode()), page.content_type)

    def names(self) -> frozenset[str]:
        return frozenset(self._files)

    def find(self, path: str, accept: str) -> File | None:
        """The file at a path of the listener; None: there is none."""
        if path == "/":
            return self._files[INDEX] if "text/html" in accept.lower() else None
        return self._files.get(path.removeprefix(PREFIX)) if path.startswith(PREFIX) else None

    def answer(self, request: web.BaseRequest, headers: Mapping[str, str]) -> web.Response | None:
        """The answer to a request for a file; None: it is for something else. headers: those of every answer."""
        file = self.find(request.path, request.headers.get("Accept", ""))
        if file is None or request.method not in ("GET", "HEAD"):
            return None
        headers = {
            **headers, "Content-Type": file.content_type,
            "Content-Security-Policy": POLICY.format(connect=self._connect(request.host)),
            # Asked for again each time, and answered 304 by its tag: a new release is seen at once.
            "Cache-Control": "no-cache", "ETag": file.etag, "Vary": "Accept",
            "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if request.headers.get("If-None-Match") == file.etag:
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, headers=headers)


    def _connect(self, host: str) -> str:
        """What the page may connect to: the HTTP listener, and this broker's ports for it. A literal IPv6 address
        cannot be said in a policy, so a page from there has no live tail.
        """
        name = host.rpartition(":")[0] or host
        if not HOST.fullmatch(name):
            return "'self'"
        return " ".join(("'self'", *(each.replace(":", f"://{name}:") for each in self._sockets)))


def _read(path: Path) -> File:
    return _file(path.read_bytes(), TYPES[path.suffix])


def _file(body: bytes, content_type: str) -> File:
    return File(body, content_type, f'"{hashlib.sha256(body).hexdigest()[:24]}"')
