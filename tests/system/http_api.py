"""A client of /api/v1, for tests: JSON in and out, cookies and headers as it is told."""

import base64
import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.system.wire import WAIT_SECONDS

BASE = "/api/v1"


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    octets: bytes

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.octets)
        return found


@dataclass
class ApiClient:
    """headers: of each request."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """path: below /api/v1. headers: with _ in place of -"""
        where = urlsplit(self.url)
        assert where.hostname is not None
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=WAIT_SECONDS)
        try:
            sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            if data is not None:
                sent.setdefault("Content-Type", "application/json")
            connection.request(method, BASE + path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """The body of an answer that must be 200."""
        answer = self(method, path, body, **headers)
        assert answer.status == 200, f"{method} {path}: {answer.status} {answer.octets!r}"
        return answer.body

    def refused(self, status: int, method: str, path: str, body: Any = None, **headers: str) -> str:
        """The detail of a problem."""
        answer = self(method, path, body, **headers)
        assert answer.status == status, f"{method} {path}: {answer.status} {answer.octets!r}"
        assert answer.headers.get_content_type() == "application/problem+json"
        assert answer.body["status"] == status
        assert answer.body["title"]
        return str(answer.body["detail"])

    def until(self, status: int, path: str) -> Answer:
        """Ask until the answer is this."""
        end = time.monotonic() + WAIT_SECONDS
        while (answer := self("GET", path)).status != status:
            assert time.monotonic() < end, f"GET {path} never came to {status}: {answer.status} {answer.octets!r}"
            time.sleep(0.05)
        return answer

    def items(self, path: str) -> list[dict[str, Any]]:
        """All rows of a list, page by page."""
        found: list[dict[str, Any]] = []
        page = self.ok("GET", path)
        while True:
            found += page["items"]
            if page["next"] is None:
                return found
            page = self.ok("GET", f"{path}{'&' if '?' in path else '?'}cursor={page['next']}")

    def as_user(self, user: str, password: str) -> "ApiClient":
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        return ApiClient(self.url, {**self.headers, "Authorization": f"Basic {token}"})
