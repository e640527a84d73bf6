"""Quotas as a part: the file that the setting `quotas` names, read at the start and again on SIGHUP."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.slices import Slices
from fanlight_broker.config import Settings
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.core.quota import NoQuotas
from fanlight_broker.core.quota_views import pace_families, quota_families
from fanlight_broker.core_part import Core
from fanlight_broker.parts import Apply, Part, PartError

if TYPE_CHECKING:
    from pathlib import Path

    from fanlight_broker.permitting.quota_file import QuotaTable

log: Final = logs.get("quotas")

RELOAD: Final = "/quotas/reload"

COUNTERS: Final = {
    "quota_connections_refused": "Clients refused because their user or address has as many connections as its quota",
    "quota_holds": "Times a publisher over its rate was not read from for a while",
    "quota_delivery_holds": "Times nothing was sent for a while to the connections of a user over its rate",
    "quota_logins_refused": "Logins refused because clients log in too often",
    "quota_messages_too_large": "Messages and wills refused because they are larger than their user's quota",
    "quota_refused": "Messages refused because their publisher was over its rate",
}
GAUGES: Final = {
    "quotas_in_force": "Entries of the file of quotas",
    "quota_paces": "Those who have a rate of messages or bytes, and are connected or were a moment ago",
}


class QuotaPart(Part):
    name = "quotas"

    def __init__(self, settings: Settings, core: Core) -> None:
        self._settings, self._broker = settings, core.broker
        self._prepared: QuotaTable | None = None
        self._slices = Slices()
        self._survey: asyncio.Task[None] | None = None
        self._used: Sequence[MetricFamily] = ()

    async def open(self) -> None:
        if self._settings.quotas is not None:
            self._use(_read(self._settings.quotas))

    async def prepare(self, settings: Settings) -> None:
        self._prepared = None
        if settings.quotas is not None:
            self._prepared = await asyncio.to_thread(_read, settings.quotas)

    def reload(self, settings: Settings) -> Apply:
        prepared, self._prepared = self._prepared, None

        def apply() -> None:
            self._settings = settings
            self._use(prepared)

        return apply

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {RELOAD: self._reload_file}

    async def _reload_file(self) -> Mapping[str, Any]:
        """The file alone, and no other setting. Raises FanlightError."""
        path = self._settings.quotas
        if path is None:
            raise FanlightError("no quotas are set: see the setting quotas")
        try:
            table = await asyncio.to_thread(_read, path)
        except PartError as error:
            raise FanlightError(error.reason) from error
        self._use(table)
        return {"entries": len(table)}

    def _use(self, table: "QuotaTable | None") -> None:
        if table is None and self._broker.clients.quotas.empty:
            return
        self._broker.use_quotas(table if table is not None else NoQuotas())
        log.info("quotas_in_force", entries=0 if table is None else len(table))

    async def stop(self) -> None:
        if self._survey is not None:
            self._survey.cancel()
            with suppress(asyncio.CancelledError):
                await self._survey

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource({**COUNTERS, **GAUGES}, self._counters, self._gauges, families=self._families)]

    def _families(self) -> Sequence[MetricFamily]:
        """What is used of quotas is of the time of the request before: to look at all principals takes some turns."""
        if self._survey is None or self._survey.done():
            self._survey = asyncio.get_running_loop().create_task(self._look())
        return [*pace_families(self._broker), *self._used]

    async def _look(self) -> None:
        self._used = await self._slices.made(quota_families(self._broker))

    def _counters(self) -> Mapping[str, int]:
        return {
            "quota_connections_refused": self._broker.shares.connections_refused,
            "quota_holds": self._broker.paces.held,
            "quota_delivery_holds": self._broker.paces.sat_out,
            "quota_logins_refused": self._broker.paces.logins.refused,
            "quota_messages_too_large": self._broker.everybody.too_large,
            "quota_refused": self._broker.paces.refused,
        }

    def _gauges(self) -> dict[str, float]:
        quotas = self._broker.clients.quotas
        return {
            "quotas_in_force": 0 if quotas.empty else len(quotas),  # type: ignore[arg-type]
            "quota_paces": len(self._broker.paces),
        }


def _read(path: "Path") -> "QuotaTable":
    """Raises PartError."""
    from fanlight_broker.permitting.quota_file import QuotaFileError, load

    try:
        return load(path)
    except QuotaFileError as error:
        raise PartError("; ".join(error.problems)) from error
