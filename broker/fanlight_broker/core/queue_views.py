"""Named queues for people and Prometheus: what each has, and what all of them have done."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import chain, islice
from typing import Final, Protocol

from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.core.ports import View
from fanlight_broker.core.queues import Queues
from fanlight_broker.core.selectors import where_of
from fanlight_broker.core.topics import masked
from fanlight_broker.core.work_queue import Overflow, WorkQueue
from fanlight_broker.wire.operating import in_memory

FAMILIES_MAX: Final = 100  # queues with metrics of their own, those with most messages: each name is a time series

COUNTERS: Final[Mapping[str, str]] = {
    "queue_messages": "Messages put into named queues",
    "queue_deliveries": "Deliveries to consumers of named queues",
    "queue_redeliveries": "Deliveries of messages that had been delivered before",
    "queue_acknowledged": "Messages acknowledged by consumers of named queues",
    "queue_discarded": "Messages that left a named queue without being acknowledged",
    "dead_letters": "Discarded messages published to a dead-letter topic",
    "dead_letters_refused": "Dead letters that could not be published, or had died too often",
    "queues_expired": "Named queues ended because nobody had used them for long enough",
}
GAUGES: Final[Mapping[str, str]] = {
    "queues": "Named queues",
    "queue_waiting": "Messages that wait in named queues",
    "queue_unacknowledged": "Messages delivered to consumers of named queues and not acknowledged",
    "queue_oldest_seconds": "Time that the message has waited which waits longest in any named queue",
}


def counters(queues: Queues) -> dict[str, int]:
    return {
        **queues.counted(),
        "dead_letters": queues.burial.dead, "dead_letters_refused": queues.burial.refused,
        "queues_expired": queues.expired,
    }


def gauges(queues: Queues, now: float) -> dict[str, float]:
    return {
        "queues": len(queues),
        "queue_waiting": sum(len(queue.inside.queue) + queue.inside.queue.apart for queue in queues),
        "queue_unacknowledged": sum(queue.inside.unacknowledged for queue in queues),
        "queue_oldest_seconds": max((age_of(queue, now) or 0.0 for queue in queues), default=0.0),
    }


class HasQueues(Protocol):
    """A namespace, as far as it is asked here."""

    @property
    def queues(self) -> Queues: ...


def families(homes: Iterable[HasQueues], now: float) -> Sequence[MetricFamily]:
    """For each of the queues with most messages, of all namespaces."""
    everywhere = chain.from_iterable(home.queues for home in homes)
    largest = nlargest(FAMILIES_MAX, everywhere, key=lambda queue: len(queue.inside))
    labels = [
        {"queue": queue.name, **({"namespace": home} if (home := queue.subscriber.namespace) else {})}
        for queue in largest
    ]

    def family(name: str, help: str, values: Sequence[float]) -> MetricFamily:
        return MetricFamily(name, help, "gauge", list(zip(labels, values, strict=True)))

    return [
        family("queue_depth", "Messages in a named queue, delivered ones included", [len(q.inside) for q in largest]),
        family("queue_depth_unacknowledged", "Of these, delivered", [q.inside.unacknowledged for q in largest]),
        family("queue_consumers", "Consumers of a named queue", [len(q.consumers) for q in largest]),
        family("queue_age_seconds", "Time that its oldest waiting message has waited",
               [age_of(q, now) or 0.0 for q in largest]),
    ]


def age_of(queue: WorkQueue, now: float) -> float | None:
    """Seconds that its oldest waiting message has waited; None if nothing waits."""
    since = queue.inside.waiting_since
    return None if since is None else max(0.0, now - since)


def queue_view(queue: WorkQueue, now: float, consumers_max: int | None = None) -> View:
    inside, options = queue.inside, queue.options
    age = age_of(queue, now)
    return {
        "queue": queue.name, "durable": options.durable, "user": queue.subscriber.user,
        "filters": [
            {"filter": masked(text, syntax).decode("utf-8", "backslashreplace"), "syntax": syntax}
            for text, syntax in queue.filters
        ],
        "where": where_of(queue.condition),
        "waiting": len(inside.queue), "delayed": inside.queue.apart, "unacknowledged": inside.unacknowledged,
        "bytes": inside.queue.nbytes, "in_memory": in_memory(inside.queue),
        "oldest_seconds": None if age is None else round(age, 3),
        "consumers": [
            {
                "client": consumer.client.subscriber.name, "connection": consumer.client.number,
                "subscription": consumer.window.number, "prefetch": consumer.window.inflight_max,
                "unacknowledged": consumer.window.in_flight, "delivered": consumer.window.delivered,
                "ack_wait": consumer.window.ack_wait, "active": consumer.active, "paused": consumer.paused,
            }
            for consumer in islice(queue.consumers.values(), consumers_max)
        ],
        "messages": inside.published, "deliveries": inside.deliveries, "redeliveries": inside.redeliveries,
        "acknowledged": inside.acknowledgements, "discarded": inside.discards,
        "messages_max": inside.queue.messages_max, "bytes_max": inside.queue.bytes_max,
        "overflow": (options.overflow or Overflow.REFUSE_PUBLISHER).value, "message_ttl": options.message_seconds,
        "expires": options.unused_seconds, "deliveries_max": options.deliveries_max,
        "dead_letter": options.dead_letter[0].decode("utf-8", "backslashreplace") if options.dead_letter else None,
        "single_active": options.single_active, "priorities": options.priorities,
        "filling": queue.filling is not None, "arguments": dict(queue.arguments),
        "policy": queue.policy or None,
        "effective_arguments": dict(queue.arguments if queue.effective is None else queue.effective),
        **({"namespace": queue.subscriber.namespace} if queue.subscriber.namespace else {}),
    }
