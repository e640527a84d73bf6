"""AMQP beside MQTT and native clients on one broker: topics, headers and properties both ways; permissions."""

from dataclasses import replace
from typing import Any

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.field_table import Timestamp
from fanlight_broker.protocols.amqp.fields import SYNTAX, key_of_topic, pack_fields, unpack_fields
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.methods import method_frame
from fanlight_broker.protocols.amqp.properties import EXPIRATION_MAX, BasicProperties, encode_properties
from fanlight_broker.protocols.mqtt.convert import properties_of
from fanlight_broker.protocols.mqtt.format import MQTT_5_0
from fanlight_broker.wire.message import Message
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.amqp.world import Got, Peer, World, published
from tests.broker.protocols.native import world as native

SUBSCRIBE, OK = 6, 7


class Mixed(World):
    plain = False

    def native(self, **options: Any) -> native.Peer:
        peer = native.Peer(self)  # type: ignore[arg-type]  # it needs the broker and no more
        peer.send(native.frame(1, 1, options))
        peer.next()
        return peer

    def bound(self, key: str) -> Peer:
        """An AMQP client with a queue of its own on amq.topic."""
        peer = self.channel()
        peer.declare("", exclusive=True)
        assert peer.ask(entity.QueueBind(exchange="amq.topic", routing_key=key)) == entity.QueueBindOk()
        peer.ask(basic.BasicConsume(consumer_tag="c", no_ack=True))
        return peer


@pytest.fixture
def world() -> Mixed:
    return Mixed()


def subscribe(peer: native.Peer, filter: str, syntax: int = 0) -> None:
    peer.say(SUBSCRIBE, 9, 7, filter, None, syntax)
    assert peer.next()[:2] == [OK, 9]


def test_a_message_to_amq_topic_reaches_native_subscribers(world: Mixed) -> None:
    reader, writer = world.native(), world.channel()
    subscribe(reader, "stock.#")
    writer.publish(
        "stock.eu.1", b"x", "amq.topic", content_type="text/plain", correlation_id="c1", message_id="m1",
        headers={"n": 5, "list": ["a", 2], "table": {"left": "out"}, "none": None}, reply_to="answers",
    )
    _, number, topic, payload, headers = reader.next()[:5]
    assert (number, topic, payload) == (7, "stock.eu.1", b"x")
    assert headers == {
        "content-type": "text/plain", "correlation-id": "c1", "n": 5, "list": ["a", 2], "none": None,
        "message-id": "m1", "reply-to": "answers",
    }


@pytest.mark.parametrize(
    ("topic", "syntax", "key"),
    [
        ("stock.eu", 0, "stock.eu"), ("stock/eu", 1, "stock.eu"), ("stock/b.k%", 1, "stock.b%2Ek%25"),
        ("stock", 1, "stock"),
    ],
)
def test_a_topic_of_others_is_a_routing_key(world: Mixed, topic: str, syntax: int, key: str) -> None:
    reader, writer = world.bound("stock.#"), world.native()
    writer.send(native.publish(topic, b"x", {"a": 1, "b": "t", "c": b"\xff", "content-type": "text/plain"}, syntax))
    (got,) = reader.got()
    assert got == Got(
        1, basic.BasicDeliver("c", 1, False, "amq.topic", key),
        BasicProperties(content_type="text/plain", delivery_mode=2, headers={"a": 1, "b": "t", "c": b"\xff"}), b"x",
    )


def test_a_topic_that_is_no_routing_key_is_left_out() -> None:
    assert key_of_topic(b"a" * 256, SYNTAX) is None
    assert key_of_topic(b"\xff", SYNTAX) is None


@pytest.mark.parametrize(("expiration", "seconds", "returns"), [
    (None, None, None), ("0", 0, "0"), ("1", 1, "1000"), ("1500", 2, "2000"), ("60000", 60, "60000"),
    (str(EXPIRATION_MAX), 4_294_968, None),
])  # fmt: skip
def test_an_expiration_is_a_message_expiry_interval_in_whole_seconds(
    expiration: str | None, seconds: int | None, returns: str | None
) -> None:
    """And back; what has no form as an expiration is left out. The octets are where the seconds left are written."""
    fields = pack_fields("amq.topic", "a.b", encode_properties(BasicProperties(expiration=expiration)))
    content = FORMAT.read(Message(FORMAT, b"a.b", SYNTAX, b"x", fields=fields))
    there = MQTT_5_0.write(replace(content, is_text=True))
    assert properties_of(there).message_expiry_interval == seconds
    at = there.expiry_hole
    assert at == -1 if seconds is None else int.from_bytes(there.fields[at : at + 4], "big") == seconds
    back = FORMAT.write(MQTT_5_0.read(there))
    assert unpack_fields(back.fields).properties.expiration == returns


def test_between_amqp_clients_the_octets_stay(world: Mixed) -> None:
    reader, writer = world.bound("*.b"), world.channel()
    writer.publish("a.b", b"x", "amq.topic", headers={"t": Timestamp(5), "deep": {"a": [1, {}]}}, timestamp=7)
    (got,) = reader.got()
    assert got.properties == BasicProperties(headers={"t": Timestamp(5), "deep": {"a": [1, {}]}}, timestamp=7)


def test_an_empty_routing_key_is_a_topic_of_no_words(world: Mixed) -> None:
    reader, other, writer = world.bound("#"), world.bound("*"), world.channel()
    writer.publish("", b"x", "amq.topic")
    assert (len(reader.got()), other.got()) == (1, [])


