"""Inspection as a part: what the broker shows of itself, by HTTP (administration.py) and in $SYS."""

from collections.abc import Callable, Mapping, Sequence

from fanlight_broker import __version__
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.archiving import Archiving
from fanlight_broker.config import Settings
from fanlight_broker.core.inspection import COUNTERS, GAUGES, BrokerInspection
from fanlight_broker.core.ports import StoreView
from fanlight_broker.core.system_topics import SystemTopics
from fanlight_broker.core_part import Core
from fanlight_broker.listeners import Listeners
from fanlight_broker.net.clock import monotonic
from fanlight_broker.parts import Part


class Inspecting(Part):
    name = "inspection"
    inspection: BrokerInspection  # once it is open

    def __init__(
        self, settings: Settings, core: Core, listeners: Listeners, archiving: Archiving, store: StoreView,
        ready: Callable[[], bool],
    ) -> None:
        self._limits, self._broker = settings.limits, core.broker
        self._listeners, self._archiving, self._store, self._ready = listeners, archiving, store, ready

    async def open(self) -> None:
        broker = self._broker
        self.inspection = BrokerInspection(
            broker, monotonic, self._listeners.counters, self._ready, self._archiving.archive, self._store
        )
        broker.system_topics = SystemTopics(
            self._limits, broker.publishing, broker.everybody,
            lambda: sum(each.sessions.away for each in broker.everywhere()), self.inspection.counters, monotonic(),
            version=__version__,
        )

    def metrics(self) -> Sequence[MetricSource]:
        inspection = self.inspection
        return [
            MetricSource(COUNTERS, inspection.counters),
            MetricSource(GAUGES, gauges=inspection.gauges, families=inspection.families),
        ]

    def summary(self) -> Mapping[str, int]:
        """What the log says when the broker has stopped."""
        counters = self.inspection.counters()
        return {name: counters[name] for name in ("messages_in", "messages_out", "connections_accepted")}
