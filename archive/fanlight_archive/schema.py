"""The columns of an archived message, and what a segment says about itself.

Names are those of Kafka's Spark source where they mean the same. Only nullable columns are ever added, at the end; a
reader fills those that an older segment lacks with nulls (`conform`) and ignores those that it does not know.
"""

from typing import Any, Final

from fanlight_archive.arrow import pa
from fanlight_archive.errors import UnknownFormat

FORMAT: Final = 1

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))

#: What a publisher and the broker say of a message.
MESSAGE: Final = pa.schema(
    [
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),  # when the broker got it
        pa.field("topic", pa.string(), nullable=False),  # as published, in the publisher's syntax
        pa.field("value", pa.binary(), nullable=False),  # the payload
        pa.field("headers", HEADERS),  # user properties in their order; null if there are none
        pa.field("client", pa.string()),  # the publisher's client name; null for the broker's own
        pa.field("protocol", pa.string(), nullable=False),  # that it was published with
        pa.field("syntax", pa.string(), nullable=False),  # of the topic, as matchcore calls it
        pa.field("qos", pa.int8(), nullable=False),  # it was published with
        pa.field("retain", pa.bool_(), nullable=False),
        pa.field("content_type", pa.string()),
        pa.field("reply_topic", pa.string()),
        pa.field("correlation", pa.binary()),
    ]
)

#: The same with its offset, which the writer gives it: a row of a segment.
SCHEMA: Final = pa.schema([pa.field("offset", pa.int64(), nullable=False), *MESSAGE])

_FORMAT, _ARCHIVE, _EPOCH, _FIRST = b"fanlight.format", b"fanlight.archive", b"fanlight.epoch", b"fanlight.first"


def segment_schema(archive: str, epoch: int, first: int) -> Any:
    """The schema that a segment begins with: the columns, and where in which archive it belongs."""
    return SCHEMA.with_metadata(
        {_FORMAT: str(FORMAT), _ARCHIVE: archive, _EPOCH: str(epoch), _FIRST: str(first)}
    )


def identity(schema: Any) -> tuple[str, int, int]:
    """(archive, epoch, first offset) of a segment by its schema. Raises UnknownFormat."""
    metadata = schema.metadata or {}
    try:
        version = int(metadata[_FORMAT])
        found = metadata[_ARCHIVE].decode(), int(metadata[_EPOCH]), int(metadata[_FIRST])
    except (KeyError, ValueError) as error:
        raise UnknownFormat("an Arrow stream, and not a segment of an archive") from error
    if version > FORMAT:
        raise UnknownFormat(f"written in format {version}; this version reads up to {FORMAT}")
    return found


def must_have_columns(schema: Any, name: str) -> None:
    """Raises UnknownFormat if a column that no message is without is not there, or one is of another type."""
    for field in SCHEMA:
        at = schema.get_field_index(field.name)
        if (at < 0 and not field.nullable) or (at >= 0 and schema.field(at).type != field.type):
            raise UnknownFormat(f"{name} has no column {field.name} of type {field.type}: no segment, or a damaged one")


def conform(batch: Any) -> Any:
    """A batch of any segment with exactly the columns of `SCHEMA`, without the segment's own metadata."""
    if batch.schema.equals(SCHEMA):
        return batch.replace_schema_metadata(None)
    columns = []
    for field in SCHEMA:
        at = batch.schema.get_field_index(field.name)
        columns.append(batch.column(at) if at >= 0 else pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