def test_a_native_consumer_takes_what_an_amqp_client_published(world: Mixed) -> None:
    writer = world.channel()
    worker = world.native()
    worker.say(SUBSCRIBE, 9, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True})
    assert worker.next()[:2] == [OK, 9]
    writer.publish("orders.eu", b"x", "amq.topic")
    writer.publish("billing", b"y")
    got = worker.frames()
    assert [each[5] for each in got] == [b"x", b"y"]
    assert [each[4] for each in got] == ["orders.eu", "$exchange.amq%2Edefault.billing"]


def test_a_slow_subscriber_holds_an_amqp_publisher_back_until_it_reads() -> None:
    world = Mixed(outbox_bytes_max=64 * 1024)
    reader, writer = world.native(slow_policy="pause"), world.channel()
    subscribe(reader, "t")
    writer.ask(entity.ConfirmSelect())
    reader.reads = False
    for _ in range(20):
        writer.publish("t", bytes(20_000), "amq.topic")
        if writer.held_back:
            break
    assert writer.held_back
    before = [each.method for each in writer.got() if isinstance(each.method, basic.BasicAck)]
    reader.read_all()
    assert not writer.held_back
    after = [each.method for each in writer.got() if isinstance(each.method, basic.BasicAck)]
    assert len(before) + len(after) == len(reader.frames())
    assert len(after) == 1



# -- permissions (docs/decisions/0025-amqp.md) ----------------------------------------------------------------------


def restricted(*rules: Any) -> tuple[Mixed, Peer]:
    """A client with these permissions, and one that may do everything has made the queue `q`."""
    world = Mixed()
    admin = world.channel()
    admin.declare()
    world.broker.use_permissions(Reference(allow("connect"), *rules))
    return world, world.channel()


@pytest.mark.parametrize("header", ["CC", "BCC"])
@pytest.mark.parametrize(("exchange", "key", "more"), [
    ("amq.topic", "a.x", "b.secret"), ("amq.topic", "a.x", "$SYS.broker.x"), ("amq.topic", "a.x", "$stream.q.0.x"),
    ("", "q", "other"), ("x", "a.x", "b.secret"),
])  # fmt: skip
def test_further_keys_need_permission_too(header: str, exchange: str, key: str, more: str) -> None:
    world, peer = restricted(
        allow("publish", "a/#"), allow("publish", "$SYS/#"), allow("publish", "$stream/#"),
        allow("publish", "$exchange/amq%2Edefault/q"), allow("publish", "$exchange/x/#"),
        allow("queue", "$exchange/x"), allow("subscribe"), allow("queue"),
    )
    reader = world.native()
    subscribe(reader, "b.#")
    peer.declare("other")
    peer.ask(entity.ExchangeDeclare(exchange="x", type="fanout"))
    peer.ask(entity.ExchangeBind(destination="amq.topic", source="x"))
    peer.publish(key, b"1", exchange, headers={header: [more]})
    assert peer.error() == (False, 403, (60, 40))
    assert reader.frames() == []
    assert world.channel().counts("other") == (0, 0)


DENIED = {
    "publish to the default exchange": (published("q", b"x"), (60, 40)),
    "publish to a topic": (published("a.b", b"x", "amq.topic"), (60, 40)),
    "declare a queue": (method_frame(1, entity.QueueDeclare(queue="n")), (50, 10)),
    "declare an exchange": (method_frame(1, entity.ExchangeDeclare(exchange="n")), (40, 10)),
    "consume": (method_frame(1, basic.BasicConsume(queue="q")), (60, 20)),
    "get": (method_frame(1, basic.BasicGet(queue="q")), (60, 70)),
    "purge": (method_frame(1, entity.QueuePurge(queue="q")), (50, 30)),
    "delete": (method_frame(1, entity.QueueDelete(queue="q")), (50, 40)),
    "bind": (method_frame(1, entity.QueueBind(queue="q", exchange="amq.topic", routing_key="#")), (50, 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", DENIED)
def test_what_is_not_permitted_is_403_and_closes_the_channel(name: str) -> None:
    octets, ids = DENIED[name]
    world, peer = restricted()
    peer.send(octets)
    assert peer.error() == (False, 403, ids)
    assert len(world.broker.queues.find("q").inside) == 0


def test_what_is_permitted_by_name_is_done() -> None:
    world, peer = restricted(
        allow("publish", "$exchange/amq%2Edefault/q"), allow("publish subscribe queue", "a/#"),
        allow("subscribe queue", "$queue/q"),
    )
    peer.publish("q", b"1")
    assert peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="a.*")) == entity.QueueBindOk()
    peer.publish("a.b", b"2", "amq.topic")
    assert [each.body for each in peer.consume()] == [b"1", b"2"]
    peer.publish("other", b"3")
    assert peer.error() == (False, 403, (60, 40))
    assert world.broker.enforcement.counters()["publish_denied"] == 1


def test_a_key_that_is_not_permitted_is_not_bound() -> None:
    _, peer = restricted(allow("subscribe queue", "$queue/q"), allow("subscribe queue", "a/#"))
    peer.say(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="b.#"))
    assert peer.error() == (False, 403, (50, 20))


def test_a_consumer_whose_permission_is_taken_away_is_cancelled() -> None:
    world, peer = restricted(allow("subscribe", "$queue/q"))
    peer.consume()
    world.broker.use_permissions(Reference(allow("connect")))
    world.turn()
    assert [each.method for each in peer.got()] == [basic.BasicCancel("c", True)]
