"""Headers: a message reaches what is bound with headers like its own (3.1.3.4, and RabbitMQ's four kinds of x-match).

    all, any                   each header of the binding, or at least one, is in the message with an equal value (or is
                               there, if the binding has it without a value). Names that begin with x- do not count
    all-with-x, any-with-x     the same, and they do, but for x-match itself

With nothing to compare `all` matches every message and `any` matches none. `arguments` says when values are equal.
"""

from collections.abc import Mapping
from typing import Any, Final

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import Arguments, comparable, thawed, type_name
from fanlight_broker.protocols.amqp.exchanges.conditions import PRESENT, Condition, Conditions, Conjunctions
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination, Search
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

X_MATCH: Final = "x-match"
KINDS: Final = ("all", "any", "all-with-x", "any-with-x")


class HeadersTable:
    """Conjunctions of conditions on headers; an `any` is one for each of its headers."""

    __slots__ = ("_conjunctions",)

    def __init__(self) -> None:
        self._conjunctions = Conjunctions()

    @property
    def is_empty(self) -> bool:
        return self._conjunctions.is_empty

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
            self._conjunctions.add(conditions, destination)

    def remove(self, destination: Destination, key: str, arguments: Arguments) -> None:
        for conditions in conjunctions(arguments):
            self._conjunctions.remove(conditions, destination)

    def find(self, search: Search) -> None:
        search.by_message = True
        self._conjunctions.find(
            [
                (name, value if type(value) is str or type(value) is int else comparable(value))
                for name, value in search.headers.items()
            ],
            search,
        )


def conjunctions(arguments: Arguments) -> list[Conditions]:
    """What a binding asks of a message: at least one of these."""
    table = thawed(arguments)
    kind = table.get(X_MATCH, "all")
    with_x = kind.endswith("-with-x")
    found: list[Condition] = [
        (name, PRESENT if value is None else comparable(value))
        for name, value in table.items()
        if name != X_MATCH and (with_x or not name.startswith("x-"))
    ]
    return [(each,) for each in found] if kind.startswith("any") else [tuple(found)]


def _refused(text: str) -> AmqpError:
    return AmqpError(ReplyCode.PRECONDITION_FAILED, text)
