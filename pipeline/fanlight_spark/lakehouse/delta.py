"""A Delta table of an archive's messages.

How far it has got is in the commit that adds the messages, as the protocol's transaction identifiers (`txn`): the next
offset, and its epoch. They survive checkpoints and the cleaning of the log. So a commit adds messages and moves the
position, or does neither; and of two that move the same position the log refuses the second, on any store that
refuses to write a name twice. Nothing is renamed.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, Final

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from fanlight_archive.arrow import pa
from fanlight_spark.lakehouse.compacting import Overtaken
from fanlight_spark.lakehouse.files import SKIPPED_BY, Files, statistics
from fanlight_spark.lakehouse.rows import COLUMNS, Lot, days, in_order
from fanlight_spark.lakehouse.small_files import DataFile, Merged, groups
from fanlight_spark.positions import Position

log: Final = logging.getLogger(__name__)

PARTITIONS: Final = ["date"]
NAME: Final = "fanlight"


class MessagesDelta:
    """A table that one archive fills; made if it is not there. Raises ValueError, DeltaError, OSError.

    about: what the table holds, which may not change: the archive, a filter and its syntax
    """

    def __init__(self, uri: str, about: Mapping[str, str | None], options: Mapping[str, str]) -> None:
        self.uri, self.about, self._options = uri, dict(about), dict(options)
        self._files = Files(uri, options)
        self.table = self._opened()
        stored = parsed(self.table.metadata().description)
        if stored is None:
            raise ValueError(f"{uri}: a Delta table that compact has not made: take another place")
        for name, asked in self.about.items():
            if stored.get(name) != asked:
                raise ValueError(f"{uri} was made with {name} {stored.get(name)}, not {asked}: take another place")

    @property
    def position(self) -> Position | None:
        """Of the next message that is to be taken; None if none ever was."""
        archive = str(self.about["archive"])
        offset, epoch = (self.table.transaction_version(name) for name in _identifiers(archive))
        return None if offset is None or epoch is None else Position(archive, epoch, offset)

    def append(self, lot: Lot, position: Position) -> tuple[int, int]:
        """Commit a lot and the position behind it: (files, bytes). Raises Overtaken, DeltaError, OSError.

        A file whose commit failed is not removed, for an answer that never came may have been a yes: see vacuum.
        """
        files = [self._file(rows, day) for day, rows in days(lot.rows)]
        added: list[AddAction | RemoveAction] = [*files]
        identifiers = zip(_identifiers(position.archive), (position.offset, position.epoch), strict=True)
        lost = [{"first": loss.first, "end": loss.end, "why": str(loss.error)} for loss in lot.lost]
        note = {"first": lot.first, "end": lot.end, "epoch": position.epoch, "lost": lost}
        commit = CommitProperties({NAME: note}, app_transactions=[Transaction(*one) for one in identifiers])
        try:
            self.table.create_write_transaction(added, "append", COLUMNS, PARTITIONS, commit_properties=commit)
        except CommitFailedError as error:
            raise Overtaken(f"{self.uri}: another compaction has written there meanwhile ({error})") from error
        self.table.update_incremental()
        self._files.sync_log(self.table.version())
        return len(files), sum(file.size for file in files)

    def merge(self, size: int) -> Iterator[Merged]:
        """Make large files of small ones (small_files.py), a commit each. Raises DeltaError, OSError.

        size: of the messages that are in memory at once; a group that has more is left as it is
        """
        passed: set[str] = set()  # of groups that are too large, or could not be committed
        while group := next(groups(file for file in self._data_files() if file.path not in passed), None):
            merged = self._merged(group, size)
            if merged is None:
                passed |= {file.path for file in group}
            else:
                yield merged

    def _merged(self, group: Sequence[DataFile], size: int) -> Merged | None:
        footers = [self._files.footer(file.path) for file in group]
        if sum(footer.bytes for footer in footers) > size:
            return None
        day = date.fromisoformat(group[0].day)
        rows = pa.concat_tables([self._files.read(file.path) for file in group])
        if rows.num_rows != sum(file.rows for file in group):
            raise OSError(f"{self.uri}: {rows.num_rows:,} rows in {len(group)} files that should have more or less")
        made = self._file(
            in_order(rows.append_column("date", pa.repeat(pa.scalar(day), rows.num_rows))), day, new=False
        )
        now = time.time_ns() // 1_000_000
        gone = [RemoveAction(file.path, False, now, file.bytes, {"date": file.day}) for file in group]
        # At the next version or not at all: tried again, the library would not see that another commit has removed the
        # same files, and their rows would be there twice.
        commit = CommitProperties({NAME: {"merged": len(group)}}, max_commit_retries=0)
        try:
            self.table.create_write_transaction([made, *gone], "append", COLUMNS, PARTITIONS, commit_properties=commit)
        except CommitFailedError as error:
            log.warning("%s: small files are not merged, for somebody else has committed (%s)", self.uri, error)
            self.table.update_incremental()
            return None
        self.table.update_incremental()
        self._files.sync_log(self.table.version())
        return Merged(group[0].day, len(group), made.size)

    def _data_files(self) -> Iterator[DataFile]:
        names = ("path", "partition.date", "size_bytes", "num_records", "min.offset")
        found = pa.table(self.table.get_add_actions(flatten=True)).select(names)
        for path, day, size, rows, first in zip(*(found[name].to_pylist() for name in names), strict=True):
            yield DataFile(path, day.isoformat(), size, rows, first)

    def _file(self, rows: Any, day: date, *, new: bool = True) -> AddAction:
        """A file with these rows, for a commit. new: not merely moved, so that who follows the table reads them."""
        path, size = self._files.write(rows, day)
        stats = json.dumps(statistics(rows))
        return AddAction(path, size, {"date": day.isoformat()}, time.time_ns() // 1_000_000, new, stats)

    def _opened(self) -> DeltaTable:
        try:
            return DeltaTable(self.uri, storage_options=self._options)
        except TableNotFoundError:
            pass
        if self._files.folder is not None:
            self._files.folder.mkdir(parents=True, exist_ok=True)
        with suppress(DeltaError):  # somebody else has made it meanwhile; what else is wrong, the next line says
            DeltaTable.create(
                self.uri, COLUMNS, partition_by=PARTITIONS, name="messages", description=json.dumps(self.about),
                configuration={"delta.dataSkippingStatsColumns": ",".join(SKIPPED_BY)}, storage_options=self._options,
            )  # fmt: skip
        return DeltaTable(self.uri, storage_options=self._options)


def vacuum(uri: str, options: Mapping[str, str], hours: int, *, delete: bool) -> list[str]:
    """Files that no version of the last hours names, also those that a killed run has left. Raises DeltaError."""
    table = DeltaTable(uri, storage_options=dict(options))
    return table.vacuum(hours, dry_run=not delete, enforce_retention_duration=False, full=True)


def _identifiers(archive: str) -> tuple[str, str]:
    """Of a table's transactions: what counts the offset, and what counts the epoch."""
    return f"{NAME}/{archive}/offset", f"{NAME}/{archive}/epoch"


def parsed(description: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(description or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "archive" in found else None
