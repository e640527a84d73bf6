"""Slow consumers: clients that take messages more slowly than they come.

The flow keeps those that may be slow, which the sockets' half-full outboxes and the overflows report to it. So nobody
looks at all connections for them.
"""

from collections.abc import Generator, Sequence
from heapq import heappush, heappushpop
from typing import Any, Final

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.flow import CONSUMER
from fanlight_broker.core.subscriber import Client

LOOK: Final = 64  # clients between two looks at the clock, 1 µs each


def slow_consumers(broker: Broker, now: float, limit: int) -> Generator[None, None, Sequence[dict[str, Any]]]:
    """Clients that are behind, in steps: dropping, blocking, or with an outbox over half full; the worst first."""
    slow = list[tuple[int, int, int, Client]]()
    for number, outbox in enumerate(broker.flow.behind, 1):
        client: Client | None = outbox.owner
        if client is not None and slowness(client) is None:
            broker.flow.caught_up(outbox)
        elif client is not None:
            place = dropped_of(client), outbox.size + outbox.awaiting_credit, client.number, client
            if len(slow) < limit:
                heappush(slow, place)
            else:
                heappushpop(slow, place)
        if number % LOOK == 0:
            yield
    return [slow_view(broker, client, now) for *_, client in sorted(slow, reverse=True)]


def slow_view(broker: Broker, client: Client, now: float) -> dict[str, Any]:
    ledger, outbox = broker.ledger, client.outbox
    present = None if ledger.clock is None else ledger.clock()
    return {
        "connection": client.number, "client": client.subscriber.name, "address": client.address,
        "policy": outbox.policy, "outbox_bytes": outbox.size + outbox.awaiting_credit, "limit": outbox.limit,
        "dropped": dropped_of(client), "reason": slowness(client),
        "held_publishers_seconds": seconds_held(client, CONSUMER, ledger.awake(now)),
        "slow_seconds": None if client.slow_since is None or present is None
        else round(present - client.slow_since, 3),
    }


def slowness(client: Client) -> str | None:
    """Why a client counts as slow, if it does."""
    outbox = client.outbox
    if outbox.pausing:
        return "holds publishers back"
    if dropped_of(client):
        return "messages were dropped"
    if outbox.half_full:
        return "outbox more than half full"
    return None


def dropped_of(client: Client) -> int:
    """Messages dropped because it was slow: out of its outbox, and by its session's queue."""
    session = client.subscriber.session if client.slow else None  # else it was away when its queue was full
    return client.outbox.dropped + (session.window.queue.dropped if session is not None else 0)


def seconds_held(client: Client, kind: int, now: float) -> float:
    """How long publishers were held back, by one of a client's hold times."""
    return round(client.hold_times[kind].total(now), 3) if kind in client.hold_times else 0.0
