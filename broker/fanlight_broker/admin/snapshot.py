"""All subscriptions as JSON lines, however many: /subscriptions?format=jsonl.

A head, a line for each subscription, and an end, which shows a reader that the snapshot is complete. docs/snapshots.md
has the format. A snapshot is made in slices; concurrent snapshots take turns, and each slice is followed by a rest of
three times its processor time, so that they use at most a quarter of the loop. A slice is made when the reader has read
the one before.

Subscriptions are listed by ascending id, which does not change, so one that exists from beginning to end is listed
exactly once, whatever else begins or ends. A reader that is cut off (http_connection_seconds_max) continues after the
last id.
"""

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from fanlight_broker.admin.slices import REST
from fanlight_broker.core.ports import Inspection

VERSION: Final = 2  # with selectors: a reader that does not know them would find too many receivers
CONTENT_TYPE: Final = "application/jsonl"
PLACES: Final = 200  # ids in a slice: about 2 ms and 30 kB, if none is free


class Snapshots:
    """The snapshots of one broker; each contains its version."""

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
            pass  # the client has disconnected
        except Exception:
            if request.transport is not None:
                request.transport.abort()  # an incomplete answer must not look complete
            raise
        return response

    async def _write(self, response: web.StreamResponse, place: int) -> None:
        taken = datetime.now(UTC).isoformat(timespec="seconds")
        await response.write(_lines([{"snapshot": VERSION, "taken": taken, "broker": self._version, "from": place}]))
        following: int | None = place
        listed = 0
        while following is not None:
            async with self._turns:
                began = time.thread_time()
                rows, following = self._inspection.snapshot(place=following, places=PLACES)
                lines = _lines(rows)
                await asyncio.sleep(REST * (time.thread_time() - began))
            if rows:
                await response.write(lines)
            listed += len(rows)
        await response.write(_lines([{"end": listed}]))


def _lines(rows: Any) -> bytes:
    # ASCII only, as all of our JSON: filters may hold what no UTF-8 can (lone surrogates).
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
