"""The files of the dashboard, as they are served: a fixed table, read once when the first HTTP client comes.

    /                   index.html, for those who accept text/html; for others it is the list of paths (inspection.py)
    /dashboard/<name>   a file of the folder dashboard/
    /dashboard/fanlight/<name>   the client for JavaScript (clients/js/src), which dashboard/fanlight is a link to

A path is looked up in the table and never becomes a file name, so no path leads out of the folder. The files are the
same for everybody and have no secret, so they need no credentials; all that they show they ask the API for, which does.
The policy of the page (CSP) allows what this broker serves and nothing else: no inline script or style, no frame.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
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
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src {connect}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class File(NamedTuple):
    body: bytes
    content_type: str
    etag: str


class DashboardFiles:
    """folder  where the files are; sockets: the ports of the WebSocket listeners that the page may connect to"""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            each.relative_to(folder).as_posix(): _read(each)
            for place in (folder, folder / CLIENT) for each in sorted(place.iterdir()) if each.suffix in TYPES
        }

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
            **headers, "Content-Security-Policy": POLICY.format(connect="'self'"), "Content-Type": file.content_type,
            # Asked for again each time, and answered 304 by its tag: a new release is seen at once.
            "Cache-Control": "no-cache", "ETag": file.etag, "Vary": "Accept",
            "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if request.headers.get("If-None-Match") == file.etag:
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, headers=headers)


def _read(path: Path) -> File:
    body = path.read_bytes()
    return File(body, TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:24]}"')
