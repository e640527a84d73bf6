"""A Delta table of an archive's messages.

How far it has got is in the commit that adds the messages, as the protocol's transaction identifiers (`txn`): the next
offset, and its epoch. They survive checkpoints and the cleaning of the log. So a commit adds messages and moves the
position, or does neither; and of two that move the same position the log refuses the second, on any store that
refuses to write a name twice. Nothing is renamed.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from fanlight_spark.lakehouse.files import SKIPPED_BY, Files, statistics
from fanlight_spark.lakehouse.rows import COLUMNS, Lot, days
from fanlight_spark.positions import Position

PARTITIONS: Final = ["date"]
NAME: Final = "fanlight"


class Overtaken(ValueError):
    """Another compaction has written to the table meanwhile."""


class MessagesDelta:
    """A table that one archive fills; made if it is not there. Raises ValueError, DeltaError, OSError.

    about: what the table holds, which may not change: the archive, a filter and its syntax
    """

    def __init__(self, uri: str, about: Mapping[str, str | None], options: Mapping[str, str]) -> None:
        self.uri, self.about, self._options = uri, dict(about), dict(options)
        self._files = Files(uri, options)
        self.table = self._opened()
        stored = _parsed(self.table.metadata().description)
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

    def _file(self, rows: Any, day: Any) -> AddAction:
        path, size = self._files.write(rows, day)
        return AddAction(
            path, size, {"date": day.isoformat()}, time.time_ns() // 1_000_000, data_change=True,
            stats=json.dumps(statistics(rows)),
        )  # fmt: skip

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


def _identifiers(archive: str) -> tuple[str, str]:
    """Of a table's transactions: what counts the offset, and what counts the epoch."""
    return f"{NAME}/{archive}/offset", f"{NAME}/{archive}/epoch"


def _parsed(description: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(description or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "archive" in found else None
