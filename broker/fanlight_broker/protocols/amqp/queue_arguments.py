"""The arguments of queue.declare as options of the core's queues; what is malformed is 406, as RabbitMQ answers it.

Arguments that are not known here are accepted, listed, and not obeyed. Those that RabbitMQ obeys and this broker does
not yet are refused with 540.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final

from fanlight_broker.core.work_queue import Overflow, QueueOptions
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

PRIORITIES_MAX: Final = 10  # of the core: 0 to 9
MILLISECONDS_MAX: Final = 10 * 365 * 86_400_000
OVERFLOWS: Final = {"drop-head": Overflow.DROP_OLDEST, "reject-publish": Overflow.REFUSE_PUBLISHER}
QUEUE_TYPES: Final = frozenset({"classic", "quorum"})


def refuse(name: str, why: str) -> AmqpError:
    return AmqpError(ReplyCode.PRECONDITION_FAILED, f"invalid arg '{name}' for queue: {why}")


def whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(name, "it is no integer")
    if not least <= value <= most:
        raise refuse(name, f"{value} is not between {least} and {most}")
    return int(value)


def count(name: str, value: Any) -> int:
    return whole(name, value, 0, 2**62)


def milliseconds(name: str, value: Any) -> int:
    return whole(name, value, 0, MILLISECONDS_MAX)


def expires(name: str, value: Any) -> int:
    return whole(name, value, 1, MILLISECONDS_MAX)


def priorities(name: str, value: Any) -> int:
    return whole(name, value, 0, 255)


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, "it is no boolean")
    return value


def overflow(name: str, value: Any) -> str:
    if value == "reject-publish-dlx":
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "x-overflow reject-publish-dlx")
    if value not in OVERFLOWS:
        raise refuse(name, f"{value!r} is no overflow behaviour")
    return str(value)


def queue_type(name: str, value: Any) -> str:
    if value == "stream":
        raise AmqpError(ReplyCode.NOT_IMPLEMENTED, "x-queue-type stream")
    if value not in QUEUE_TYPES:
        raise refuse(name, f"{value!r} is no type of queue")
    return str(value)


def not_yet(name: str, value: Any) -> Any:
    raise AmqpError(ReplyCode.NOT_IMPLEMENTED, f"the queue argument {name}")


# Those that a queue is compared by when it is declared again.
KNOWN: Final[dict[str, Callable[[str, Any], Any]]] = {
    "x-message-ttl": milliseconds, "x-expires": expires, "x-max-length": count, "x-max-length-bytes": count,
    "x-overflow": overflow, "x-max-priority": priorities, "x-single-active-consumer": flag,
    "x-delivery-limit": count, "x-queue-type": queue_type,
    "x-dead-letter-exchange": not_yet, "x-dead-letter-routing-key": not_yet,
}  # fmt: skip


def known_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The known ones, checked. Raises AmqpError."""
    return {name: KNOWN[name](name, value) for name, value in arguments.items() if name in KNOWN}


def options_of(known: Mapping[str, Any], *, durable: bool) -> QueueOptions:
    """Of a queue that is not there yet. Its end with its last consumer is not the core's: see queue_methods."""
    ttl, unused = known.get("x-message-ttl"), known.get("x-expires")
    bounded = "x-max-length" in known or "x-max-length-bytes" in known
    levels = known.get("x-max-priority")
    limit = known.get("x-delivery-limit")
    default = Overflow.DROP_OLDEST if bounded else None
    return QueueOptions(
        durable=durable,
        messages_max=at_least_one(known.get("x-max-length")),
        bytes_max=at_least_one(known.get("x-max-length-bytes")),
        message_seconds=ttl / 1_000 if ttl is not None else None,
        unused_seconds=unused / 1_000 if unused is not None else None if durable else inf,
        overflow=OVERFLOWS[known["x-overflow"]] if "x-overflow" in known else default,
        deliveries_max=limit + 1 if limit is not None else None,
        single_active=known.get("x-single-active-consumer", False),
        priorities=min(levels + 1, PRIORITIES_MAX) if levels else None,
    )


def at_least_one(value: int | None) -> int | None:
    """A queue of the core has room for one message; RabbitMQ's may have room for none."""
    return max(value, 1) if value is not None else None
