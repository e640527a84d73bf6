"""The store that stores nothing (`ports.Store`): sessions and messages live as long as the process."""

from collections.abc import Callable


class MemoryStore:
    durable = False

    def commit(self, then: Callable[[], None]) -> None:
        then()
