"""The arguments of queue.declare as options of the core's queues; RabbitMQ's answers to what is malformed or unequal.

`CHECKS` has those that are known: a queue is compared by them when it is declared again. Others are accepted, listed in
the views of the queue, and not obeyed.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import islice
from math import inf
from typing import Any, Final, NamedTuple

from fanlight_broker.core.streams import new_generation
from fanlight_broker.core.work_queue import Overflow, QueueOptions
from fanlight_broker.protocols.amqp.data_types import SHORT_STRING_MAX
from fanlight_broker.protocols.amqp.dead_letters import dead_letter_option
from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.field_table import INT32, Timestamp
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

PRIORITIES_MAX: Final = 10  # of the core: 0 to 9
RANK_MOST: Final = 2**31 - 1  # x-priority of a consumer
PRIORITY_ARGUMENT_MAX: Final = 255
MILLISECONDS_MAX: Final = 2**32 - 1
LISTED_MAX: Final = 32  # arguments of a queue in its views
LISTED_CHARACTERS: Final = 100
DROP_HEAD: Final = "drop-head"
OVERFLOWS: Final = {
    DROP_HEAD: Overflow.DROP_OLDEST, "reject-publish": Overflow.REFUSE_PUBLISHER,
    "reject-publish-dlx": Overflow.DEAD_LETTER_NEWEST,
}  # fmt: skip
CLASSIC, QUORUM, STREAM = "classic", "quorum", "stream"
QUEUE_TYPES: Final = frozenset({CLASSIC, QUORUM, STREAM})
TYPE_NAMES: Final[tuple[tuple[type, str], ...]] = (  # of field values, in RabbitMQ's words
    (bool, "bool"), (Timestamp, "timestamp"), (str, "longstr"), (bytes, "binary"), (float, "double"),
    (Decimal, "decimal"), (dict, "table"), (list, "array"),
)  # fmt: skip
# Arguments of one type of queue only.
OF_QUORUM: Final = frozenset({
    "x-delivery-limit", "x-quorum-initial-group-size", "x-dead-letter-strategy", "x-max-in-memory-length",
    "x-max-in-memory-bytes", "x-quorum-target-group-size",
})  # fmt: skip
OF_CLASSIC: Final = frozenset({"x-max-priority", "x-queue-mode", "x-queue-version", "x-queue-master-locator"})
OF_STREAMS: Final = frozenset({"x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"})


OF_QUEUES: Final = frozenset({  # and of no stream
    "x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length", "x-overflow",
    "x-single-active-consumer",
})  # fmt: skip
FOREIGN: Final = {
    CLASSIC: OF_QUORUM | OF_STREAMS, QUORUM: OF_CLASSIC | OF_STREAMS, STREAM: OF_CLASSIC | OF_QUORUM | OF_QUEUES,
}  # fmt: skip
MAX_AGE: Final = re.compile(r"\d{1,9}[YMDhms]")


class InvalidArgument(ValueError):
    """Why an argument is refused, in RabbitMQ's words."""


class Asked(NamedTuple):
    """A declaration, as far as its arguments are about it."""

    name: str
    vhost: str
    arguments: Mapping[str, Any]

    def refuse(self, argument: str, why: str) -> AmqpError:
        return AmqpError(
            ReplyCode.PRECONDITION_FAILED,
            f"invalid arg '{argument}' for queue '{self.name}' in vhost '{self.vhost}'{why}",
        )


def type_name(value: Any) -> str:
    """Of a field value, in RabbitMQ's words."""
    for kind, name in TYPE_NAMES:
        if isinstance(value, kind):
            return name
    if value is None:
        return "void"
    return "signedint" if value in INT32 else "long"


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or isinstance(value, Timestamp):
        raise InvalidArgument(f'"expected integer, got {type_name(value)}"')
    return int(value)


def count(value: Any) -> None:
    if whole(value) < 0:
        raise InvalidArgument(f"{{value_negative,{value}}}")


def limit(value: Any) -> None:
    whole(value)  # below 0: without a limit


def milliseconds(value: Any) -> None:
    count(value)
    if value > MILLISECONDS_MAX:
        raise InvalidArgument(f"{{value_too_large,{value}}}")


def expires(value: Any) -> None:
    if whole(value) == 0:
        raise InvalidArgument("{value_zero,0}")
    milliseconds(value)


def priorities(value: Any) -> None:
    count(value)
    if value > PRIORITY_ARGUMENT_MAX:
        raise InvalidArgument(f"{{max_value_exceeded,{value}}}")


def of_type(kind: type, value: Any) -> None:
    if not isinstance(value, kind):
        raise InvalidArgument(f"{{unacceptable_type,{type_name(value)}}}")


def flag(value: Any) -> None:
    of_type(bool, value)


def text(value: Any) -> None:
    of_type(str, value)
    if len(value.encode()) > SHORT_STRING_MAX:
        raise InvalidArgument(f"more than {SHORT_STRING_MAX} bytes")


def overflow(value: Any) -> None:
    text(value)
    if value not in OVERFLOWS:
        raise InvalidArgument("invalid_overflow")


def queue_type(value: Any) -> None:
    text(value)
    if value not in QUEUE_TYPES:
        raise InvalidArgument(f"\"unsupported queue type '{value}'\"")


def max_age(value: Any) -> None:
    text(value)
    if MAX_AGE.fullmatch(value) is None:
        raise InvalidArgument("invalid_max_age")


def queue_mode(value: Any) -> None:
    text(value)
    if value not in ("default", "lazy"):
        raise InvalidArgument(f"\"unsupported queue mode '{value}'\"")


