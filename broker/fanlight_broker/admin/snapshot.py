"""All subscriptions as JSON lines, however many: /subscriptions?format=jsonl.

A head, a line for each subscription, and an end, by which a reader sees that it has all. docs/snapshots.md has the
format. It is made in slices, of which all that are under way take turns, each followed by a rest of three times what
it took: a quarter of the loop at most goes into them. What a reader does not read is not made.

Subscriptions come by ascending id, which they keep, so one that is there from beginning to end is told exactly once,
whatever comes and goes meanwhile. Who is cut off (http_connection_seconds_max) goes on behind the last id.
"""

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from fanlight_broker.core.ports import Inspection

VERSION: Final = 1
CONTENT_TYPE: Final = "application/jsonl"
PLACES: Final = 200  # ids looked at in a slice: about 2 ms and 30 kB, where none is free
REST: Final = 3  # times as long as a slice took the processor


class Snapshots:
    """Those of one broker, whose version each tells."""

    def __init__(self, inspection: Inspection, version: str) -> None:
        self._inspection = inspection
        self._version = version
        self._turns = asyncio.Lock()

    async def answer(self, request: web.BaseRequest, place: int, headers: dict[str, str]) -> web.StreamResponse:
        """Answer with the subscriptions whose ids are `place` or more."""
        response = web.StreamResponse(headers={**headers, "Content-Type": CONTENT_TYPE})
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        try:
            await self._write(response, place)
        except ConnectionError:
            pass  # whoever asked has gone
        except Exception:
            if request.transport is not None:
                request.transport.abort()  # what has been sent must not look whole
            raise
        return response

    async def _write(self, response: web.StreamResponse, place: int) -> None:
        taken = datetime.now(UTC).isoformat(timespec="seconds")
        await response.write(_lines([{"snapshot": VERSION, "taken": taken, "broker": self._version, "from": place}]))
        following: int | None = place
        told = 0
        while following is not None:
            async with self._turns:
                began = time.thread_time()
                rows, following = self._inspection.snapshot(place=following, places=PLACES)
                lines = _lines(rows)
                await asyncio.sleep(REST * (time.thread_time() - began))
            if rows:
                await response.write(lines)
            told += len(rows)
        await response.write(_lines([{"end": told}]))


def _lines(rows: Any) -> bytes:
    # ASCII only, as all of our JSON: filters may hold what no UTF-8 can (lone surrogates).
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
