"""The broker's HTTP views and actions: JSON, with the standard library.

Several servers stand in one URL, as in http://user:password@one:7421,two:7421. They are tried in turn; the one that
answers is asked from then on. What changes something goes to another one only if the connection could not be made.
"""

import json
import os
import socket
from base64 import b64encode
from http.client import HTTPException, HTTPResponse
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlunsplit
from urllib.request import BaseHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from .. import reasons, tls
from ..errors import BrokerError, ConnectError, InvalidURL
from ..url import check_credentials, each_server, shown, split

TIMEOUT_SECONDS = 5.0
READ_BYTES_MAX = 4_096  # of an answer that is an error
DEFAULT_URL = "http://127.0.0.1:7421"


class Views:
    """`base`: http://[user:password@]host:port[,host:port...], or https. ca, certificate, key: PEM files, for https.

    Without a user in `base`, a token (JWT) in the environment variable FANLIGHT_TOKEN is sent.
    """

    def __init__(
        self, base: str, ca: str | None = None, certificate: str | None = None, key: str | None = None
    ) -> None:
        check_credentials(base)
        urls = each_server(base)
        parts, _ = split(urls[0])
        if parts.scheme not in ("http", "https") or not all(split(each)[0].hostname for each in urls):
            raise InvalidURL(f"the HTTP address must look like {DEFAULT_URL}; got {shown(base)!r}")
        hosts = [split(each)[0].netloc.rpartition("@")[2] for each in urls]
        self.bases = [urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")) for host in hosts]
        # No proxy: the broker's views are nearby, and proxies from the environment are for elsewhere.
        handlers: list[BaseHandler] = [ProxyHandler({})]
        if parts.scheme == "https":
            handlers.append(HTTPSHandler(context=tls.context(ca, certificate, key)))
        elif ca or certificate or key:
            raise InvalidURL(f"--ca, --cert and --key are for addresses that begin with https://; got {shown(base)!r}")
        self._opener = build_opener(*handlers)
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._opener.addheaders.append(("Authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        elif token := os.environ.get("FANLIGHT_TOKEN"):
            self._opener.addheaders.append(("Authorization", f"Bearer {token}"))

    @property
    def base(self) -> str:
        """The server that is asked."""
        return self.bases[0]

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """The JSON object at `path`. Raises ConnectError, BrokerError."""
        return self._answer("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, document: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The JSON object that is answered to one. Raises ConnectError, BrokerError."""
        return self._answer("POST", path, json.dumps(document).encode(), timeout)

    def send(self, method: str, path: str, document: dict[str, Any] | None, timeout: float) -> dict[str, Any]:
        """The JSON object that is answered. Raises ConnectError, BrokerError."""
        return self._answer(method, path, None if document is None else json.dumps(document).encode(), timeout)

    def stream(self, method: str, path: str, timeout: float, headers: dict[str, str] | None = None) -> HTTPResponse:
        """An answer of any length, to be read and closed; the timeout is for each read. Raises as `get`."""
        return self._opened(method, path, None, timeout, headers or {})

    def _answer(
        self, method: str, path: str, body: bytes | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> dict[str, Any]:
        response = self._opened(method, path, body, timeout, {})
        url = self.base + path
        try:
            with response:
                document = json.load(response)
        except OSError as error:
            raise ConnectError(f"the answer of {url} was cut off: {reasons.of(error)}") from None
        except HTTPException as error:
            raise ConnectError(f"the answer of {url} was cut off: {type(error).__name__}") from None
        except ValueError as error:
            raise BrokerError(f"{url} did not answer with JSON: {error}", code="http") from None
        if not isinstance(document, dict):
            raise BrokerError(f"{url} did not answer with a JSON object", code="http")
        return document

    def _opened(
        self, method: str, path: str, body: bytes | None, timeout: float, headers: dict[str, str]
    ) -> HTTPResponse:
        left = len(self.bases)
        while True:
            left -= 1
            try:
                return self._open(method, self.base + path, body, timeout, headers)
            except ConnectError as error:
                if not left or (method != "GET" and error.details["reached"]):
                    raise
                self.bases.append(self.bases.pop(0))

    def _open(self, method: str, url: str, body: bytes | None, timeout: float, headers: dict[str, str]) -> HTTPResponse:
        kind = {} if body is None else {"Content-Type": "application/json"}
        request = Request(url, body, {**kind, **headers}, method=method)
        try:
            return cast(HTTPResponse, self._opener.open(request, timeout=timeout))
        except HTTPError as error:
            with error:
                raise BrokerError(_reason(error), code=f"http_{error.code}") from None
        except (URLError, OSError) as error:
            inner = getattr(error, "reason", error)
            reason = reasons.of(inner) if isinstance(inner, BaseException) else inner
            raise ConnectError(
                f"cannot read {url}: {reason}. Is the broker's HTTP listener there? Say where with --http, "
                "or set FANLIGHT_HTTP_URL", details={"reached": not _is_unreachable(inner)},
            ) from None
        except HTTPException as error:
            raise BrokerError(
                f"what answers at {url} does not speak HTTP ({type(error).__name__}). The broker's HTTP listener has a "
                "port of its own, by default 7421", code="http",
            ) from None


def _is_unreachable(reason: object) -> bool:
    """No byte of the request can have arrived."""
    return isinstance(reason, ConnectionRefusedError | socket.gaierror)


def _reason(error: HTTPError) -> str:
    """What the broker says, where it does: as JSON, or as a line of text on a port that is not for HTTP."""
    status = f"HTTP {error.code} {error.reason}"
    try:
        body = error.read(READ_BYTES_MAX)
    except (HTTPException, OSError):
        return status
    if error.headers.get_content_type() == "text/plain":
        line = body.decode(errors="replace").partition("\n")[0]
        return f"{status}: {line}" if line else status
    try:
        document = json.loads(body)
        return str(document.get("error") or document.get("detail") or status)
    except (ValueError, AttributeError):
        return status
