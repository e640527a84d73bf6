"""What AMQP knows of durable queues beside the core's options, over a restart: auto-delete, and the known arguments.

A client that declares its queue again after a restart must find it equal, so what the comparison is about is kept, as
a declaration with the queue's name as its key. The body is `[auto_delete, arguments]`; arguments are a field table.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.declarations import Declarations
from fanlight_broker.protocols.amqp.data_types import OctetReader
from fanlight_broker.protocols.amqp.field_table import encode_table, read_table

PREFIX: Final = "amqp-queues "  # of an owner; its vhost follows


class QueueFacts(NamedTuple):
    auto_delete: bool
    known: dict[str, Any]  # arguments


class KeptQueue(Protocol):
    """A queue as its vhost has it."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> QueueFacts: ...

    @property
    def kept(self) -> bool:
        """Is it durable, and has more than a name?"""
        ...


class StoredQueues:
    """queues: those of the vhost that are there when each is asked for."""

    def __init__(
        self, declarations: Declarations, vhost: str, queues: Callable[[], Iterable[KeptQueue]]
    ) -> None:
        self._declarations = declarations
        self._owner = PREFIX + vhost
        self._queues = queues

    def restore(self, exists: Callable[[str], bool]) -> dict[str, QueueFacts]:
        """Of the queues from before a restart, by name; those that are gone are forgotten."""
        found = {}
        for key, body in self._declarations.claim(self._owner, self._restated).items():
            name = key.decode()
            if exists(name):
                auto_delete, table = msgpack.unpackb(body)
                found[name] = QueueFacts(auto_delete, dict(read_table(OctetReader(table, "a stored table"))))
            else:
                self._declarations.forget(self._owner, key)
        return found

    def _restated(self) -> Iterator[tuple[bytes, bytes]]:
        for queue in [*self._queues()]:
            if queue.kept:
                yield queue.name.encode(), _body(queue)

    def begun(self, queue: KeptQueue) -> None:
        if queue.kept:
            self._declarations.keep(self._owner, queue.name.encode(), _body(queue))

    def ended(self, queue: KeptQueue) -> None:
        if queue.kept:
            self._declarations.forget(self._owner, queue.name.encode())

    def close(self) -> None:
        self._declarations.release(self._owner)


def _body(queue: KeptQueue) -> bytes:
    auto_delete, known = queue.facts
    octets: bytes = msgpack.packb([auto_delete, encode_table(known)])
    return octets
