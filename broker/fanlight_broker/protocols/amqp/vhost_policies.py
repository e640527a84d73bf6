"""The policies of one vhost: kept over a restart, and put in force for its queues and exchanges.

    put, remove --> Policies --follow--> each queue that AMQP clients or a file have declared --> Queues.adjust
                        |       '------> each exchange --> Exchanges.follow_policy
                        '--> Declarations: the key is `policy` or `operator`, and the name; the body is JSON

A queue gets its policies when it is declared, and again when they change; so does an exchange. `amq.topic` is the
broker's topics and has no alternate exchange.
"""

import json
from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import Any, Final, Protocol

import msgpack  # type: ignore[import-untyped]

from fanlight_broker import event_log
from fanlight_broker.core.declarations import Declarations
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.queues import Queues
from fanlight_broker.core.work_queue import WorkQueue
from fanlight_broker.protocols.amqp.exchanges.registry import Exchanges
from fanlight_broker.protocols.amqp.policies import (
    ALTERNATE,
    NamedPolicy,
    Policies,
    WrongPolicy,
    effective_options,
    merged,
)
from fanlight_broker.protocols.amqp.queue_arguments import CLASSIC, listed

log: Final = event_log.get("amqp")
PREFIX: Final = "amqp-policies "  # of an owner; its vhost follows
POLICIES_MAX: Final = 1_000  # of a vhost: each is asked about each new queue, about 0.2 µs
BODY_BYTES_MAX: Final = 4_096  # of a definition, as JSON
LOOKED_AT: Final = 16  # queues between two of the clock


class FollowingQueue(Protocol):
    """A queue as its vhost has it."""

    @property
    def work(self) -> WorkQueue: ...

    @property
    def known(self) -> dict[str, Any]: ...  # arguments


class VhostPolicies:
    """find: a queue of the vhost that exists, by name."""

    def __init__(
        self, declarations: Declarations, vhost: str, queues: Queues, find: Callable[[str], FollowingQueue | None]
    ) -> None:
        self.found = Policies()
        self._declarations = declarations
        self._owner = PREFIX + vhost
        self._queues = queues
        self._find = find

    def restore(self) -> None:
        """Those from before a restart."""
        for key, body in self._declarations.claim(self._owner, self._restated).items():
            try:
                kind, name = msgpack.unpackb(key)
                pattern, apply_to, priority, definition = json.loads(body)
                self.found.put(NamedPolicy(name, pattern, apply_to, priority, definition, kind == "operator"))
            except (FanlightError, ValueError, TypeError) as error:
                log.warning("amqp_declaration_lost", owner=self._owner, error=str(error))
                self._declarations.forget(self._owner, key)

    def _restated(self) -> Iterator[tuple[bytes, bytes]]:
        for policy in self.found:
            if self.found.get(policy.name, operator=policy.operator) is policy:
                yield _key(policy), _body(policy)

    def put(self, policy: NamedPolicy) -> None:
        """It is in force for what is declared from now on; `follow` does the rest. Raises WrongPolicy, WrongPattern."""
        body = _body(policy)
        if len(body) > BODY_BYTES_MAX:
            raise WrongPolicy(f"a policy of more than {BODY_BYTES_MAX} bytes")
        old = self.found.get(policy.name, operator=policy.operator)
        if old is None and len(self.found) >= POLICIES_MAX:
            raise WrongPolicy(f"a vhost has at most {POLICIES_MAX} policies")
        self.found.put(policy)
        if policy != old:
            self._declarations.keep(self._owner, _key(policy), body)

    def remove(self, name: str, *, operator: bool) -> bool:
        """Was it there?"""
        policy = self.found.get(name, operator=operator)
        if policy is None:
            return False
        self.found.remove(name, operator=operator)
        self._declarations.forget(self._owner, _key(policy))
        return True

    def follow(self, exchanges: Exchanges) -> Generator[None, None, None]:
        """Put in force what is there now, for what exists: in steps, between which anything may happen."""
        steps = count(1)
        for exchange in exchanges.in_force():
            if exchanges.find(exchange.name) is exchange:
                exchanges.follow_policy(exchange)
            if next(steps) % LOOKED_AT == 0:
                yield
        for work in list(self._queues):
            if self._queues.get(work.name) is work:
                self.adjust(work)
            if next(steps) % LOOKED_AT == 0:
                yield

    def adjust(self, work: WorkQueue) -> None:
        """A queue that is new, or whose policies may be others. Those of other protocols are left as they are."""
        queue = self._find(work.name) if work.addressed else None
        if queue is None:
            return
        found = self.found.of_queue(work.name, queue.known.get("x-queue-type", CLASSIC)) if len(self.found) else None
        work.policy = found.name if found is not None else ""
        work.effective = listed(merged(queue.known, found)) if found is not None else None
        self._queues.adjust(work, effective_options(work.declared, queue.known, found))

    def alternate_of(self, exchange: str) -> str | None:
        """The alternate exchange that a policy gives an exchange of this name."""
        found = self.found.of_exchange(exchange) if len(self.found) else None
        return found.definition.get(ALTERNATE) if found is not None else None

    def close(self) -> None:
        """Nothing is left of the vhost."""
        self._declarations.release(self._owner)


def _key(policy: NamedPolicy) -> bytes:
    octets: bytes = msgpack.packb(["operator" if policy.operator else "policy", policy.name])
    return octets


def _body(policy: NamedPolicy) -> bytes:
    return json.dumps([policy.pattern, policy.apply_to, policy.priority, dict(policy.definition)]).encode()
