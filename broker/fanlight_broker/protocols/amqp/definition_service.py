"""RabbitMQ's definitions by the broker's HTTP listener: what the vhosts have, row by row, and what is to be in them.

A row is an object of the file with the list that it is in: `{"queues": {...}}`. The client puts the file together of
pages of rows, and sends it in pieces, so that no answer and no request is long (`fanlight definitions`).
Who asks has the permission to change something by HTTP, and is asked for no other.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import FanlightError, LimitExceeded
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.shares import SharedPot, principal_of
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.protocols.amqp.exchanges.definitions import (
    DefinitionsError,
    ExchangeDefinition,
    QueueDefinition,
    VhostDefinitions,
    binding_written,
    exchange_written,
    items,
    queue_written,
    read_definitions,
)
from fanlight_broker.protocols.amqp.exchanges.kinds import PREDECLARED, check_alternate, table_of
from fanlight_broker.protocols.amqp.exchanges.ports import Binding, ExchangeLimits
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.policies import NamedPolicy
from fanlight_broker.protocols.amqp.policy_definitions import policy_row, read_other_parameters, read_policies
from fanlight_broker.protocols.amqp.queue_arguments import CHECKS, Asked, check, known_of, listed, options_of
from fanlight_broker.protocols.amqp.stream_consumers import no_archive
from fanlight_broker.protocols.amqp.vhost import PROTOCOL, DeclaredQueue, Vhost, Vhosts

ELSEWHERE: Final = {  # lists of the file that are taken over in another way
    "users": "fanlightd user import USERS_FILE FILE", "permissions": "fanlightd permissions import rabbitmq FILE",
    "topic_permissions": "fanlightd permissions import rabbitmq FILE",
}  # fmt: skip
NAMED_MAX: Final = 1_000  # of what was removed, in an answer
OPERATOR: Final = "definitions"  # the client that queues of a file are made by, for people and rules
OPERATORS_ADDRESS: Final = "127.0.0.1"  # whose share of the limits they count in

Steps = Generator[None, None, dict[str, Any]]


class DefinitionService:
    def __init__(self, broker: Broker, vhosts: Vhosts) -> None:
        self._broker = broker
        self._vhosts = vhosts

    # -- what is there ----------------------------------------------------------------------------------------------

    def rows(self, *, offset: int, limit: int) -> Steps:
        """A page of rows, in an order that changes with what is declared only."""
        found: list[dict[str, Any]] = []
        for number, (kind, row) in enumerate(self._all()):
            if number >= offset + limit:
                return {"rows": found, "next": offset + limit}
            if number >= offset:
                found.append({kind: row})
            yield
        return {"rows": found, "next": None}

    def _all(self) -> Iterator[tuple[str, dict[str, Any]]]:
        vhosts = self._vhosts.present(self._broker)
        yield from (("vhosts", {"name": vhost.name}) for vhost in vhosts)
        for vhost in vhosts:
            for policy in sorted(vhost.policies.found, key=lambda each: (each.operator, each.name)):
                yield policy_row(vhost.name, policy)
        for vhost in vhosts:
            for each in vhost.exchanges.in_force():
                if each.name not in PREDECLARED:
                    yield _row("exchanges", exchange_written, vhost.name, each)
        for vhost in vhosts:
            for work in list(vhost.broker.queues):
                queue = vhost.find(work.name)
                if queue is not None and queue.owner is None:
                    definition = QueueDefinition(queue.name, queue.durable, queue.auto_delete, queue.known)
                    yield _row("queues", queue_written, vhost.name, definition)
        for vhost in vhosts:
            for binding in vhost.exchanges.bindings():
                queue = vhost.find(binding.destination) if binding.to_queue else None
                if queue is None or queue.owner is None:
                    yield _row("bindings", binding_written, vhost.name, binding)

    # -- what is to be there ----------------------------------------------------------------------------------------

    def take(self, document: object, *, dry: bool) -> Steps:
        """Declare what a part of a file has. dry: only look at each object. Raises DefinitionsError."""
        found, policies = read_definitions(document), read_policies(document)
        assert isinstance(document, dict)
        done, notes = list[str](), list[str]()
        refused = [f"{each}: not supported" for each in read_other_parameters(document)]
        for name, command in ELSEWHERE.items():
            if count := len(document.get(name) or ()):
                notes += [f"{count} {name}: {command}"]
        notes += [f"global parameter {item.text('name')!r}: ignored" for item in items(document, "global_parameters")]
        notes += [
            f"vhost {item.text('name')!r}: its limits are not obeyed"
            for item in items(document, "vhosts") if item.value.get("limits")
        ]
        for name in dict.fromkeys((*found, *policies)):
            try:
                vhost = self._vhost(name)
            except FanlightError as error:
                refused.append(f"vhost {name!r}: {error.text}")
                continue
            for what, act in _acts(found.get(name, VhostDefinitions()), policies.get(name, ())):
                try:
                    notes += act(self, vhost, dry)
                    done.append(f"vhost {name!r}, {what}")
                except FanlightError as error:
                    refused.append(f"vhost {name!r}, {what}: {error.text}")
                yield
            if name in policies and not dry:
                yield from vhost.policies.follow(vhost.exchanges)
        return {"done": len(done), "made": done, "refused": refused, "notes": notes}

    def policy(self, vhost: Vhost, wanted: NamedPolicy, dry: bool) -> list[str]:
        if dry:
            wanted.check()
        else:
            vhost.policies.put(wanted)
        kept = ", ".join(wanted.not_obeyed)
        return [f"policy {wanted.name!r}: not obeyed: {kept}"] if kept else []

    # -- what is not to be there any more ---------------------------------------------------------------------------

    def drop(self, document: object) -> Steps:
        """Remove the policies that a file has, and all of its vhosts: queues and exchanges of AMQP clients, bindings
        and policies. What is not there is refused. Raises DefinitionsError.
        """
        policies, clearing = read_policies(document), [item.text("name") for item in items(document, "vhosts")]
        done, refused = list[str](), list[str]()
        for name in dict.fromkeys((*clearing, *policies)):
            vhost = next((each for each in self._vhosts.present(self._broker) if each.name == name), None)
            if vhost is None:
                refused.append(f"vhost {name!r}: there is no such vhost")
                continue
            for policy in policies.get(name, ()):
                if vhost.policies.remove(policy.name, operator=policy.operator):
                    done.append(f"vhost {name!r}, policy {policy.name!r}")
                else:
                    refused.append(f"vhost {name!r}: there is no policy {policy.name!r}")
            if name in clearing:
                done += yield from cleared(vhost)
            yield from vhost.policies.follow(vhost.exchanges)
        return {"done": len(done), "made": done[:NAMED_MAX], "refused": refused, "notes": []}

    def _vhost(self, name: str) -> Vhost:
        home = self._vhosts.home(name, self._broker)
        if home is None:
            raise FanlightError("there is no such vhost; name it in the setting amqp_vhosts")
        return self._vhosts.of(home)

    def exchange(self, vhost: Vhost, wanted: ExchangeDefinition, dry: bool) -> list[str]:
        name, type, durable, auto_delete, internal, arguments = wanted
        if dry:
            check_alternate(name, vhost.name, arguments)
            table_of(type, arguments, [], ExchangeLimits())
        else:
            vhost.exchanges.declare(
                name, type, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
            )
        return []

    def queue(self, vhost: Vhost, wanted: QueueDefinition, dry: bool) -> list[str]:
        asked = Asked(wanted.name, vhost.name, wanted.arguments)
        check(asked, durable=wanted.durable, exclusive=False, auto_delete=wanted.auto_delete)
        known, home = known_of(wanted.arguments), vhost.broker
        found = vhost.find(wanted.name)
        if found is not None:
            if (found.durable, found.auto_delete, found.known) != (wanted.durable, wanted.auto_delete, known):
                raise FanlightError("it is there, with other arguments")
        elif not dry:
            options = options_of(known, durable=wanted.durable)
            if options.stream is not None and home.replay_source is None:
                raise no_archive(wanted.name, vhost.name)
            if home.shares.total(SharedPot.QUEUES) >= home.limits.queues_max:
                raise LimitExceeded("too many queues", "queues_max", home.limits.queues_max)
            work = home.queues.begin(operator_of(home), wanted.name, (), options, home.ledger.now)
            work.arguments = listed(wanted.arguments)
            vhost.add(DeclaredQueue(work, wanted.durable, wanted.auto_delete, None, known))
        unknown = ", ".join(sorted(set(wanted.arguments) - set(CHECKS)))
        return [f"queue {wanted.name!r}: not obeyed: {unknown}"] if unknown else []

    def binding(self, vhost: Vhost, wanted: Binding, dry: bool) -> list[str]:
        if not dry:
            vhost.asker = None  # an operator
            bind = vhost.exchanges.bind if wanted.to_queue else vhost.exchanges.bind_exchange
            bind(wanted.destination, wanted.source, wanted.key, wanted.arguments)
        return []


def _row(kind: str, write: Callable[[str, Any], dict[str, Any]], vhost: str, what: Any) -> tuple[str, dict[str, Any]]:
    """With its list; `left_out` for arguments that JSON cannot have."""
    try:
        return kind, write(vhost, what)
    except DefinitionsError as error:
        return "left_out", {"vhost": vhost, "reason": str(error)}


def _acts(definitions: VhostDefinitions, policies: Iterable[NamedPolicy]) -> Iterator[tuple[str, Any]]:
    """What is declared, in an order in which it can be: a text for people, and what does it."""
    for policy in policies:
        yield (
            f"{'operator policy' if policy.operator else 'policy'} {policy.name!r}",
            lambda self, vhost, dry, each=policy: self.policy(vhost, each, dry),
        )
    for exchange in definitions.exchanges:
        yield f"exchange {exchange.name!r}", lambda self, vhost, dry, each=exchange: self.exchange(vhost, each, dry)
    for queue in definitions.queues:
        yield f"queue {queue.name!r}", lambda self, vhost, dry, each=queue: self.queue(vhost, each, dry)
    for binding in definitions.bindings:
        yield (
            f"binding of {binding.source!r} to {binding.destination!r}",
            lambda self, vhost, dry, each=binding: self.binding(vhost, each, dry),
        )


def cleared(vhost: Vhost) -> Generator[None, None, list[str]]:
    """Empty a vhost of what AMQP clients and files have declared. Returns what there was."""
    done = []
    for policy in vhost.policies.found:
        vhost.policies.remove(policy.name, operator=policy.operator)
        done.append(f"vhost {vhost.name!r}, policy {policy.name!r}")
    for work in list(vhost.broker.queues):
        if work.addressed and vhost.broker.queues.get(work.name) is work:
            vhost.broker.queues.end(work)
            done.append(f"vhost {vhost.name!r}, queue {work.name!r}")
            yield
    for exchange in vhost.exchanges.in_force():
        if exchange.name not in PREDECLARED and vhost.exchanges.find(exchange.name) is exchange:
            vhost.exchanges.delete(exchange.name)
            done.append(f"vhost {vhost.name!r}, exchange {exchange.name!r}")
            yield
    for binding in list(vhost.exchanges.bindings()):
        if not binding.to_queue:  # between exchanges that are always there
            vhost.exchanges.unbind_exchange(binding.destination, binding.source, binding.key, binding.arguments)
            yield
    return done


def operator_of(home: Namespace) -> Subscriber:
    """Who has made the queues of a file: no client."""
    share = home.shares.of(principal_of("", OPERATORS_ADDRESS, verified=False, namespace=home.name))
    home.shares.check(share, SharedPot.QUEUES)
    return Subscriber(OPERATOR, "", PROTOCOL, FORMAT, share, "", origin=Origin(namespace=home.name))

