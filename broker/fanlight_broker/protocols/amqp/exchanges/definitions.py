"""RabbitMQ's file of definitions, its part about vhosts, exchanges, queues and bindings: read, declared, written.

    found = read_definitions(json.loads(text))           by vhost; DefinitionsError says what is wrong, and where
    problems = declare_all(found["/"], exchanges)        after its queues were declared; what is refused, as text
    document = written({"/": (exchanges, queues)})       as `rabbitmqctl export_definitions` has it

A file of one vhost names none in its objects (RabbitMQ's HTTP API, `/api/definitions/VHOST`): `vhost` does. The default
exchange, predeclared ones and bindings of the default exchange are left out when they are read, as RabbitMQ leaves
them out when it writes. RabbitMQ does not write internal exchanges either, and refuses `null` in arguments.
Source: rabbitmq.com/docs/definitions, and files that RabbitMQ 3.10.8 has written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import VALUES_MAX, has_many
from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange
from fanlight_broker.protocols.amqp.exchanges.kinds import PREDECLARED
from fanlight_broker.protocols.amqp.exchanges.ports import Binding
from fanlight_broker.protocols.amqp.exchanges.registry import RESERVED, Exchanges

NAME_BYTES_MAX: Final = 255  # of a short string
DEPTH_MAX: Final = 16  # of arguments
KINDS: Final = {"queue": True, "exchange": False}


class DefinitionsError(ValueError):
    """A file of definitions that is not one. The text begins with the place: `bindings[3].source: ...`."""


class ExchangeDefinition(NamedTuple):
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Any]


class QueueDefinition(NamedTuple):
    name: str
    durable: bool
    auto_delete: bool
    arguments: Mapping[str, Any]


@dataclass(slots=True)
class VhostDefinitions:
    exchanges: list[ExchangeDefinition] = field(default_factory=list)
    queues: list[QueueDefinition] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)


class Item:
    """An object of the file, and where it is."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise DefinitionsError(f"{place}: is no object")
        self.value, self.place = value, place

    def text(self, name: str, default: str | None = None) -> str:
        found = self._get(name, str, default)
        assert isinstance(found, str)
        size = _size(found, f"{self.place}.{name}")
        if size > NAME_BYTES_MAX:
            raise DefinitionsError(f"{self.place}.{name}: {size} bytes, at most {NAME_BYTES_MAX} are allowed")
        return found

    def flag(self, name: str) -> bool:
        return bool(self._get(name, bool, False))

    def arguments(self) -> dict[str, Any]:
        found = self._get("arguments", dict, {})
        assert isinstance(found, dict)
        check_value(found, f"{self.place}.arguments", 1)
        return found

    def _get(self, name: str, kind: type, default: object) -> object:
        found = self.value.get(name, default)
        if found is None:
            raise DefinitionsError(f"{self.place}.{name}: is missing")
        if not isinstance(found, kind):
            raise DefinitionsError(f"{self.place}.{name}: {found!r:.40} is no {kind.__name__}")
        return found


def read_definitions(document: object, vhost: str | None = None) -> dict[str, VhostDefinitions]:
    """The definitions of a file, by vhost, in the order of the file. Raises DefinitionsError.

    vhost: of objects that name none
    """
    found: dict[str, VhostDefinitions] = {}
    for item in items(document, "vhosts"):
        found.setdefault(item.text("name"), VhostDefinitions())
    for item in items(document, "exchanges"):
        name = item.text("name")
        of = found.setdefault(item.text("vhost", vhost), VhostDefinitions())
        if name and not name.startswith(RESERVED):
            of.exchanges.append(ExchangeDefinition(
                name, item.text("type"), item.flag("durable"), item.flag("auto_delete"), item.flag("internal"),
                item.arguments(),
            ))
    for item in items(document, "queues"):
        found.setdefault(item.text("vhost", vhost), VhostDefinitions()).queues.append(
            QueueDefinition(item.text("name"), item.flag("durable"), item.flag("auto_delete"), item.arguments())
        )
    for item in items(document, "bindings"):
        source, kind = item.text("source"), item.text("destination_type", "queue")
        of = found.setdefault(item.text("vhost", vhost), VhostDefinitions())
        if kind not in KINDS:
            raise DefinitionsError(f"{item.place}.destination_type: {kind!r:.40} is neither queue nor exchange")
        if source:
            of.bindings.append(
                Binding(source, item.text("destination"), KINDS[kind], item.text("routing_key", ""), item.arguments())
            )
    return found


