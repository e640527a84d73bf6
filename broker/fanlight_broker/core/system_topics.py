"""$SYS: the broker's own state as retained messages, under mosquitto's names.

    sweep(now) --every sys_interval_seconds--> values --those that changed--> retained messages, subscribers

Totals are since the start. Loads are totals per minute, smoothed as mosquitto smooths them: with `rate` the rate since
the last time,

    average = rate + e^(-seconds / window) * (average - rate)        windows of 1, 5 and 15 minutes

The messages have QoS 0 (a client that was disconnected finds the last values retained) and no publisher. They count
neither as published nor towards the limits of retained messages. Clients cannot publish here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp
from typing import Final

from fanlight_broker.core import enforcement
from fanlight_broker.core.clients import EveryClient
from fanlight_broker.core.content import Content
from fanlight_broker.core.interest import EVERYTHING
from fanlight_broker.core.interest import NAME as INTEREST
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.publishing import Publishing
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.topics import BROKER_ROOT, BROKER_SYNTAX
from fanlight_broker.wire.message import Format, Message

ROOT: Final = BROKER_ROOT.decode() + "/broker/"
WINDOWS: Final[Mapping[str, float]] = {"1min": 60.0, "5min": 300.0, "15min": 900.0}  # seconds

# The load averages: the name of each, and of the total that it is computed from.
LOADS: Final[Mapping[str, str]] = {
    "load/messages/received": "messages/received",
    "load/messages/sent": "messages/sent",
    "load/publish/received": "publish/messages/received",
    "load/publish/sent": "publish/messages/sent",
    "load/publish/dropped": "publish/messages/dropped",
    "load/bytes/received": "bytes/received",
    "load/bytes/sent": "bytes/sent",
    "load/sockets": "connections/socket/count",
    "load/connections": "connections/count",
}

# The counters (inspection.COUNTERS) of messages that were not delivered to a subscription. Not among them: QoS 0 for a
# disconnected client, which is not promised, and expired messages.
DROPPED: Final = (
    "dropped_newest", "dropped_oldest", "dropped_credit", "dropped_disconnect", "dropped_unspellable", "dropped_fault",
    "dropped_too_large", "dropped_queue", "dropped_session",
)  # fmt: skip


SHARES_REFUSED: Final = tuple(f"share_refused_{pot}" for pot in SharedPot)


class SystemFormat(Format):
    """Messages in no protocol's encoding: every protocol reads them as Content."""

    def read(self, message: Message) -> Content:
        return Content(message.topic, message.syntax, message.payload, is_text=True)


FORMAT: Final = SystemFormat("core")


@dataclass(slots=True)
class LoadAverage:
    """A total per minute, averaged over each of WINDOWS."""

    total: int = 0
    averages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WINDOWS, 0.0))

    def update(self, total: int, seconds: float) -> None:
        """The total is this now, `seconds` after the last time."""
        rate = (total - self.total) * 60.0 / seconds
        self.total = total
        for name, window in WINDOWS.items():
            self.averages[name] = rate + exp(-seconds / window) * (self.averages[name] - rate)


