"""Retained messages: found by filter, read, set and cleared."""

from collections.abc import Generator, Iterable
from functools import partial
from typing import Any

from fanlight_broker.admin.api.declared import FLAG, TEXT, WHOLE, Call, Operation, Parameter, shape
from fanlight_broker.admin.api.lists import NAMESPACE, SYNTAX, Id, Listing, page_of
from fanlight_broker.admin.api.messages import CONTENT, PUBLISHED, MessageOperations
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import ApiError, BadParameter
from fanlight_broker.admin.api.publisher import Publishers
from fanlight_broker.admin.api.shown import MESSAGE, href, message_view, text_of
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.retained_search import clear, found
from fanlight_broker.core.topics import BROKER_ROOT, SYNTAXES, first_word, masked, parse_filter, words_of
from fanlight_broker.wire.message import NEVER
from fanlight_broker.wire.retained import RetainedEntry

PAYLOAD_SHOWN = 256 * 1024
TOPIC = Parameter("topic", bytes, "the topic, percent-encoded", least=1)
FILTER = Parameter("filter", str, "only topics that this filter matches", least=1)
ENTRY = shape(topic=TEXT, syntax=TEXT, size=WHOLE, qos=WHOLE, href=TEXT)
Row = tuple[Namespace, RetainedEntry]


class RetainedOperations:
    def __init__(self, operated: Operated, messages: MessageOperations, publishers: Publishers) -> None:
        self._operated, self._messages, self._publishers = operated, messages, publishers
        self._keys: dict[str, Any] = {
            "topic": lambda row: text_of(row[1].message.topic), "size": lambda row: len(row[1].message.payload),
            "qos": lambda row: row[1].message.qos, "namespace": lambda row: row[0].name,
        }
        self.listing = self._listing(None, "amqp", None)

    def _listing(self, filter: bytes | None, syntax: str, namespace: str | None) -> Listing[Row]:
        return Listing(
            rows=partial(self._rows, filter, syntax, namespace), count=self._count,
            id=lambda row: (row[0].name, row[1].id), view=self._view, keys=self._keys, searched=("topic",),
            exact=("namespace",), ordered=filter is None,
        )

    def _count(self) -> int:
        return sum(len(home.retained.by_key) for home in self._operated.broker.everywhere())

    def operations(self) -> tuple[Operation, ...]:
        make = partial(Operation, tag="retained")
        read, write = partial(make, action=Action.ADMIN_READ), partial(make, action=Action.ADMIN_WRITE)
        one = (TOPIC, SYNTAX, NAMESPACE)
        return (
            read("GET", "/retained", "Retained messages, without their payloads", self.list, page_of(ENTRY),
                 (*self.listing.parameters(), FILTER, SYNTAX)),
            read("GET", "/retained/{topic}", "The retained message of a topic", self.show, MESSAGE, one, absent=True),
            write("PUT", "/retained/{topic}", "Publish a message that is retained", self.put, PUBLISHED, one,
                  body=CONTENT, absent=True, conflicts=True),
            write("DELETE", "/retained/{topic}", "Clear the retained message of a topic", self.clear,
                  shape(topic=TEXT, cleared=FLAG), one, absent=True, conflicts=True),
            write("DELETE", "/retained", "Clear all retained messages that a filter matches", self.clear_all,
                  shape(cleared=WHOLE), (
                      Parameter("filter", str, "topics that this filter matches", required=True, least=1), SYNTAX,
                      NAMESPACE,
                  ), absent=True, conflicts=True),
        )

    def _rows(
        self, filter: bytes | None, syntax: str, namespace: str | None, after: Id | None
    ) -> Iterable[Row | None]:
        now = self._operated.clock()
        for home in sorted(self._operated.homes(namespace), key=lambda home: home.name):
            begin = -1
            if after is not None:
                if (home.name,) < after[:1]:
                    continue
                if (home.name,) == after[:1]:
                    begin = after[1]
            for entry in found(home.retained, filter, syntax, now, begin):
                yield None if entry is None else (home, entry)

    def _view(self, row: Row) -> dict[str, Any] | None:
        home, entry = row
        if entry.id < 0:  # it was replaced since it was looked at, or cleared
            id = home.retained.by_key.get(entry.key)
            found = home.retained.entry(id) if id is not None else None
            if found is None:
                return None
            entry = found
        message, syntax = entry.message, SYNTAXES[entry.message.syntax]
        return {
            "topic": text_of(masked(message.topic, syntax)), "syntax": syntax, "size": len(message.payload),
            "qos": message.qos, "client": entry.origin, "own": entry.own,
            "expires_seconds": None if message.expires_at == NEVER else max(
                0.0, round(message.expires_at - self._operated.clock(), 3)
            ),
            "href": address_of(home, entry), **({"namespace": home.name} if home.name else {}),
        }

    def list(self, call: Call) -> Generator[None, None, dict[str, Any]]:
        filter = call["filter"].encode() if call["filter"] is not None else None
        if filter is not None:
            parse_filter(filter, call["syntax"], self._operated.broker.limits)
        page = yield from self._listing(filter, call["syntax"], call["namespace"]).page(
            call, None if filter is None else lambda row: True
        )
        return page

    def _find(self, call: Call) -> tuple[Namespace, RetainedEntry]:
        home = self._operated.home(call["namespace"])
        words_of(call["topic"], call["syntax"], home.limits)
        entry = home.retained.find(call["topic"], call["syntax"], self._operated.clock())
        if entry is None:
            raise ApiError(404, "the topic has no retained message")
        return home, entry

    def show(self, call: Call) -> dict[str, Any]:
        home, entry = self._find(call)
        home.enforcement.check(self._publishers.of(call, home), Action.SUBSCRIBE, call["topic"], call["syntax"])
        return {
            **message_view(entry.message, self._operated.clock(), PAYLOAD_SHOWN), "client": entry.origin,
            "own": entry.own, "href": address_of(home, entry),
        }

    async def put(self, call: Call) -> dict[str, Any]:
        if not any(call.body[name] for name in ("payload", "payload_base64")) and call.body["json"] is None:
            raise BadParameter("payload", "is empty, which would clear it: use DELETE")
        return await self._messages.send(call, call["topic"], call["syntax"], retain=True)

    async def clear(self, call: Call) -> dict[str, Any]:
        home, entry = self._find(call)
        if entry.own:
            raise ApiError(409, f"what is below {BROKER_ROOT.decode()} is the broker's own; it would be back at once")
        home.enforcement.check(
            self._publishers.of(call, home), Action.RETAIN, call["topic"], call["syntax"], entry.message
        )
        with self._operated.acting():
            cleared = home.retained.clear(entry)
        await self._operated.stored()
        return {"topic": text_of(call["topic"]), "cleared": cleared}

    async def clear_all(self, call: Call) -> dict[str, Any]:
        filter, syntax = call["filter"].encode(), call["syntax"]
        home = self._operated.home(call["namespace"])
        parse_filter(filter, syntax, home.limits)
        if first_word(filter, syntax) == BROKER_ROOT:
            raise ApiError(409, f"what is below {BROKER_ROOT.decode()} is the broker's own; it would be back at once")
        home.enforcement.check_filter(self._publishers.of(call, home), Action.RETAIN, filter, syntax, whole=True)
        cleared = await self._operated.in_steps(clear(home.retained, filter, syntax, self._operated.clock()))
        call.noted["cleared"] = cleared
        await self._operated.stored()
        return {"cleared": cleared}


def address_of(home: Namespace, entry: RetainedEntry) -> str:
    return href("retained", entry.message.topic, syntax=SYNTAXES[entry.message.syntax], namespace=home.name)
