"""Permissions as a part: the file that the setting `permissions` names, read at the start and again on SIGHUP.

    SIGHUP, POST /permissions/reload --prepare, in a thread--> PermissionTable --apply--> Broker.use_permissions

The thread pauses after each millisecond or so, and the interpreter is handed over more often meanwhile, so that the
loop does not wait for it. What reads and decides is imported where there is a file, and not before. A file with an
error leaves the permissions in force, as any setting with an error does: the log and the metric
`permissions_reloads_failed` say so.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import audit, logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import Answer, PartView, Query
from fanlight_broker.config import Settings
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.core.permissions import Unrestricted
from fanlight_broker.core_part import Core
from fanlight_broker.parts import Apply, Part, PartError, SideThread

if TYPE_CHECKING:
    from pathlib import Path

    from fanlight_broker.core.limits import Limits
    from fanlight_broker.permitting.permission_reading import PermissionSource
    from fanlight_broker.permitting.permission_view import PermissionViews
    from fanlight_permissions.table import PermissionTable

log: Final = logs.get("permissions")

SHOWN_MAX: Final = 1_000  # rules with a metric of their own: the most salient ones
RELOAD: Final = "/permissions/reload"
VIEW: Final = "/permissions"

COUNTERS: Final = {
    "permissions_reloads_failed": "Times an error was found in the file of permissions, and those in force stayed",
}
GAUGES: Final = {
    "permissions_in_force": "Rules of permissions in force",
    "permission_classes": "Permission classes: clients of which no rule decides differently are of one",
}


class Permitting(Part):
    name = "permissions"

    def __init__(self, settings: Settings, core: Core) -> None:
        self._settings, self._broker = settings, core.broker
        self._in_force: PermissionTable | None = None
        self._source: PermissionSource | None = None  # of what is in force
        self._prepared: tuple[PermissionTable, PermissionSource] | None = None
        self._views: PermissionViews | None = None
        self._thread = SideThread()
        self._failed = 0

    async def open(self) -> None:
        if self._settings.permissions is not None:
            self._use(*_read(self._settings.permissions, self._settings.limits, _never))

    async def stop(self) -> None:
        self._thread.stop()

    async def prepare(self, settings: Settings) -> None:
        self._prepared = None
        if settings.permissions is not None:
            self._prepared = await self._made(settings.permissions, settings.limits)

    async def _made(self, path: "Path", limits: "Limits") -> "tuple[PermissionTable, PermissionSource]":
        """The table of a file, made in a thread. Raises PartError."""
        try:
            return await self._thread.read(partial(_read, path, limits))
        except PartError:
            self._failed += 1
            raise

    def reload(self, settings: Settings) -> Apply:
        prepared, self._prepared = self._prepared, None

        def apply() -> None:
            self._settings = settings
            if prepared is not None:
                self._use(*prepared)
            elif settings.permissions is None and self._in_force is not None:
                self._in_force = None
                self._broker.use_permissions(Unrestricted())
                audit.note("permissions_changed", rules=None)
                log.warning("permissions_lifted", advice="everybody who is admitted may do everything now")

        return apply

    def _use(self, table: "PermissionTable", source: "PermissionSource") -> None:
        self._in_force, self._source = table, source
        table.let_go = self._let_go
        self._broker.use_permissions(table)
        audit.note("permissions_changed", rules=len(table))
        log.info("permissions_in_force", rules=len(table), parties=len(table.parties))

    def _let_go(self, things: list[Any]) -> None:
        """A table is no more: free what it had, a piece in a turn."""
        from fanlight_permissions.letting_go import in_pieces

        self._broker.turns.later(partial(self._free_some, in_pieces(things)))

    def _free_some(self, pieces: Iterator[None]) -> None:
        for _ in pieces:
            self._broker.turns.later(partial(self._free_some, pieces))
            return

    def actions(self) -> Mapping[str, Callable[[], Awaitable[Mapping[str, Any]]]]:
        return {RELOAD: self._reload_file} if self._settings.permissions is not None else {}

    async def _reload_file(self) -> Mapping[str, Any]:
        """The file alone, and no other setting. Raises FanlightError."""
        path = self._settings.permissions
        if path is None:
            raise FanlightError("no permissions are set: see the setting permissions")
        try:
            table, source = await self._made(path, self._settings.limits)
        except PartError as error:
            raise FanlightError(error.reason) from error
        self._use(table, source)
        return {"rules": len(table)}

    def views(self) -> Mapping[str, PartView]:
        return {VIEW: self._view}

    async def _view(self, query: Query) -> Answer:
        if self._in_force is None or self._source is None:
            return 404, {"error": "no permissions are set: see the setting permissions"}
        if self._views is None:
            from fanlight_broker.permitting.permission_view import PermissionViews  # here: few ask

            self._views = PermissionViews(self._broker, self._thread.stopped)
        return await self._views.answer(query, self._in_force, self._source)

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource(
            {**COUNTERS, **GAUGES}, lambda: {"permissions_reloads_failed": self._failed}, self._gauges,
            families=self._families,
        )]

    def _gauges(self) -> dict[str, float]:
        table = self._in_force
        return {
            "permissions_in_force": 0 if table is None else len(table),
            "permission_classes": 0 if table is None else table.classes,
        }

    def _families(self) -> Sequence[MetricFamily]:
        if self._in_force is None:
            return ()
        samples = [({"rule": label}, float(count)) for label, count in self._in_force.counts(SHOWN_MAX).items()]
        return [MetricFamily(
            "permission_decisions", "Decisions of a rule: one for a class of clients and a topic or filter", "counter",
            samples,
        )]


def _never() -> None:
    """Nobody waits yet."""


def _read(
    path: "Path", limits: "Limits", pause: Callable[[], None]
) -> "tuple[PermissionTable, PermissionSource]":
    """Raises PartError."""
    from fanlight_broker.permitting.permission_reading import read_permissions

    return read_permissions(path, limits, pause)
