"""Exchanges bound to amq.topic get what clients of other protocols publish, and lead to queues as always."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.amqp.test_crossing import Mixed, subscribe
from tests.broker.protocols.amqp.test_stated import Mqtt3
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


@pytest.mark.parametrize("lead_on", [False, True])
def test_what_is_led_on_counts_on_its_topic(world: Mixed, *, lead_on: bool) -> None:
    peer, writer = world.channel(), world.native()
    subscribe(writer, "a.b")
    if lead_on:
        lead(peer, "a.#")
    for _ in range(3):
        peer.publish("a.b", b"1", "amq.topic")
        writer.send(native.publish("a.b", b"2"))
    key = next(iter(world.broker.routes.messages()))
    assert world.broker.routes.messages() == {key: 6}
    assert len(writer.frames()) == 6
    if lead_on:
        assert peer.counts("q") == (6, 0)


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


# -- without Python ---------------------------------------------------------------------------------------------------


def natively(world: Mixed) -> tuple[Any, Callable[[str], None]]:
    writer = world.native()
    return writer, lambda topic: writer.send(native.publish(topic, b"x"))


def by_mqtt(qos: int, *, retain: bool = False) -> Callable[[Mixed], tuple[Any, Callable[[str], None]]]:
    def open(world: Mixed) -> tuple[Any, Callable[[str], None]]:
        writer = Mqtt3(world)
        return writer, lambda topic: writer.publish(topic.replace(".", "/"), b"x", qos, retain=retain) and None

    return open


WRITERS = {
    "native": natively, "QoS 0": by_mqtt(0), "QoS 1": by_mqtt(1), "QoS 2": by_mqtt(2),
    "retained": by_mqtt(1, retain=True),
}  # fmt: skip


class Asked:
    """How often Python has published a message of a connection."""

    def __init__(self, peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        publish = peer.protocol.publish

        def asked(now: float) -> bool:
            self.times += 1
            return bool(publish(now))

        monkeypatch.setattr(peer.protocol, "publish", asked)


@pytest.mark.parametrize("kind", WRITERS)
def test_python_decides_once_until_a_binding_changes(
    world: Mixed, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    peer = world.channel()
    lead(peer, "a.#")
    writer, publish = WRITERS[kind](world)
    publish("a.b")
    asked = Asked(writer, monkeypatch)
    for _ in range(5):
        publish("a.b")
    assert (peer.counts()[0], asked.times) == (6, 0)
    peer.declare("r")
    peer.ask(entity.QueueBind(queue="r", exchange="behind"))
    for _ in range(3):
        publish("a.b")
    assert (peer.counts()[0], peer.counts("r")[0], asked.times) == (9, 3, 1)
    peer.ask(entity.QueueDelete(queue="r"))
    peer.declare("r")  # another one, which is not bound
    peer.ask(entity.QueueBind(queue="r", exchange="amq.topic", routing_key="a.*"))
    for _ in range(3):
        publish("a.b")
    assert (peer.counts()[0], peer.counts("r")[0], asked.times) == (12, 3, 2)
    peer.ask(entity.ExchangeDelete(exchange="behind"))
    publish("a.b")
    assert (peer.counts()[0], peer.counts("r")[0]) == (12, 4)


def test_what_messages_say_is_asked_of_each(world: Mixed, monkeypatch: pytest.MonkeyPatch) -> None:
    peer, writer = world.channel(), world.native()
    lead(peer, "a.#", "headers", n=5)
    asked = Asked(writer, monkeypatch)
    for n in (5, 6, 5):
        writer.send(native.publish("a.b", b"x", {"n": n}))
    assert (peer.counts()[0], asked.times) == (2, 3)


@pytest.mark.parametrize("seed", range(6))
def test_any_bindings_lead_where_a_plain_walk_leads(world: Mixed, seed: int) -> None:
    chance, peer, writer = random.Random(seed), world.channel(), world.native()
    queues, exchanges, topics = ["q0", "q1", "q2"], ["e0", "e1"], ["a.b", "a.c"]
    for name in exchanges:
        peer.ask(entity.ExchangeDeclare(exchange=name, type="fanout"))
    for name in queues:
        peer.declare(name)
    bound: set[tuple[str, str, str]] = set()  # source, destination, key; a queue may be bound to the topics as well
    for _ in range(60):
        act, key = chance.randrange(6), chance.choice([*topics, "a.*"])
        queue, exchange = chance.choice(queues), chance.choice(exchanges)
        if act == 0:
            peer.ask(entity.ExchangeBind(destination=exchange, source="amq.topic", routing_key=key))
            bound.add(("amq.topic", exchange, key))
        elif act == 1:
            peer.ask(entity.ExchangeUnbind(destination=exchange, source="amq.topic", routing_key=key))
            bound.discard(("amq.topic", exchange, key))
        elif act == 2:
            source, key = chance.choice([("amq.topic", key), (exchange, "")])
            peer.ask(entity.QueueBind(queue=queue, exchange=source, routing_key=key))
            bound.add((source, queue, key or queue if source == "amq.topic" else key))
        elif act == 3:
            peer.ask(entity.QueueUnbind(queue=queue, exchange=exchange))
            bound.discard((exchange, queue, ""))
        elif act == 4:
            peer.ask(entity.QueueDelete(queue=queue))
            peer.declare(queue)
            bound = {each for each in bound if each[1] != queue}
        for topic in chance.sample(topics, 2) * 2:
            before = {name: peer.counts(name)[0] for name in queues}
            writer.send(native.publish(topic, b"x"))
            first = {to for source, to, key in bound if source == "amq.topic" and key in (topic, "a.*")}
            reached = {to for source, to, _ in bound if source in first} | first
            assert {name: peer.counts(name)[0] - before[name] for name in queues} == {
                name: int(name in reached) for name in queues
            }
