"""The audit topics as a part (core/audit_topics.py): what is published below $audit, and when it begins."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from fanlight_broker import __version__
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.core.audit_topics import AuditTopics
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core_part import Core
from fanlight_broker.overhearing import Overhearing
from fanlight_broker.parts import Part

COUNTERS: Final = {
    "audit_topics_published": "Messages below $audit",
    "audit_topics_lost": "Messages below $audit that could not be published: a queue was full, or too many came",
}
# What events of the log are in a topic. All notes for the audit log are, by their kind.
EVENTS: Final[Mapping[str, str]] = {
    "client_connected": "connect", "client_disconnected": "disconnect",
    "slow_consumer": "slow_consumer", "slow_consumer_disconnected": "slow_consumer",
}
LEFT_OUT: Final = frozenset({"exc_info", "password", "credential"})


class AuditTrail(Part, Overhearing):
    name = "audit topics"

    def __init__(self, settings: Settings, core: Core) -> None:
        Overhearing.__init__(self)
        self._wanted, self._data, self._broker = settings.audit_topics, settings.data is not None, core.broker
        self._topics: AuditTopics | None = None

    async def start(self) -> None:
        if not self._wanted:
            return
        broker = self._broker
        self._topics = topics = AuditTopics(broker.publishing, broker.turns, broker.finish)
        topics.note("started", {"version": __version__})
        broker.trail_with(topics)
        self.overhear()
        topics.restore(list(self._kept()))
        broker.finish()

    def _kept(self) -> Iterator[Subscription]:
        """Subscriptions from before the start: of sessions and of queues."""
        for each in self._broker.everywhere():
            for session in each.sessions:
                yield from session.subscriptions
            for queue in each.queues:
                yield from chain(queue.subscriber.subscriptions)

    async def stop(self) -> None:
        if self._topics is not None:
            self.be_silent()
            self._topics.note("stopped", {})
            self._broker.trail_with(None)

    def heard_event(self, event: str, keys: dict[str, Any]) -> None:
        if event in EVENTS:
            self._say(EVENTS[event], {"event": event, **keys})

    def heard_note(self, kind: str, keys: dict[str, Any]) -> None:
        self._say(kind, keys)

    def _say(self, kind: str, keys: dict[str, Any]) -> None:
        assert self._topics is not None
        self._topics.note(kind, {name: value for name, value in keys.items() if name not in LEFT_OUT})

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource(COUNTERS, self._counters)]

    def _counters(self) -> dict[str, int]:
        topics = self._topics
        if topics is None:
            return dict.fromkeys(COUNTERS, 0)
        return {"audit_topics_published": topics.published, "audit_topics_lost": topics.lost}
