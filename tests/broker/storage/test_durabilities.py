"""What an acknowledgement waits for, by the durability of the broker and of its client's listener."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.store import Store
from fanlight_broker.wire.receipts import Receiver
from tests.broker.core.sessions import World
from tests.broker.storage.disks import FaultyDisk, Operation

SYNCED, WRITTEN, MEMORY = StoreDurability.SYNCED, StoreDurability.WRITTEN, StoreDurability.MEMORY


class Kept:
    """A broker with an absent session, and a store that writes when `write` is called."""

    def __init__(self, folder: Path, durability: StoreDurability, *listeners: StoreDurability) -> None:
        self.world = World()
        self.events: list[str] = []  # acknowledgements, and syncs of the log
        broker = self.world.broker
        self.log = Log(
            folder, lambda: self.store.progress(), threaded=False, segment_bytes=64 << 10,
            disk=FaultyDisk(self._asked),
        )
        assert list(self.log.replay()) == []
        self.store = Store(
            self.log, broker.ledger, now=lambda: self.world.now, wall=lambda: 1e9, schedule=lambda seconds: None,
            changed=lambda: broker.position_changed(self.world.now), durability=durability, durabilities=listeners,
        )
        broker.journal_to(self.store)
        self.rings = {each: broker.acknowledgements.for_lanes(each) for each in (None, *listeners)}
        peer = self.world.connect("absent", expiry=60.0, clean_start=False)
        peer.subscribe("t", qos=1)
        peer.leave()
        self.end_turn()
        self.write()
        self.log.sync()
        self.write()
        self.events.clear()

    def _asked(self, operation: Operation) -> int:
        if operation.name == "sync" and isinstance(operation.path, int):
            self.log.collect()  # as the loop does, while the writer's thread syncs
            self.events.append("sync")
        return 0

    def publish(self) -> None:
        """One message, which each listener is to acknowledge."""
        self.world.publish("t", "x", 1)
        for listener, ring in self.rings.items():
            assert ring is not None
            ring.call(
                partial(self.events.append, listener.value if listener is not None else "broker"), 0, Receiver(),
                self.store.position.appended,
            )

    def end_turn(self) -> None:
        self.world.broker.finish()
        self.store.seal()

    def write(self) -> None:
        while self.log.write_group():
            pass


@pytest.mark.parametrize("durability", [WRITTEN, MEMORY])
def test_only_synced_acknowledgements_cause_a_sync(tmp_path: Path, durability: StoreDurability) -> None:
    kept = Kept(tmp_path, durability)
    kept.publish()
    assert kept.events == []
    kept.end_turn()
    assert kept.events == (["broker"] if durability is MEMORY else [])
    kept.write()
    assert kept.events == ["broker"]
    assert kept.log.synced < kept.log.written
    kept.log.sync()
    kept.write()
    assert kept.events == ["broker", "sync"]
    assert kept.log.synced == kept.log.written
    kept.log.close()


def test_a_listener_promises_more_or_less_than_the_broker(tmp_path: Path) -> None:
    kept = Kept(tmp_path, SYNCED, MEMORY, WRITTEN)
    kept.publish()
    assert kept.events == ["memory"]
    kept.end_turn()
    assert kept.events == ["memory"]
    kept.write()
    assert kept.events == ["memory", "written", "sync", "broker"]
    kept.log.close()


def test_a_listener_alone_causes_syncs(tmp_path: Path) -> None:
    kept = Kept(tmp_path, MEMORY, SYNCED)
    kept.publish()
    kept.end_turn()
    assert kept.events == ["broker"]
    kept.write()
    assert kept.events == ["broker", "sync", "synced"]
    kept.log.close()


def test_what_is_written_can_be_read_before_it_is_synced(tmp_path: Path) -> None:
    kept = Kept(tmp_path, WRITTEN)
    pager: Any = SimpleNamespace(synced_number=0, work=lambda: None)
    kept.store.pager = pager
    kept.publish()
    kept.end_turn()
    kept.write()
    assert kept.log.synced < kept.log.written
    assert pager.synced_number == kept.store.records.last_number
    kept.log.close()
