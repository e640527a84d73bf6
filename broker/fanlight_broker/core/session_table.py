"""The sessions of one namespace, by client identifier, and by place: to go through very many in several turns.

A session keeps its place while it is there (numbered.py). So what is there from the first
step to the last is found, once, whatever begins and ends meanwhile, and nothing is copied.
"""

from collections.abc import Iterator
from typing import Final

from fanlight_broker.core.numbered import Numbered
from fanlight_broker.core.subscriber import Session

PIECE: Final = 256  # places that are looked at at once


class SessionTable:
    def __init__(self) -> None:
        self._by_name: dict[str, Session] = {}
        self._places = Numbered[Session]()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._by_name.values())

    @property
    def things(self) -> tuple[object, ...]:
        """The large objects that the garbage collector would look at (wire/hidden.pxd)."""
        return self._by_name, self._places.rows, self._places.free

    def get(self, name: str) -> Session | None:
        return self._by_name.get(name)

    def put(self, session: Session) -> None:
        self._by_name[session.name] = session
        session.place = self._places.put(session)

    def remove(self, session: Session) -> None:
        """Take one out, of which the name may be another one's by now."""
        if self._by_name.get(session.name) is session:
            del self._by_name[session.name]
        if session.place >= 0:
            self._places.remove(session.place)
            session.place = -1

    def rename(self, session: Session, name: str) -> None:
        del self._by_name[session.name]
        self._by_name[name], session.subscriber.name = session, name

    def from_place(self, place: int, places: int) -> tuple[list[Session], int | None]:
        """The sessions at so many places, and where to continue; None at the end."""
        rows = self._places.rows
        end = min(place + places, len(rows))
        found = [each for each in rows[place:end] if each is not None]
        return found, end if end < len(rows) else None

    def in_pieces(self) -> Iterator[Session | None]:
        """Every session, for whoever goes through them in many turns. None: a piece of places had none."""
        place: int | None = 0
        while place is not None:
            found, place = self.from_place(place, PIECE)
            if not found:
                yield None
            for session in found:
                if not session.ended:  # since the piece was looked at
                    yield session
