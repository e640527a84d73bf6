"""The archive as a part. pyarrow is imported here, and only where the settings name an archive."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Exit, Settings
from fanlight_broker.config.settings import Compression
from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.errors import FanlightError, InvalidFilter
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.topics import named_filter
from fanlight_broker.core_part import Core
from fanlight_broker.net.clock import monotonic
from fanlight_broker.parts import Part, PartError, small_pieces

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition
    from fanlight_broker.storage.archive import Archive, EventLoop
    from matchcore.row_screener import RowScreener
    from matchcore.selector import Attribute


ADVICE: Final = (
    "the archive is a distribution of its own, fanlight-archive, which is not installed: "
    "`pip install ./archive` in a checkout, `docker build --build-arg EXTRA=archive` for an image"
)


class Archiving(Part):
    name = "archive"
    archive: "Archive | None" = None  # None if the settings name none, and until it is open

    def __init__(self, settings: Settings, core: Core) -> None:
        self._settings, self._broker = settings, core.broker

    async def open(self) -> None:
        broker = self._broker
        self.archive = archive = open_archive(
            self._settings, asyncio.get_running_loop(), monotonic, broker.acknowledgements, lambda: broker.limits,
            broker.router.screens.new_rows,
        )
        if archive is not None:
            broker.archive_with(archive.selection, archive)
            broker.record_to(archive)
            broker.marks.restore(archive.kept)

    async def start(self) -> None:
        if self.archive is not None:
            self.archive.start()

    async def stop(self) -> None:
        if self.archive is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.archive.stop)

    def metrics(self) -> Sequence[MetricSource]:
        archive = self.archive
        if archive is None:
            return []
        help = {**archive.counted, **archive.gauged}
        return [MetricSource(help, archive.counters, archive.gauges, families=archive.families)]

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        archive = self.archive
        if archive is None:
            return {}
        return {
            "archive_segments": partial(_segments, archive), "archive_replays": archive.replay_views,
            "archive_holds": archive.hold_views,
        }

    @property
    def exit_code(self) -> Exit:
        return Exit.UNWRITTEN if self.archive is not None and self.archive.unwritten else Exit.OK


async def _segments(archive: "Archive") -> list[dict[str, Any]]:
    """Raises FanlightError."""
    from fanlight_archive import ArchiveError

    try:
        with small_pieces:
            return await asyncio.to_thread(archive.segment_views)
    except (ArchiveError, OSError) as error:
        raise FanlightError(f"the archive cannot be read: {error}") from error


def _reason(error: Exception) -> str:
    """Why a folder cannot be used, in words."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "is not a folder"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def filters_of(text: str) -> tuple[tuple[bytes, str], ...]:
    """(filter, syntax) of each of `archive_topics`."""
    return tuple(named_filter(part.strip()) for part in text.split(",") if part.strip())


def _index_fields(text: str) -> "tuple[Attribute, ...]":
    from fanlight_broker.storage.archive_index import fields_named
    from matchcore import InvalidSelector

    try:
        return fields_named(text)
    except InvalidSelector as error:
        raise PartError(f"archive_index_fields: {error}") from error


def open_archive(
    settings: Settings, loop: "EventLoop", clock: Callable[[], float], acknowledgements: Acknowledgements,
    limits: Callable[[], Limits], selector_of: "Callable[[Condition], RowScreener] | None" = None,
) -> "Archive | None":
    """The archive; None if there is to be none. Reads and writes the disk. Raises PartError."""
    if settings.archive is None:
        return None
    try:
        from fanlight_archive import ArchiveError, Writer
        from fanlight_broker.storage.archive import Archive, ArchiveOptions
        from fanlight_broker.storage.archive_index import SegmentIndexer
    except ModuleNotFoundError as error:
        if error.name == "pyarrow":
            raise PartError(str(error)) from error  # which says how to get it
        if error.name == "fanlight_archive":
            raise PartError(ADVICE) from error
        raise PartError(f"a module of the archive cannot be imported: {error}") from error
    except ImportError as error:
        raise PartError(f"a module of the archive cannot be imported: {error}") from error
    options = ArchiveOptions(
        folder=settings.archive, filters=filters_of(settings.archive_topics), durability=settings.archive_durability,
        sync_seconds=settings.archive_sync_seconds, receipts=settings.archive_receipts, index=settings.archive_index,
        body_formats=settings.payload_format or "",
    )
    fields = _index_fields(settings.archive_index_fields or "")
    indexer = partial(SegmentIndexer, fields, body_formats=options.body_formats)
    compression = settings.archive_compression
    try:
        writer = Writer(
            settings.archive,
            segment_bytes=limits().archive_segment_bytes_max, segment_seconds=limits().archive_segment_seconds_max,
            marks_max=limits().marks_max, compression=None if compression is Compression.NONE else compression.value,
            indexer=indexer if settings.archive_index else None,
        )
    except (ArchiveError, OSError) as error:
        raise PartError(f"archive = {os.fspath(settings.archive)}: {_reason(error)}") from error
    try:
        return Archive(options, writer, loop, clock, acknowledgements, limits, selector_of)
    except InvalidFilter as error:
        writer.close()
        raise PartError(f"archive_topics: {error}") from error
