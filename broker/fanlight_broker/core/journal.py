"""The journal of a broker that keeps nothing over a restart (`ports.Journal`)."""

from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.message import Message


class NoJournal:
    def __init__(self) -> None:
        self.position = JournalPosition()  # stays where it is

    def session_begun(self, session: object) -> QueueJournal | None:
        return None

    def session_changed(self, session: object) -> None:
        pass

    def session_ended(self, session: object) -> None:
        pass

    def received(self, session: object, identifier: int) -> None:
        pass

    def released(self, session: object, identifier: int) -> None:
        pass

    def group_begun(self, name: str, filter: bytes, syntax: str) -> QueueJournal | None:
        return None

    def group_ended(self, name: str, filter: bytes, syntax: str) -> None:
        pass

    def queue_begun(self, queue: object) -> QueueJournal | None:
        return None

    def queue_ended(self, queue: object) -> None:
        pass

    def subscribed(self, subscription: object) -> None:
        pass

    def unsubscribed(self, subscription: object) -> None:
        pass

    def retained(self, message: Message, share: object, origin: str | None) -> None:
        pass

    def cleared(self, topic: bytes, syntax: str) -> None:
        pass

    def marked(self, mark: object) -> None:
        pass


NO_JOURNAL = NoJournal()
