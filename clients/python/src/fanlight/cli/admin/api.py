"""The HTTP API of the broker (docs/http-api.md), for the command line: paths, pages, events."""

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from ...errors import BrokerError
from ..http import Views

ROOT = "/api/v1"
TIMEOUT_SECONDS = 120.0
PAGE_ROWS = 1_000
IDLE_SECONDS = 60.0  # of a stream of events, which has a comment each 15
COPY_SECONDS = 3_600.0  # until a copy of the store begins to come

Query = dict[str, Any]


class AdminApi:
    """Raises ConnectError and BrokerError throughout."""

    def __init__(self, views: Views) -> None:
        self.views = views

    def get(self, *words: str | int, **query: Any) -> dict[str, Any]:
        return self.call("GET", *words, **query)

    def call(self, method: str, *words: str | int, body: dict[str, Any] | None = None, **query: Any) -> dict[str, Any]:
        """words: of the path, as they are; None in the query is left out."""
        if body is None and method in ("POST", "PUT"):
            body = {}
        try:
            return self.views.send(method, path_of(words, query), body, TIMEOUT_SECONDS)
        except BrokerError as error:
            if error.code == "http_404" and "no such path" in str(error):
                raise BrokerError(f"this broker has no {method} {ROOT}/{words[0]}: it is an older one",
                                  code=error.code) from None
            raise

    def rows(self, path: str, most: int | None, paged: bool, key: str, query: Query) -> Iterator[dict[str, Any]]:
        """The rows of a list, page by page, `most` at most."""
        words = path.strip("/").split("/")
        if not paged:
            yield from self.get(*words, **query)[key][:most]
            return
        cursor: str | None = None
        left = most
        while left is None or left > 0:
            page = self.get(*words, limit=min(left or PAGE_ROWS, PAGE_ROWS), cursor=cursor, **query)
            yield from page[key]
            cursor = page["next"]
            if cursor is None:
                if not page.get("complete", True):
                    print(f"fanlight: {not_all(page)}", file=sys.stderr)
                return
            left = None if left is None else left - len(page[key])

    def events(self, kinds: str | None) -> Iterator[dict[str, Any]]:
        """What happens from now on, without an end: a stream that ends is asked for again, behind its last event."""
        last: str | None = None
        while True:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
            path = path_of(("events",), {"kinds": kinds})
            with self.views.stream("GET", path, IDLE_SECONDS, headers) as stream:
                kind, data = "message", ""
                for raw in stream:
                    name, _, value = raw.decode(errors="replace").rstrip("\r\n").partition(": ")
                    if name == "id":
                        last = value
                    elif name == "event":
                        kind = value
                    elif name == "data":
                        data += value
                    elif not name and data:
                        yield {"kind": kind, **json.loads(data)}
                        kind, data = "message", ""


def not_all(page: dict[str, Any]) -> str:
    """That a list is not complete, and what to do."""
    if "looked_at" in page and page["looked_at"] < page["of"]:
        return f"looked at {page['looked_at']:,} of {page['of']:,} so far; the broker goes on, ask again"
    return "these are not all: the list takes too long; ask for fewer, by KEY=VALUE"


def path_of(words: tuple[str | int, ...], query: Query) -> str:
    """A path of the API; each word is one segment of it, whatever is in it."""
    given = {name: _written(value) for name, value in query.items() if value is not None}
    path = "/".join([ROOT, *(quote(str(word), safe="") for word in words)])
    return path + (f"?{urlencode(given)}" if given else "")


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
