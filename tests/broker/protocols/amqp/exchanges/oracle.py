"""A vhost in plain Python: a list of bindings, tried one by one. What is tested against it has no list to walk over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass
class PlainExchange:
    type: str
    auto_delete: bool = False
    alternate: str | None = None


@dataclass(frozen=True)
class PlainBinding:
    source: str
    destination: str
    to_queue: bool
    key: str
    arguments: dict[str, Any] = field(hash=False)

    def same(self, other: "PlainBinding") -> bool:
        """Bindings are the same with the same arguments: here 1 is not 1.0, and not true."""
        return self == other and typed(self.arguments) == typed(other.arguments)


def typed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: typed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return type(value), value


class PlainVhost:
    def __init__(self) -> None:
        self.queues: set[str] = set()
        self.exchanges: dict[str, PlainExchange] = {}
        self.bindings: list[PlainBinding] = []

    def bind(self, binding: PlainBinding) -> None:
        if not any(binding.same(each) for each in self.bindings):
            self.bindings.append(binding)

    def unbind(self, *gone: PlainBinding) -> None:
        """Remove them, then each source that deletes itself, with all that follows."""
        there = [each for each in self.bindings if any(each.same(one) for one in gone)]
        self.bindings = [each for each in self.bindings if not any(each.same(one) for one in gone)]
        for each in there:
            exchange = self.exchanges.get(each.source)
            left = any(other.source == each.source for other in self.bindings)
            if exchange is not None and exchange.auto_delete and not left:
                self.delete(each.source)

    def delete(self, name: str) -> None:
        if self.exchanges.pop(name, None) is not None:
            self.unbind(*(
                each for each in self.bindings
                if each.source == name or (not each.to_queue and each.destination == name)
            ))  # fmt: skip

    def queue_ended(self, queue: str) -> None:
        self.queues.discard(queue)
        self.unbind(*(each for each in self.bindings if each.to_queue and each.destination == queue))

    def reached(self, first: str, keys: tuple[str, ...], headers: Mapping[str, Any]) -> set[str]:
        queues: set[str] = set()
        path = [first]
        for name in path:
            if not name:
                queues |= self.queues & set(keys)
                continue
            if name not in self.exchanges:
                continue
            exchange = self.exchanges[name]
            found = [
                each for each in self.bindings
                if each.source == name and any(matches(exchange.type, each, key, headers) for key in keys)
            ]
            queues.update(each.destination for each in found if each.to_queue)
            onward = [each.destination for each in found if not each.to_queue]
            if not found and exchange.alternate is not None:
                onward.append(exchange.alternate)
            path.extend(each for each in onward if each not in path)
        return queues


def matches(type: str, binding: PlainBinding, key: str, headers: Mapping[str, Any]) -> bool:
    if type == "direct":
        return binding.key == key
    if type == "topic":
        return words_match(binding.key.split(".") if binding.key else [], key.split(".") if key else [])
    if type == "headers":
        return headers_match(binding.arguments, headers)
    return True


def words_match(filter: list[str], words: list[str]) -> bool:
    """RabbitMQ's topics: `*` is one word, `#` any number. An empty key has no word."""
    if not filter:
        return not words
    if filter[0] == "#":
        return any(words_match(filter[1:], words[at:]) for at in range(len(words) + 1))
    return bool(words) and filter[0] in ("*", words[0]) and words_match(filter[1:], words[1:])


def headers_match(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    kind = arguments.get("x-match", "all")
    asked = {
        name: value for name, value in arguments.items()
        if name != "x-match" and (kind.endswith("-with-x") or not name.startswith("x-"))
    }
    met = [name in headers and (value is None or equal(value, headers[name])) for name, value in asked.items()]
    return any(met) if kind.startswith("any") else all(met)


def equal(one: Any, other: Any) -> bool:
    """Erlang's `==` of two values without their types."""
    if one is None or other is None:
        return one is other
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and isinstance(other, bool) and one == other
    if isinstance(one, Decimal) or isinstance(other, Decimal):  # a scale and an integer
        return isinstance(one, Decimal) and isinstance(other, Decimal) and one.as_tuple() == other.as_tuple()
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, str | bytes) and isinstance(other, str | bytes):
        return octets(one) == octets(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal_inside, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(equal_inside, one.values(), other.values()))
    return isinstance(one, dict | list) and isinstance(other, dict | list) and not one and not other


def equal_inside(one: Any, other: Any) -> bool:
    """In arrays and tables types count."""
    return type(one) is type(other) and equal(one, other)


def octets(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
