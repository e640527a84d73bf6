"""Declarations: what clients of a protocol have made and must be there after a restart, in the protocol's own words.

AMQP has durable exchanges and bindings. The core knows neither: an owner, which is a protocol or a part of it, keeps
octets under keys, and the journal keeps these. After a restart they wait here until their owner claims them. From then
on the owner has them, in its own form, and says them again when the journal asks for all; so nothing is there twice.

    Exchanges --change--> StoredExchanges --keep, forget--> Declarations --> Journal
    Journal --restart--> Declarations.restore --claim--> StoredExchanges --> Exchanges
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from fanlight_broker.core.journal import NO_JOURNAL


class Declaration(NamedTuple):
    owner: str
    key: bytes
    body: bytes


class DeclarationsJournal(Protocol):
    """The part of `ports.Journal` that declarations need."""

    def declared(self, declaration: Declaration) -> None: ...

    def undeclared(self, owner: str, key: bytes) -> None: ...


# Gives an owner's declarations, key and body, that are in force when each is asked for. What comes meanwhile may be in
# it or not; what has gone must not be.
Restating = Callable[[], Iterator[tuple[bytes, bytes]]]


class Declarations:
    """Those of all owners. Iterating gives each that is in force when it is asked for, once at least."""

    def __init__(self) -> None:
        self.journal: DeclarationsJournal = NO_JOURNAL
        self._waiting: dict[str, dict[bytes, bytes]] = {}  # until they are claimed
        self._owners: dict[str, Restating] = {}

    def restore(self, declarations: Iterable[Declaration]) -> None:
        """From before a restart, in the order in which they were first made."""
        for owner, key, body in declarations:
            self._waiting.setdefault(owner, {})[key] = body

    def claim(self, owner: str, restating: Restating) -> dict[bytes, bytes]:
        """What the owner kept before a restart, by key: it has that from now on, and gives it to be restated."""
        self._owners[owner] = restating
        return self._waiting.pop(owner, {})

    def waiting(self) -> list[str]:
        """The owners that have not claimed what they kept before a restart."""
        return list(self._waiting)

    def release(self, owner: str) -> None:
        """An owner that has nothing more to be restated is over."""
        self._owners.pop(owner, None)

    def keep(self, owner: str, key: bytes, body: bytes) -> None:
        """A declaration of an owner that has claimed its own is new, or is another."""
        self.journal.declared(Declaration(owner, key, body))

    def forget(self, owner: str, key: bytes) -> None:
        """It is gone."""
        self.journal.undeclared(owner, key)

    def __iter__(self) -> Iterator[Declaration]:
        for owner, waiting in list(self._waiting.items()):
            for key, body in list(waiting.items()):
                if owner in self._owners:
                    break  # claimed meanwhile: below
                yield Declaration(owner, key, body)
        for owner, restating in list(self._owners.items()):
            for key, body in restating():
                yield Declaration(owner, key, body)
