"""Audit topics: what happens to clients and subscriptions, as messages that an archive can keep.

    $audit/<kind>    {"client": "desk", "user": "ann", ...}    JSON, QoS 0, not retained

A subscription is announced when it is in force and before anything else is published, and its end likewise. So in an
archive that has these messages too (`archive_topics`), offsets say of each message which subscriptions there were: who
got it, and not who would have (docs/decisions/0035-audit-topics.md). Subscriptions of sessions and queues that were
there before the broker started are announced after `started`, with `restored`, and count from there on.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from fanlight_broker.core.content import Content
from fanlight_broker.core.inspection import in_namespace, snapshot_row
from fanlight_broker.core.publishing import Publishing, Refused
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import BROKER_SYNTAX
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.message import Format, Message
from fanlight_permissions.topics import AUDIT_ROOT

ROOT: Final = AUDIT_ROOT.decode() + "/"
CONTENT_TYPE: Final = "application/json"
WAITING_MAX: Final = 1_000  # that come while one is being published: what a publication itself brings about
TEXT_MAX: Final = 2_000  # characters of a value of a note


class AuditFormat(Format):
    """JSON in no protocol's encoding: every protocol reads it as Content."""

    def read(self, message: Message) -> Content:
        return Content(message.topic, message.syntax, message.payload, content_type=CONTENT_TYPE, is_text=True)


FORMAT: Final = AuditFormat("audit")


class AuditTopics:
    """Publishes them. To be called in the loop's thread, and not in the middle of a fan-out.

    finish  the end of a turn
    """

    def __init__(self, publishing: Publishing, turns: Turns, finish: Callable[[], Any]) -> None:
        self.published = self.lost = 0
        self._publishing, self._turns, self._finish = publishing, turns, finish
        self._waiting: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._busy = False
        self._said = 0  # of those that are lost
        self._restored: Iterator[Subscription] = iter(())

    def note(self, kind: str, keys: Mapping[str, Any]) -> None:
        """Publish one message. Others that this brings about follow it."""
        if len(self._waiting) >= WAITING_MAX:
            self.lost += 1
            return
        self._waiting.append((kind, keys))
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting:
                self._publish(*self._waiting.popleft())
                if self._said < self.lost and not self._waiting:
                    missing, self._said = self.lost - self._said, self.lost
                    self._publish("lost", {"count": missing})
        finally:
            self._busy = False

    def subscribed(self, subscription: Subscription, *, restored: bool = False) -> None:
        self.note("subscribe", _row(subscription) | ({"restored": True} if restored else {}))

    def unsubscribed(self, subscription: Subscription) -> None:
        """It gets nothing any more, and is still in the tables."""
        row = _row(subscription)
        self.note("unsubscribe", {**row, "delivered": subscription.delivered, "dropped": subscription.dropped})

    def restore(self, subscriptions: Iterable[Subscription]) -> None:
        """Announce those from before the start, as many as a turn has time for."""
        self._restored = iter(subscriptions)
        self._restore_some()

    def _restore_some(self) -> None:
        for subscription in self._restored:
            if subscription in subscription.owner.subscriptions:  # else it has ended, which was announced
                self.subscribed(subscription, restored=True)
            if self._turns.over():
                self._turns.later(self._restore_on)
                return
        self.note("restored", {})

    def _restore_on(self) -> None:
        try:
            self._restore_some()
        finally:
            self._finish()

    def _publish(self, kind: str, keys: Mapping[str, Any]) -> None:
        payload = json.dumps({name: _shown(value) for name, value in keys.items()}, default=str).encode()
        message = Message(FORMAT, (ROOT + kind).encode(), BROKER_SYNTAX, payload)
        if isinstance(self._publishing.announce(message, self._publishing.ledger.now), Refused):
            self.lost += 1
        else:
            self.published += 1


def _row(subscription: Subscription) -> dict[str, Any]:
    """As in a snapshot of subscriptions, with what tells two clients of one name apart."""
    owner = subscription.owner
    client, session = owner.client, owner.session
    return {
        **snapshot_row(subscription), "number": subscription.number,
        "connection": client.number if client is not None else None, "protocol": owner.protocol,
        "kept": session is not None and session.outlives, "partly": subscription.partly,
        **in_namespace(owner.namespace),
    }


def _shown(value: Any) -> Any:
    """A value for JSON, not too long."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, frozenset | set):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value[:50]]
    return value if isinstance(value, str) and len(value) <= TEXT_MAX else str(value)[:TEXT_MAX]
