"""A store on a disk that fills: what tests do with it, in one process and over an injected disk."""

from contextlib import suppress
from pathlib import Path

from tests.broker.core.sessions import Peer
from tests.broker.storage.disks import SmallDisk
from tests.broker.storage.stored_world import StoredWorld

SEGMENT = 64 << 10
ROOM = 16 * SEGMENT
FILLING = "x" * 4_000
AT_ONCE = 20  # messages that the reader takes before it acknowledges them


class FullDisk:
    """A session whose client is away, and what is published for it until publishers are refused."""

    def __init__(self, folder: Path) -> None:
        self.disk = SmallDisk(folder, ROOM)
        self.world = StoredWorld(
            folder, disk=self.disk, segment_bytes=SEGMENT, reserves=2, queue_messages_max=1_000_000,
            queue_bytes_max=1 << 30,
        )
        self.number = 0
        self.work()
        reader = self.reader()
        reader.subscribe("t", qos=1)
        reader.leave()

    @property
    def refuses(self) -> bool:
        return self.world.store.position.refusing

    def reader(self) -> Peer:
        return self.world.connect("reader", expiry=1e6, clean_start=False, receive_max=AT_ONCE)

    def work(self) -> None:
        """What the threads do, and the slices of a round; until nothing moves."""
        world = self.world
        before = None
        while before != (world.log.synced, world.log.short, len(world.steps)):
            before = world.log.synced, world.log.short, len(world.steps)
            world.turn()
            with suppress(OSError):
                world.log.prepare()
            world.slices()

    def fill(self) -> list[str]:
        """Publish until publishers are refused. Returns what was published."""
        found = []
        while not self.refuses:
            self.number += 1
            found.append(f"{self.number:06}{FILLING}")
            self.world.publish("t", found[-1], 1)
            self.work()
        return found

    def read(self, peer: Peer, most: int = 1 << 30) -> list[str]:
        """Take and acknowledge so many messages, or all."""
        found: list[str] = []
        while len(found) < most and (got := [line.split()[1] for line in peer.got()]):
            found += got
            peer.acknowledge()
            self.work()
        return found


def consumers_drain_a_full_disk(folder: Path) -> None:
    full = FullDisk(folder)
    accepted = full.fill()
    store = full.world.store
    assert (store.failure, full.world.log.trouble) == (None, None)
    assert "can be made ahead" in (store.trouble or "")
    live = full.world.connect("live")
    live.subscribe("news")
    full.world.publish("news", "zero")
    assert live.got() == ["news zero 0"]
    assert full.read(full.reader()) == accepted
    assert not full.refuses
    assert len(full.fill()) > len(accepted) // 2
