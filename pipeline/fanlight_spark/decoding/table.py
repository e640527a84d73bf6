"""Batches of messages to batches of a table, by a decoder.

A row for each message whose topic the decoder's filter matches, with these columns:

    words, fields    as the decoder has them; null in a row that has a problem
    _topic, _timestamp, _offset    of the message
    _problem         why it could not be decoded; null if it could
    _value           its payload, if it could not
    _drift           what in it differs from the decoder: fields new, missing or of another type; null if nothing does
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Protocol

from fanlight_archive.arrow import pa, pc
from fanlight_spark.decoding.fields import DRIFT, Decoded
from fanlight_spark.decoding.file import Decoder
from fanlight_spark.decoding.type_names import TIMESTAMP
from fanlight_spark.topics import index_of, matched, words_of

#: What of a message a decoder looks at.
NEEDED: Final = ("topic", "syntax", "value")
#: Columns of a table that are the message's, beside what they are called there.
CARRIED: Final = {"topic": pa.string(), "timestamp": TIMESTAMP, "offset": pa.int64()}
ADVICE: Final = "`pip install msgpack fastavro protobuf`, on every worker"


class Format(Protocol):
    """Payloads of one format."""

    def decode(self, values: Any) -> Decoded:
        """Of a binary array without nulls."""
        ...


def schema_of(decoder: Decoder, carried: Sequence[str] = tuple(CARRIED)) -> Any:
    """The columns of a table, in Arrow. carried: which of CARRIED the messages have."""
    return pa.schema(
        [
            *((name, pa.string()) for name in decoder.words),
            *((field.name, field.type) for field in decoder.fields),
            *((f"_{name}", kind) for name, kind in CARRIED.items() if name in carried),
            ("_problem", pa.string()), ("_value", pa.binary()), ("_drift", DRIFT),
        ]
    )  # fmt: skip


def format_of(decoder: Decoder) -> Format:
    """Raises ModuleNotFoundError, which says what to install."""
    from fanlight_spark.decoding import avro_rows, json_rows, protobuf_rows, row_formats

    fields, settings = decoder.fields, decoder.settings
    if decoder.format == "json":
        return json_rows.JsonRows(fields)
    if decoder.format == "text":
        return row_formats.TextRows(fields)
    if decoder.format == "csv":
        return row_formats.RecordRows(fields, row_formats.csv_reader(fields, settings["delimiter"]))
    made = {"msgpack": lambda _: row_formats.msgpack_reader(), "avro": avro_rows.reader,
            "protobuf": protobuf_rows.reader}[decoder.format]  # fmt: skip
    try:
        return row_formats.RecordRows(fields, made(settings))
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{decoder.format} needs {error.name}: {ADVICE}", name=error.name) from error


class TableDecoder:
    """A decoder at work. It keeps what its format has learnt: one for a task.

    wanted   columns of the table, in the order in which they are wanted: others are not made; all of them if None
    """

    def __init__(self, decoder: Decoder, wanted: Sequence[str] | None = None) -> None:
        self.decoder, self._wanted = decoder, wanted
        self._index = index_of([(decoder.filter, 0, decoder.syntax)])
        self._format = format_of(decoder)
        self._schema = cache(self._schema_of)

    def batch(self, messages: Any, *, chosen: bool = False) -> Any:
        """The rows of a batch of messages. chosen: they are of the filter's topics."""
        topics, syntaxes = _column(messages, "topic"), _column(messages, "syntax")
        if not chosen:
            wanted = matched(self._index, topics, syntaxes)
            if not pc.all(wanted).as_py():
                messages = messages.filter(wanted)
                topics, syntaxes = _column(messages, "topic"), _column(messages, "syntax")
        from fanlight_spark.decoding.row_formats import without_nulls

        values = without_nulls(_column(messages, "value"))
        found = self._format.decode(values)
        carried = tuple(name for name in CARRIED if messages.schema.get_field_index(name) >= 0)
        schema = self._schema(carried)
        words = {name: number for name, number in self.decoder.words.items() if schema.get_field_index(name) >= 0}
        made = dict(zip(words, words_of(topics, syntaxes, list(words.values())), strict=True))
        made |= {field.name: column for field, column in zip(self.decoder.fields, found.columns, strict=True)}
        made |= {"_problem": found.problems, "_drift": found.drift}
        for name in schema.names:
            if name == "_value":
                made[name] = _of_the_dead(values, found.problems)
            elif name not in made:
                made[name] = _column(messages, name[1:]).cast(CARRIED[name[1:]])
        return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)

    def _schema_of(self, carried: tuple[str, ...]) -> Any:
        whole = schema_of(self.decoder, carried)
        return whole if self._wanted is None else pa.schema([whole.field(name) for name in self._wanted])


def _of_the_dead(values: Any, problems: Any) -> Any:
    if problems.null_count == len(problems):
        return pa.nulls(len(problems), pa.binary())
    return pc.if_else(pc.is_valid(problems), values, None)


def _column(batch: Any, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(name))
