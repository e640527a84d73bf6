"""GET /events: what happens, as server-sent events (HTML Standard, 9.2)."""

import asyncio
import json
from collections import Counter
from typing import Any, Final

from aiohttp import web

from fanlight_broker.admin.api.declared import Call, Operation, Parameter
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.event_feed import KINDS, EventFeed, EventListener
from fanlight_broker.admin.gatekeeper import Gatekeeper
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.permissions import Action

CONTENT_TYPE: Final = "text/event-stream"
LISTENERS_MAX: Final = 16
OF_ONE_MAX: Final = 4  # of one caller
SILENT_SECONDS: Final = 15.0  # after which a comment shows that the stream lives
LOOK_SECONDS: Final = 1.0  # between two looks whether the client is still there
WRITTEN: Final = 64  # events in one piece
BEGIN: Final = b"retry: 1000\n\n"  # milliseconds until a browser connects again


class EventOperations:
    """seconds: how long a connection of HTTP lives; headers: of every answer"""

    def __init__(self, feed: EventFeed, seconds: float, headers: dict[str, str], gatekeeper: Gatekeeper) -> None:
        self._feed, self._headers, self._gatekeeper = feed, headers, gatekeeper
        self._seconds = max(1.0, seconds - 1.0)  # it ends before it is ended
        self._listening: Counter[str] = Counter()

    def operations(self) -> tuple[Operation, ...]:
        return (Operation(
            "GET", "/events", "What happens, as server-sent events; Last-Event-ID continues behind one", self.stream,
            None, (
                Parameter("kinds", str, f"only these, with commas between: {', '.join(KINDS)}"),
                Parameter("last_event_id", str, "as the header Last-Event-ID, for who cannot send one", most=100),
                Parameter("seconds", float, "end the stream after so long", least=0.01, most=86_400),
            ), action=Action.ADMIN_READ, content_type=CONTENT_TYPE, tag="events",
        ),)

    async def stream(self, call: Call) -> web.StreamResponse:
        kinds = kinds_of(call["kinds"])
        if len(self._feed) >= LISTENERS_MAX or self._listening[call.caller] >= OF_ONE_MAX:
            raise ApiError(429, "too many listen to events already", limit=OF_ONE_MAX)
        after = call.request.headers.get("Last-Event-ID", call["last_event_id"])
        response = web.StreamResponse(headers={**self._headers, "Content-Type": CONTENT_TYPE})
        listener = self._feed.listen(kinds, after)
        self._listening[call.caller] += 1
        try:
            await response.prepare(call.request)
            if call.request.method != "HEAD":
                await self._write(call, response, listener, min(call["seconds"] or self._seconds, self._seconds))
        except ConnectionError:
            pass  # the client has disconnected
        finally:
            self._feed.leave(listener)
            self._listening[call.caller] -= 1
            if not self._listening[call.caller]:
                del self._listening[call.caller]
        return response

    async def _write(
        self, call: Call, response: web.StreamResponse, listener: EventListener, seconds: float
    ) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        silent_until = clock() + SILENT_SECONDS
        await response.write(BEGIN)
        while not self._feed.ended and (left := end - clock()) > 0:
            try:
                async with asyncio.timeout(min(left, LOOK_SECONDS)):
                    await listener.something.wait()
            except TimeoutError:
                if call.request.transport is None or not self._may_listen(call):  # nobody is there any more
                    return
                if clock() >= silent_until:
                    silent_until = clock() + SILENT_SECONDS
                    await response.write(b":\n\n")
                continue
            if not self._may_listen(call):
                return
            pieces = []
            if listener.lost:
                lost, listener.lost = listener.lost, 0
                pieces.append(piece("lost", {"count": lost}))
            while listener.waiting and len(pieces) < WRITTEN:
                event = listener.waiting.popleft()
                pieces.append(piece(event.kind, event.data, self._feed.id_of(event)))
            if not listener.waiting:
                listener.something.clear()
            await response.write(b"".join(pieces))


    def _may_listen(self, call: Call) -> bool:
        """Still? A reload may have removed its user, or the permission."""
        try:
            self._gatekeeper.permit(call.request, call.identity, Action.ADMIN_READ, quiet=True)
        except NotPermitted:
            return False
        return self._gatekeeper.stands(call.identity)


def kinds_of(asked: str | None) -> frozenset[str]:
    if asked is None:
        return frozenset(KINDS)
    kinds = frozenset(asked.split(","))
    if unknown := sorted(kinds - set(KINDS)):
        raise BadParameter("kinds", f"{unknown[0][:40]!r} is none of {', '.join(KINDS)}")
    return kinds


def piece(kind: str, data: dict[str, Any], id: str | None = None) -> bytes:
    """One event as it is sent. JSON has no line break, so the data is one line."""
    head = "" if id is None else f"id: {id}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode()
