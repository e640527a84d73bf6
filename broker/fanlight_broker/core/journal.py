"""The journal of a broker that keeps nothing over a restart (`ports.Journal`)."""

from collections.abc import Callable, Sequence

from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.message import Message


class NoJournal:
    pages = None

    def __init__(self) -> None:
        self.position = JournalPosition()  # stays where it is

    def within(self, namespace: str) -> "NoJournal":
        return self

    def session_begun(self, session: object) -> QueueJournal | None:
        return None

    def session_changed(self, session: object) -> None:
        pass

    def session_ended(self, session: object) -> None:
        pass

    def session_drained(self, session: object) -> None:
        pass

    def received(self, session: object, identifier: int) -> None:
        pass

    def released(self, session: object, identifier: int) -> None:
        pass

    def group_begun(self, name: str, filter: bytes, syntax: str, where: str | None) -> QueueJournal | None:
        return None

    def group_ended(self, name: str, filter: bytes, syntax: str, where: str | None) -> None:
        pass

    def group_drained(self, queue: object) -> None:
        pass

    def queue_begun(self, queue: object) -> QueueJournal | None:
        return None

    def settle(self) -> None:
        pass

    def queue_changed(self, queue: object) -> None:
        pass

    def queue_adjusted(self, queue: object) -> None:
        pass

    def queue_purged(self, queue: object) -> None:
        pass

    def queue_ended(self, queue: object) -> None:
        pass

    def queue_drained(self, queue: object) -> None:
        pass

    def read_waiting(self, queue: object, most: int, then: Callable[[Sequence[Message]], None]) -> None:
        then(())

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

    def declared(self, declaration: object) -> None:
        pass

    def undeclared(self, owner: str, key: bytes) -> None:
        pass

    @property
    def reads_delayed(self) -> bool:
        return False

    def delayed(self, due: float, delayed: object, nbytes: int) -> int:
        return 0

    def read_delayed(self, ids: object, then: object) -> None:
        raise AssertionError("delayed messages that are read, and none is kept")

    def delayed_done(self, id: int) -> None:
        pass


NO_JOURNAL = NoJournal()