class SystemTopics:
    """Publishes what has changed.

    counters  those of `inspection.BrokerInspection`, the listeners' among them
    version   of the program
    """

    def __init__(
        self, limits: Limits, publishing: Publishing, clients: EveryClient, away: Callable[[], int],
        counters: Callable[[], Mapping[str, int]], now: float, *, version: str,
    ) -> None:
        self.limits = limits
        self._publishing = publishing
        self._clients = clients
        self._away = away
        self._counters = counters
        self._version = version
        self._started = self._loads_at = now
        self._loads = {name: LoadAverage() for name in LOADS}
        self._published_at: float | None = None
        self._published: dict[str, str] = {}
        self.sources: list[Callable[[], Mapping[str, str]]] = []  # of more values, by their names below the root

    def sweep(self, now: float) -> None:
        """Publish if it is due; if $SYS is turned off, clear what was published."""
        interval = self.limits.sys_interval_seconds
        if not interval:
            self._withdraw(now)
        elif self._published_at is None or now - self._published_at >= interval:
            self._published_at = now
            self._publish(now)

    def _publish(self, now: float) -> None:
        totals = self._totals()
        self._update_loads(totals, now)
        said = {
            "version": f"fanlight version {self._version}",
            "uptime": f"{int(now - self._started)} seconds",
            **{name: str(value) for name, value in (totals | self._gauges()).items()},
            **{
                f"{name}/{window}": f"{average:.2f}"
                for name, load in self._loads.items() for window, average in load.averages.items()
            },
        }
        for source in self.sources:
            said |= source()
        for name in self._published.keys() - said.keys():
            self._clear(name, now)
            del self._published[name]
        for name, text in said.items():
            self._say(name, text, now)

    def announce(self, name: str, text: str, now: float) -> None:
        """Publish a value of one of `sources` at once, if $SYS is not turned off."""
        if self.limits.sys_interval_seconds:
            self._say(name, text, now)

    def _say(self, name: str, text: str, now: float) -> None:
        if self._published.get(name) != text:
            self._published[name] = text
            self._publishing.announce(message_of(name, text), now)

    def _clear(self, name: str, now: float) -> None:
        self._publishing.retained.put(message_of(name, ""), now, own=True)  # an empty payload clears it

    def _withdraw(self, now: float) -> None:
        if INTEREST in self._published:  # somebody may leave out messages by it
            self._say(INTEREST, EVERYTHING, now)
        for name in self._published:
            self._clear(name, now)
        self._published.clear()
        self._published_at = None

    def _update_loads(self, totals: Mapping[str, int], now: float) -> None:
        seconds = now - self._loads_at
        if seconds > 0:
            self._loads_at = now
            for name, load in self._loads.items():
                load.update(totals[LOADS[name]], seconds)

    def _totals(self) -> dict[str, int]:
        counters, ledger = self._counters(), self._publishing.ledger
        return {
            # mosquitto counts packets of all kinds here; the packets of several protocols have no common measure.
            "messages/received": counters["messages_in"],
            "messages/sent": counters["messages_out"],
            "publish/messages/received": counters["messages_in"],
            "publish/messages/sent": counters["messages_out"],
            "publish/messages/dropped": sum(counters[name] for name in DROPPED),
            "publish/bytes/received": ledger.payload_in,
            "publish/bytes/sent": ledger.payload_out,
            "bytes/received": counters["bytes_in"],
            "bytes/sent": counters["bytes_out"],
            "clients/expired": counters["sessions_expired"],
            "connections/socket/count": counters["connections_accepted"],
            "connections/count": self._clients.connects,
            "refused/permissions": sum(counters[name] for name in enforcement.COUNTERS),
            "refused/quotas": self._clients.refused_by_quotas + sum(counters[name] for name in SHARES_REFUSED),
        }

    def _gauges(self) -> dict[str, int]:
        publishing = self._publishing
        ledger, router = publishing.ledger, publishing.router
        connected, away = len(self._clients), self._away()
        stored, shared = ledger.stored_messages, router.shared
        return {
            "clients/connected": connected,
            "clients/active": connected,  # the older name of it, as `inactive` is
            "clients/disconnected": away,
            "clients/inactive": away,
            "clients/total": connected + away,
            "clients/maximum": self._clients.maximum,
            "messages/stored": stored,
            "store/messages/count": stored,
            "store/messages/bytes": ledger.stored,
            "subscriptions/count": len(router) - shared,
            "shared_subscriptions/count": shared,
            "retained messages/count": len(publishing.retained),
        }


def message_of(name: str, text: str) -> Message:
    return Message(FORMAT, (ROOT + name).encode(), BROKER_SYNTAX, text.encode(), retain=True)
