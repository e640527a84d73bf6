"""A virtual host: its exchanges, and what AMQP knows of a queue beside the core's options.

A vhost is a namespace of the core: all of its queues are queues of the vhost. Those that AMQP clients have not declared
have the facts that follow from the core's options.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.protocol_part import PluginError
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.amqp.dead_letters import OWNER, DeadLetters
from fanlight_broker.protocols.amqp.delays import DelayedRoutes
from fanlight_broker.protocols.amqp.errors import AmqpError, amqp_error
from fanlight_broker.protocols.amqp.exchanges.ports import ExchangeLimits
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.exchanges.stored import PREFIX, StoredExchanges
from fanlight_broker.protocols.amqp.fields import SYNTAX
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.onward_queues import OnwardQueues
from fanlight_broker.protocols.amqp.publish_routes import site_of
from fanlight_broker.protocols.amqp.publish_sites import PublishSites
from fanlight_broker.protocols.amqp.queue_arguments import listed
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode
from fanlight_broker.protocols.amqp.stored_queues import PREFIX as QUEUES_PREFIX
from fanlight_broker.protocols.amqp.stored_queues import QueueFacts, StoredQueues
from fanlight_broker.protocols.amqp.stream_format import STREAM_FORMAT
from fanlight_broker.protocols.amqp.vhost_policies import PREFIX as POLICIES_PREFIX
from fanlight_broker.protocols.amqp.vhost_policies import VhostPolicies

ROOT_VHOST: Final = "/"
PROTOCOL: Final = "amqp"


def locked(queue: str, vhost: str) -> str:
    """Why an exclusive queue is refused, in RabbitMQ's words."""
    return (
        f"cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'. It could be originally "
        "declared on another connection or the exclusive property value does not match that of the original "
        "declaration."
    )


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
    def name(self) -> str:
        return self.work.name

    @property
    def facts(self) -> QueueFacts:
        return QueueFacts(self.auto_delete, self.known)

    @property
    def kept(self) -> bool:
        """Is there anything to keep for the next start, beside what the core keeps of it?"""
        return self.work.options.durable and bool(self.auto_delete or self.known)

    @property
    def is_stream(self) -> bool:
        return self.work.options.stream is not None

    @property
    def counts_deliveries(self) -> bool:
        """Do its deliveries say how often they were delivered before?"""
        return self.known.get("x-queue-type") == "quorum"

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
    """`amq.topic` is the topics of its namespace (exchanges.ports.TopicSpace). It is made when the core's queues from
    before a restart are there; its durable exchanges and bindings are restored then.
    """

    def __init__(self, broker: Namespace, limits: ExchangeLimits = ExchangeLimits()) -> None:  # noqa: B008  frozen
        self.broker = broker
        self.name = broker.name or ROOT_VHOST
        self.asker: Client | None = None  # whose request is acted on; None: an operator, who may do everything
        self._keeper = StoredExchanges(broker.declarations, self.name, self._is_durable)
        self.policies = VhostPolicies(broker.declarations, self.name, broker.queues, self.find)
        self.policies.restore()
        self.exchanges = Exchanges(
            self.name, QueueNames(broker.queues.get), keeper=self._keeper, topics=self, limits=limits,
            alternate_of=self.policies.alternate_of,
        )
        self.sites = PublishSites(partial(site_of, self), later=broker.turns.later)
        self._onward = OnwardQueues(broker, self.exchanges)
        self._declared: dict[str, DeclaredQueue] = {}
        self._stored = StoredQueues(broker.declarations, self.name, self._declared.values)
        self._owned: dict[object, dict[str, DeclaredQueue]] = {}  # exclusive ones, by connection
        broker.queues.watchers.append(self._queue_ended)
        broker.queues.bury_by(OWNER, DeadLetters(broker, self.exchanges).make)
        broker.queues.recording.formats[FORMAT.family] = STREAM_FORMAT
        broker.publishing.routed_by[FORMAT.family] = DelayedRoutes(broker, self.exchanges).route
        for queue in broker.queues:  # from before a restart
            queue.addressed |= queue.subscriber.origin.protocol == PROTOCOL
        for name, facts in self._stored.restore(lambda name: broker.queues.get(name) is not None).items():
            work = broker.queues.find(name)
            self._declared[name] = DeclaredQueue(work, work.options.durable, facts.auto_delete, known=facts.known)
            work.arguments = listed(facts.known)
        for queue in broker.queues:
            self.policies.adjust(queue)
        self._keeper.restore(self.exchanges)
        broker.holders.append(self._holds_any)

    def _holds_any(self) -> bool:
        return not self.exchanges.is_plain or len(self.policies.found) > 0

    def _is_durable(self, queue: str) -> bool:
        found = self.broker.queues.get(queue)
        return found is not None and found.options.durable

    def close(self) -> None:
        """Its namespace was let go: nothing is in it."""
        self.broker.queues.watchers.remove(self._queue_ended)
        del self.broker.queues.burial.owners[OWNER]
        del self.broker.publishing.routed_by[FORMAT.family]
        del self.broker.queues.recording.formats[FORMAT.family]
        self.broker.holders.remove(self._holds_any)
        self.sites.clear()
        self._keeper.close()
        self._stored.close()
        self.policies.close()

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
            raise AmqpError(ReplyCode.NOT_FOUND, f"no queue '{name}' in vhost '{self.name}'")
        if found.owner is not None and found.owner is not asker:
            raise AmqpError(ReplyCode.RESOURCE_LOCKED, locked(name, self.name))
        return found

    def add(self, queue: DeclaredQueue) -> None:
        """A queue that was just made in the core."""
        queue.work.addressed = True
        self._declared[queue.work.name] = queue
        if queue.owner is not None:
            self._owned.setdefault(queue.owner, {})[queue.work.name] = queue
        self._stored.begun(queue)
        self.policies.adjust(queue.work)

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
        if found is not None:
            self._stored.ended(found)
        if found is not None and found.owner is not None:
            owned = self._owned[found.owner]
            del owned[work.name]
            if not owned:
                del self._owned[found.owner]
        self.exchanges.queue_ended(work.name)

    # -- the broker's topics ----------------------------------------------------------------------------------------

    def bind(self, queue: str, key: str) -> None:
        if self._keeper.restoring:
            return  # the core has stored the filter with its queue
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
        if self.asker is not None and not self._keeper.restoring:
            self.broker.enforcement.check_filter(
                self.asker.subscriber, Action.SUBSCRIBE, key.encode(), SYNTAXES[SYNTAX], whole=True
            )
        self._lead_onward(key)

    def unwatch(self, key: str) -> None:
        self._lead_onward(key)

    def _lead_onward(self, key: str) -> None:
        """What is led on of the topics that match this key is another set of messages now."""
        self.broker.router.lead_onward(self._onward, key.encode(), SYNTAXES[SYNTAX])


