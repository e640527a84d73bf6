"""How the broker runs: its settings, what its log says, reloading, draining, and a copy of its store."""

from collections.abc import Awaitable, Generator, Mapping
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.backup import BackupOperations
from fanlight_broker.admin.api.declared import (
    MAP,
    NUMBER,
    TEXT,
    WHOLE,
    Call,
    Operation,
    Parameter,
    Reply,
    items,
    maybe,
    shape,
)
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError
from fanlight_broker.admin.view import OFFSET_MAX
from fanlight_broker.core.permissions import Action

LEVELS: Final = ("debug", "info", "warning", "error")
LEVEL: Final = shape(level=TEXT)
DRAIN: Final = shape(state=TEXT, connections=WHOLE, deadline_seconds=maybe(NUMBER), stored_messages=WHOLE)
DRAIN_SECONDS_MAX: Final = 86_400


class RunningOperations:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        self._backup = BackupOperations(operated)

    def operations(self) -> tuple[Operation, ...]:
        make = partial(Operation, tag="running")
        read, write = partial(make, "GET", action=Action.ADMIN_READ), partial(make, action=Action.ADMIN_WRITE)
        return (
            read("/settings", "Settings: value, where it came from, what waits for a restart", self.settings,
                 shape(settings=items(MAP))),
            read("/history", "The last hour of what Overview draws, a sample each 5 s", self.history, MAP, (
                Parameter("after", int, "`next` of an earlier answer: only newer samples", 0, least=0, most=OFFSET_MAX),
            )),
            write("POST", "/reload", "Read settings and all files again, as SIGHUP", self.reload,
                  shape(applied=items(TEXT), needs_restart=items(TEXT)), conflicts=True),
            read("/log-level", "What the log has", self.level, LEVEL),
            write("PUT", "/log-level", "Another log level, until the next reload", self.set_level, LEVEL, body=(
                Parameter("level", str, "the least that is logged", required=True, choices=LEVELS),
            )),
            read("/drain", "Whether the broker is being drained, and who is still there", self.drain_state, DRAIN),
            write("POST", "/drain", "Let nobody in, and tell everybody to go elsewhere", self.drain, DRAIN, body=(
                Parameter("seconds", float, "that clients have to read what they are still to get", 30.0, least=0,
                          most=DRAIN_SECONDS_MAX),
                Parameter("stop", bool, "end the process when the last client has gone", default=False),
            ), status=202),
            write("DELETE", "/drain", "Let clients in again", self.end_drain, DRAIN),
            *self._backup.operations(),
        )

    async def _view(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        view = self._operated.views.get(name)
        if view is None:
            raise ApiError(404, "it is not there")
        answer = view(query)
        assert not isinstance(answer, Generator)
        _, found = await answer if isinstance(answer, Awaitable) else answer
        return found

    async def settings(self, call: Call) -> dict[str, Any]:
        return await self._view("/settings", {})

    async def history(self, call: Call) -> dict[str, Any]:
        return await self._view("/history", {"after": str(call["after"])})

    async def reload(self, call: Call) -> Mapping[str, Any]:
        done: Mapping[str, Any] = await self._operated.action("reload", "nothing here can be reloaded")()
        if "problems" in done:
            raise ApiError(409, "; ".join(done["problems"]), problems=done["problems"])
        return done

    def level(self, call: Call) -> dict[str, Any]:
        return {"level": self._operated.action("log_level", "there is no log")(None)}

    def set_level(self, call: Call) -> dict[str, Any]:
        return {"level": self._operated.action("log_level", "there is no log")(call.body["level"])}

    def _handover(self) -> Any:
        return self._operated.action("handover", "there are no listeners")()

    def drain_state(self, call: Call) -> dict[str, Any]:
        found: dict[str, Any] = self._handover().view()
        return found

    def drain(self, call: Call) -> Reply:
        handover = self._handover()
        handover.begin(call.body["seconds"], stop=call.body["stop"])
        return Reply(handover.view(), status=202)

    def end_drain(self, call: Call) -> dict[str, Any]:
        self._handover().end()
        return self.drain_state(call)
