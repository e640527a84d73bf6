"""A durable queue that was filled with what was before it is stored when it has caught up, with all that is in it."""

from pathlib import Path

import pytest

from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.filling import Beginning
from fanlight_broker.core.work_queue import QueueOptions
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_stored_queues import acknowledge, consume, in_flight, publish, refuse

FILTERS = ((b"t/#", "mqtt"),)


def test_what_is_waiting_in_flight_delayed_and_held_is_there_after_a_restart(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    client, queues = world.connect("maker").client, world.broker.queues
    queue = queues.begin(client.subscriber, "work", FILTERS, QueueOptions(), world.now, filled=True)
    for number in range(5):
        queue.inside.fill(world.message("t/1", f"old{number}", 1), world.now)
    consumer = consume(world, prefetch=3)
    refuse(world, consumer, b"old1", 50.0)
    assert in_flight(consumer) == [(b"old0", 1), (b"old2", 1), (b"old3", 1)]
    queue.inside.holding = True
    queues._bind(queue)
    publish(world, "live0", "live1")
    assert len(queue.inside) == 7
    queues._filled(queue, None)
    acknowledge(world, consumer, b"old2")
    publish(world, "live2")
    world.turn()
    world.crash()
    again = consume(world)
    assert in_flight(again) == [
        (b"old0", 2), (b"old3", 2), (b"old4", 2), (b"live0", 1), (b"live1", 1), (b"live2", 1),
    ]  # fmt: skip
    world.later(50.0)
    assert in_flight(again)[-1] == (b"old1", 2)
    world.log.close()


def test_what_came_back_before_the_queue_was_stored_counts_its_deliveries_after_a_restart(tmp_path: Path) -> None:
    """Seed 711 of the simulation: it was delivered after later ones, and as if for the first time."""
    world = StoredWorld(tmp_path)
    client, queues = world.connect("maker").client, world.broker.queues
    queue = queues.begin(client.subscriber, "work", FILTERS, QueueOptions(deliveries_max=3), world.now, filled=True)
    for number in range(3):
        queue.inside.fill(world.message("t/1", f"old{number}", 1), world.now)
    consumer = consume(world, prefetch=3)
    refuse(world, consumer, b"old0", 9.0)
    queues.leave(consumer, world.now)
    queues._filled(queue, None)
    world.turn()
    world.crash()
    again = consume(world)
    assert in_flight(again) == [(b"old1", 2), (b"old2", 2)]
    world.later(9.0)
    assert in_flight(again) == [(b"old1", 2), (b"old2", 2), (b"old0", 2)]
    world.log.close()


def test_a_queue_that_has_not_caught_up_is_not_there_after_a_restart(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    client = world.connect("maker").client
    queue = world.broker.queues.begin(client.subscriber, "work", FILTERS, QueueOptions(), world.now, filled=True)
    queue.inside.fill(world.message("t/1", "old", 1), world.now)
    world.turn()
    world.crash()
    assert world.broker.queues.get("work") is None
    world.log.close()


def test_a_queue_begins_with_the_retained_messages_of_which_its_selector_is_true(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    for number in range(4):
        world.publish(f"t/{number}", "x" * number or "-", 1, retain=True)
    client, condition = world.connect("maker").client, condition_of("$bytes > 1 AND $retain")
    world.broker.queues.declare(
        client, "work", FILTERS, QueueOptions(messages_max=2), world.now, Beginning(retained=True), condition
    )
    world.publish("t/1", "live", 1)
    world.turn()
    assert in_flight(consume(world)) == [(b"xx", 1), (b"xxx", 1)]
    world.log.close()


def test_a_queue_that_began_with_retained_messages_is_there_after_a_restart(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    for number in range(3):
        world.publish(f"t/{number}", f"r{number}", 1, retain=True)
    client = world.connect("maker").client
    world.broker.queues.declare(client, "work", FILTERS, QueueOptions(), world.now, Beginning(retained=True))
    publish(world, "live")
    world.turn()
    world.crash()
    assert in_flight(consume(world)) == [(b"r0", 1), (b"r1", 1), (b"r2", 1), (b"live", 1)]
    with pytest.raises(LimitExceeded):
        world.broker.queues.declare(
            world.connect("maker").client, "small", FILTERS, QueueOptions(messages_max=2), world.now,
            Beginning(retained=True),
        )
    assert world.broker.queues.get("small") is None
    world.log.close()