def vhost_names(text: str) -> frozenset[str]:
    """Of the setting: names with commas between. Raises PluginError for one that is no name of a namespace."""
    names = frozenset(each.strip() for each in text.split(",") if each.strip())
    if not names:
        return names
    from fanlight_permissions.namespace_entries import NAME as NAMESPACE_NAME  # here: few need it at the start

    for name in sorted(names):
        if NAMESPACE_NAME.fullmatch(name) is None:
            raise PluginError(f"amqp_vhosts: {name!r} is no name of a vhost: 1 to 64 letters, digits, _ and -")
    return names


class Vhosts:
    """One for each namespace of a broker that AMQP clients have used, or have kept something in.

    names   namespaces that clients of the root may choose, beside their own, which is `/` to them
    limits  of the exchanges and bindings of each
    """

    def __init__(self, names: Container[str] = (), limits: ExchangeLimits = ExchangeLimits()) -> None:  # noqa: B008
        self._limits = limits
        self._names = names
        self._of: dict[str, Vhost] = {}

    def begin(self, broker: Broker) -> None:
        """Make those again in which something is kept from before a restart, and the root's."""
        self.of(broker)
        for owner in broker.declarations.waiting():
            for prefix in (PREFIX, QUEUES_PREFIX, POLICIES_PREFIX):
                if owner.startswith(prefix):
                    self.of(broker.named(owner.removeprefix(prefix)))

    def home(self, name: str, before: Namespace) -> Namespace | None:
        """The namespace that is a vhost of this name to a client that the permissions have put in one; None: there is
        no such vhost. Raises LimitExceeded.
        """
        if name == ROOT_VHOST or (name and name == before.name):
            return before
        if isinstance(before, Broker) and name in self._names:
            return before.namespaces.of(name)
        return None

    def of(self, home: Namespace) -> Vhost:
        found = self._of.get(home.name)
        if found is None or found.broker is not home:  # a namespace that was idle is let go, and made anew
            if found is not None:
                del self._of[home.name]
                found.close()
            self.forget_idle()
            found = self._of[home.name] = Vhost(home, self._limits)
        return found

    def present(self, broker: Broker) -> list[Vhost]:
        """Those that have been used, and the root's before the others."""
        root = self.of(broker)
        return [root, *(each for each in self._of.values() if each is not root)]

    def forget_idle(self) -> None:
        """Drop those whose namespaces have nothing in them and nobody, as the broker does."""
        for name, vhost in [*self._of.items()]:
            if name and vhost.broker.idle:
                del self._of[name]
                vhost.close()
