"""What headers say of a message that has died in queues: RabbitMQ's, as 3.10 writes them.

    x-death                array of tables, the last death first; one for each queue and reason
        count (l)          how often it died there for that; a repeated death counts, and leaves the rest as it was
        reason, queue      expired, rejected, maxlen or delivery_limit
        time (T)           of the first of them, in seconds
        exchange, routing-keys (A)     where it was published then, with CC and without BCC
        original-expiration            if it had an expiration, which is removed
    x-first-death-reason, -queue, -exchange     of the first death of all

Other headers and properties keep their octets, and so the types of their values.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fanlight_broker.protocols.amqp.field_table import (
    INT64,
    LongInteger,
    Timestamp,
    encode_value,
    joined_entries,
    raw_entries,
)
from fanlight_broker.protocols.amqp.properties import joined_properties, raw_properties

DEATHS: Final = "x-death"
DEATHS_MAX: Final = 100  # entries: all of them are read and written with each death, some 10 µs each
REJECTED: Final = "rejected"
REASONS: Final = {  # by those of the core
    "expired": "expired", "overflow": "maxlen", "rejected": REJECTED, "deliveries": "delivery_limit",
    "undeliverable": REJECTED,
}  # fmt: skip


class Death(NamedTuple):
    """One death. keys: routing key and CC keys. seconds: since 1970."""

    queue: str
    reason: str
    exchange: str
    keys: Sequence[str]
    seconds: int
    expiration: str | None = None


def deaths_of(headers: Mapping[str, Any] | None) -> list[Any]:
    """What a message says of its deaths; a client may have written anything there."""
    found = (headers or {}).get(DEATHS)
    return found if isinstance(found, list) else []


def buried(encoded: bytes, before: Sequence[Any], death: Death, *, without_copies: bool) -> bytes:
    """Flags and properties of a message after one more death. before: `deaths_of` it. without_copies: CC is removed."""
    properties = raw_properties(encoded)
    properties.pop("expiration", None)
    entries = raw_entries(properties["headers"]) if "headers" in properties else {}
    if without_copies:
        entries.pop("CC", None)
    if DEATHS not in entries:
        for name, value in (("reason", death.reason), ("queue", death.queue), ("exchange", death.exchange)):
            entries[f"x-first-death-{name}"] = encode_value(value)
    entries[DEATHS] = encode_value(counted(before, death))
    properties["headers"] = joined_entries(entries)
    return joined_properties(properties)


def counted(before: Sequence[Any], death: Death) -> list[Any]:
    """The array with one more death, which is the first."""
    same: dict[str, Any] | None = None
    others = []
    for each in before:
        if same is None and is_of(each, "queue", death.queue) and is_of(each, "reason", death.reason):
            count = each.get("count")
            so_far = count if isinstance(count, int) and 0 <= count < INT64.stop - 1 else 0
            same = {**each, "count": LongInteger(so_far + 1)}
        else:
            others.append(rewritten(each))
    if same is None:
        same = {
            "count": LongInteger(1), "reason": death.reason, "queue": death.queue, "time": Timestamp(death.seconds),
            "exchange": death.exchange, "routing-keys": list(death.keys),
        }
        if death.expiration is not None:
            same["original-expiration"] = death.expiration
    return [same, *others]


def rewritten(table: Any) -> Any:
    """An entry as it is written again: its count is an `l`."""
    if isinstance(table, dict) and isinstance(table.get("count"), int) and not isinstance(table["count"], bool):
        return {**table, "count": LongInteger(table["count"])}
    return table


def is_of(table: Any, name: str, value: str) -> bool:
    return isinstance(table, dict) and table.get(name) == value


def is_cycle(queue: str, deaths: Sequence[Any]) -> bool:
    """Has a message been in this queue before, and has nobody rejected it since? deaths: with the last one."""
    for each in deaths:
        if is_of(each, "reason", REJECTED):
            return False
        if is_of(each, "queue", queue):
            return True
    return False
