"""One request of the API, from its path to its answer.

    operation by path --> who is it, may he --> a write: whence, CSRF token --> parameters, body --> handler --> answer

A write leaves a line in the audit log, whatever comes of it. What fails is a problem (problems.py).
"""

import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from fanlight_broker import audit, event_log
from fanlight_broker.admin.api import problems
from fanlight_broker.admin.api.declared import Call, Operation, Reply, read_body, read_parameters
from fanlight_broker.admin.api.logins import COOKIE, CSRF_HEADER, Login, Logins, is_token
from fanlight_broker.admin.api.problems import ApiError, problem_of
from fanlight_broker.admin.api.routing import MethodNotAllowed, Routing
from fanlight_broker.admin.forwarded import has_tls
from fanlight_broker.admin.gatekeeper import Gatekeeper
from fanlight_broker.admin.slices import Slices
from fanlight_broker.core.errors import AuthenticationFailed, FanlightError, NotPermitted
from fanlight_broker.core.identity import ANONYMOUS, Identity

BASE: Final = "/api/v1"
BODY_BYTES_MAX: Final = 512 * 1024  # 9 to 13 ms of the loop, if it is JSON
OPEN_BODY_BYTES_MAX: Final = 16 * 1024  # of what needs no permission, so that anybody may send it
UNDER_WAY_MAX: Final = 8  # requests of one caller; a browser has six connections
RETRY_SECONDS: Final = 1
NEVER_NOTED: Final = frozenset({"password", "payload", "payload_base64", "json", "headers", "configuration", "files"})
ROWS_AT_ONCE: Final = 32  # of a list, 5 µs each as JSON
NOTED_MAX: Final = 1_000  # characters of what was asked
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="fanlight"'}  # for Basic, a browser would ask for a password

_log: Final = event_log.get("http")


