"""The core as a part: the broker, the flusher behind its outboxes, and the limits that SIGHUP changes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.config.gauges import limit_families
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.net import files
from fanlight_broker.net.clock import monotonic, thread_cpu, wall
from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.listener import TICK_SECONDS
from fanlight_broker.parts import Apply, Part
from fanlight_broker.wire.outbox import Outbox

log: Final = logs.get("app")


class Core(Part):
    """Made in the event loop that it is used in."""

    name = "core"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        loop = asyncio.get_running_loop()
        self.broker = Broker(
            settings.limits, lambda: self.flusher.schedule(loop), loop.call_soon,
            lambda seconds, then: loop.call_later(seconds, self._call_back, then), clock=monotonic, cpu=thread_cpu,
            wall=wall,
        )
        if settings.payload_format is not None:
            from fanlight_broker.core.payload_formats import PayloadFormats  # here: it needs the readers of bodies

            self.broker.read_bodies_as(PayloadFormats(settings.payload_format).of)
        self.flusher = Flusher(self.broker.ledger, flush_fault)

    def _call_back(self, then: Callable[[float], None]) -> None:
        """Call with the time. A standstill that has just ended is noted before: the tick may come after this."""
        now = monotonic()
        self.broker.standstills.note(now, TICK_SECONDS)
        self.broker.turns.begin()
        then(now)

    async def start(self) -> None:
        allow_connections(self.settings)
        self.broker.interest.told = self.settings.publish_interest
        if self.broker.system_topics is not None:
            self.broker.system_topics.sources.append(self.broker.interest.values)

    def reload(self, settings: Settings) -> Apply:
        def apply() -> None:
            self.broker.use(settings.limits)
            self.broker.interest.told = settings.publish_interest
            allow_connections(settings)

        return apply

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource({}, families=lambda: [
            *limit_families(self.broker.limits), *self.broker.enforcement.families(),
        ])]


def allow_connections(settings: Settings) -> None:
    """Raise the process's limit of open files to what the settings allow; log it if that is not possible."""
    wanted = settings.limits.connections_max + settings.http_connections_max
    if (possible := files.allow(wanted)) < wanted:
        # Nobody has chosen the default: then it is no news that this machine cannot have it.
        chosen = settings.limits.connections_max != Limits().connections_max
        (log.info if chosen else log.debug)(
            "few_files", connections=possible, connections_max=wanted,
            advice="the hard limit of open files is lower than the settings allow connections: see ulimit -Hn",
        )


def flush_fault(outbox: Outbox, error: Exception) -> None:
    """A fault of the broker while an outbox was written to its socket: logged once, with its traceback."""
    log.error("internal_error", client=str(outbox.owner), exc_info=error)
