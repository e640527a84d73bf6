"""The data source `fanlight`: an archive as a DataFrame, at once or as a stream. Its other half is sink.py.

    session.read.format("fanlight").option("path", "/var/lib/fanlight/archive").load()
    session.readStream.format("fanlight").option("path", ...).option("maxBytesPerTrigger", "64m").load()
    session.readStream.format("fanlight").option("url", "fanlight://127.0.0.1:7420").load()     # through its broker

A stream's position is the archive's (positions.py): epoch and offset. So a query that was killed reads the same
messages again, and no others, whatever has been written since. Nothing is committed to the archive, which keeps no
readers. Batches go from the segments to the JVM as Arrow has them. An unknown option is an error, for a misspelt one
would quietly read too much.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructField, StructType

import matchcore
from fanlight_archive import SCHEMA, Archive
from fanlight_spark import broker, catalog, sink, workers
from fanlight_spark.admission import LIMITS, Admission, Limits
from fanlight_spark.broker import Address
from fanlight_spark.lag import Watch, report
from fanlight_spark.options import folder, known, one_of, positive
from fanlight_spark.positions import (
    EARLIEST,
    LATEST,
    ROWS_PER_PARTITION,
    Bounds,
    Log,
    Position,
    divide,
    microseconds,
    offset_option,
    position_at,
    starting,
)
from fanlight_spark.pushdown import Wanted
from fanlight_spark.remote import ARCHIVE_COLUMNS, DELIVERED, Remote
from fanlight_spark.selection import Selection, merged, worth_reading
from fanlight_spark.tables import TableShape, columns_of, decoder_of, shaped
from fanlight_spark.topics import index_of
from matchcore.selector import Selector
from matchcore.where import parse_where

#: The columns of `archive.SCHEMA`, as Spark has them.
COLUMNS: Final = StructType([StructField(field.name, field.dataType) for field in from_arrow_schema(SCHEMA)])
#: The columns that a broker sends.
BROKER_COLUMNS: Final = StructType([column for column in COLUMNS if column.name not in ARCHIVE_COLUMNS])

OPTIONS: Final = frozenset(
    [
        "path", "filter", "syntax", "where", "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
        "maxRecordsPerPartition", "failOnDataLoss", "onCorrupt", "pushdown", "decoders", "table",
        *LIMITS, *broker.OPTIONS,
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The options, read. Raises ValueError, matchcore.InvalidFilter, matchcore.InvalidSelector."""

    place: str | Address  # the folder of an archive, or its broker
    filter: str | None
    syntax: str
    options: dict[str, str]  # by the names of OPTIONS
    columns: Any  # of the DataFrame: a schema of Arrow
    bounds: Bounds
    index: matchcore.FrozenIndex | None
    selector: Selector | None
    rows: int  # of a partition
    limits: Limits  # of a batch of a stream
    pushdown: bool
    table: TableShape | None  # None: messages as they are

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType) -> "SourceSettings":
        options = known(given, OPTIONS, "source")
        if ("path" in options) == ("url" in options):
            raise ValueError(
                "the source fanlight needs one of the options path and url: the folder of an archive, or the broker "
                "that keeps it, as in fanlight://127.0.0.1:7420 (CREATE TABLE with a list of columns "
                "loses its options: leave the columns out)"
            )
        if "path" in options and (others := [name for name in broker.OPTIONS if name in options]):
            raise ValueError(f"{', '.join(others)}: of a broker (option url); a folder (path) is read without")
        syntax = one_of(options, "syntax", ("amqp", "mqtt"))
        text = options.get("filter")
        decoder = decoder_of(options)
        table = None if decoder is None else TableShape(decoder, schema)
        if decoder is not None:
            text, syntax = decoder.filter, decoder.syntax
        index = index_of([(text, 0, syntax)]) if text is not None else None  # raises if it is invalid
        selector = parse_where(options["where"]) if "where" in options else None  # raises if it is invalid
        fail = one_of(options, "failOnDataLoss", ("true", "false"))
        corrupt = one_of(options, "onCorrupt", ("fail", "skip") if fail == "true" else ("skip", "fail"))
        return cls(
            folder(options["path"]) if "path" in options else Address.of(options),
            text,
            syntax,
            options,
            _columns(schema, of_broker="url" in options) if table is None else table.columns,
            Bounds(fail_on_loss=fail == "true", skip_corrupt=corrupt == "skip"),
            index if "path" in options else None,
            selector if "path" in options else None,
            positive(options, "maxRecordsPerPartition") or ROWS_PER_PARTITION,
            Limits.of(options),
            one_of(options, "pushdown", ("false", "true")) == "true",
            table,
        )

    def log(self) -> Log:
        """The archive, to be closed."""
        if isinstance(self.place, str):
            return Archive(self.place)
        everything = "#"
        filter = self.filter if self.filter is not None else everything
        return Remote(self.place, filter, self.syntax, self.rows, self.options.get("where"))

    def selection(self, wanted: Wanted | None = None) -> Selection:
        """Which rows are wanted of what the archive, or its broker, gives."""
        named = (self.filter, self.syntax) if self.filter is not None and self.index is not None else None
        return Selection(named, self.index, self.selector, wanted)

    def rows_of(self, part: "Part", wanted: Wanted | None = None) -> Iterator[Any]:
        """The batches of a part, with the columns of the DataFrame."""
        workers.settle()
        with closing(self.log()) as archive:
            # Once more: what was planned may have gone since.
            first, end = self.bounds.range_of(archive, part.start, part.end)
            since, until = (wanted.since, wanted.until) if wanted else (None, None)
            selection = self.selection(wanted)
            # A decoder looks at the topics itself, of larger batches than those of the archive.
            by_decoder = self.table is not None and isinstance(archive, Archive) and selection.is_of_topics
            where = None if selection.is_everything or by_decoder else selection.mask
            lost = self.bounds.lost
            if isinstance(archive, Archive):
                indexes = selection.indexes(archive)
                select = None if indexes is None else indexes.select
                columns = self.columns.names if self.table is None else self.table.needed
                batches = archive.read(
                    first, end, since=since, until=until, where=where, lost=lost, select=select, columns=columns
                )
            else:
                batches = archive.read(first, end, since=since, until=until, where=where, lost=lost)
            found = (batch for batch in batches if batch.num_rows)
            if self.table is not None:
                yield from self.table.batches(merged(found), chosen=not by_decoder)
                return
            for batch in found:
                yield shaped([batch.column(name) for name in self.columns.names], self.columns)


