"""Connections: who is there, and out with whom."""

from collections.abc import Generator, Iterable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from fanlight_broker.admin.api.declared import FLAG, NUMBER, TEXT, WHOLE, Call, Operation, Parameter, maybe, shape
from fanlight_broker.admin.api.lists import Id, Listing, behind, page_of
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.api.shown import href
from fanlight_broker.core.inspection import connection_view
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.slow_consumers import dropped_of, slowness
from fanlight_broker.core.subscriber import CLOSED_CONNECTION, Client

KICKED_PER_LOOK = 4  # each some 50 µs, with its will
REASON = Parameter("reason", str, "the reason it gets, where its protocol has one", "an operator has ended "
                   "this connection", most=200)
AT_ONCE = Parameter("at_once", bool, "do not wait for the client to read what it is still to get", default=False)
NUMBER_OF = Parameter("number", int, "number of the connection")
CONNECTION = shape(
    connection=WHOLE, client=TEXT, user=TEXT, address=TEXT, protocol=TEXT, connected_seconds=NUMBER,
    subscriptions=WHOLE, outbox_bytes=WHOLE, messages_sent=WHOLE, messages_dropped=WHOLE, href=TEXT,
)
LISTENER = shape(listener=TEXT, protocol=TEXT, host=TEXT, port=WHOLE, tls=FLAG, websocket=FLAG, proxied=FLAG,
                 connections=WHOLE, connections_max=maybe(WHOLE), messages_in=WHOLE, messages_out=WHOLE)
WHOM = ("client", "user", "address")


class Connections:
    def __init__(self, operated: Operated) -> None:
        self._operated = operated
        everybody = operated.broker.everybody
        self.listing: Listing[Client] = Listing(
            rows=self._rows, count=lambda: len(everybody), id=id_of, view=self._view, ordered=True,
            keys={
                "connection": lambda client: client.number, "client": lambda client: client.subscriber.name,
                "user": lambda client: client.subscriber.user, "address": lambda client: client.address,
                "protocol": lambda client: client.subscriber.protocol, "agent": lambda client: client.agent,
                "namespace": lambda client: client.subscriber.namespace,
                "connected_seconds": lambda client: -client.connected_at,
                "subscriptions": lambda client: len(client.subscriber.subscriptions),
                "outbox_bytes": lambda client: client.outbox.size + client.outbox.awaiting_credit,
                "messages_sent": lambda client: client.outbox.sent, "messages_dropped": dropped_of,
                "slow": lambda client: slowness(client) is not None,
            },
            searched=("client", "user", "address", "agent"),
            exact=("client", "user", "address", "protocol", "namespace", "slow"), flags=("slow",),
        )

    def listeners(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        return _listening(self._operated.action("listeners", "there are no listeners")()).page(call)

    def operations(self) -> tuple[Operation, ...]:
        make = partial(Operation, tag="connections")
        return (
            make("GET", "/connections", "Connections", self.listing.page, page_of(CONNECTION),
                 self.listing.parameters(), action=Action.ADMIN_READ),
            make("GET", "/connections/{number}", "One connection", self.show, CONNECTION, (NUMBER_OF,),
                 action=Action.ADMIN_READ, absent=True),
            make("GET", "/listeners", "Ports that are open, and what came there", self.listeners, page_of(LISTENER),
                 _listening([]).parameters(), action=Action.ADMIN_READ),
            make("DELETE", "/connections/{number}", "Kick: end a connection", self.kick,
                 shape(connection=WHOLE, client=TEXT, ended=FLAG), (NUMBER_OF, REASON, AT_ONCE),
                 action=Action.ADMIN_WRITE, absent=True),
            make("DELETE", "/connections", "Kick all connections of a client, a user or an address", self.kick_all,
                 shape(ended=WHOLE), (
                     Parameter("client", str, "name of the client"), Parameter("user", str, "name of the user"),
                     Parameter("address", str, "the address that it is from"), REASON, AT_ONCE,
                 ), action=Action.ADMIN_WRITE),
        )

    def _rows(self, after: Id | None) -> Iterable[Client | None]:
        return behind(list(self._operated.broker.everybody), id_of, after)

    def _view(self, client: Client) -> dict[str, Any]:
        now, broker = self._operated.clock(), self._operated.broker
        session = client.subscriber.session
        return {
            **connection_view(client, now, broker.ledger.awake(now), held=broker.flow.is_held_back(client)),
            "slow": slowness(client), "quota": str(client.quota.name) if client.quota.name else None,
            "session": href("sessions", session.name, namespace=client.subscriber.namespace) if session else None,
            "href": href("connections", str(client.number)),
        }

    def _find(self, call: Call) -> Client:
        client = self._operated.broker.everybody.by_number.get(call["number"])
        if client is None:
            raise ApiError(404, f"there is no connection {call['number']}", connection=call["number"])
        return client

    def show(self, call: Call) -> dict[str, Any]:
        return self._view(self._find(call))

    def kick(self, call: Call) -> dict[str, Any]:
        client = self._find(call)
        name = client.subscriber.name
        call.noted["client"] = name
        self._kick(client, call)
        return {"connection": client.number, "client": name, "ended": True}

    def _kick(self, client: Client, call: Call) -> None:
        home = self._operated.home(client.subscriber.namespace)
        with self._operated.acting():
            home.clients.kick(client, call["reason"], at_once=call["at_once"])

    def kick_all(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        wanted = [(self.listing.keys[name], call[name]) for name in WHOM if call[name] is not None]
        if not wanted:
            raise BadParameter("client", f"say whom: {', '.join(WHOM)}, or several of these")
        ended = 0
        for looked_at, client in enumerate(list(self._operated.broker.everybody), 1):
            if all(key(client) == value for key, value in wanted) and client.connection is not CLOSED_CONNECTION:
                self._kick(client, call)
                ended += 1
            if looked_at % 64 == 0 or (ended and ended % KICKED_PER_LOOK == 0):
                yield
        call.noted["ended"] = ended
        return {"ended": ended}


def id_of(client: Client) -> Id:
    return (client.number,)


def _listening(rows: list[Mapping[str, Any]]) -> Listing[Mapping[str, Any]]:
    keys = ("listener", "protocol", "port", "connections", "messages_in", "messages_out")
    return Listing(
        rows=lambda after: rows, count=lambda: len(rows), id=lambda row: (row["listener"],), view=dict,
        keys={key: itemgetter(key) for key in keys}, searched=("listener", "protocol"), exact=("listener", "protocol"),
    )
