"""The journal of a broker that keeps nothing over a restart (`ports.Journal`)."""

from typing import TYPE_CHECKING

from fanlight_broker.wire.journal import QueueJournal
from fanlight_broker.wire.message import Message

if TYPE_CHECKING:
    from fanlight_broker.core.session import Session
    from fanlight_broker.core.subscription import Subscription


class NoJournal:
    def session_begun(self, session: "Session") -> QueueJournal | None:
        return None

    def session_changed(self, session: "Session") -> None:
        pass

    def session_ended(self, session: "Session") -> None:
        pass

    def received(self, session: "Session", identifier: int) -> None:
        pass

    def released(self, session: "Session", identifier: int) -> None:
        pass

    def group_begun(self, name: str, filter: bytes, syntax: str) -> QueueJournal | None:
        return None

    def group_ended(self, name: str, filter: bytes, syntax: str) -> None:
        pass

    def subscribed(self, subscription: "Subscription") -> None:
        pass

    def unsubscribed(self, subscription: "Subscription") -> None:
        pass

    def retained(self, message: Message) -> None:
        pass

    def cleared(self, topic: bytes, syntax: str) -> None:
        pass


NO_JOURNAL = NoJournal()
