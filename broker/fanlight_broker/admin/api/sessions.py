"""Sessions: what is kept for clients, and their end, and their move to another client."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from fanlight_broker.admin.api.declared import FLAG, TEXT, WHOLE, Call, Operation, Parameter, maybe, shape
from fanlight_broker.admin.api.lists import NAMESPACE, Id, Listing, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.peeking import peeked
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.api.publisher import Publishers
from fanlight_broker.admin.api.shown import PEEK, PEEKED, href
from fanlight_broker.core.inspection import session_view
from fanlight_broker.core.peeking import peek_waiting
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.renaming import move
from fanlight_broker.core.subscriber import Session

PLACES: Final = 64  # of sessions that are looked at together
CLIENT = Parameter("client", str, "client identifier")
SESSION = shape(
    client=TEXT, user=TEXT, connected=FLAG, connection=maybe(WHOLE), subscriptions=WHOLE, in_flight=WHOLE,
    queued=WHOLE, queued_bytes=WHOLE, dropped=WHOLE, href=TEXT,
)


class SessionOperations:
    def __init__(self, operated: Operated, publishers: Publishers) -> None:
        self._operated, self._publishers = operated, publishers
        broker = operated.broker
        self.listing: Listing[Session] = Listing(
            rows=self._rows, count=lambda: sum(len(home.sessions) for home in broker.everywhere()),
            id=lambda session: (session.subscriber.namespace, session.name), view=view_of,
            keys={
                "client": lambda session: session.name, "user": lambda session: session.subscriber.user,
                "connected": lambda session: session.connected,
                "namespace": lambda session: session.subscriber.namespace,
                "subscriptions": lambda session: len(session.subscriptions),
                "in_flight": lambda session: session.window.in_flight,
                "queued": lambda session: len(session.window.queue),
                "queued_bytes": lambda session: session.window.queue.nbytes,
                "dropped": lambda session: session.window.queue.dropped,
                "expiry_seconds": lambda session: session.expiry,
            },
            searched=("client", "user"), exact=("client", "user", "connected", "namespace"), flags=("connected",),
        )

    def operations(self) -> tuple[Operation, ...]:
        make = partial(Operation, tag="sessions")
        return (
            make("GET", "/sessions", "Sessions and what waits for them", self.listing.page, page_of(SESSION),
                 self.listing.parameters(), action=Action.ADMIN_READ),
            make("GET", "/sessions/{client}", "One session", self.show, SESSION, (CLIENT, NAMESPACE),
                 action=Action.ADMIN_READ, absent=True),
            make("GET", "/sessions/{client}/messages", "The oldest messages that wait for it", self.peek, PEEKED,
                 (CLIENT, NAMESPACE, *PEEK), action=Action.ADMIN_READ, absent=True),
            make("POST", "/sessions/{client}/move", "Move a session to another client identifier", self.move,
                 shape(client=TEXT, moved=FLAG, messages=WHOLE, in_flight=WHOLE, subscriptions=WHOLE, lost=WHOLE),
                 (CLIENT, NAMESPACE), body=(
                     Parameter("to", str, "the other client identifier", required=True, least=1),
                     Parameter("replace", bool, "end a session that it has already; its messages are lost",
                               default=False),
                 ), action=Action.ADMIN_WRITE, absent=True, conflicts=True),
            make("DELETE", "/sessions/{client}", "End a session, and the connection of its client", self.end,
                 shape(client=TEXT, ended=FLAG, messages=WHOLE), (CLIENT, NAMESPACE), action=Action.ADMIN_WRITE,
                 absent=True),
        )

    def _rows(self, after: Id | None) -> Iterator[Session | None]:
        for home in self._operated.broker.everywhere():
            place: int | None = 0
            while place is not None:
                found, place = home.sessions.from_place(place, PLACES)
                yield from found
                yield None

    def _find(self, call: Call) -> Session:
        found = self._operated.home(call["namespace"]).sessions.get(call["client"])
        if found is None:
            raise ApiError(404, f"there is no session of a client {call['client']!r}")
        return found

    def show(self, call: Call) -> dict[str, Any]:
        return view_of(self._find(call))

    async def peek(self, call: Call) -> dict[str, Any]:
        session, home = self._find(call), self._operated.home(call["namespace"])
        reader = self._publishers.of(call, home)
        for action in (Action.SUBSCRIBE, Action.QUEUE):  # as QUEUE peek natively
            home.enforcement.check_filter(reader, action, b"#", "amqp", whole=True)
        return await peeked(
            self._operated, call, partial(peek_waiting, home, session.window.queue, call["limit"])
        )

    async def move(self, call: Call) -> dict[str, Any]:
        session, home, to = self._find(call), self._operated.home(call["namespace"]), call.body["to"]
        if any(each < " " for each in to):
            raise BadParameter("to", "has control characters")
        with self._operated.acting() as now:
            done = move(home.sessions, session, to, now, replace=call.body["replace"])
        call.noted.update(done._asdict())
        await self._operated.stored()
        return {"client": to, "moved": True, **done._asdict()}

    async def end(self, call: Call) -> dict[str, Any]:
        session, home = self._find(call), self._operated.home(call["namespace"])
        messages = len(session.window.queue) + session.window.in_flight
        with self._operated.acting() as now:
            client = session.client
            if client is not None:
                home.sessions.leave(client, now, will=True, expiry=0.0)
                home.clients.kick(client, "an operator has ended this session")
            else:
                home.sessions.end(session, now)
        call.noted["messages"] = messages
        await self._operated.stored()
        return {"client": session.name, "ended": True, "messages": messages}


def view_of(session: Session) -> dict[str, Any]:
    address = href("sessions", session.name, namespace=session.subscriber.namespace)
    return {**session_view(session), "href": address}
