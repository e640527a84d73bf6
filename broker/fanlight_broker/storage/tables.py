"""A batch of the tap as an Arrow record batch: it refers to the columns in memory and copies nothing.

Only messages with more fields than topic and payload are read one by one: headers, content type, reply topic and
correlation, as their format reads them.
"""

from typing import Any, Final

from fanlight_archive.arrow import pa
from fanlight_archive.schema import MESSAGE
from fanlight_broker.core.content import Content
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.archive_tap import Columns

TYPES: Final[dict[str, Any]] = {field.name: field.type for field in MESSAGE}
_SYNTAX_NAMES: Final = pa.array(SYNTAXES, pa.string())
OWN: Final = "broker"  # the protocol of the broker's own messages


def batch_of(columns: Columns) -> Any:
    """A record batch with the columns of `archive.MESSAGE`."""
    rows, buffers = columns.rows, columns.buffers()

    def buffer(name: str) -> Any:
        address, size = buffers[name]
        return pa.foreign_buffer(address, size, columns) if size else pa.py_buffer(b"")

    def fixed(kind: Any, name: str) -> Any:
        return pa.Array.from_buffers(kind, rows, [None, buffer(name)])

    def octets(kind: Any, ends: str, data: str) -> Any:
        return pa.Array.from_buffers(kind, rows, [None, buffer(ends), buffer(data)])

    publishers = fixed(pa.int32(), "publishers")
    # A will has no client any more: its outbox is owned by the subscriber itself.
    senders = [None if owner is None else owner.subscriber for owner in columns.owners]
    names = [None if sender is None else sender.name for sender in senders]
    protocols = [OWN if sender is None else sender.protocol for sender in senders]
    made = {
        "timestamp": fixed(TYPES["timestamp"], "times"),
        "topic": octets(pa.string(), "topic_ends", "topics"),
        "value": octets(pa.binary(), "value_ends", "values"),
        "client": pa.array(names, pa.string()).take(publishers),
        "protocol": pa.array(protocols, pa.string()).take(publishers),
        "syntax": _SYNTAX_NAMES.take(fixed(pa.int8(), "syntax")),
        "qos": fixed(pa.int8(), "qos"),
        "retain": fixed(pa.int8(), "retain").cast(pa.bool_()),
        **_said(columns),
    }
    return pa.RecordBatch.from_arrays([made[field.name] for field in MESSAGE], schema=MESSAGE)


def _said(columns: Columns) -> dict[str, Any]:
    """The columns of fields that few messages have."""
    names = ("headers", "content_type", "reply_topic", "correlation")
    if not columns.extras:
        return {name: pa.nulls(columns.rows, TYPES[name]) for name in names}
    values: dict[str, list[Any]] = {name: [None] * columns.rows for name in names}
    for row, message in columns.extras.items():
        content: Content | None = message.format.read(message)
        if content is None:  # it has too many headers to be said: its topic and its payload are kept
            continue
        if content.headers:
            values["headers"][row] = [{"key": name, "value": octets_of(value)} for name, value in content.headers]
        values["content_type"][row] = content.content_type
        if content.reply is not None:
            values["reply_topic"][row] = content.reply.decode("utf-8", "backslashreplace")
        values["correlation"][row] = content.correlation
    return {name: pa.array(values[name], TYPES[name]) for name in names}


def octets_of(value: str | bytes | int | float | bool | None) -> bytes | None:
    """A header's value: text as UTF-8, numbers and booleans as JSON writes them."""
    match value:
        case None | bytes():
            return value
        case bool():
            return b"true" if value else b"false"
        case _:
            return str(value).encode("utf-8", "surrogateescape")
