"""What an operator does with durable queues is there after a crash: a message that is moved is in one place."""

from pathlib import Path

import pytest

from fanlight_broker.wire.operating import in_memory
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_stored_queues import consume, declare, in_flight, publish

PAYLOADS = [b"x0", b"x1", b"x2"]


def waiting(world: StoredWorld, name: str) -> list[bytes]:
    return world.waiting(world.broker.queues.find(name).inside.queue)


def filled(path: Path) -> StoredWorld:
    """Queue `work` has three messages, `other` none."""
    world = StoredWorld(path)
    declare(world)
    declare(world, name="other", filter=b"o/#")
    publish(world, "x0", "x1", "x2")
    world.turn()
    return world


def move(world: StoredWorld, count: int | None = None, *, to: str | None = "other") -> list[tuple[int, str | None]]:
    """How many have been moved, and why no more; empty as long as it is not done."""
    done: list[tuple[int, str | None]] = []
    queues = world.broker.queues
    mover = world.connect("operator").client.subscriber
    target = queues.find(to) if to is not None else None
    world.broker.queue_jobs.move(
        queues.find("work"), target, count, mover, lambda moved, why: done.append((moved, why))
    )
    return done


def test_the_answer_to_a_purge_waits_for_the_log_and_holds_after_a_crash(tmp_path: Path) -> None:
    world = filled(tmp_path)
    before = world.store.position.appended
    done: list[int] = []
    world.broker.queue_jobs.purge(world.broker.queues.find("work"), done.append)
    assert done == [3]
    answered: list[bool] = []
    world.broker.acknowledgements.commit(lambda: answered.append(True), recorded=False)
    assert world.store.position.appended > before
    assert not answered
    world.turn()
    assert answered
    world.crash()
    assert waiting(world, "work") == []


def test_a_purge_that_is_not_synced_did_not_happen(tmp_path: Path) -> None:
    world = filled(tmp_path)
    world.broker.queue_jobs.purge(world.broker.queues.find("work"), lambda count: None)
    world.turn(synced=False)
    world.crash()
    assert waiting(world, "work") == PAYLOADS


@pytest.mark.parametrize("synced", [False, True])
def test_a_moved_message_is_in_one_queue_after_a_crash(tmp_path: Path, synced: bool) -> None:
    world = filled(tmp_path)
    done = move(world, 2)
    world.settle()  # what waits is read from the disk
    assert done == [(2, None)]
    world.turn(synced=synced)
    world.crash()
    moved = 2 if synced else 0
    assert (waiting(world, "work"), waiting(world, "other")) == (PAYLOADS[moved:], PAYLOADS[:moved])


def test_a_message_that_is_published_again_is_in_one_queue_after_a_crash(tmp_path: Path) -> None:
    world = filled(tmp_path)
    declare(world, name="too", filter=b"<t/1>")  # as LineFormat writes the topic
    done = move(world, to=None)
    world.settle()
    world.turn()
    assert done == [(3, None)]
    world.crash()
    assert (waiting(world, "work"), waiting(world, "too")) == ([], PAYLOADS)


def test_a_queue_that_is_removed_is_gone_after_a_crash(tmp_path: Path) -> None:
    world = filled(tmp_path)
    done: list[int] = []
    world.broker.queue_jobs.remove(world.broker.queues.find("work"), done.append, force=True)
    world.turn()
    world.crash()
    assert done == [3]
    assert [queue.name for queue in world.broker.queues] == ["other"]


def test_a_move_of_more_than_is_in_memory_reads_the_disk_as_it_goes(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world)
    declare(world, name="other", filter=b"o/#")
    payloads = [f"x{n}" for n in range(1_000)]
    publish(world, *payloads)
    world.turn()
    assert in_memory(world.broker.queues.find("work").inside.queue) < 1_000
    done = move(world)
    assert done == []
    for _ in range(20):
        world.turn()
    assert done == [(1_000, None)]
    world.crash()
    assert waiting(world, "work") == []
    assert waiting(world, "other") == [each.encode() for each in payloads]


def test_what_is_moved_is_delivered_and_acknowledged_like_any_other(tmp_path: Path) -> None:
    world = filled(tmp_path)
    consumer = consume(world, name="other")
    move(world)
    world.settle()
    world.turn()
    assert in_flight(consumer) == [(payload, 1) for payload in PAYLOADS]
    world.crash()
    assert (waiting(world, "work"), waiting(world, "other")) == ([], PAYLOADS)
