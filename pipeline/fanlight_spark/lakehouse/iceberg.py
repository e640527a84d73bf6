"""An Iceberg table of an archive's messages, in a catalog.

How far it has got is a property of the table, set in the transaction that adds the messages: both are in the new
metadata that the catalog swaps in, or neither is. pyiceberg would commit again behind somebody else's snapshot, and add
messages twice; so the table says that no commit is tried again, and of two at once the second fails.

Files, metadata and the catalog are pyiceberg's. Small files are not merged here, and nothing is vacuumed: it has no
means for that yet; engines have (rewrite_data_files, remove_orphan_files).
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError

from fanlight_spark.lakehouse.compacting import Overtaken
from fanlight_spark.lakehouse.rows import COLUMNS, Lot
from fanlight_spark.positions import Position

PREFIX: Final = "fanlight."
IN_FOLDER: Final = "fanlight.messages"  # the table of a catalog that is a file in its folder
RETRIES: Final = "commit.retry.num-retries"
PROPERTIES: Final = {
    RETRIES: "0",
    "write.parquet.row-group-limit": "131072",
    "write.metadata.delete-after-commit.enabled": "true",  # else each commit leaves its metadata for ever
}


class MessagesIceberg:
    """A table that one archive fills; made if it is not there. Raises ValueError, and what pyiceberg raises.

    where: a folder, or with `catalog` the table's name there: lake.messages
    catalog: its name in pyiceberg's configuration; None: a file in the folder
    """

    def __init__(
        self, where: str, about: Mapping[str, str | None], options: Mapping[str, str], catalog: str | None = None
    ) -> None:
        self.where, self.about = where, dict(about)
        self._catalog, name = _catalog(where, options, catalog)
        self.table = _opened(self._catalog, name, {PREFIX + key: value or "" for key, value in self.about.items()})
        stored = self.table.properties
        for key, value in self.about.items():
            found = stored.get(PREFIX + key)
            if found is None:
                raise ValueError(f"{where}: an Iceberg table that compact has not made: take another place")
            if found != (value or ""):
                raise ValueError(f"{where} was made with {key} {found or None}, not {value}: take another place")
        if stored.get(RETRIES) != "0":
            raise ValueError(f"{where}: its property {RETRIES} is {stored.get(RETRIES)}; with 0 nothing is added twice")

    @property
    def position(self) -> Position | None:
        """Of the next message that is to be taken; None if none ever was."""
        stored = self.table.properties.get(PREFIX + "position")
        return None if stored is None else Position.of(json.loads(stored))

    def append(self, lot: Lot, position: Position) -> tuple[int, int]:
        """Commit a lot and the position behind it: (files, bytes). Raises Overtaken, and what pyiceberg raises."""
        lost = [{"first": loss.first, "end": loss.end, "why": str(loss.error)} for loss in lot.lost]
        note = {PREFIX + "first": str(lot.first), PREFIX + "end": str(lot.end), PREFIX + "lost": json.dumps(lost)}
        try:
            with self.table.transaction() as transaction:
                if lot.rows.num_rows:
                    transaction.append(lot.rows, snapshot_properties=note)
                transaction.set_properties({PREFIX + "position": json.dumps(position.json())})
        except CommitFailedException as error:
            raise Overtaken(f"{self.where}: another compaction has written there meanwhile ({error})") from error
        snapshot = self.table.current_snapshot()
        summary: Any = None if snapshot is None else snapshot.summary
        if not lot.rows.num_rows or summary is None:
            return 0, 0
        return int(summary["added-data-files"]), int(summary["added-files-size"])


def _catalog(where: str, options: Mapping[str, str], catalog: str | None) -> tuple[Catalog, str]:
    """The catalog, and the table's name in it."""
    if catalog is not None:
        if "." not in where:
            raise ValueError(f"--out {where}: with --catalog it is the name of a table, such as lake.messages")
        return load_catalog(catalog, **options), where
    if "://" in where:
        raise ValueError(f"--out {where}: an Iceberg table in an object store needs --catalog")
    folder = Path(where).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    place = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder.as_uri()}
    return load_catalog("fanlight", **place, **options), IN_FOLDER


def _opened(catalog: Catalog, name: str, about: Mapping[str, str]) -> Any:
    with suppress(NoSuchTableError):
        return catalog.load_table(name)
    catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
    with (
        suppress(TableAlreadyExistsError),
        catalog.create_table_transaction(name, COLUMNS, properties={**PROPERTIES, **about}) as made,
        made.update_spec() as spec,
    ):
        spec.add_identity("date")
    return catalog.load_table(name)
