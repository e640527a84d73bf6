"""A subscription's condition on the content of its messages: its selector, as a text or a dict that a client sends."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

import matchcore
from fanlight_broker.core.errors import InvalidFilter, InvalidSelector
from fanlight_broker.wire.message import Message
from matchcore.patterns import parse_pattern, selector_of
from matchcore.selector import And, In, Selector, leaves
from matchcore.suffix import parse_suffix
from matchcore.where import MAX_TEXT_BYTES, parse_where

CONDITION_BYTES: Final = 600  # of a selector without tests: its text, its place in a screen
LEAF_BYTES: Final = 300  # of each test
VALUE_BYTES: Final = 80  # of each value of an IN
KNOWN: Final = 64  # texts read last are kept, 6 MB at most: many clients have the same one


class Condition:
    """One selector. `where` is its canonical text; equal texts are equal conditions."""

    __slots__ = ("nbytes", "selector", "where")

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.where = str(selector)
        size = len(self.where.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:  # it could not be read again, as that of a session is after a restart
            raise InvalidSelector(
                f"the selector has {size} bytes in its canonical spelling, more than {MAX_TEXT_BYTES}; divide it "
                "among several subscriptions", position=MAX_TEXT_BYTES,
            )
        tests = list(leaves(selector))
        values = sum(len(test.values) for test in tests if isinstance(test, In))
        self.nbytes = CONDITION_BYTES + LEAF_BYTES * len(tests) + VALUE_BYTES * values + size

    def __str__(self) -> str:
        return self.where

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and other.where == self.where

    def __hash__(self) -> int:
        return hash(self.where)


class KnownPublisher(Protocol):
    """What a store knows of a publisher."""

    @property
    def name(self) -> str | None: ...
    @property
    def user(self) -> str | None: ...


class StoredSelector(Protocol):
    """A selector that is asked about stored messages, one by one: a `core.stored_screener.StoredScreener`."""

    def is_true_of(self, message: Message, publisher: KnownPublisher | None = None, time: float = ...) -> bool: ...


def condition_of(where: str | Mapping[str, Any]) -> Condition:
    """The condition that a client asks for: a text, or a dict as of EventBridge. Raises InvalidSelector."""
    if isinstance(where, str):
        return _of_text(where)
    if not is_small(where):  # its text would be too long, and takes long to make
        raise InvalidSelector(
            f"the selector would have more than {MAX_TEXT_BYTES} bytes; divide it among several subscriptions",
            position=MAX_TEXT_BYTES,
        )
    try:
        return Condition(parse_pattern(where))
    except matchcore.InvalidSelector as error:
        raise _invalid(error) from error


@lru_cache(maxsize=KNOWN)
def _of_text(where: str) -> Condition:
    try:
        return Condition(parse_where(where))
    except matchcore.InvalidSelector as error:
        raise _invalid(error) from error


def condition_of_suffix(expression: bytes, condition: Condition | None = None) -> Condition:
    """The condition behind the `?` of a filter, as EMQX spells it. With another condition, both must be true.

    Raises InvalidFilter: it is the filter that a client has written wrongly.
    """
    try:
        found = _of_suffix(expression)
        if condition is None:
            return found
        return Condition(selector_of(And(tuple(
            part for each in (condition.selector, found.selector)
            for part in (each.parts if isinstance(each, And) else (each,))
        ))))
    except matchcore.InvalidSelector as error:
        raise InvalidFilter(f"what is behind the ? of the filter: {error}", position=error.position) from error
    except InvalidSelector as error:
        raise InvalidFilter(f"what is behind the ? of the filter: {error.text}", **error.details) from error


@lru_cache(maxsize=KNOWN)
def _of_suffix(expression: bytes) -> Condition:
    return Condition(parse_suffix(expression))


def is_small(where: Mapping[str, Any]) -> bool:
    """May the text of a dict be short enough? Each thing and each character in it takes at least a byte."""
    size = 0
    left: list[Any] = [where]
    while left:
        thing = left.pop()
        if not isinstance(thing, Mapping | list | tuple | str):
            continue
        size += len(thing)
        if size > MAX_TEXT_BYTES:
            return False
        if not isinstance(thing, str):
            left += thing
        if isinstance(thing, Mapping):
            left += thing.values()
    return True


def _invalid(error: matchcore.InvalidSelector) -> InvalidSelector:
    return InvalidSelector(str(error), position=error.position)