# In the order in which they are compared.
CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    "x-expires": expires, "x-message-ttl": milliseconds, "x-dead-letter-exchange": text,
    "x-dead-letter-routing-key": text, "x-max-length": count, "x-max-length-bytes": count, "x-max-priority": priorities,
    "x-overflow": overflow, "x-queue-mode": queue_mode, "x-single-active-consumer": flag, "x-queue-type": queue_type,
    "x-delivery-limit": limit, "x-max-age": max_age, "x-stream-max-segment-size-bytes": count,
}  # fmt: skip


def listed(arguments: Mapping[str, Any]) -> dict[str, str | int | None]:
    """For the views of a queue: the first of them, and of each what fits in a line."""
    return {
        name: value if value is None or isinstance(value, int) else str(value)[:LISTED_CHARACTERS]
        for name, value in islice(arguments.items(), LISTED_MAX)
    }


def known_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a queue is compared by."""
    return {name: value for name, value in arguments.items() if name in CHECKS}


def check(asked: Asked, *, durable: bool, exclusive: bool, auto_delete: bool) -> None:
    """Can there be such a queue? Raises AmqpError 406."""
    arguments = asked.arguments
    for name, each in CHECKS.items():
        if name in arguments:
            try:
                each(arguments[name])
            except InvalidArgument as error:
                raise asked.refuse(name, f": {error}") from error
    if "x-dead-letter-routing-key" in arguments and "x-dead-letter-exchange" not in arguments:
        raise asked.refuse("x-dead-letter-routing-key", ": routing_key_but_no_dlx_defined")
    kind = arguments.get("x-queue-type", CLASSIC)
    if kind != CLASSIC:
        for name, is_so in (("non-durable", not durable), ("exclusive-owner", exclusive), ("auto-delete", auto_delete)):
            if is_so:
                raise AmqpError(
                    ReplyCode.PRECONDITION_FAILED,
                    f"invalid property '{name}' for queue '{asked.name}' in vhost '{asked.vhost}'",
                )
    foreign = FOREIGN[kind]
    for name in arguments:
        if name in foreign:
            raise asked.refuse(name, f" of queue type rabbit_{kind}_queue")


def check_equal(asked: Asked, current: Mapping[str, Any], pairs: list[tuple[str, Any, Any]]) -> None:
    """Is a queue that exists what is asked for? pairs: (name, received, current) of its flags. Raises AmqpError 406."""
    for name, received, has in pairs:
        if received != has:
            raise _unequal(asked, name, _shown(received), _shown(has))
    for name in CHECKS:
        default = CLASSIC if name == "x-queue-type" else None  # its absence says the same
        received, has = asked.arguments.get(name), current.get(name)
        if same(received if received is not None else default, has if has is not None else default):
            continue
        if received is not None and has is not None:
            raise _unequal(asked, name, _shown(received), _shown(has))
        raise _unequal(asked, name, _described(received), _described(has))


def same(one: Any, other: Any) -> bool:
    """Integers of all widths may be equal, and are no booleans."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _unequal(asked: Asked, argument: str, received: str, current: str) -> AmqpError:
    return AmqpError(
        ReplyCode.PRECONDITION_FAILED,
        f"inequivalent arg '{argument}' for queue '{asked.name}' in vhost '{asked.vhost}': received {received} but "
        f"current is {current}",
    )


def _shown(value: Any) -> str:
    return f"'{str(value).lower() if isinstance(value, bool) else value}'"


def _described(value: Any) -> str:
    return "none" if value is None else f"the value {_shown(value)} of type '{type_name(value)}'"


def options_of(known: Mapping[str, Any], *, durable: bool) -> QueueOptions:
    """Of a queue that is not there yet. Its end with its last consumer is not the core's: see queue_methods."""
    ttl, unused = known.get("x-message-ttl"), known.get("x-expires")
    bounded = "x-max-length" in known or "x-max-length-bytes" in known
    levels, deliveries = known.get("x-max-priority"), known.get("x-delivery-limit", -1)
    behaviour = OVERFLOWS[known.get("x-overflow", DROP_HEAD)] if bounded or "x-overflow" in known else None
    dead_letter = dead_letter_option(known)
    if behaviour is Overflow.DEAD_LETTER_NEWEST and dead_letter is None:
        behaviour = Overflow.REFUSE_PUBLISHER
    return QueueOptions(
        durable=durable,
        messages_max=at_least_one(known.get("x-max-length")),
        bytes_max=at_least_one(known.get("x-max-length-bytes")),
        message_seconds=ttl / 1_000 if ttl is not None else None,
        unused_seconds=unused / 1_000 if unused is not None else None if durable else inf,
        overflow=behaviour,
        deliveries_max=deliveries + 1 if deliveries >= 0 else None,
        dead_letter=dead_letter,
        single_active=known.get("x-single-active-consumer", False),
        priorities=min(levels + 1, PRIORITIES_MAX) if levels else None,
        in_order=True,
        by_bodies=True,
        stream=new_generation() if known.get("x-queue-type") == STREAM else None,
    )


def at_least_one(value: int | None) -> int | None:
    """A queue of the core has room for one message; RabbitMQ's may have room for none."""
    return max(value, 1) if value is not None else None


def rank_of(asked: Asked) -> int:
    """A consumer's, of its argument x-priority. Raises AmqpError 406."""
    try:
        wanted = whole(asked.arguments.get("x-priority", 0))
    except InvalidArgument as error:
        raise asked.refuse("x-priority", f": {error}") from error
    return max(-RANK_MOST, min(wanted, RANK_MOST))
