"""Policies: options of queues and exchanges whose names match a pattern, as RabbitMQ has them.

    policy            the one of the highest priority that matches and applies
    operator policy   a second one, of operators: of two limits the lower one is in force, of other options its own
    arguments         of the queue's declaration: the lower limit again, and else the argument

    Policies.of_queue(name, kind) --> merged(arguments, found) --> effective_options(...) --> Queues.adjust

A policy with a key that a type of queue cannot have does not apply to queues of that type, as in RabbitMQ 3.10. Keys
that RabbitMQ knows and Fanlight does not obey are accepted and listed; others are refused.
Sources: rabbitmq.com/docs/policies; RabbitMQ 3.10.8 with `rabbitmqctl set_policy`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.amqp.patterns import compiled
from fanlight_broker.protocols.amqp.queue_arguments import CLASSIC, OVERFLOWS, QUORUM, STREAM, options_of

NUMBER_MAX: Final = 2**63 - 1
NAME_BYTES_MAX: Final = 255
ALTERNATE: Final = "alternate-exchange"
DELIVERIES: Final = "delivery-limit"
LOWER: Final = frozenset({"message-ttl", "expires", "max-length", "max-length-bytes", DELIVERIES})  # wins of two
OBEYED: Final = (*sorted(LOWER), "overflow", "dead-letter-exchange", "dead-letter-routing-key")  # of queues
OF_STREAMS: Final = frozenset({"max-age", "stream-max-segment-size-bytes", "initial-cluster-size"})
OF_QUORUM: Final = frozenset({
    DELIVERIES, "dead-letter-strategy", "max-in-memory-length", "max-in-memory-bytes", "target-group-size",
})  # fmt: skip
OF_CLASSIC: Final = frozenset({
    "queue-mode", "queue-version", "queue-master-locator", "ha-mode", "ha-params", "ha-sync-mode",
    "ha-sync-batch-size", "ha-promote-on-shutdown", "ha-promote-on-failure",
})  # fmt: skip
LISTED: Final = OF_STREAMS | OF_QUORUM | OF_CLASSIC | {
    "federation-upstream", "federation-upstream-set", "consumer-timeout", "queue-leader-locator",
}  # what RabbitMQ knows
NOT_OF: Final = {  # keys that a type of queue cannot have
    CLASSIC: OF_STREAMS | OF_QUORUM, QUORUM: OF_STREAMS | OF_CLASSIC,
    STREAM: OF_QUORUM | OF_CLASSIC | LOWER - {"max-length-bytes"},
}  # fmt: skip
QUEUES: Final = "queues"
EXCHANGES: Final = "exchanges"
ALL: Final = "all"
KINDS: Final = {"classic_queues": CLASSIC, "quorum_queues": QUORUM, "streams": STREAM}  # of RabbitMQ 3.12
APPLY_TO: Final = (ALL, QUEUES, EXCHANGES, *KINDS)
OF_OPERATORS: Final = LOWER | {"max-in-memory-length", "max-in-memory-bytes", "overflow", "target-group-size"}


class WrongPolicy(FanlightError):
    """A policy that is refused, in RabbitMQ's words where it has some."""


def _integer(words: str, least: int) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return None if whole and least <= value <= NUMBER_MAX else f"{value!r:.40} is not a valid {words}"

    return check


def _text(words: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        fits = isinstance(value, str) and len(value.encode(errors="surrogatepass")) <= NAME_BYTES_MAX
        return None if fits else f"{value!r:.40} is not a valid {words}"

    return check


CHECKS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "message-ttl": _integer("message TTL", 0), "expires": _integer("queue expiry", 1),
    "max-length": _integer("maximum length", 0), "max-length-bytes": _integer("maximum length in bytes", 0),
    DELIVERIES: _integer("delivery limit", 0), "dead-letter-exchange": _text("dead letter exchange name"),
    "dead-letter-routing-key": _text("dead letter routing key"), ALTERNATE: _text("alternate exchange name"),
    "overflow": lambda value: None if isinstance(value, str) and value in OVERFLOWS
    else f"{value!r:.40} is not a valid overflow mode",
}  # fmt: skip