def declare_all(definitions: VhostDefinitions, exchanges: Exchanges) -> list[str]:
    """Declare the exchanges and bindings. Returns what was refused, and why; the rest is there.

    The queues are the caller's to declare before. What is there and equal is no error.
    """
    refused = []
    for exchange in definitions.exchanges:
        name, type, durable, auto_delete, internal, arguments = exchange
        try:
            exchanges.declare(
                name, type, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
            )
        except AmqpError as error:
            refused.append(f"exchange {name!r}: {error.text}")
    for each in definitions.bindings:
        bind = exchanges.bind if each.to_queue else exchanges.bind_exchange
        try:
            bind(each.destination, each.source, each.key, each.arguments)
        except AmqpError as error:
            refused.append(f"binding {each.source!r} to {each.destination!r} by {each.key!r}: {error.text}")
    return refused


def written(vhosts: Mapping[str, tuple[Exchanges, Iterable[QueueDefinition]]]) -> dict[str, Any]:
    """A document for `json.dumps`. Raises DefinitionsError for arguments that JSON cannot have, such as octets."""
    document: dict[str, list[dict[str, Any]]] = {
        "vhosts": [{"name": name} for name in vhosts], "queues": [], "exchanges": [], "bindings": [],
    }
    for vhost, (exchanges, queues) in vhosts.items():
        document["queues"] += [queue_written(vhost, queue) for queue in queues]
        document["exchanges"] += [
            exchange_written(vhost, each) for each in exchanges.in_force() if each.name not in PREDECLARED
        ]
        document["bindings"] += [binding_written(vhost, each) for each in exchanges.bindings()]
    return document


def queue_written(vhost: str, queue: QueueDefinition) -> dict[str, Any]:
    """An object of the file, as the two below. Raises DefinitionsError."""
    return _checked({"vhost": vhost, **queue._asdict()}, f"queue {queue.name!r}")


def exchange_written(vhost: str, exchange: AmqpExchange) -> dict[str, Any]:
    return _checked({
        "name": exchange.name, "vhost": vhost, "type": exchange.type, "durable": exchange.durable,
        "auto_delete": exchange.auto_delete, "internal": exchange.internal, "arguments": dict(exchange.arguments),
    }, f"exchange {exchange.name!r}")  # fmt: skip


def binding_written(vhost: str, binding: Binding) -> dict[str, Any]:
    return _checked({
        "source": binding.source, "vhost": vhost, "destination": binding.destination,
        "destination_type": "queue" if binding.to_queue else "exchange", "routing_key": binding.key,
        "arguments": dict(binding.arguments),
    }, f"binding of {binding.source!r} to {binding.destination!r}")  # fmt: skip


def _checked(row: dict[str, Any], place: str) -> dict[str, Any]:
    check_value(row["arguments"], f"{place}.arguments", 1)
    return row


def items(document: object, name: str) -> list[Item]:
    """The objects of one list of the file. Raises DefinitionsError."""
    if not isinstance(document, dict):
        raise DefinitionsError("the file: is no object")
    found = document.get(name, [])
    if not isinstance(found, list):
        raise DefinitionsError(f"{name}: is no list")
    return [Item(each, f"{name}[{at}]") for at, each in enumerate(found)]


def check_value(value: object, place: str, depth: int) -> None:
    """Of arguments: what both JSON and a field table can have. Raises DefinitionsError."""
    if depth > DEPTH_MAX:
        raise DefinitionsError(f"{place}: more than {DEPTH_MAX} deep")
    if depth == 1 and isinstance(value, dict) and has_many(value):
        raise DefinitionsError(f"{place}: more than {VALUES_MAX} values")
    if isinstance(value, dict):
        for name, each in value.items():
            if _size(name, place) > NAME_BYTES_MAX:
                raise DefinitionsError(f"{place}: {_size(name, place)} bytes in a name, at most {NAME_BYTES_MAX}")
            check_value(each, f"{place}.{name}", depth + 1)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            check_value(each, f"{place}[{at}]", depth + 1)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise DefinitionsError(f"{place}: {value} has more than 64 bits")
    elif isinstance(value, float):
        if value - value != 0:
            raise DefinitionsError(f"{place}: {value} is no number of JSON")
    elif isinstance(value, str):
        _size(value, place)
    elif value is not None:
        raise DefinitionsError(f"{place}: a {type(value).__name__} is no value of JSON")


def _size(text: str, place: str) -> int:
    """Bytes of a text. Raises DefinitionsError."""
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise DefinitionsError(f"{place}: half a surrogate pair is no text") from error
