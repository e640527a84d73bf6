"""What the process measures of itself, as a part: lag of the loop, the garbage collector's passes, the log's lines."""

import asyncio
from collections.abc import Sequence
from functools import partial

from fanlight_broker import garbage, logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.garbage import Garbage
from fanlight_broker.net import lag
from fanlight_broker.net.clock import thread_cpu
from fanlight_broker.net.lag import LoopLag
from fanlight_broker.parts import Apply, Part


class Measuring(Part):
    """Made in the event loop that it measures."""

    name = "measuring"

    def __init__(self) -> None:
        self._lag = LoopLag(asyncio.get_running_loop())
        self._garbage = Garbage(thread_cpu)

    async def start(self) -> None:
        self._garbage.start()
        self._lag.start()

    async def stop(self) -> None:
        self._lag.stop()
        self._garbage.stop()

    def reload(self, settings: Settings) -> Apply:
        return partial(logs.reconfigure, level=settings.log_level, burst_max=settings.log_burst_max)

    def metrics(self) -> Sequence[MetricSource]:
        return [
            MetricSource(lag.GAUGES, gauges=self._lag.gauges, families=self._lag.families),
            MetricSource({**garbage.COUNTERS, **garbage.GAUGES}, self._garbage.counters, self._garbage.gauges),
            MetricSource(logs.COUNTERS, logs.counters),
        ]
