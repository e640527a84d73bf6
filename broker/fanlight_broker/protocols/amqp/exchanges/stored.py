"""Durable exchanges and bindings over a restart: the Keeper of a vhost over the core's declarations.

    keeper = StoredExchanges(broker.declarations, "/", is_durable)       is_durable: of a queue, by its name
    exchanges = Exchanges("/", queues, keeper=keeper, topics=topics)
    keeper.restore(exchanges)                                            once, after the core's queues are there

While `restoring`, `bind` is called for each binding to the shared `amq.topic`, too: the core has stored such a filter
with its queue, so the owner has nothing to do for it. A binding is kept if its source and its destination are durable.
What a record says that cannot be made again (a queue that is gone) is forgotten.

A key is msgpack: `["exchange", name]` or `["binding", source, destination, to_queue, key, arguments]`. The body of an
exchange is `[type, auto_delete, internal, arguments]`, that of a binding is empty. Arguments are a field table as on
the wire (4.2.5.5), sorted by name.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]

from fanlight_broker import event_log
from fanlight_broker.core.declarations import Declarations
from fanlight_broker.protocols.amqp.data_types import OctetReader
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges.arguments import frozen, thawed
from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange
from fanlight_broker.protocols.amqp.exchanges.kinds import PREDECLARED
from fanlight_broker.protocols.amqp.exchanges.ports import Binding
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.field_table import FieldTable, encode_table, read_table

log: Final = event_log.get("amqp")
PREFIX: Final = "amqp "  # of an owner; its vhost follows


class StoredExchanges:
    """The durable exchanges and bindings of a vhost, as declarations of an owner of its own."""

    def __init__(self, declarations: Declarations, vhost: str, is_durable: Callable[[str], bool]) -> None:
        self.restoring = False
        self._declarations = declarations
        self._owner = PREFIX + vhost
        self._is_durable = is_durable
        self._exchanges: Exchanges | None = None
        self._kept: dict[str, int] = {}  # bindings to durable queues that are kept, by queue

    def restore(self, exchanges: Exchanges) -> None:
        """Make again what was there before a restart."""
        self._exchanges = exchanges
        kept = self._declarations.claim(self._owner, self._restated)
        self.restoring = True
        gone = []
        try:
            # Exchanges first: a binding may be older than an exchange that was declared anew.
            for key, body in sorted(kept.items(), key=lambda item: _is_binding(item[0])):
                try:
                    self._make(exchanges, key, body)
                except (AmqpError, ValueError) as error:
                    gone.append(key)
                    log.warning("amqp_declaration_lost", owner=self._owner, error=str(error))
        finally:
            self.restoring = False
        for key in gone:
            self._declarations.forget(self._owner, key)

    def _make(self, exchanges: Exchanges, key: bytes, body: bytes) -> None:
        """Raises AmqpError for what cannot be, ValueError for a record without a meaning."""
        kind, *fields = msgpack.unpackb(key)
        if kind == "exchange":
            type, auto_delete, internal, arguments = msgpack.unpackb(body)
            exchanges.declare(
                fields[0], type, durable=True, auto_delete=auto_delete, internal=internal, arguments=_table(arguments)
            )
            return
        source, destination, to_queue, routing_key, arguments = fields
        bind = exchanges.bind if to_queue else exchanges.bind_exchange
        bind(destination, source, routing_key, _table(arguments))

    def _restated(self) -> Iterator[tuple[bytes, bytes]]:
        assert self._exchanges is not None
        for exchange in self._exchanges.in_force():
            if exchange.durable and self._exchanges.find(exchange.name) is exchange:
                if exchange.name not in PREDECLARED:
                    yield _exchange_key(exchange), _exchange_body(exchange)
                for binding in self._exchanges.bindings(exchange.name):
                    if self._is_kept(binding):
                        yield _binding_key(binding), b""

    def _is_kept(self, binding: Binding) -> bool:
        if binding.to_queue:
            return binding.destination in self._kept
        destination = self._exchanges.find(binding.destination) if self._exchanges is not None else None
        return destination is not None and destination.durable

    def close(self) -> None:
        """Nothing is left of the vhost."""
        self._declarations.release(self._owner)

    # -- Keeper -----------------------------------------------------------------------------------------------------

    def exchange_begun(self, exchange: AmqpExchange) -> None:
        if not self.restoring:
            self._declarations.keep(self._owner, _exchange_key(exchange), _exchange_body(exchange))

    def exchange_ended(self, exchange: AmqpExchange) -> None:
        self._declarations.forget(self._owner, _exchange_key(exchange))

    def bound(self, binding: Binding) -> None:
        if binding.to_queue:
            if not self._is_durable(binding.destination):
                return
            self._kept[binding.destination] = self._kept.get(binding.destination, 0) + 1
        if not self.restoring:
            self._declarations.keep(self._owner, _binding_key(binding), b"")

    def unbound(self, binding: Binding) -> None:
        if binding.to_queue:  # which may have ended, so it is not asked whether it is durable
            count = self._kept.pop(binding.destination, 0)
            if not count:
                return
            if count > 1:
                self._kept[binding.destination] = count - 1
        self._declarations.forget(self._owner, _binding_key(binding))


def _is_binding(key: bytes) -> bool:
    return bool(msgpack.unpackb(key)[0] == "binding")


def _exchange_key(exchange: AmqpExchange) -> bytes:
    return _packed("exchange", exchange.name)


def _exchange_body(exchange: AmqpExchange) -> bytes:
    return _packed(exchange.type, exchange.auto_delete, exchange.internal, encode_table(exchange.arguments))


def _binding_key(binding: Binding) -> bytes:
    arguments = encode_table(thawed(frozen(binding.arguments)))
    return _packed("binding", binding.source, binding.destination, binding.to_queue, binding.key, arguments)


def _packed(*fields: Any) -> bytes:
    octets: bytes = msgpack.packb(fields)
    return octets


def _table(octets: bytes) -> FieldTable:
    return read_table(OctetReader(octets, "a stored table"))
