"""Messages as tables: payloads decoded to typed columns, what could not be decoded, and what has drifted.

    quotes = decode(messages, "decoders.toml", "quotes")       a row for each message of the decoder's topics
    rows(quotes)             those that could be decoded, without the columns that begin with _problem, _value, _drift
    dead_letters(quotes)     the others: their payload, and the reason
    drift(quotes)            fields new, missing or of another type, with counts

All of them are transforms of one DataFrame, of a batch or of a stream: nothing is lost between them, for a message is
either among `rows` or among `dead_letters`. decoding/ has what needs no Spark.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.decoding.file import Decoder, Decoders, load
from fanlight_spark.decoding.table import CARRIED, NEEDED, TableDecoder, schema_of

#: Columns of a decoded table that say what could not be decoded, or not as the decoder says.
REPORTED: Final = ("_problem", "_value", "_drift")


def decode(messages: DataFrame, decoders: Decoders | str | os.PathLike[str], table: str | None = None) -> DataFrame:
    """Messages (columns topic, syntax, value; timestamp and offset too, if they are there) as a table.

    decoders: a file, or what `load` has made of one. table: may be left out where there is one. The columns are those
    of decoding/table.py. Raises InvalidDecoders, ValueError.
    """
    decoder = (decoders if isinstance(decoders, Decoders) else load(decoders)).one(table)
    if missing := [name for name in NEEDED if name not in messages.columns]:
        has = ", ".join(messages.columns)
        raise ValueError(f"messages to be decoded have no {', '.join(missing)}: they have {has}")
    carried = [name for name in CARRIED if name in messages.columns]
    names = list(dict.fromkeys([*NEEDED, *carried]))

    def decode_batches(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        at_work = TableDecoder(decoder)
        for batch in batches:
            if (made := at_work.batch(batch)).num_rows:
                yield made

    return messages.select(*names).mapInArrow(decode_batches, columns_of(decoder, carried))


def columns_of(decoder: Decoder, carried: list[str] | None = None) -> StructType:
    """The columns of a table, as Spark has them."""
    schema = schema_of(decoder, tuple(CARRIED) if carried is None else carried)
    return StructType([StructField(field.name, field.dataType) for field in from_arrow_schema(schema)])


def rows(decoded: DataFrame) -> DataFrame:
    """Those that could be decoded."""
    return decoded.where("_problem IS NULL").drop(*REPORTED)


def dead_letters(decoded: DataFrame) -> DataFrame:
    """(topic, timestamp, offset, reason, value) of those that could not be decoded."""
    names = [f"_{name}" for name in CARRIED if f"_{name}" in decoded.columns]
    found = [F.col(name).alias(name[1:]) for name in names]
    why = F.col("_problem").alias("reason"), F.col("_value").alias("value")
    return decoded.where("_problem IS NOT NULL").select(*found, *why)


def drift(decoded: DataFrame) -> DataFrame:
    """(field, change, found, messages, first_offset, last_offset): change is new, missing or type.

    The offsets are there where the decoded messages have theirs.
    """
    has = [name for name in ("_offset",) if name in decoded.columns]
    each = decoded.where("_drift IS NOT NULL").select(*has, F.explode("_drift").alias("it"))
    offsets = [F.min("_offset").alias("first_offset"), F.max("_offset").alias("last_offset")] if has else []
    return each.groupBy("it.field", "it.change", "it.found").agg(F.count("*").alias("messages"), *offsets)


def decoder_of(options: Mapping[str, str]) -> Decoder | None:
    """The decoder that options of the source name; None: messages as they are. Raises InvalidDecoders, ValueError."""
    if "decoders" not in options:
        if "table" in options:
            raise ValueError("table: of a file of decoders (option decoders)")
        return None
    for name in ("filter", "syntax", "pushdown"):
        if name in options:
            raise ValueError(f"{name}: not with decoders: a decoder has its own filter and its own columns")
    return load(options["decoders"]).one(options.get("table"))


class TableShape:
    """What of a table a DataFrame has: the batches of the source as the DataFrame's columns, in their order."""

    def __init__(self, decoder: Decoder, schema: StructType) -> None:
        """Raises ValueError where the schema is not of columns of the table."""
        whole = columns_of(decoder)
        for column in schema:
            if column.name not in whole.names:
                has = ", ".join(whole.names)
                raise ValueError(f"{column.name} is no column of the table {decoder.table}; it has {has}")
            if (has := whole[column.name].dataType) != column.dataType:
                raise ValueError(f"{column.name} is {has.simpleString()} in the table {decoder.table}, "
                                 f"and not {column.dataType.simpleString()}")  # fmt: skip
        self._decoder, self.columns = decoder, to_arrow_schema(schema, timezone="UTC")
        carried = (name for name in CARRIED if f"_{name}" in self.columns.names)
        #: What of the messages is looked at.
        self.needed = list(dict.fromkeys([*NEEDED, *carried]))

    def batches(self, batches: Iterator[Any], *, chosen: bool = True) -> Iterator[Any]:
        """chosen: the messages are of the decoder's topics."""
        at_work = TableDecoder(self._decoder, self.columns.names)
        for batch in batches:
            if (made := at_work.batch(batch, chosen=chosen)).num_rows:
                yield shaped(made.columns, self.columns)


def shaped(arrays: Sequence[Any], schema: Any) -> Any:
    """A batch of such arrays as Spark wants it: its types, its names inside them, all nullable."""
    found = [array if array.type == field.type else array.cast(field.type)
             for array, field in zip(arrays, schema, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(found, schema=schema)
