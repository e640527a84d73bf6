"""The broker's HTTP views and actions: GET, POST and JSON, with the standard library."""

import json
from base64 import b64encode
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlunsplit
from urllib.request import BaseHandler, HTTPSHandler, ProxyHandler, build_opener

from .. import reasons, tls
from ..errors import BrokerError, ConnectError, InvalidURL
from ..url import check_credentials, shown, split

TIMEOUT_SECONDS = 5.0
READ_BYTES_MAX = 4_096  # of an answer that is an error
DEFAULT_URL = "http://127.0.0.1:7421"


class Views:
    """`base`: http://[user:password@]host:port, or https. ca, certificate, key: PEM files, for https."""

    def __init__(
        self, base: str, ca: str | None = None, certificate: str | None = None, key: str | None = None
    ) -> None:
        check_credentials(base)
        parts, _ = split(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidURL(f"the HTTP address must look like {DEFAULT_URL}; got {shown(base)!r}")
        host = parts.netloc.rpartition("@")[2]
        self.base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
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

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """The JSON object at `path`. Raises ConnectError, BrokerError."""
        return self._answer(f"{self.base}{path}" + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, document: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The JSON object that is answered to one. Raises ConnectError, BrokerError."""
        return self._answer(self.base + path, json.dumps(document).encode(), timeout)

    def _answer(self, url: str, body: bytes | None = None, timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        try:
            with self._opener.open(url, body, timeout=timeout) as response:
                document = json.load(response)
        except HTTPError as error:
            with error:
                raise BrokerError(_reason(error), code=f"http_{error.code}") from None
        except (URLError, OSError) as error:
            inner = getattr(error, "reason", error)
            reason = reasons.of(inner) if isinstance(inner, BaseException) else inner
            raise ConnectError(
                f"cannot read {url}: {reason}. Is the broker's HTTP listener there? Say where with --http, "
                "or set FANLIGHT_HTTP_URL"
            ) from None
        except HTTPException as error:
            raise BrokerError(
                f"what answers at {url} does not speak HTTP ({type(error).__name__}). The broker's HTTP listener has a "
                "port of its own, by default 7421", code="http",
            ) from None
        except ValueError as error:
            raise BrokerError(f"{url} did not answer with JSON: {error}", code="http") from None
        if not isinstance(document, dict):
            raise BrokerError(f"{url} did not answer with a JSON object", code="http")
        return document


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
        return str(json.loads(body).get("error") or status)
    except (ValueError, AttributeError):
        return status