class Dispatch:
    """local: whether a port, or with True the port for TLS, is on loopback addresses only; headers: of every answer"""

    def __init__(
        self, operations: Sequence[Operation], gatekeeper: Gatekeeper, logins: Logins, slices: Slices,
        local: Callable[[bool], bool], headers: dict[str, str],
    ) -> None:
        self.routing = Routing(operations)
        self.logins = logins
        self._gatekeeper, self._slices, self._local, self._headers = gatekeeper, slices, local, headers
        self._under_way: Counter[str] = Counter()  # by caller

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer, whatever fails."""
        try:
            return await self._answer(request)
        except ApiError as problem:
            return self._problem(problem)
        except FanlightError as error:
            return self._problem(problem_of(error))
        except ConnectionError:  # the client has gone; aiohttp ends the connection
            raise
        except Exception:
            _log.exception("request_failed", path=request.path)
            return self._problem(ApiError(500, "an error in the broker; its log has the traceback"))

    def _problem(self, problem: ApiError) -> web.Response:
        headers = dict(_CHALLENGE) if problem.status == 401 else {}
        if problem.status in (429, 503):
            headers["Retry-After"] = str(RETRY_SECONDS)
        if isinstance(problem, MethodNotAllowed):
            headers["Allow"] = ", ".join(problem.methods)
        return self._json(problem.status, problem.body(), problems.CONTENT_TYPE, headers)

    def _json(
        self, status: int, value: Any, content_type: str = "application/json", headers: dict[str, str] | None = None
    ) -> web.Response:
        return self._text(status, dumped(value), content_type, headers)

    def _text(
        self, status: int, text: str, content_type: str = "application/json", headers: dict[str, str] | None = None
    ) -> web.Response:
        return web.Response(
            text=text + "\n", status=status, content_type=content_type, headers={**self._headers, **(headers or {})}
        )

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        operation, named = self.routing.find(request.method, request.rel_url.raw_path.removeprefix(BASE))
        changing = operation.method != "GET"
        if changing:
            check_origin(request)
        identity, login = await self._identity(request, operation)
        if operation.action is not None:
            self._gatekeeper.permit(request, identity, operation.action)
        if changing and login is not None and not is_token(login, request.headers.get(CSRF_HEADER, "")):
            raise NotPermitted(f"a change by cookie needs the header {CSRF_HEADER} (GET {BASE}/login has its value)")
        caller = identity.user or request.remote or ""
        if self._under_way[caller] >= UNDER_WAY_MAX:
            raise ApiError(429, "too many of your requests are under way; wait for some", limit=UNDER_WAY_MAX)
        self._under_way[caller] += 1
        try:
            parameters = read_parameters(operation, named, request.query)
            body = {}
            if operation.body is not None:
                most = BODY_BYTES_MAX if operation.action is not None else OPEN_BODY_BYTES_MAX
                body = read_body(operation, await _json_of(request, most))
            call = Call(parameters, body, identity, request, caller)
            return await self._noted(operation, call) if operation.writes else await self._done(operation, call)
        finally:
            self._under_way[caller] -= 1
            if not self._under_way[caller]:
                del self._under_way[caller]

    async def _identity(self, request: web.BaseRequest, operation: Operation) -> tuple[Identity, Login | None]:
        """Who it is, and the login if it is by one. Raises AuthenticationFailed, NotPermitted."""
        if "Authorization" not in request.headers and (cookie := request.cookies.get(COOKIE)) is not None:
            login = self.logins.find(cookie)
            if login is not None:
                return login.identity, login
        if operation.action is None and self._gatekeeper.is_nobody(request):
            return ANONYMOUS, None  # may ask for a login, and for what there is; it has not tried to be somebody
        try:
            return await self._gatekeeper.identity(request, local=self._local(has_tls(request))), None
        except AuthenticationFailed:
            if operation.action is None and "Authorization" not in request.headers:
                return ANONYMOUS, None  # whose certificate lets nobody in
            raise

    async def _noted(self, operation: Operation, call: Call) -> web.StreamResponse:
        """Do what changes something, with a line in the audit log."""
        status, result = 500, ""
        try:
            answer = await self._done(operation, call)
            status = answer.status
            return answer
        except ApiError as problem:
            status, result = problem.status, problem.detail
            raise
        except FanlightError as error:
            status, result = problem_of(error).status, error.text
            raise
        finally:
            asked = {**call.parameters, **call.body}
            audit.note(
                "admin", user=call.identity.user, address=call.request.remote or "", protocol="http",
                action=f"{operation.method} {BASE}{operation.path}", status=status,
                asked={name: _shown(value) for name, value in asked.items()
                       if value is not None and name not in NEVER_NOTED},
                **({"result": result} if result else {}), **call.noted,
            )

    async def _done(self, operation: Operation, call: Call) -> web.StreamResponse:
        made = operation.handler(call)
        if isinstance(made, Generator):
            made = await self._slices.made(made)
        elif isinstance(made, Awaitable) or inspect.isawaitable(made):
            made = await made
        if isinstance(made, web.StreamResponse):
            return made
        if isinstance(made, Reply):
            return self._json(made.status, made.value, headers=dict(made.headers))
        assert isinstance(made, dict)
        return self._text(operation.status, await self._slices.made(dumped_in_steps(made)))


def dumped(value: Any) -> str:
    # ASCII only: topics may hold what no UTF-8 can (lone surrogates).
    return json.dumps(value, default=str, allow_nan=False)


def dumped_in_steps(value: Mapping[str, Any]) -> Generator[None, None, str]:
    """An object whose values may be long lists, as JSON."""
    parts = []
    for name, each in value.items():
        if not isinstance(each, list):
            parts.append(f"{dumped(name)}: {dumped(each)}")
            continue
        rows = []
        for at in range(0, len(each), ROWS_AT_ONCE):
            rows += [dumped(row) for row in each[at : at + ROWS_AT_ONCE]]
            yield
        parts.append(f"{dumped(name)}: [{', '.join(rows)}]")
    return f"{{{', '.join(parts)}}}"


def check_origin(request: web.BaseRequest) -> None:
    """What changes something may come from a program, or from a page of the broker's own. Raises NotPermitted.

    A browser says where a page is from that sends anything but GET, and lets no page of another site hide it.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() != f"{request.scheme}://{request.host}".lower():
        raise NotPermitted("scripts of other web pages may not do this")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise NotPermitted("scripts of other web pages may not do this")


async def _json_of(request: web.BaseRequest, most: int) -> Any:
    """The body, of so many bytes at most. Raises ApiError."""
    if request.content_type != "application/json":
        raise ApiError(415, "send the body as application/json")
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > most:
            raise ApiError(413, f"a body of more than {most} bytes", limit=most)
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is no JSON: {str(error)[:200]}", parameter="body") from None


def _shown(value: Any) -> Any:
    """What was asked, for the audit log."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        return value[:NOTED_MAX]
    return value if isinstance(value, int | float) else str(value)[:NOTED_MAX]