class NamedPolicy(NamedTuple):
    """operator: it is one of operators. Two of a name are different ones then."""

    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Mapping[str, Any]
    operator: bool = False

    @property
    def not_obeyed(self) -> list[str]:
        """Keys that are known and have no effect."""
        return [key for key in self.definition if key in LISTED and key != DELIVERIES]

    def check(self) -> re.Pattern[str]:
        """Its pattern. Raises WrongPolicy, WrongPattern."""
        if not self.name or len(self.name.encode()) > NAME_BYTES_MAX:
            raise WrongPolicy(f"the name of a policy has 1 to {NAME_BYTES_MAX} bytes")
        if self.apply_to not in APPLY_TO:
            names = ", ".join(repr(each) for each in APPLY_TO)
            raise WrongPolicy(f"apply-to {self.apply_to!r:.40} unrecognised; should be one of {names}")
        if isinstance(self.priority, bool) or not -(2**63) <= self.priority <= NUMBER_MAX:
            raise WrongPolicy("priority is no integer of 64 bits")
        if not self.definition:
            raise WrongPolicy("no policy provided")
        known = OF_OPERATORS if self.operator else {*CHECKS, *LISTED}
        unknown = [key for key in self.definition if key not in known]
        if unknown:
            raise WrongPolicy(f"{', '.join(map(repr, unknown))} are not recognised policy settings")
        for key, value in self.definition.items():
            why = CHECKS[key](value) if key in CHECKS else None
            if why is not None:
                raise WrongPolicy(why)
        return compiled(self.pattern)


class InForce(NamedTuple):
    """The policies of one queue, or of one exchange. One at least is there."""

    policy: NamedPolicy | None
    operator: NamedPolicy | None

    @property
    def name(self) -> str:
        return (self.policy or self.operator or NOBODY).name

    @property
    def definition(self) -> dict[str, Any]:
        """Of both together."""
        found = dict(self.policy.definition) if self.policy is not None else {}
        for key, value in self.operator.definition.items() if self.operator is not None else ():
            found[key] = min(found[key], value) if key in LOWER and key in found else value
        return found


NOBODY: Final = NamedPolicy("", "", ALL, 0, {})


class Policies:
    """Those of one vhost, in the order in which they are asked: by priority, then by name."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[bool, str], tuple[NamedPolicy, re.Pattern[str]]] = {}
        self._in_order: list[tuple[NamedPolicy, re.Pattern[str]]] = []

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[NamedPolicy]:
        return iter([policy for policy, _ in self._by_name.values()])

    def get(self, name: str, *, operator: bool = False) -> NamedPolicy | None:
        found = self._by_name.get((operator, name))
        return found[0] if found is not None else None

    def put(self, policy: NamedPolicy) -> None:
        """It is new, or in place of the one of its name. Raises WrongPolicy, WrongPattern."""
        self._by_name[policy.operator, policy.name] = (policy, policy.check())
        self._sort()

    def remove(self, name: str, *, operator: bool = False) -> bool:
        """Was it there?"""
        found = self._by_name.pop((operator, name), None)
        self._sort()
        return found is not None

    def _sort(self) -> None:
        self._in_order = sorted(self._by_name.values(), key=lambda each: (-each[0].priority, each[0].name))

    def of_queue(self, name: str, kind: str) -> InForce | None:
        """kind: classic, quorum or stream."""
        return self._found(name, lambda policy: (
            policy.apply_to in (ALL, QUEUES) or KINDS.get(policy.apply_to) == kind
        ) and NOT_OF[kind].isdisjoint(policy.definition))  # fmt: skip

    def of_exchange(self, name: str) -> InForce | None:
        return self._found(name, lambda policy: policy.apply_to in (ALL, EXCHANGES))

    def _found(self, name: str, applies: Callable[[NamedPolicy], bool]) -> InForce | None:
        found: dict[bool, NamedPolicy] = {}
        for policy, pattern in self._in_order:
            if policy.operator not in found and applies(policy) and pattern.search(name) is not None:
                found[policy.operator] = policy
                if len(found) == 2:
                    break
        return InForce(found.get(False), found.get(True)) if found else None


def merged(arguments: Mapping[str, Any], found: InForce | None) -> dict[str, Any]:
    """The arguments of a queue that its declaration and its policies make together."""
    together = dict(arguments)
    definition = found.definition if found is not None else {}
    for key in OBEYED:
        if key not in definition:
            continue
        name, value = f"x-{key}", definition[key]
        if name not in together:
            together[name] = value
        elif key in LOWER:
            given = together[name]
            together[name] = value if given < 0 else min(given, value)  # below 0: without a limit
    return together


def effective_options(declared: QueueOptions, arguments: Mapping[str, Any], found: InForce | None) -> QueueOptions:
    """The core's options in force of a queue that was declared with these. A quota of its declarer stays a bound."""
    if found is None:
        return declared
    made = options_of(merged(arguments, found), durable=declared.durable)
    return replace(
        made, priorities=declared.priorities, stream=declared.stream,
        messages_max=_least(made.messages_max, declared.messages_max),
        bytes_max=_least(made.bytes_max, declared.bytes_max),
    )  # fmt: skip


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
