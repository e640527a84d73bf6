"""An archive's messages as rows of a table, in lots of bounded size, each sorted by date, root and time.

A lot is what one commit adds. It ends where a batch of the archive ends, however many segments it is of: a thousand
small segments are a few lots. `root` is the first word of the topic; `date` the UTC day on which the broker got it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_archive import SCHEMA, Archive, Loss
from fanlight_archive.arrow import pa, pc
from fanlight_archive.reader import Where

LOT_BYTES: Final = 256 * 1024 * 1024  # in memory, uncompressed; sorting takes about three times as much
ORDER: Final = ("date", "root", "timestamp", "offset")
#: A row of the table.
COLUMNS: Final = pa.schema([*SCHEMA, pa.field("root", pa.string()), pa.field("date", pa.date32())])


@dataclass(slots=True)
class Lot:
    """The messages from `first` to before `end`, but for those that a filter left out, or were lost."""

    first: int
    end: int
    rows: Any  # an Arrow table with COLUMNS
    lost: list[Loss] = field(default_factory=list)

    @property
    def messages_lost(self) -> int:
        return sum(loss.end - loss.first for loss in self.lost)


def lots(
    archive: Archive, first: int, end: int, *, where: Where | None, allow_loss: bool, size: int = LOT_BYTES
) -> Iterator[Lot]:
    """The range in lots of about `size` bytes; the last one reaches to `end`.

    Raises Gone, Corrupt without allow_loss.
    """
    lost: list[Loss] = []
    batches: list[Any] = []
    at, taken = first, 0
    for batch in archive.read(first, end, where=where, lost=lost.append if allow_loss else None):
        batches.append(batch)
        taken += batch.nbytes
        if taken >= size:
            stop = batch.column(0)[-1].as_py() + 1
            yield Lot(at, stop, sorted_rows(batches), [*lost])
            lost.clear()
            batches.clear()
            at, taken = stop, 0
    if at < end:
        yield Lot(at, end, sorted_rows(batches), [*lost])


def sorted_rows(batches: list[Any]) -> Any:
    """Rows of the table, from batches of an archive."""
    messages = pa.Table.from_batches(batches, SCHEMA).combine_chunks()
    rows = messages.append_column("root", roots(messages["topic"], messages["syntax"]))
    rows = rows.append_column("date", messages["timestamp"].cast(pa.date32())).cast(COLUMNS)
    return in_order(rows)


def in_order(rows: Any) -> Any:
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ORDER]))


def roots(topics: Any, syntaxes: Any) -> Any:
    """The first word of each topic, in its syntax."""
    slash = pc.replace_substring_regex(topics, r"(?s)/.*", "", max_replacements=1)
    dot = pc.replace_substring_regex(topics, r"(?s)\..*", "", max_replacements=1)
    return pc.if_else(pc.equal(syntaxes, "mqtt"), slash, dot)


def days(rows: Any) -> Iterator[tuple[Any, Any]]:
    """(day, its rows) of rows in the order of the table."""
    start = 0
    for day in pc.unique(rows["date"]):
        stop = start + pc.sum(pc.equal(rows["date"], day)).as_py()
        yield day.as_py(), rows.slice(start, stop - start)
        start = stop
