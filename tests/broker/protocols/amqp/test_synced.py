"""An answer that says that something is stored waits for what was acknowledged before it, and for what it changed.

An acknowledgement has no answer, and its record nobody to wait for it: it is written 10 ms later at most. A client that
wants to know sends any method of this table behind it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.methods import AnyMethod
from tests.broker.protocols.amqp.stored import StoredAmqp
from tests.broker.protocols.amqp.world import Peer
from tests.broker.storage.stored_world import OPENED

DURABLE: dict[str, AnyMethod] = {
    "equal declare": entity.QueueDeclare(queue="q", durable=True),
    "passive declare": entity.QueueDeclare(queue="q", passive=True),
    "bind": entity.QueueBind(queue="q", exchange="amq.direct", routing_key="again"),
    "unbind": entity.QueueUnbind(queue="q", exchange="amq.direct", routing_key="no"),
    "purge": entity.QueuePurge(queue="other"),
    "delete": entity.QueueDelete(queue="other"),
    "exchange declare": entity.ExchangeDeclare(exchange="e", type="fanout", durable=True),
    "exchange bind": entity.ExchangeBind(destination="e", source="amq.fanout"),
    "exchange unbind": entity.ExchangeUnbind(destination="e", source="amq.direct"),
    "exchange delete": entity.ExchangeDelete(exchange="e"),
}


@pytest.fixture(autouse=True)
def _logs_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().log.close()


@pytest.fixture
def world(tmp_path: Path) -> StoredAmqp:
    world = StoredAmqp(tmp_path)
    peer = world.channel()
    peer.declare("q", durable=True)
    peer.declare("other", durable=True)
    assert peer.ask(DURABLE["bind"]) == entity.QueueBindOk()
    assert peer.ask(DURABLE["exchange declare"]) == entity.ExchangeDeclareOk()
    return world


def with_three(world: StoredAmqp) -> Peer:
    """A client that has three messages of the queue q."""
    peer = world.channel()
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body, delivery_mode=2)
    assert len(peer.consume()) == 3
    return peer


def waiting(world: StoredAmqp) -> int:
    ready, consumers = world.channel().counts()
    assert consumers == 0
    return ready


@pytest.mark.parametrize("name", DURABLE)
def test_an_answer_does_not_overtake_acknowledgements_on_their_way_to_the_log(world: StoredAmqp, name: str) -> None:
    peer = with_three(world)
    world.syncs = False
    peer.say(basic.BasicAck(2, multiple=True))
    peer.say(DURABLE[name])
    assert peer.got() == []
    world.syncs = True
    world.turn()
    assert type(peer.method()).__name__ == f"{type(DURABLE[name]).__name__}Ok"
    world.kill()
    assert waiting(world) == 1


def test_a_confirm_does_not_overtake_acknowledgements_either(world: StoredAmqp) -> None:
    peer = with_three(world)
    assert peer.ask(entity.ConfirmSelect()) == entity.ConfirmSelectOk()
    world.syncs = False
    peer.say(basic.BasicAck(2, multiple=True))
    peer.publish("other", b"x", delivery_mode=2)
    assert peer.got() == []
    world.syncs = True
    world.turn()
    peer.method(basic.BasicAck)
    world.kill()
    assert waiting(world) == 1


def test_a_commit_is_answered_when_its_acknowledgements_are_stored(world: StoredAmqp) -> None:
    peer = with_three(world)
    assert peer.ask(entity.TxSelect()) == entity.TxSelectOk()
    peer.say(basic.BasicAck(2, multiple=True))
    world.syncs = False
    peer.say(entity.TxCommit())
    assert peer.got() == []
    world.syncs = True
    world.turn()
    peer.method(entity.TxCommitOk)
    world.kill()
    assert waiting(world) == 1


def test_what_a_kill_cuts_off_of_acknowledgements_comes_again_in_order(world: StoredAmqp) -> None:
    peer = with_three(world)
    world.syncs = False
    peer.say(basic.BasicAck(2, multiple=True))
    world.kill()
    world.syncs = True
    assert [got.body for got in world.channel().consume()] == [b"1", b"2", b"3"]


def test_an_answer_waits_for_nothing_where_all_is_stored(world: StoredAmqp) -> None:
    peer = with_three(world)
    peer.say(basic.BasicAck(2, multiple=True))
    world.turn()
    world.syncs = False
    for name in ("equal declare", "passive declare", "bind", "unbind"):
        assert type(peer.ask(DURABLE[name])).__name__ == f"{type(DURABLE[name]).__name__}Ok"


def test_a_store_that_refuses_is_not_waited_for(world: StoredAmqp) -> None:
    peer = with_three(world)
    world.syncs = False
    peer.say(basic.BasicAck(1))
    world.broker.position.refusing = True
    assert peer.declare("q", durable=True) == "q"


def test_a_commit_that_the_store_refuses_closes_its_channel(world: StoredAmqp) -> None:
    peer = world.channel()
    peer.ask(entity.TxSelect())
    world.broker.position.refusing = True
    peer.publish("q", b"x", delivery_mode=2)
    assert peer.method() == first.ConnectionBlocked("the store has no room or fails")
    closed = peer.ask(entity.TxCommit())
    assert (closed.reply_code, closed.class_id, closed.method_id) == (406, 90, 20)
    assert waiting(world) == 0