@dataclass(frozen=True)
class Part(InputPartition):
    """A range of messages that one task reads. Positions, not offsets: it may be read again, after a crash."""

    start: Position
    end: Position


class Fanlight(DataSource):
    """`session.dataSource.register(Fanlight)`, which `fanlight_spark.session` does."""

    @classmethod
    def name(cls) -> str:
        return "fanlight"

    def schema(self) -> StructType:
        workers.settle()
        options, by_catalog = catalog.asked(self.options)
        decoder = decoder_of(known(options, OPTIONS, "source"))
        columns = BROKER_COLUMNS if "url" in options else COLUMNS
        columns = columns if decoder is None else columns_of(decoder)
        return catalog.with_options(columns, options) if by_catalog else columns

    def reader(self, schema: StructType) -> DataSourceReader:
        workers.settle()
        settings = SourceSettings.of(catalog.kept(schema, self.options), schema)
        return PushingReader(settings) if settings.pushdown else BatchReader(settings)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(SourceSettings.of(catalog.kept(schema, self.options), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return sink.BatchWriter(sink.SinkSettings.of(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return sink.StreamWriter(sink.SinkSettings.of(self.options, schema, overwrite, stream=True))


class BatchReader(DataSourceReader):
    """What there is between two offsets, when it is planned."""

    def __init__(self, settings: SourceSettings) -> None:
        if given := [name for name in LIMITS if name in settings.options]:
            raise ValueError(f"{', '.join(given)}: for streams; a batch reads from startingOffsets to endingOffsets")
        self.settings = settings
        until = settings.options.get("endingTimestamp")
        self.wanted = Wanted(until=None if until is None else microseconds("endingTimestamp", until))

    def partitions(self) -> Sequence[InputPartition]:
        settings, wanted = self.settings, self.wanted
        with closing(settings.log()) as archive:
            start = starting(archive, settings.options, EARLIEST)
            end = offset_option(archive, "endingOffsets", settings.options.get("endingOffsets", LATEST))
            first, last = settings.bounds.range_of(archive, start, end)
            first = max(first, wanted.first or 0)
            if isinstance(archive, Remote) and wanted.since is not None:
                first = max(first, archive.offset_at(wanted.since))
            last = last if wanted.end is None else min(last, wanted.end)
            ranges = divide(archive, first, last, settings.rows, wanted.since, wanted.until)
            return _parts(archive, _wanted(archive, settings.selection(wanted), ranges))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Part):  # Spark's own, where we had none to give
            return iter(())
        return self.settings.rows_of(partition, self.wanted)


class PushingReader(BatchReader):
    """The same, which takes conditions over from Spark. Only where it is asked for.

    Spark keeps what a reader has planned with the conditions that it took, once for a DataFrame and all that is made
    of it, and takes it for the next query, or the other side of a union, that has other conditions or none. So this
    is right for a DataFrame of which one query is made, and gives wrong results with two.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        return [filter for filter in filters if not self.wanted.take(filter)]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What comes after a position. Spark keeps one of these for a query and makes others for tasks."""

    def __init__(self, settings: SourceSettings) -> None:
        for name in ("endingOffsets", "endingTimestamp", "pushdown"):
            if name in settings.options:
                raise ValueError(f"{name} is for batches: a stream ends with its trigger, or not at all")
        self.settings = settings
        self.target: Position | None = None  # where a query that only wants what is there now ends
        self._archive: Log | None = None
        self._admission = Admission(settings.limits)
        self._watch = Watch()
        self._reached: int | None = None  # where the batch ends that was planned last

    def initialOffset(self) -> dict[str, Any]:
        return starting(self._now(), self.settings.options, LATEST).json()

    def getDefaultReadLimit(self) -> ReadLimit:
        limits = self.settings.limits
        # Which one does not matter: `latestOffset` knows them all, and it is only asked whether they hold.
        return ReadAllAvailable() if limits == Limits() else ReadMaxBytes(limits.bytes or 0)

    def prepareForTriggerAvailableNow(self) -> None:
        archive = self._now()
        self.target = position_at(archive, archive.end)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        archive, bounds = self._now(), self.settings.bounds
        first = bounds.offset_of(archive, Position.of(start))
        end = archive.end if self.target is None else bounds.offset_of(archive, self.target)
        self._watch.look(archive, first)
        if not isinstance(limit, ReadAllAvailable):
            end = self._admission.end(archive, first, end, waits=self.target is None)
        self._reached = max(end, first)
        # As it came, if there is nothing new: Spark compares the two as text.
        return position_at(archive, end).json() if end > first else start

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if self._reached is None or self._archive is None:
            return None  # a batch that was planned before the query was killed
        return report(self._archive, self._reached, self._watch.near)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        archive = self._now()
        first, last = self.settings.bounds.range_of(archive, Position.of(start), Position.of(end))
        ranges = divide(archive, first, last, self.settings.rows)
        return _parts(archive, _wanted(archive, self.settings.selection(), ranges))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Part)
        return self.settings.rows_of(partition)

    def stop(self) -> None:
        if self._archive is not None:
            self._archive.close()
            self._archive = None

    def _now(self) -> Log:
        """The archive, with what has been written until now."""
        if self._archive is None:
            self._archive = self.settings.log()
        else:
            self._archive.refresh()
        return self._archive


def _wanted(archive: Log, selection: Selection, ranges: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    return worth_reading(archive, selection, ranges) if isinstance(archive, Archive) else ranges


def _parts(archive: Log, ranges: Iterable[tuple[int, int]]) -> list[InputPartition]:
    return [Part(position_at(archive, first), position_at(archive, end)) for first, end in ranges]


def _columns(schema: StructType, *, of_broker: bool) -> Any:
    """The columns of a DataFrame in Arrow. Raises ValueError if they are not the archive's, or some of them.

    of_broker: only the columns that a broker sends.

    Spark prunes no columns of a Python source: who gives a narrower schema reads and moves less.
    """
    columns = to_arrow_schema(schema, timezone="UTC")
    whole = to_arrow_schema(COLUMNS, timezone="UTC")
    for column in columns:
        at = whole.get_field_index(column.name)
        if at < 0:
            raise ValueError(f"{column.name} is no column of an archive; it has {', '.join(SCHEMA.names)}")
        if of_broker and column.name in ARCHIVE_COLUMNS:
            has = ", ".join(DELIVERED.names)
            raise ValueError(f"a broker does not send {column.name} (read the archive's folder, path): it sends {has}")
        if not whole.field(at).type.equals(column.type):
            raise ValueError(f"{column.name} is {whole.field(at).type} in an archive, and not {column.type}")
    return columns
