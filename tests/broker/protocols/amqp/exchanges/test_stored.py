"""Durable exchanges and bindings over restarts, of a broker that is killed at any turn and one that writes rounds."""

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.exchanges import Exchanges
from fanlight_broker.protocols.amqp.exchanges.stored import StoredExchanges
from fanlight_broker.protocols.amqp.field_table import Timestamp
from tests.broker.protocols.amqp.exchanges.oracle import typed
from tests.broker.storage.stored_world import OPENED, StoredWorld

DURABLE = {"d1", "d2"}
QUEUES = {*DURABLE, "t1"}
TABLES: list[dict[str, Any]] = [
    {}, {}, {"n": 1}, {"n": 1.0}, {"n": True}, {"b": b"\xff", "a": None, "t": Timestamp(5), "d": Decimal("1.50")},
    {"x-match": "any", "l": [1, [b"x"], {"k": None}]},
]


@pytest.fixture(autouse=True)
def _logs_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().log.close()


def open_vhost(world: StoredWorld, queues: set[str]) -> Exchanges:
    keeper = StoredExchanges(world.broker.declarations, "/", DURABLE.__contains__)
    exchanges = Exchanges("/", queues, keeper=keeper)
    keeper.restore(exchanges)
    return exchanges


def durable(exchanges: Exchanges) -> list[Any]:
    """What is to be there after a restart, as a list without order."""
    found: list[Any] = [
        (each.name, each.type, each.auto_delete, each.internal, typed(each.arguments))
        for each in exchanges.in_force()
        if each.durable
    ]
    names = {each[0] for each in found}
    found += [
        (*each[:4], typed(each.arguments))
        for each in exchanges.bindings()
        if each.source in names and each.destination in (DURABLE if each.to_queue else names)
    ]
    return sorted(found, key=repr)


def step(dice: random.Random, exchanges: Exchanges, queues: set[str]) -> None:
    names = ["a", "b", "c", "amq.direct", "amq.headers"]
    name, other, queue = dice.choice(names), dice.choice(names), dice.choice(sorted(QUEUES))
    key, table = dice.choice(("x", "y")), dice.choice(TABLES)
    match dice.randrange(8):
        case 0 | 1 if not name.startswith("amq.") and exchanges.find(name) is None:
            type = dice.choice(("direct", "topic", "headers"))
            exchanges.declare(name, type, durable=dice.random() < 0.8, auto_delete=dice.random() < 0.3, arguments=table)
        case 2 | 3 if queue in queues and exchanges.find(name) is not None:
            exchanges.bind(queue, name, key, table)
        case 4 if exchanges.find(name) is not None and exchanges.find(other) is not None:
            exchanges.bind_exchange(other, name, key, table)
        case 5:
            for each in list(exchanges.bindings())[:2]:
                unbind = exchanges.unbind if each.to_queue else exchanges.unbind_exchange
                unbind(each.destination, each.source, each.key, each.arguments)
        case 6 if dice.random() < 0.3:
            queues.discard(queue)
            exchanges.queue_ended(queue)
        case 7:
            queues.add(queue)
            if not name.startswith("amq.") and dice.random() < 0.3:
                exchanges.delete(name)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_what_is_durable_is_there_after_a_restart(seed: int) -> None:
    dice = random.Random(seed)
    with TemporaryDirectory() as folder:
        world, queues = StoredWorld(Path(folder)), set(QUEUES)
        exchanges = open_vhost(world, queues)
        for _ in range(80):
            step(dice, exchanges, queues)
            match dice.randrange(12):
                case 0:
                    world.turn()
                    before = durable(exchanges)
                    world.crash()
                    queues &= DURABLE
                    exchanges = open_vhost(world, queues)
                    assert durable(exchanges) == before
                case 1:
                    if not world.checkpoint.running:
                        world.checkpoint.begin()
                case 2 | 3:
                    world.checkpoint.step(dice.randrange(4))
                    world.turn()
        world.log.close()


def test_a_binding_whose_queue_is_gone_is_forgotten(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    exchanges = open_vhost(world, set(QUEUES))
    exchanges.declare("a", "direct", durable=True)
    exchanges.bind("d1", "a", "k")
    exchanges.bind("d2", "a", "k")
    world.turn()
    world.crash()
    exchanges = open_vhost(world, {"d2"})
    assert [each.destination for each in exchanges.bindings()] == ["d2"]
    world.turn()
    world.crash()
    assert len(list(world.broker.declarations)) == 2


def test_what_is_not_durable_is_never_written(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    exchanges = open_vhost(world, set(QUEUES))
    world.turn()
    appended = world.log.appended
    exchanges.declare("a", "direct")
    exchanges.bind("d1", "a", "k")
    exchanges.bind("t1", "amq.direct", "k")
    exchanges.queue_ended("t1")
    exchanges.delete("a")
    world.turn()
    assert world.log.appended == appended


def test_what_goes_in_the_middle_of_a_round_is_gone(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    exchanges = open_vhost(world, set(QUEUES))
    exchanges.bind("d1", "amq.direct", "stays")
    for name in ("a", "b"):
        exchanges.declare(name, "direct", durable=True)
        for at in range(10):
            exchanges.bind("d1", name, str(at))
    world.turn()
    world.checkpoint.begin()
    world.checkpoint.step(4)
    for at in range(10):
        exchanges.unbind("d1", "a", str(at))
    exchanges.delete("b")
    world.slices()
    world.turn()
    assert world.checkpoint.rounds == 1
    world.crash()
    exchanges = open_vhost(world, set(QUEUES))
    assert [each.name for each in exchanges.in_force() if not each.name.startswith("amq.")] == ["a"]
    assert [each.key for each in exchanges.bindings()] == ["stays"]
