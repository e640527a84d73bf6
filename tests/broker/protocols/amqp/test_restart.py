"""What AMQP clients have declared, over a broker that is killed: durable things are there again, no others are."""

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.stored import StoredAmqp
from tests.broker.protocols.amqp.world import Peer
from tests.broker.storage.stored_world import OPENED


@pytest.fixture(autouse=True)
def _logs_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().log.close()


@pytest.fixture
def world(tmp_path: Path) -> StoredAmqp:
    return StoredAmqp(tmp_path)


def exchange(peer: Peer, name: str, type: str = "fanout", **options: Any) -> None:
    assert peer.ask(entity.ExchangeDeclare(exchange=name, type=type, **{"durable": True, **options})) \
        == entity.ExchangeDeclareOk()


def bind(peer: Peer, queue: str, exchange: str, key: str = "", **arguments: Any) -> None:
    method = entity.QueueBind(queue=queue, exchange=exchange, routing_key=key, arguments=arguments)
    assert peer.ask(method) == entity.QueueBindOk()


def bind_exchange(peer: Peer, to: str, source: str, key: str = "") -> None:
    assert peer.ask(entity.ExchangeBind(destination=to, source=source, routing_key=key)) == entity.ExchangeBindOk()


def bodies(peer: Peer, queue: str) -> list[bytes]:
    """All that waits in a queue."""
    found = []
    while True:
        peer.say(basic.BasicGet(queue=queue, no_ack=True))
        (got,) = peer.got()
        if isinstance(got.method, basic.BasicGetEmpty):
            return found
        found.append(got.body)


@pytest.mark.parametrize("after_round", [False, True])
def test_routes_of_every_kind_are_there_again(world: StoredAmqp, after_round: bool) -> None:
    peer = world.channel()
    peer.declare("q", durable=True)
    peer.declare("other", durable=True)
    exchange(peer, "behind")
    exchange(peer, "spare")
    exchange(peer, "first", "direct", arguments={"alternate-exchange": "spare"})
    bind(peer, "q", "amq.topic", "a.*")
    bind(peer, "q", "behind")
    bind(peer, "other", "spare")
    bind_exchange(peer, "behind", "first", "k")
    bind_exchange(peer, "behind", "amq.topic", "from.#")
    bind_exchange(peer, "amq.topic", "first", "a.in")
    world.kill(after_round=after_round)
    peer = world.channel()
    for key in ("a.1", "from.x"):
        peer.publish(key, key.encode(), "amq.topic")
    for key in ("k", "a.in", "no"):
        peer.publish(key, key.encode(), "first")
    assert bodies(peer, "q") == [b"a.1", b"from.x", b"k", b"a.in"]
    assert bodies(peer, "other") == [b"no"]


def test_a_queue_is_equal_to_what_it_was_declared_with(world: StoredAmqp) -> None:
    options = {"durable": True, "auto_delete": True, "arguments": {"x-expires": 60_000, "x-max-length": 5}}
    world.channel().declare("q", **options)
    world.kill()
    world.kill(after_round=True)  # it is written again by a round
    peer = world.channel()
    peer.declare("q", **options)
    peer.consume("q")
    assert peer.ask(basic.BasicCancel(consumer_tag="c")) == basic.BasicCancelOk("c")
    peer.say(entity.QueueDeclare(queue="q", passive=True))
    assert peer.error()[1] == 404
    world.kill()
    world.channel().declare("q", durable=True)


def test_what_is_not_durable_or_is_deleted_is_not_there(world: StoredAmqp) -> None:
    peer = world.channel()
    peer.declare("q", durable=True)
    peer.declare("transient")
    peer.declare("mine", durable=True, exclusive=True)
    exchange(peer, "transient", durable=False)
    exchange(peer, "ended", auto_delete=True)
    exchange(peer, "deleted")
    for name in ("transient", "ended", "deleted"):
        bind(peer, "q", name)
    bind(peer, "transient", "amq.direct", "k")
    bind(peer, "q", "amq.topic", "gone")
    peer.ask(entity.QueueUnbind(queue="q", exchange="amq.topic", routing_key="gone"))
    peer.ask(entity.QueueUnbind(queue="q", exchange="ended"))
    peer.ask(entity.ExchangeDelete(exchange="deleted"))
    world.kill()
    assert [each.name for each in world.broker.queues] == ["q"]
    assert world.root.exchanges.is_plain
    assert world.broker.queues.find("q").filters == ()


class Model:
    """What a broker has to have, in plain Python: bindings as (source, to, to a queue, key), and what is durable."""

    def __init__(self) -> None:
        self.queues: dict[str, bool] = {}
        self.exchanges = {"amq.direct": True, "amq.topic": True}
        self.bindings: set[tuple[str, str, bool, str]] = set()

    def end(self, name: str, to_queue: bool) -> None:
        (self.queues if to_queue else self.exchanges).pop(name, None)
        self.bindings = {
            each for each in self.bindings if each[1:3] != (name, to_queue) and (to_queue or each[0] != name)
        }

    def kill(self) -> None:
        for to_queue, names in ((True, self.queues), (False, self.exchanges)):
            for name in [name for name, durable in names.items() if not durable]:
                self.end(name, to_queue)


def step(dice: random.Random, peer: Peer, model: Model) -> None:
    name, key, durable = dice.choice("abc"), dice.choice(("k", "k.*")), dice.random() < 0.6
    to_queue = dice.random() < 0.6
    target = model.queues if to_queue else model.exchanges
    source = dice.choice(sorted(model.exchanges))
    match dice.randrange(6):
        case 0 | 1 if name not in target:
            if to_queue:
                peer.declare(name, durable=durable, auto_delete=dice.random() < 0.3)
            else:
                exchange(peer, name, "direct", durable=durable)
            target[name] = durable
        case 2 | 3 if name in target:
            bind(peer, name, source, key) if to_queue else bind_exchange(peer, name, source, key)
            model.bindings.add((source, name, to_queue, key))
        case 4 if model.bindings:
            source, name, to_queue, key = dice.choice(sorted(model.bindings))
            if to_queue:
                peer.ask(entity.QueueUnbind(queue=name, exchange=source, routing_key=key))
            else:
                peer.ask(entity.ExchangeUnbind(destination=name, source=source, routing_key=key))
            model.bindings.remove((source, name, to_queue, key))
        case 5 if name in target and dice.random() < 0.5:
            peer.ask(entity.QueueDelete(queue=name) if to_queue else entity.ExchangeDelete(exchange=name))
            model.end(name, to_queue)


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_any_declarations_with_kills_in_between(seed: int) -> None:
    dice = random.Random(seed)
    with TemporaryDirectory() as folder:
        world, model = StoredAmqp(Path(folder)), Model()
        peer = world.channel()
        for _ in range(60):
            step(dice, peer, model)
            if dice.random() < 0.08:
                world.kill(after_round=dice.random() < 0.3)
                model.kill()
                peer = world.channel()
            exchanges = world.root.exchanges
            assert {each[:4] for each in exchanges.bindings()} == model.bindings
            assert {each.name for each in exchanges.in_force()} >= model.exchanges.keys()
            assert {each.name: each.options.durable for each in world.broker.queues} == model.queues
            filters = {
                (queue.name, text.decode()) for queue in world.broker.queues for text, _ in queue.filters
            }
            assert filters == {(to, key) for source, to, is_queue, key in model.bindings
                               if is_queue and source == "amq.topic"}
        world.stored.log.close()
