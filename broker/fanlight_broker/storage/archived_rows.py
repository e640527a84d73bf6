"""Rows of the archive's batches: columns as Python objects, and each row as the message that selectors read.

The archive has headers as text without a type, and the broker's own knowledge of a message but for its user.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fanlight_archive.arrow import pa
from fanlight_archive.schema import HEADERS
from fanlight_broker.core.archived_format import archived_message
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.message import Message

NUMBERS: Final = {name.encode(): number for number, name in enumerate(SYNTAXES)}
ASKED: Final = ("timestamp", "topic", "value", "headers", "syntax", "content_type", "client", "qos", "retain")


class ArchivedPublisher(NamedTuple):
    """Who has published a message, as far as the archive knows."""

    name: str | None
    user: str | None = None


def messages_of(batch: Any, *, headers: bool = True) -> Iterator[tuple[Message, ArchivedPublisher, float]]:
    """Of each row of a batch: the message, its publisher, and the seconds since 1970 at which it came.

    headers: with its headers, which take longest to convert
    """
    columns = [
        values_of(batch, name) if headers or name != "headers" else [None] * batch.num_rows for name in ASKED
    ]  # fmt: skip
    for time, topic, value, pairs, syntax, kind, client, qos, retain in zip(*columns, strict=True):
        message = archived_message(
            topic, NUMBERS[syntax], value, [(one["key"], one["value"]) for one in pairs or ()],
            kind.decode() if kind is not None else None, qos, retain,
        )  # fmt: skip
        yield message, ArchivedPublisher(client.decode() if client is not None else None), time / 1e6


def values_of(batch: Any, name: str) -> list[Any]:
    """A column as Python objects, strings as octets; read from its buffers where that is faster."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count == len(column):
        return [None] * len(column)
    values: list[Any]
    if column.null_count or column.type in (HEADERS, pa.int8(), pa.bool_()):
        values = column.to_pylist()
        return [value.encode() if isinstance(value, str) else value for value in values]
    at, rows = column.offset, len(column)
    if column.type in (pa.string(), pa.binary()):
        _, ends, octets = column.buffers()
        bounds = memoryview(ends).cast("i")[at : at + rows + 1].tolist()
        first = bounds[0]
        data = bytes(memoryview(octets)[first : bounds[-1]]) if octets is not None else b""
        return [data[start - first : end - first] for start, end in pairwise(bounds)]
    return memoryview(column.buffers()[1]).cast("q")[at : at + rows].tolist()


def shown_value(value: bytes | None) -> str | bytes | None:
    """A header's value as text if it is UTF-8."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
