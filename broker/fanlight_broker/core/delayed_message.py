"""What is known of a delayed message, and of who published it."""

from typing import NamedTuple

from fanlight_broker.core.shares import Share
from fanlight_broker.wire.message import Message


class DelayedPublisher(NamedTuple):
    share: Share  # of its principal
    name: str
    protocol: str
    session: bool  # it is a session, which may not want its message back
    connection: int | None  # of a publisher without a session; None: it is from before a restart


class DelayedEntry(NamedTuple):
    """What is known without the message."""

    id: int
    due: float  # time of `now`
    nbytes: int
    publisher: DelayedPublisher


class DelayedMessage(NamedTuple):
    message: Message  # its octets are its own; its time to live begins when it is due
    due: float  # time of `now`
    publisher: DelayedPublisher


class DelayedPublishers:
    """A number for each publisher that has a delayed message, as long as it has one."""

    def __init__(self) -> None:
        self._numbers: dict[DelayedPublisher, int] = {}
        self._known: list[DelayedPublisher | None] = []
        self._counts: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> DelayedPublisher:
        found = self._known[number]
        assert found is not None
        return found

    def hold(self, publisher: DelayedPublisher) -> tuple[int, bool]:
        """It has one more. Its number, and whether that is its first."""
        number = self._numbers.get(publisher)
        if number is not None:
            self._counts[number] += 1
            return number, False
        if self._free:
            number = self._free.pop()
            self._known[number], self._counts[number] = publisher, 1
        else:
            number = len(self._known)
            self._known.append(publisher)
            self._counts.append(1)
        self._numbers[publisher] = number
        return number, True

    def release(self, publisher: DelayedPublisher) -> bool:
        """It has one less. Was it its last?"""
        number = self._numbers[publisher]
        self._counts[number] -= 1
        if self._counts[number]:
            return False
        del self._numbers[publisher]
        self._known[number] = None
        self._free.append(number)
        return True
