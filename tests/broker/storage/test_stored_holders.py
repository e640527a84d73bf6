"""After a restart what was kept counts for the same groups, clients and addresses as before."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.permitting.quota_file import parse_quotas
from tests.broker.core.sessions import Peer
from tests.broker.core.test_joint_shares import HOLDER_POTS
from tests.broker.core.test_shares import FOR_EVER
from tests.broker.storage.stored_world import StoredWorld

QUOTAS = """
[[quota]]
name = "all"
group = "g"
per = "group"
subscriptions = 3
[[quota]]
name = "each"
per = "address"
queues = 1
"""
POTS = [*HOLDER_POTS, SharedPot.QUEUES]


def join(world: StoredWorld, name: str, user: str, host: int, **options: object) -> Peer:
    address = f"192.0.2.{host}"
    return world.connect(
        name, user=user, verified=True, address=address, origin=Origin(frozenset({"g"}), address=address),
        **{"expiry": FOR_EVER, "clean_start": False, **options},
    )


def used(world: StoredWorld) -> dict[str, list[int]]:
    return {each.principal: [each.used(pot) for pot in POTS] for each in world.broker.shares.holders}


def crash(world: StoredWorld) -> None:
    world.turn()
    world.crash()


def round_and_crash(world: StoredWorld) -> None:
    world.turn()
    world.round()
    world.crash()


@pytest.mark.parametrize("again", [crash, round_and_crash])
def test_what_was_kept_counts_for_the_same_holders(tmp_path: Path, again: Callable[[StoredWorld], None]) -> None:
    world = StoredWorld(tmp_path)
    world.broker.use_quotas(parse_quotas(QUOTAS, "q"))
    for name, user, host in (("a", "ann", 1), ("b", "bob", 2)):
        peer = join(world, name, user, host)
        peer.subscribe(f"t/{name}", 1)
        peer.publish(f"r/{name}", "kept", 1, retain=True)
        world.publish(f"t/{name}", "waits", 1)
    peer.home.queues.declare(peer.client, "q", ((b"jobs/#", "mqtt"),), QueueOptions(durable=True), world.now)
    before = used(world)
    assert before["address 192.0.2.2"][-1] == 1
    assert before["group g"][1] == 2 + 1  # the filter of the queue, too
    again(world)
    world.broker.use_quotas(parse_quotas(QUOTAS, "q"))
    assert used(world) == before
    peer = join(world, "a", "ann", 3)  # moves alone
    assert (peer.present, used(world)["address 192.0.2.2"]) == (True, before["address 192.0.2.2"])
    left = used(world)["address 192.0.2.1"]
    assert (left[:2], left[3]) == ([0, 0], 1)  # what was retained stays
    again(world)
    assert used(world)["address 192.0.2.3"][:2] == [1, 1]
