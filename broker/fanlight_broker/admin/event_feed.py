"""Events for an operator, as they happen: /api/v1/events (docs/http-api.md).

    event_log, audit --overhearing.py--> ring of the last ones --> a queue for each listener

The log and the audit log have what happens already, so the feed takes its events from there, whatever the log's level
is. What changes slowly (a limit that is nearly used up, dead letters) is looked at every LOOK_SECONDS.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, Final, NamedTuple

from fanlight_broker import event_log
from fanlight_broker.admin.kept_keys import kept
from fanlight_broker.overhearing import Overhearing

KEPT: Final = 1_000  # events in the ring, of up to some KB each
WAITING_MAX: Final = 256  # events for one listener
LOOK_SECONDS: Final = 5.0
NEAR, FAR = 0.80, 0.75  # of a limit: an event comes at the first, and the next one only after the second

# What events of the log are for an operator.
OF_THE_LOG: Final[Mapping[str, str]] = {
    "client_connected": "connect", "client_disconnected": "disconnect",
    "slow_consumer": "slow_consumer", "slow_consumer_disconnected": "slow_consumer",
    "not_permitted": "refusal", "request_refused": "refusal", "connection_refused": "refusal",
    "connection_failed": "refusal", "handshake_failed": "refusal", "share_used_up": "refusal",
    "session_made_room": "refusal", "dead_letter_refused": "dead_letter",
    "reloaded": "reload", "reload_failed": "reload", "credentials_reloaded": "reload",
    "permissions_in_force": "reload", "permissions_lifted": "reload", "rules_in_force": "reload",
    "quotas_in_force": "reload", "draining": "drain", "drained": "drain", "drain_ended": "drain",
    "store_unwell": "trouble", "store_well": "trouble", "archive_unwell": "trouble", "archive_well": "trouble",
    "stood_still": "trouble", "internal_error": "trouble", "delivery_failed": "trouble",
}
OF_THE_AUDIT: Final[Mapping[str, str]] = {"login_refused": "refusal", "admin": "admin", "connection_ended": "refusal"}
KINDS: Final = (
    "connect", "disconnect", "slow_consumer", "refusal", "limit", "dead_letter", "reload", "admin", "drain", "trouble",
    "lost",
)


class Event(NamedTuple):
    number: int
    kind: str
    keys: dict[str, Any]  # as they are shown
    at: float  # seconds since 1970

    @property
    def data(self) -> dict[str, Any]:
        """What is sent of it. Most events are never sent, so the time is written when one is."""
        return {**self.keys, "time": datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}


class EventListener:
    """One who listens. kinds: those that it wants."""

    def __init__(self, kinds: frozenset[str]) -> None:
        self.kinds = kinds
        self.lost = 0
        self.waiting: deque[Event] = deque()
        self.something = asyncio.Event()

    def take(self, event: Event) -> None:
        if event.kind not in self.kinds:
            return
        if len(self.waiting) < WAITING_MAX:
            self.waiting.append(event)
        else:
            self.lost += 1
        self.something.set()


class EventFeed(Overhearing):
    """
    limits  what is bounded, how much is used, and of how much
    dead    dead letters so far, by namespace
    """

    def __init__(
        self, limits: Callable[[], Iterable[tuple[str, float, float]]], dead: Callable[[], Mapping[str, int]]
    ) -> None:
        super().__init__()
        self.epoch = secrets.token_hex(4)  # numbers of another process are another epoch's
        self.ended = False
        self._limits, self._dead = limits, dead
        self._ring: deque[Event] = deque(maxlen=KEPT)
        self._number = 0
        self._listeners: set[EventListener] = set()
        self._near: set[str] = set()
        self._counted: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Listeners."""
        return len(self._listeners)

    # -- its life -----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take events from now on, in the loop that runs."""
        self.overhear()
        self._counted = dict(self._dead())
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def stop(self) -> None:
        """End: every stream of events gets its end, and the sinks are as they were."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        self.be_silent()
        self.ended = True
        for listener in self._listeners:
            listener.something.set()

    # -- what is overheard --------------------------------------------------------------------------------------------

    def heard_event(self, event: str, keys: event_log.Keys) -> None:
        kind = OF_THE_LOG.get(event)
        if kind is not None:
            self._take(kind, event, keys)

    def heard_note(self, kind: str, keys: dict[str, Any]) -> None:
        if kind in OF_THE_AUDIT:
            self._take(OF_THE_AUDIT[kind], kind, keys)

    def wants_note(self, kind: str) -> bool:
        return kind in OF_THE_AUDIT

    def _take(self, kind: str, name: str, keys: dict[str, Any]) -> None:
        self._number += 1
        event = Event(self._number, kind, kept(name, keys), time())
        self._ring.append(event)
        for listener in self._listeners:
            listener.take(event)

    # -- what is looked at --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
        self.look()

    def look(self) -> None:
        """Is a limit nearly used up, or not any more? Are there more dead letters?"""
        for limit, used, most in self._limits():
            if most > 0 and limit not in self._near and used >= NEAR * most:
                self._near.add(limit)
                self._take("limit", "near", {"limit": limit, "used": used, "most": most})
            elif limit in self._near and used < FAR * most:
                self._near.discard(limit)
                self._take("limit", "below", {"limit": limit, "used": used, "most": most})
        for namespace, count in self._dead().items():
            more = count - self._counted.get(namespace, 0)
            self._counted[namespace] = count
            if more > 0:
                self._take("dead_letter", "dead_letters", {"namespace": namespace, "count": more})

    # -- listeners ----------------------------------------------------------------------------------------------------

    def listen(self, kinds: frozenset[str], after: str | None) -> EventListener:
        """Begin to listen, behind an event. after: its id; None: what comes from now on."""
        listener = EventListener(kinds)
        self._listeners.add(listener)
        if after is None:
            return listener
        epoch, _, number = after.partition("-")
        known = int(number) if epoch == self.epoch and number.isdecimal() and len(number) < 20 else 0
        missed = [event for event in self._ring if event.number > known]
        first = missed[0].number if missed else self._number + 1
        # The id of another process, or of what the ring does not have any more.
        listener.lost = first - known - 1 if epoch == self.epoch else 1
        for event in missed[-WAITING_MAX:]:
            listener.take(event)
        listener.lost += sum(event.kind in kinds for event in missed[:-WAITING_MAX])
        return listener

    def leave(self, listener: EventListener) -> None:
        self._listeners.discard(listener)

    def id_of(self, event: Event) -> str:
        return f"{self.epoch}-{event.number}"
