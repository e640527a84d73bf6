"""The low-space mark: what needs the store is refused before the disk is full, and accepted again by itself."""

from pathlib import Path

from fanlight_broker.core.metrics import MetricFamily
from fanlight_broker.storage import store_metrics
from fanlight_broker.storage.free_space import FreeSpace, free_bytes
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_pager import absent


class Space:
    def __init__(self, free: int) -> None:
        self.free = free

    def __call__(self, folder: Path) -> int:
        return self.free


def test_low_from_the_mark_on_and_well_again_a_quarter_above_it(tmp_path: Path) -> None:
    space = Space(1_000)
    found = FreeSpace(tmp_path, 1_000, space)
    seen = []
    for space.free in (1_000, 999, 1_000, 1_249, 1_250, 1_000, 999):
        found.look()
        seen.append(found.low is not None)
    assert seen == [False, True, True, True, False, False, True]
    assert found.low == f"999 bytes are free in {tmp_path}: data_free_bytes_min is 1,000"
    assert found.free == 999


def test_without_a_mark_it_is_never_low_and_a_lower_one_holds_at_once(tmp_path: Path) -> None:
    found = FreeSpace(tmp_path, 1_000, Space(10))
    found.look()
    assert found.low is not None
    found.least = 0
    found.look()
    assert found.low is None


def test_the_space_of_a_file_system_is_what_this_process_may_write(tmp_path: Path) -> None:
    assert 0 < free_bytes(tmp_path) < 1 << 60


def test_a_store_with_little_room_refuses_and_is_no_failure(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    store = world.store
    store.low = "12 bytes are free"
    store.progress()
    assert store.position.refusing
    assert (store.trouble, store.failure) == ("12 bytes are free", None)
    assert store_metrics.gauges(store, world.broker.ledger, FreeSpace(tmp_path, 0))["store_refusing"] == 1
    store.low = None
    store.progress()
    assert not store.position.refusing
    world.log.close()


def test_what_waits_on_the_disk_is_counted_until_it_is_read_or_its_session_ends(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "a")
    absent(world, "b")
    for number in range(300):
        world.publish("t", f"{number}", 1)
    world.turn()
    records = world.store.records
    assert records.backlog == 600
    assert records.backlog_bytes > 600
    again = world.connect("a", expiry=60.0, clean_start=False)
    world.turn()
    assert again.got()
    assert 300 <= records.backlog < 600
    world.connect("a")
    world.connect("b")
    assert (records.backlog, records.backlog_bytes) == (0, 0)
    world.log.close()


def test_histograms_are_cumulative_and_end_at_infinity(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "a")
    world.turn()
    families: dict[str, MetricFamily] = {each.name: each for each in store_metrics.families(world.log)}
    assert set(families) == {"store_sync_seconds", "store_group_entries", "store_group_bytes"}
    for family in families.values():
        counts = [count for _, count in family.buckets]
        assert counts == sorted(counts)
        assert counts[-1] == world.log.groups > 0
        assert family.buckets[-1][0] == float("inf")
    world.log.close()
