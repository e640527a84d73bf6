"""A listener to /api/v1/events, for tests."""

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.system.http_api import BASE, ApiClient
from tests.system.wire import WAIT_SECONDS


class Received(NamedTuple):
    id: str | None
    kind: str
    data: dict[str, Any]


class EventStream:
    """Begins to listen at once. after: Last-Event-ID"""

    def __init__(self, api: ApiClient, query: str = "", after: str | None = None) -> None:
        where = urlsplit(api.url)
        assert where.hostname is not None
        self._connection = http.client.HTTPConnection(where.hostname, where.port, timeout=WAIT_SECONDS)
        headers = {**api.headers, **({"Last-Event-ID": after} if after is not None else {})}
        self._connection.request("GET", f"{BASE}/events{query}", headers=headers)
        self.answer = self._connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.headers["Content-Type"] == "text/event-stream"
        assert self.answer.readline() == b"retry: 1000\n"  # it listens
        self.answer.readline()

    def __iter__(self) -> Iterator[Received]:
        """Until it ends."""
        fields: dict[str, str] = {}
        while line := self.answer.readline().decode().rstrip("\n") or "\n":
            if line == "\n":
                if self.answer.isclosed():
                    return
                if "data" in fields:
                    yield Received(fields.get("id"), fields["event"], json.loads(fields["data"]))
                fields = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value

    def next(self) -> Received:
        return next(iter(self))

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "EventStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
