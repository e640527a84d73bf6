"""One HTTP request of the broker's listener, from its pace to its answer. Imported when the first client comes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from aiohttp import web

from fanlight_broker import event_log
from fanlight_broker.admin.api.api import Api
from fanlight_broker.admin.api.dispatch import BASE
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.dashboard_files import DashboardFiles
from fanlight_broker.admin.forwarded import Forwarded, has_tls
from fanlight_broker.admin.gatekeeper import Gatekeeper
from fanlight_broker.admin.inspection import METRICS, PATHS, InspectionApi, place_asked
from fanlight_broker.admin.listener import SERVER, Pace
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.metrics import Exposition
from fanlight_broker.admin.slices import Slices
from fanlight_broker.admin.snapshot import Snapshots
from fanlight_broker.admin.view import BadQuery, PartView
from fanlight_broker.core.errors import AuthenticationFailed, FanlightError, NotPermitted
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.ports import Inspection

READY: Final = "/readyz"
OPEN: Final = frozenset({"/healthz", READY})
ACTIONS: Final[Mapping[str, str]] = {  # with what is answered where there is nothing to be done
    "/permissions/reload": "no permissions are set: see the setting permissions",
    "/definitions/import": "AMQP is turned off: see the setting amqp",
    "/definitions/delete": "AMQP is turned off: see the setting amqp",
}
WITH_BODY: Final = frozenset({"/definitions/import", "/definitions/delete"})  # the others look at none
BODY_BYTES_MAX: Final = 512 * 1024  # some 5 ms of the loop, if it is JSON
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": SERVER}
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="fanlight", charset="UTF-8"'}

_log = event_log.get("http")

Operate = Callable[[Slices, Sequence[MetricSource]], Operated]


class Requests:
    """Answers the requests of one listener.

    local    whether its port, or with True its port for TLS, is on loopback addresses only
    actions  by their paths: what a POST does, which returns what is answered, or raises FanlightError
    views    by their paths: what parts show of themselves
    dashboard  what browsers get at /
    seconds  that a connection lives
    believes  whether an address is that of a proxy that says who clients are; None: there are none
    operate  makes what the API works on, given what shares the loop; None: there is no API
    """

    def __init__(
        self, inspection: Inspection, sources: Sequence[MetricSource], gatekeeper: Gatekeeper, *, version: str,
        per_second_max: float, local: Callable[[bool], bool],
        actions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        views: Mapping[str, PartView] = MappingProxyType({}), dashboard: DashboardFiles | None = None,
        operate: Operate | None = None, login_required: Callable[[], bool] = lambda: False, seconds: float = 60.0,
        believes: Callable[[str], bool] | None = None,
    ) -> None:
        self.count = 0
        self._gatekeeper = gatekeeper
        self._api = InspectionApi(inspection, sources, version, views)
        self._snapshots = Snapshots(inspection, version)
        self._slices = Slices()
        self._exposition = Exposition(sources, version)
        self._pace = Pace(per_second_max)
        # Separate, so that a flood of other requests cannot make a supervisor think the broker dead.
        self._health_pace = Pace(per_second_max)
        self._local = local
        self._forwarded = Forwarded(believes) if believes is not None else None
        self._actions = actions
        self._files = dashboard
        self._http_api: Api | None = None
        if operate is not None:
            self._http_api = Api(
                operate(self._slices, sources), gatekeeper, local=local, headers=_HEADERS,
                login_required=login_required, seconds=seconds,
            )

    @property
    def longest_slice(self) -> float:
        """CPU seconds of the longest piece of an answer that is made in pieces."""
        return self._slices.longest

    def stop(self) -> None:
        """End what goes on after an answer."""
        if self._http_api is not None:
            self._http_api.stop()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer, whatever fails."""
        self.count += 1
        if self._forwarded is not None:
            request = self._forwarded.seen(request)
        pace = self._health_pace if request.path in OPEN else self._pace
        if (seconds := pace.wait(asyncio.get_running_loop().time())) > 0:
            await asyncio.sleep(seconds)
        if self._http_api is not None and (request.path == BASE or request.path.startswith(f"{BASE}/")):
            return await self._http_api.handle(request)
        try:
            return await self._answer(request)
        except AuthenticationFailed as error:
            return _json(401, {"error": str(error)}, _CHALLENGE)
        except NotPermitted as error:
            return _json(403, {"error": str(error)})
        except BadQuery as error:
            return _json(400, {"error": str(error)})
        except ConnectionError:  # the client has gone; aiohttp ends the connection
            raise
        except Exception:
            _log.exception("request_failed", path=request.path)
            return _json(500, {"error": "an error in the broker; its log has the traceback"})

    async def _admit(self, request: web.BaseRequest) -> bool:
        """Whether the answer may have details. Raises AuthenticationFailed, NotPermitted."""
        local = self._local(has_tls(request))
        if request.path == METRICS:
            await self._gatekeeper.check_metrics(request, local=local)
        elif request.path not in OPEN:
            action = Action.ADMIN_WRITE if request.path in ACTIONS else Action.ADMIN_READ
            await self._gatekeeper.check(request, local=local, action=action)
        elif request.path == READY:
            try:
                await self._gatekeeper.check(request, local=local, quiet=True)
            except (AuthenticationFailed, NotPermitted):
                return False
        return True

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._files is not None and (file := self._files.answer(request, _HEADERS)) is not None:
            return file
        details = await self._admit(request)
        if request.path in ACTIONS:
            return await self._act(request)
        path = PATHS.get(request.path)
        if path is None:
            return _json(404, {"error": f"no such path; there are: {', '.join(PATHS)}"})
        if request.method not in ("GET", "HEAD"):
            text = f"{request.path} can be read only: GET"
            return _json(405, {"error": text}, {"Allow": "GET, HEAD"})
        query = request.query
        if unknown := sorted(set(query) - set(path.parameters)):
            known = ", ".join(path.parameters) or "none"
            raise BadQuery(f"unknown parameter {unknown[0][:40]!r}; {request.path} takes: {known}")
        if request.path == METRICS:
            body, content_type = self._exposition.render(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={**_HEADERS, "Content-Type": content_type})
        if path.streams and (place := place_asked(query)) is not None:
            return await self._snapshots.answer(request, place, _HEADERS)
        if request.path == READY:
            return _json(*self._api.readyz(query, details=details))
        answer = path.answer(self._api, query)
        if isinstance(answer, Generator):
            return _json(*await self._slices.made(answer))
        return _json(*(await answer if isinstance(answer, Awaitable) else answer))

    async def _act(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return _json(405, {"error": f"{request.path} does something: POST"}, {"Allow": "POST"})
        if "Origin" in request.headers:  # a page of any site may send one, with the credentials that a browser keeps
            raise NotPermitted("scripts of web pages may not do this")
        action = self._actions.get(request.path)
        if action is None:
            return _json(404, {"error": f"{request.path}: {ACTIONS[request.path]}"})
        try:
            done = action(await _body(request)) if request.path in WITH_BODY else action()
            return _json(200, dict(await (self._slices.made(done) if isinstance(done, Generator) else done)))
        except TooLong as error:
            return _json(413, {"error": str(error)})
        except FanlightError as error:
            return _json(409, {"error": error.text, **error.details})


class TooLong(Exception):
    """A body with more than BODY_BYTES_MAX."""


async def _body(request: web.BaseRequest) -> bytes:
    """Raises TooLong."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise TooLong(f"a body of more than {BODY_BYTES_MAX} bytes; send less at once")
    return bytes(body)


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    # ASCII only: topics may hold what no UTF-8 can (lone surrogates).
    text = json.dumps(value, default=str) + "\n"
    return web.Response(
        text=text, status=status, content_type="application/json", headers={**_HEADERS, **(headers or {})}
    )
