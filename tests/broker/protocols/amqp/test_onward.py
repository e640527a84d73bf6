"""Exchanges bound to amq.topic get what clients of other protocols publish, and lead to queues as always."""

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.amqp.test_crossing import Mixed, subscribe
from tests.broker.protocols.amqp.world import Peer
from tests.broker.protocols.native import world as native


@pytest.fixture
def world() -> Mixed:
    return Mixed()


def lead(peer: Peer, key: str, type: str = "fanout", name: str = "behind", **arguments: object) -> None:
    """amq.topic -- key --> an exchange --> the queue q."""
    peer.ask(entity.ExchangeDeclare(exchange=name, type=type))
    peer.declare("q")
    peer.ask(entity.QueueBind(queue="q", exchange=name, routing_key="k", arguments=arguments))
    ok = peer.ask(entity.ExchangeBind(destination=name, source="amq.topic", routing_key=key))
    assert ok == entity.ExchangeBindOk()


def got(peer: Peer) -> list[bytes]:
    return [each.body for each in peer.got() if isinstance(each.method, basic.BasicDeliver)]


def test_a_message_of_others_is_led_on_once_and_only_while_it_is_bound(world: Mixed) -> None:
    peer, writer, reader = world.channel(), world.native(), world.native()
    subscribe(reader, "a.b")
    writer.send(native.publish("a.b", b"before"))  # its route is kept, and is to change
    lead(peer, "a.#")
    lead(peer, "a.b", name="also")
    peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="*.b"))
    peer.consume("q", no_ack=True)
    writer.send(native.publish("a.b", b"1"), native.publish("a/b", b"2", None, 1), native.publish("c", b"3"))
    assert got(peer) == [b"1", b"2"]
    peer.ask(entity.QueueUnbind(queue="q", exchange="amq.topic", routing_key="*.b"))
    peer.ask(entity.ExchangeDelete(exchange="also"))
    writer.send(native.publish("a.b", b"4"))
    assert got(peer) == [b"4"]
    peer.ask(entity.ExchangeUnbind(destination="behind", source="amq.topic", routing_key="a.#"))
    writer.send(native.publish("a.b", b"5"))
    assert peer.got() == []
    assert [fields[3] for fields in reader.frames()] == [b"before", b"1", b"2", b"4", b"5"]


def test_headers_of_others_are_looked_at(world: Mixed) -> None:
    peer, writer = world.channel(), world.native()
    lead(peer, "a.#", "headers", n=5)
    peer.consume("q", no_ack=True)
    writer.send(native.publish("a.b", b"yes", {"n": 5}), native.publish("a.b", b"no", {"n": 6}))
    assert got(peer) == [b"yes"]


def test_an_amqp_message_is_led_on_once(world: Mixed) -> None:
    peer = world.channel()
    lead(peer, "a.#")
    peer.publish("a.b", b"1", "amq.topic")
    assert peer.counts("q") == (1, 0)


def test_the_broker_own_topics_are_not_led_on(world: Mixed) -> None:
    peer, writer = world.channel(), world.native()
    lead(peer, "#")
    writer.send(native.publish("$inbox.x", b"x"), native.publish("a", b"x"))
    assert peer.counts("q") == (1, 0)


def test_who_binds_an_exchange_to_topics_may_subscribe_to_them(world: Mixed) -> None:
    world.broker.use_permissions(Reference(
        allow("connect"), allow("queue"), allow("subscribe queue", "$queue/#"), allow("queue", "$exchange/#"),
        allow("subscribe", "a/#"), allow("publish subscribe", "$exchange/#"),
    ))
    peer = world.channel()
    lead(peer, "a.#")
    peer.say(entity.ExchangeBind(destination="behind", source="amq.topic", routing_key="b.#"))
    assert peer.error()[1] == 403
