"""A virtual host: its exchanges, and what AMQP knows of a queue beside the core's options.

All queues of the core are queues of the vhost `/`. Those that AMQP clients have not declared have the facts that
follow from the core's options.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.amqp.errors import AmqpError, amqp_error
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.fields import SYNTAX
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

ROOT_VHOST: Final = "/"
PROTOCOL: Final = "amqp"


@dataclass(slots=True, eq=False)
class DeclaredQueue:
    """owner: the connection of an exclusive one. consumers: those that have not been cancelled."""

    work: WorkQueue
    durable: bool
    auto_delete: bool = False
    owner: object | None = None
    known: dict[str, Any] = field(default_factory=dict)  # arguments
    consumers: int = 0
    exclusive_consumer: bool = False  # the one that there is lets no other in

    @property
    def ready(self) -> int:
        """Messages that wait."""
        return len(self.work.inside.queue)


class QueueNames:
    """The queues that a registry of exchanges may bind and reach."""

    def __init__(self, find: Callable[[str], WorkQueue | None]) -> None:
        self._find = find

    def __contains__(self, name: object, /) -> bool:
        return isinstance(name, str) and self._find(name) is not None


class Vhost:
    """The vhost `/`: `amq.topic` is the broker's topics (exchanges.ports.TopicSpace)."""

    def __init__(self, broker: Namespace) -> None:
        self.broker = broker
        self.exchanges = Exchanges(ROOT_VHOST, QueueNames(broker.queues.get), topics=self)
        self.asker: Client | None = None  # whose request is acted on
        self._declared: dict[str, DeclaredQueue] = {}
        self._owned: dict[object, dict[str, DeclaredQueue]] = {}  # exclusive ones, by connection
        broker.queues.watchers.append(self._queue_ended)
        for queue in broker.queues:  # from before a restart
            queue.addressed |= queue.subscriber.origin.protocol == PROTOCOL

    # -- queues -----------------------------------------------------------------------------------------------------

    def find(self, name: str) -> DeclaredQueue | None:
        found = self._declared.get(name)
        if found is None:
            work = self.broker.queues.get(name)
            if work is not None:
                found = self._declared[name] = DeclaredQueue(work, work.options.durable)
        return found

    def queue(self, name: str, asker: object) -> DeclaredQueue:
        """Raises AmqpError: 404, or 405 for the exclusive queue of another connection."""
        found = self.find(name)
        if found is None:
            raise AmqpError(ReplyCode.NOT_FOUND, f"no queue '{name}' in vhost '{ROOT_VHOST}'")
        if found.owner is not None and found.owner is not asker:
            raise AmqpError(
                ReplyCode.RESOURCE_LOCKED,
                f"cannot obtain exclusive access to locked queue '{name}' in vhost '{ROOT_VHOST}'",
            )
        return found

    def add(self, queue: DeclaredQueue) -> None:
        """A queue that was just made in the core."""
        queue.work.addressed = True
        self._declared[queue.work.name] = queue
        if queue.owner is not None:
            self._owned.setdefault(queue.owner, {})[queue.work.name] = queue

    def owned(self, owner: object) -> list[DeclaredQueue]:
        """The exclusive queues of a connection."""
        return [*self._owned.get(owner, {}).values()]

    def left(self, queue: DeclaredQueue) -> None:
        """A consumer of it has gone, or was cancelled."""
        queue.consumers -= 1
        queue.exclusive_consumer = False
        if queue.auto_delete and not queue.consumers and self.broker.queues.get(queue.work.name) is queue.work:
            self.broker.queues.end(queue.work, "auto_delete")

    def _queue_ended(self, work: WorkQueue) -> None:
        found = self._declared.pop(work.name, None)
        if found is not None and found.owner is not None:
            owned = self._owned[found.owner]
            del owned[work.name]
            if not owned:
                del self._owned[found.owner]
        self.exchanges.queue_ended(work.name)

    # -- the broker's topics ----------------------------------------------------------------------------------------

    def bind(self, queue: str, key: str) -> None:
        assert self.asker is not None
        try:
            self.broker.queues.bind(
                self.asker, self.broker.queues.find(queue), key.encode(), SYNTAXES[SYNTAX]
            )
        except FanlightError as error:
            raise amqp_error(error) from error

    def unbind(self, queue: str, key: str) -> None:
        found = self.broker.queues.get(queue)
        if found is not None:
            self.broker.queues.unbind(found, key.encode(), SYNTAXES[SYNTAX])

    def watch(self, key: str) -> None:
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "bindings from amq.topic to another exchange")

    def unwatch(self, key: str) -> None:
        pass  # there are none


class Vhosts:
    """One for each namespace of a broker, made when its first client comes: a part is made before its broker."""

    def __init__(self) -> None:
        self._of: dict[str, Vhost] = {}

    def open(self, name: str, home: Namespace) -> Vhost:
        """The vhost of a client that is in this namespace. Raises AmqpError 530."""
        if name != ROOT_VHOST:
            raise AmqpError(ReplyCode.NOT_ALLOWED, f"vhost {name} not found")
        found = self._of.get(home.name)
        if found is None or found.broker is not home:  # a namespace that was idle is let go, and made anew
            self._of = {each: vhost for each, vhost in self._of.items() if not vhost.broker.idle}
            found = self._of[home.name] = Vhost(home)
        return found
