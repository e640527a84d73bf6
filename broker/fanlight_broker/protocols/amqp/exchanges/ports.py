"""What exchanges need of their owner: which queues there are, the broker's topics, and a keeper of what is durable."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange

BINDING_BYTES = 350  # of a binding without arguments, its key not counted: `micro bindings` measures it
EXCHANGE_BYTES = 1_500
TOPIC_INDEX_BYTES = 32_000  # of an exchange that has an index of filters


class Binding(NamedTuple):
    """One binding. to_queue: the destination is a queue, else an exchange."""

    source: str
    destination: str
    to_queue: bool
    key: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExchangeLimits:
    """Bounds of one vhost. What would exceed one is refused with 406.

    bytes_max  of exchanges and bindings together, estimated (`Exchanges.nbytes`)
    kept_max   answers that are kept for their keys, each counted as 8 and one for each queue in it
    hashes_max, searching_max  `#` in a binding key of a topic exchange; bindings with two and more, of all of them:
                               a match takes longer for each. The settings of the same names are MQTT's and native's
    """

    exchanges_max: int = 10_000
    bytes_max: int = 1 << 29
    kept_max: int = 1 << 18
    hashes_max: int = 4
    searching_max: int = 1_000


class Names(Protocol):
    """The queues of a vhost: any set or dict of their names."""

    def __contains__(self, name: object, /) -> bool: ...


class TopicSpace(Protocol):
    """The broker's own topics, behind the shared `amq.topic`. Keys are in AMQP's spelling.

    `bind` and `unbind` come once for a queue and a key, `watch` and `unwatch` once for a key, however many bindings
    there are. `bind` and `watch` may raise AmqpError: then the binding is refused.
    """

    def bind(self, queue: str, key: str) -> None:
        """The queue gets what is published to topics that match the key."""
        ...

    def unbind(self, queue: str, key: str) -> None: ...

    def watch(self, key: str) -> None:
        """An exchange behind `amq.topic` gets them: `Exchanges.publish_onward` is to be called with each, except for
        those that `publish` has returned topics for.
        """
        ...

    def unwatch(self, key: str) -> None: ...


class Keeper(Protocol):
    """Keeps what must survive a restart, reported after the change. `NoKeeper` keeps nothing.

    Exchanges are durable ones. Of a binding the source is durable, and the destination is a durable exchange or a
    queue: whether the queue is durable, and so the binding, is the owner's to know.
    """

    def exchange_begun(self, exchange: "AmqpExchange") -> None: ...

    def exchange_ended(self, exchange: "AmqpExchange") -> None:
        """It is over, and so are its bindings, which are reported as unbound before."""
        ...

    def bound(self, binding: Binding) -> None: ...

    def unbound(self, binding: Binding) -> None: ...


class NoKeeper:
    """Keeps nothing."""

    def exchange_begun(self, exchange: "AmqpExchange") -> None:
        pass

    def exchange_ended(self, exchange: "AmqpExchange") -> None:
        pass

    def bound(self, binding: Binding) -> None:
        pass

    def unbound(self, binding: Binding) -> None:
        pass
