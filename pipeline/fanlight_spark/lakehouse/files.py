"""Parquet files of a table: written whole before a commit names them, with the statistics that readers skip by.

On a local disk a file and its folder are synced first, because delta-rs syncs nothing: a commit that outlives a power
failure must not name a file that does not. An object store has the file when the request has succeeded.
"""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow.fs as arrow_fs  # type: ignore[import-untyped, unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
from deltalake.fs import DeltaStorageHandler

from fanlight_archive.arrow import pc

ROW_GROUP_BYTES: Final = 16 * 1024 * 1024  # before compression: what a reader of one root has to take
ROW_GROUP_ROWS: Final = (1_024, 131_072)
SKIPPED_BY: Final = ("offset", "timestamp", "topic", "root", "client")  # columns with statistics in the log
TEXT_MAX: Final = 64  # letters of a text in the statistics
SIZE: Final = b"fanlight.bytes"  # in a file's footer: of its rows in memory
LAST_LETTER: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Footer:
    bytes: int  # of its rows in memory


class Files:
    """Writes files below the root of a table. uri: a folder, or a place in an object store."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self.folder = local_folder(uri)
        self._store: Any = None if self.folder else arrow_fs.PyFileSystem(DeltaStorageHandler(uri, dict(options)))

    def write(self, rows: Any, day: date) -> tuple[str, int]:
        """A new file with these rows, without their `date`, which its folder has. (path, bytes)."""
        rows = rows.drop_columns(["date"])
        rows = rows.replace_schema_metadata({SIZE: str(rows.nbytes)})
        path = f"date={day.isoformat()}/part-{secrets.token_hex(16)}.zstd.parquet"
        low, high = ROW_GROUP_ROWS
        group = max(low, min(high, ROW_GROUP_BYTES * rows.num_rows // max(rows.nbytes, 1)))
        if self.folder is None:
            with self._store.open_output_stream(path) as file:
                pq.write_table(rows, file, compression="zstd", row_group_size=group)
                return path, file.tell()
        whole = self.folder / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        with whole.open("xb") as file:
            pq.write_table(rows, file, compression="zstd", row_group_size=group)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        sync_folder(whole.parent)
        sync_folder(self.folder)
        return path, size

    def footer(self, path: str) -> "Footer":
        """What a file of ours says of itself."""
        with self._reading(path) as file:
            return Footer(int((pq.read_schema(file).metadata or {})[SIZE]))

    def read(self, path: str) -> Any:
        """All rows of a file of ours, without their `date`."""
        with self._reading(path) as file:
            return pq.ParquetFile(file).read().replace_schema_metadata(None)

    def _reading(self, path: str) -> Any:
        return (self.folder / path).open("rb") if self.folder is not None else self._store.open_input_file(path)

    def sync_log(self, version: int) -> None:
        """Have a commit on the disk: only then may the archive let go of what it has."""
        if self.folder is not None:
            log = self.folder / "_delta_log"
            with (log / f"{version:020}.json").open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(log)


def statistics(rows: Any) -> dict[str, Any]:
    """Of rows as the Delta protocol has them: least and greatest values, and how many are null."""
    least, greatest, nulls = {}, {}, {}
    for name in SKIPPED_BY:
        found = pc.min_max(rows[name])
        nulls[name] = rows[name].null_count
        if nulls[name] < rows.num_rows:
            least[name] = _said(found["min"].as_py())
            if (top := _above(found["max"].as_py())) is not None:
                greatest[name] = top
    return {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _said(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value[:TEXT_MAX] if isinstance(value, str) else value


def _above(value: Any) -> Any:
    """The same, or of a long text something greater that is not as long; None if there is none."""
    if not isinstance(value, str) or len(value) <= TEXT_MAX:
        return _said(value)
    return None if value[TEXT_MAX] == LAST_LETTER else value[:TEXT_MAX] + LAST_LETTER


def local_folder(uri: str) -> Path | None:
    """The folder of a table on a disk; None if it is in an object store."""
    if uri.startswith("file://"):
        return Path(uri.removeprefix("file://"))
    return None if "://" in uri else Path(uri)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    with suppress(PermissionError):
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
