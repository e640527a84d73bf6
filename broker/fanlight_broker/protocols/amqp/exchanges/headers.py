"""Headers: a message reaches what is bound with headers like its own (3.1.3.4, and RabbitMQ's four kinds of x-match).

    all, any                   each header of the binding, or at least one, is in the message with an equal value (or is
                               there, if the binding has it without a value). Names that begin with x- do not count
    all-with-x, any-with-x     the same, and they do, but for x-match itself

With nothing to compare `all` matches every message and `any` matches none. `arguments` says when values are equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import (
    Arguments,
    canonical,
    has_many,
    octets_of,
    thawed,
    type_name,
)
from fanlight_broker.protocols.amqp.exchanges.conditions import ConditionIndex
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination, Search
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

X_MATCH: Final = "x-match"
NOTHING: Final = b""  # no canonical form: a condition may ask whether the header is there
KINDS: Final = ("all", "any", "all-with-x", "any-with-x")


class HeadersTable:
    """Conjunctions of conditions on headers, with the numbers of destinations; an `any` is one for each of its headers.

    by_number: the destinations of the vhost
    """

    __slots__ = ("_by_number", "index")

    def __init__(self, by_number: Sequence[Destination | None]) -> None:
        self._by_number = by_number
        self.index = ConditionIndex()

    @property
    def is_empty(self) -> bool:
        return self.index.is_empty

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        kind = arguments.get(X_MATCH, "all")
        if not isinstance(kind, str):
            shown = "undefined" if kind is None else kind
            raise _refused(f"Invalid x-match field type {type_name(kind)} (value {shown!s:.40}); expected longstr")
        if kind not in KINDS:
            raise _refused(
                f'Invalid x-match field value <<"{kind:.40}">>; expected all, any, all-with-x, or any-with-x'
            )

    def add(self, destination: Destination, key: str, arguments: Arguments) -> None:
        for conditions in conjunctions(arguments):
            self.index.add(conditions, destination.number)

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        for conditions in conjunctions(arguments):
            self.index.remove(conditions, destination.number)

    def find(self, search: Search) -> None:
        search.by_message = True
        headers = [(octets_of(name), value) for name, value in search.headers.items()]
        asked = [(name, compared(value)) for name, value in headers if self.index.asks(name)]
        for number in self.index.find(asked):
            destination = self._by_number[number]
            if destination is not None:
                search.reach(destination)


def compared(value: Any) -> bytes:
    """The canonical form of a message's value; NOTHING of one with more inside than any binding can have."""
    return NOTHING if isinstance(value, dict | list) and has_many(value) else canonical(value)


def conjunctions(arguments: Arguments) -> list[list[tuple[bytes, bytes | None]]]:
    """What a binding asks of a message: at least one of these. A condition is (name, canonical value), or (name, None):
    it is there.
    """
    table = thawed(arguments)
    kind = table.get(X_MATCH, "all")
    with_x = kind.endswith("-with-x")
    found: list[tuple[bytes, bytes | None]] = [
        (octets_of(name), None if value is None else canonical(value))
        for name, value in table.items()
        if name != X_MATCH and (with_x or not name.startswith("x-"))
    ]
    return [[each] for each in found] if kind.startswith("any") else [found]


def _refused(text: str) -> AmqpError:
    return AmqpError(ReplyCode.PRECONDITION_FAILED, text)
