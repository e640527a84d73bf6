"""Rows of the archive's batches: columns as Python objects, and the formats of their bodies.

The archive has headers as text without a type, and the broker's own knowledge of a message but for its user.
"""

from itertools import pairwise
from typing import Any, Final

import numpy

from fanlight_archive.arrow import pa, pc
from fanlight_archive.schema import HEADERS
from fanlight_broker.core.payload_formats import PayloadFormats
from fanlight_broker.core.topics import SYNTAXES

NUMBERS: Final = {name.encode(): number for number, name in enumerate(SYNTAXES)}


class RowFormats:
    """The formats of bodies without a content type; `text`: the setting payload_format."""

    def __init__(self, text: str) -> None:
        self._formats = PayloadFormats(text) if text else None

    def of(self, batch: Any) -> bytes | None:
        """Of each row of a batch, as matchcore.MessageRows takes them; None: no topic has one."""
        if self._formats is None:
            return None
        found = numpy.zeros(batch.num_rows, numpy.uint8)
        topics, spelled = (batch.column(batch.schema.get_field_index(name)) for name in ("topic", "syntax"))
        for syntax in SYNTAXES:
            rows = pc.equal(spelled, syntax)
            encoded = topics.filter(rows).dictionary_encode()
            formats = [self._formats.of(topic.encode(), syntax) for topic in encoded.dictionary.to_pylist()]
            if any(formats):
                chosen = rows.to_numpy(zero_copy_only=False)
                found[chosen] = numpy.array(formats, numpy.uint8)[encoded.indices.to_numpy()]
        return found.tobytes()


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
