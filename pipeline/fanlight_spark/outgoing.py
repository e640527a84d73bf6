"""Rows of a DataFrame as messages to publish: which columns there are, and what a row says.

    value           binary or string; the payload
    topic           string; not needed where the option `topic` names one for all
    syntax          string, `amqp` or `mqtt`: how the topic is spelled; else the option, else amqp
    headers         array of struct(key, value), as the archive has them, or map; values binary or string
    content_type, reply_topic, correlation

They are the archive's columns, as far as a publisher may say them. A null is an error where a message needs the field,
and nothing said where it does not. There are no tombstones: who means an empty payload says so.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
)

from fanlight_spark.message import CONTENT_TYPE, CORRELATION, SYNTAXES, Outgoing, as_text, headers_of

COLUMNS: Final = ("topic", "value", "headers", "syntax", "content_type", "reply_topic", "correlation")


class Rows:
    """Makes messages of rows. Raises ValueError for columns that a message has not, or of other types."""

    def __init__(self, schema: StructType, *, topic: str | None, syntax: str | None) -> None:
        self.topic, self.syntax = topic, syntax
        for column in schema.fields:
            expected = _EXPECTED.get(column.name)
            if expected is None:
                raise ValueError(
                    f"a message has no {column.name} for a publisher to say: select from {', '.join(COLUMNS)} "
                    f"before writing, as in df.select('topic', 'value')"
                )
            if not _fits(column.name, column.dataType):
                raise ValueError(
                    f"the column {column.name} is {column.dataType.simpleString()}, and is to be {expected}: cast it"
                )
        names = schema.fieldNames()
        if "value" not in names:
            raise ValueError("the column value is missing: it has the payload of each message, binary or string")
        if topic is None and "topic" not in names:
            raise ValueError("where do the messages go? Give a column topic, or the option topic for all of them")

    def messages(self, batch: Any, first: int = 0) -> Iterator[Outgoing]:
        """Those of a batch of Arrow, whose rows are counted from `first`. Raises ValueError for an invalid row."""
        columns: dict[str, list[Any]] = {
            name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        nothing = [None] * batch.num_rows
        topics = columns.get("topic", nothing) if self.topic is None else [self.topic] * batch.num_rows
        syntax = SYNTAXES[self.syntax or "amqp"]
        syntaxes = columns.get("syntax") if self.syntax is None else None
        plain = not any(name in columns for name in ("headers", "content_type", "reply_topic", "correlation"))
        extras = zip(
            *(columns.get(name, nothing) for name in ("headers", "content_type", "reply_topic", "correlation")),
            strict=True,
        )
        for number, (topic, value, extra) in enumerate(zip(topics, columns["value"], extras, strict=True)):
            if topic is None or value is None:
                field = "topic" if topic is None else "value"
                raise ValueError(f"row {first + number} of the partition: {field} is null; {_NULLS[field]}")
            if syntaxes is not None:
                syntax = _syntax(syntaxes[number], first + number)
            payload = value.encode() if isinstance(value, str) else value
            if plain:
                yield Outgoing(topic, payload, None, syntax, None)
                continue
            headers, content_type, reply, correlation = extra
            collected = headers_of(headers)
            if content_type is not None:
                collected[CONTENT_TYPE] = content_type
            if correlation is not None:
                collected[CORRELATION] = as_text(correlation)
            yield Outgoing(topic, payload, collected or None, syntax, reply or None)


_EXPECTED: Final[Mapping[str, str]] = {
    "topic": "string", "value": "binary or string", "syntax": "string",
    "headers": "array<struct<key:string,value:binary>> or map<string,binary> (or string values)",
    "content_type": "string", "reply_topic": "string", "correlation": "binary or string",
}  # fmt: skip

_NULLS: Final[Mapping[str, str]] = {
    "topic": "every message goes to a topic",
    "value": "leave such rows out, or say coalesce(value, X'') for an empty payload",
}


def _fits(name: str, kind: DataType) -> bool:
    if name == "headers":
        if isinstance(kind, MapType):
            return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType | BinaryType)
        if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType)):
            return False
        inner = {field.name: field.dataType for field in kind.elementType.fields}
        return (
            set(inner) == {"key", "value"}
            and isinstance(inner["key"], StringType)
            and isinstance(inner["value"], StringType | BinaryType)
        )
    if name in ("value", "correlation"):
        return isinstance(kind, StringType | BinaryType)
    return isinstance(kind, StringType)


def _syntax(name: str | None, row: int) -> int:
    if name is None:
        return 0
    try:
        return SYNTAXES[name]
    except KeyError:
        raise ValueError(f"row {row} of the partition: syntax is {name!r}; give amqp or mqtt") from None
