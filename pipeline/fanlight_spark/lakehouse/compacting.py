"""From an archive to a table: what has come since the last run, each message once.

A lot is read, sorted, written and committed with the position behind it; whoever is killed anywhere has committed it
whole or not at all, and the next run begins at the position that the table itself has.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fanlight_archive import Archive, ArchiveError
from fanlight_archive.reader import Where
from fanlight_spark.lakehouse.holding import Hold
from fanlight_spark.lakehouse.rows import LOT_BYTES, Lot, lots
from fanlight_spark.positions import Bounds, Position, position_at
from fanlight_spark.topics import index_of, matched


class Overtaken(ValueError):
    """Another compaction has written to the table meanwhile."""


class Table(Protocol):
    """What messages go to: delta.MessagesDelta, iceberg.MessagesIceberg."""

    @property
    def position(self) -> Position | None: ...
    def append(self, lot: Lot, position: Position) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit added."""

    first: int
    end: int
    messages: int
    lost: list[str]  # what of the range could not be read, a sentence each
    messages_lost: int
    files: int
    bytes: int


def compact(
    source: Path,
    opened: Callable[[str], Table],
    *,
    up_to: int | None = None,
    filter: str | None = None,
    syntax: str = "amqp",
    allow_loss: bool = False,
    lot_bytes: int = LOT_BYTES,
    hold: Hold | None = None,
) -> Iterator[Committed]:
    """Add what is new to a table, and say so commit by commit. Raises ValueError, ArchiveError, OSError.

    opened: the table of an archive of this identity. hold: what has the archive's retention wait
    """
    where = None if filter is None else _where(filter, syntax)
    with Archive(source) as archive:
        table = opened(archive.id)
        bounds = Bounds(fail_on_loss=not allow_loss, skip_corrupt=allow_loss)
        position = table.position or position_at(archive, archive.start)
        if hold is not None:
            hold.at(position)
        first = bounds.offset_of(archive, position)
        closed = archive.spans[-1].end if archive.spans else 0
        end = closed if up_to is None else min(up_to, archive.end)
        for lot in lots(archive, first, end, where=where, allow_loss=allow_loss, size=lot_bytes):
            if where is None and lot.rows.num_rows + lot.messages_lost != lot.end - lot.first:
                read, asked = lot.rows.num_rows, lot.end - lot.first
                raise ArchiveError(f"{read:,} messages were read of {asked:,} from offset {lot.first} on")
            position = position_at(archive, lot.end)
            files, size = table.append(lot, position)
            if hold is not None:
                hold.at(position)
            lost = [str(loss.error) for loss in lot.lost]
            yield Committed(lot.first, lot.end, lot.rows.num_rows, lost, lot.messages_lost, files, size)


def _where(filter: str, syntax: str) -> Where:
    index = index_of([(filter, 0, syntax)])
    return lambda batch: matched(
        index, *(batch.column(batch.schema.get_field_index(name)) for name in ("topic", "syntax"))
    )
