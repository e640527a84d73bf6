"""A broker without sockets that has an archive, on a disk that fails when a test wants it."""

from pathlib import Path
from typing import Any

from fanlight_archive import Archive as Reader
from fanlight_archive import Writer
from fanlight_broker.core.limits import Durability
from fanlight_broker.storage.archive import Archive, ArchiveOptions
from tests.archive.disks import FailingDisk
from tests.broker.protocols.mqtt.world import World
from tests.broker.storage.loops import HandLoop

EVERYTHING = ((b"#", "amqp"),)


class Archived:
    """A world whose broker has an archive."""

    def __init__(
        self, folder: Path, *, receipts: bool = False, durability: Durability = Durability.NONE,
        filters: tuple[tuple[bytes, str], ...] = EVERYTHING, world: type[Any] = World, disk: type[Any] = FailingDisk,
        body_formats: str = "", **limits: Any,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.disk, self.loop, self.world = folder, disk(folder), HandLoop(), world(**limits)
        broker = self.world.broker
        options = ArchiveOptions(folder, filters, durability, 0.01, receipts, body_formats=body_formats)
        self.archive = Archive(
            options, Writer(folder, files=self.disk), self.loop, lambda: self.world.now, broker.acknowledgements,
            lambda: broker.limits, broker.router.screens.new_rows,
        )
        broker.archive_with(self.archive.selection, self.archive)
        broker.record_to(self.archive)
        broker.marks.restore(self.archive.kept)
        self.archive.start()

    def settled(self) -> None:
        """Wait until all that was published is dealt with."""
        self.archive.tap.flush()
        self.loop.run_until(lambda: self.archive.state.sequence == self.archive.tap.taken)
        self.world.turn()

    def rows(self) -> list[dict[str, Any]]:
        with Reader(self.folder) as reader:
            return [row for batch in reader.read() for row in batch.to_pylist()]
