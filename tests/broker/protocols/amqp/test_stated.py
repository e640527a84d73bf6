"""What docs/amqp.md states and no other test shows, in its order. Each name is nearly its sentence."""

from typing import Any

import pytest

from fanlight_broker.config import Settings
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Asker
from fanlight_broker.core.streams import prefix_of
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.definition_service import DefinitionService
from fanlight_broker.protocols.amqp.exchanges import ExchangeLimits, Exchanges
from fanlight_broker.protocols.amqp.fields import SYNTAX, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.options import CHANNEL_MAX, FRAME_MAX
from fanlight_broker.protocols.amqp.publish import MORE_KEYS_MAX
from fanlight_broker.protocols.amqp.transactions import STEPS_MAX
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.properties import NONE
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.wire.message import Message
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols import world
from tests.broker.protocols.amqp.test_crossing import Mixed, subscribe
from tests.broker.protocols.amqp.test_definition_service import ended
from tests.broker.protocols.amqp.world import KIB, PLAIN, Got, Peer, World
from tests.broker.protocols.mqtt import world as mqtt

QUORUM: dict[str, Any] = {"x-queue-type": "quorum"}


@pytest.fixture
def peer() -> Peer:
    return World().channel()


def bodies(peer: Peer) -> list[bytes]:
    return [got.body for got in peer.got()]


# -- between the protocols --------------------------------------------------------------------------------------------


class Mqtt3(mqtt.Peer):
    """A client of MQTT 3.1.1 on the same broker."""

    def __init__(self, amqp: World) -> None:
        world.Peer.__init__(self, amqp)
        self.version, self.packet_id, self.connack = V3, 0, None
        self.protocol = MqttConnection(MqttOptions(), Counts(), amqp.broker, self, amqp.shared, amqp.now)
        self.say(mqtt.connect("reader", V3))
        self.packets()


def test_mqtt_3_has_the_body_and_the_topic_only(peer: Peer) -> None:
    reader = Mqtt3(peer.world)
    reader.subscribe("news/#")
    peer.publish("news.eu", b"x", "amq.topic", content_type="text/plain", headers={"n": 1}, expiration="9000")
    (got,) = reader.messages()
    assert (got.topic, got.payload, got.properties) == ("news/eu", b"x", NONE)


def test_a_queue_that_is_bound_gets_no_retained_messages(peer: Peer) -> None:
    broker, share = peer.world.broker, peer.protocol.subscriber.share
    kept = Message(FORMAT, b"news.eu", SYNTAX, b"old", retain=True, fields=pack_fields("amq.topic", "news.eu", b"\0\0"))
    assert broker.retained.put(kept, peer.world.now, share=share, origin="a")
    peer.declare()
    assert peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="news.#")) == entity.QueueBindOk()
    peer.publish("news.eu", b"new", "amq.topic")
    assert [got.body for got in peer.consume()] == [b"new"]


# -- feature by feature -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["x-modulus-hash", "x-random", "x-recent-history", "x-local-random"])
def test_further_types_of_exchanges_are_503(peer: Peer, kind: str) -> None:
    peer.say(entity.ExchangeDeclare(exchange="x", type=kind))
    assert peer.error() == (True, 503, (40, 10))


def test_no_local_is_ignored(peer: Peer) -> None:
    peer.declare()
    peer.consume(no_local=True)
    peer.publish("q", b"own")
    assert bodies(peer) == [b"own"]


def test_a_quorum_queue_has_no_limit_of_deliveries_by_default(peer: Peer) -> None:
    peer.declare(durable=True, arguments=QUORUM)
    peer.publish("q", b"x")
    for count in range(50):
        peer.say(basic.BasicGet(queue="q"))
        (got,) = peer.got()
        assert got.properties is not None
        assert got.properties.headers == {"x-delivery-count": count}
        peer.say(basic.BasicReject(got.method.delivery_tag, True))
    assert peer.counts() == (1, 0)


def test_a_quorum_queue_obeys_if_unused_and_if_empty(peer: Peer) -> None:
    peer.declare(durable=True, arguments=QUORUM)
    peer.publish("q", b"x")
    for number, conditions in enumerate(({"if_empty": True}, {"if_unused": True}), 2):
        peer.ask(first.ChannelOpen(), number)
        if "if_unused" in conditions:
            peer.consume(no_ack=True)
        closed = peer.ask(entity.QueueDelete(queue="q", **conditions), number)
        assert (closed.reply_code, closed.class_id, closed.method_id) == (406, 50, 40)


def test_the_settings_are_as_the_page_has_them() -> None:
    found = Settings()
    assert (found.amqp_port, found.amqp_tls_port) == (5672, 5671)
    assert (found.amqp_websocket, found.amqp_websocket_port, found.amqp_websocket_tls_port) == (False, 15678, 15677)
    assert (found.amqp_message_bytes_max, found.amqp_heartbeat_seconds) == (16 * 1024 * 1024, 60)
    assert (found.amqp_exchanges_max, found.amqp_exchanges_bytes_max) == (10_000, 512 * 1024 * 1024)
    assert Limits().archive_replays_max == 64
    assert (CHANNEL_MAX, FRAME_MAX, STEPS_MAX, MORE_KEYS_MAX) == (2_047, 131_072, 10_000, 256)
    limits = ExchangeLimits()
    assert (limits.hashes_max, limits.searching_max) == (4, 1_000)


# -- exchanges --------------------------------------------------------------------------------------------------------


def test_predeclared_exchanges() -> None:
    exchanges = Exchanges("/", {"q"})
    assert exchanges.publish("", "q").queues == ("q",)
    assert {each.name: each.type for each in exchanges.in_force()} == {
        "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers",
        "amq.match": "headers",
    }  # fmt: skip


@pytest.mark.parametrize("header", ["CC", "BCC"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_message_has_at_most_256_further_keys(peer: Peer, header: str, over: int) -> None:
    peer.declare()
    peer.publish("no", b"x", headers={header: ["q", *(str(number) for number in range(MORE_KEYS_MAX - 1 + over))]})
    if over:
        assert peer.error() == (False, 406, (60, 40))
    else:
        assert peer.counts() == (1, 0)


def test_the_header_of_a_hash_is_a_text(peer: Peer) -> None:
    peer.say(entity.ExchangeDeclare(exchange="h", type="x-consistent-hash", arguments={"hash-header": 5}))
    assert peer.error() == (False, 406, (40, 10))


def test_messages_without_what_is_hashed_go_where_all_such_go() -> None:
    exchanges = Exchanges("/", {f"q{at}" for at in range(8)})
    exchanges.declare("h", "x-consistent-hash", arguments={"hash-header": "h"})
    for at in range(8):
        exchanges.bind(f"q{at}", "h", "3")
    assert len({exchanges.publish("h", str(key), {"n": key}).queues for key in range(50)}) == 1


def test_a_durable_queue_that_deletes_itself_stays_until_a_consumer_has_come_and_gone(peer: Peer) -> None:
    peer.declare(durable=True, auto_delete=True)
    peer.world.pass_time(100_000)
    assert peer.counts() == (0, 0)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.ask(basic.BasicCancel("a"))
    assert peer.counts() == (0, 1)
    peer.ask(basic.BasicCancel("b"))
    closed = peer.ask(entity.QueueDeclare(queue="q", passive=True))
    assert (closed.reply_code, closed.class_id, closed.method_id) == (404, 50, 10)


def test_a_durable_exclusive_queue_ends_with_its_connection(peer: Peer) -> None:
    peer.declare(durable=True, exclusive=True)
    peer.vanish()
    assert len(peer.world.broker.queues) == 0


# -- definitions ------------------------------------------------------------------------------------------------------


def test_exclusive_queues_are_not_exported_and_imports_count_for_the_broker(peer: Peer) -> None:
    world = peer.world
    world.vhosts.begin(world.broker)
    peer.declare("mine", exclusive=True)
    document = {"queues": [{"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]}
    ended(DefinitionService(world.broker, world.vhosts).take(document, dry=False))
    rows = ended(DefinitionService(world.broker, world.vhosts).rows(offset=0, limit=100))["rows"]
    assert [row["queues"]["name"] for row in rows if "queues" in row] == ["q"]
    assert world.broker.queues.find("q").subscriber.share is not peer.protocol.subscriber.share


# -- queues -----------------------------------------------------------------------------------------------------------


def test_a_higher_priority_counts_as_9(peer: Peer) -> None:
    peer.declare(arguments={"x-max-priority": 255})
    for body, priority in ((b"8", 8), (b"9", 9), (b"200", 200), (b"10", 10)):
        peer.publish("q", body, priority=priority)
    assert [got.body for got in peer.consume()] == [b"9", b"200", b"10", b"8"]


@pytest.mark.parametrize("mode", ["lazy", "default"])
def test_the_mode_of_a_queue_changes_nothing(peer: Peer, mode: str) -> None:
    peer.declare(arguments={"x-queue-mode": mode})
    peer.publish("q", b"x")
    assert [got.body for got in peer.consume()] == [b"x"]


def test_a_queue_of_length_0_has_room_for_one(peer: Peer) -> None:
    peer.declare(arguments={"x-max-length": 0})
    for body in (b"1", b"2"):
        peer.publish("q", body)
    assert peer.counts() == (1, 0)


def test_a_queue_without_a_length_is_bounded_by_the_setting() -> None:
    peer = World(work_queue_messages_max=2).channel()
    peer.declare()
    peer.ask(entity.ConfirmSelect())
    answers = []
    for _ in range(3):
        peer.publish("q", b"x")
        answers += [type(got.method) for got in peer.got()]
    assert answers == [basic.BasicAck, basic.BasicAck, basic.BasicNack]


@pytest.mark.parametrize(("overflow", "answer", "other"), [
    ("reject-publish", basic.BasicNack, 1), ("reject-publish-dlx", basic.BasicAck, 2),
])  # fmt: skip
def test_of_several_queues_one_refuses(peer: Peer, overflow: str, answer: type, other: int) -> None:
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("full", arguments={"x-max-length": 1, "x-overflow": overflow, **letters})
    peer.declare("other")
    peer.declare("dead")
    for queue in ("full", "other"):
        peer.ask(entity.QueueBind(queue=queue, exchange="amq.fanout"))
    peer.publish("", b"1", "amq.fanout")
    peer.ask(entity.ConfirmSelect())
    peer.publish("", b"2", "amq.fanout")
    assert type(peer.method()) is answer
    assert (peer.counts("full")[0], peer.counts("other")[0]) == (1, other)


def test_copies_that_nobody_is_to_see_are_not_kept_with_a_message_that_is_held(peer: Peer) -> None:
    delayed = {"x-delayed-type": "direct"}
    peer.ask(entity.ExchangeDeclare(exchange="late", type="x-delayed-message", arguments=delayed))
    for queue in ("q", "cc", "bcc"):
        peer.declare(queue)
        peer.ask(entity.QueueBind(queue=queue, exchange="late", routing_key=queue))
    peer.publish("q", b"x", "late", headers={"x-delay": 1_000, "CC": ["cc"], "BCC": ["bcc"]})
    peer.world.pass_time(1)
    assert [peer.counts(queue)[0] for queue in ("q", "cc", "bcc")] == [1, 1, 0]


@pytest.mark.parametrize(("name", "word"), [
    ("orders", "orders"), ("a_b-7", "a_b-7"), ("a.b", "a=2Eb"), ("a/b#*", "a=2Fb=23=2A"), ("ä", "=C3=A4"), ("=", "=3D"),
])  # fmt: skip
def test_the_name_of_a_stream_in_the_archive(name: str, word: str) -> None:
    assert prefix_of(name, "7", "amqp") == f"$stream.{word}.7.".encode()
    assert prefix_of(name, "7", "mqtt") == f"$stream/{word}/7/".encode()


# -- connections ------------------------------------------------------------------------------------------------------


def test_a_publisher_that_a_slow_consumer_holds_back_hears_so() -> None:
    mixed = Mixed(outbox_bytes_max=64 * KIB)
    reader, writer = mixed.native(slow_policy="pause"), mixed.channel()
    subscribe(reader, "t")
    reader.reads = False
    for _ in range(20):
        writer.publish("t", bytes(20_000), "amq.topic")
        if writer.held_back:
            break
    why = "a consumer is slow, the store is full, or too many requests were refused"
    assert writer.method() == first.ConnectionBlocked(why)
    reader.read_all()
    assert writer.method() == first.ConnectionUnblocked()


def test_a_connection_whose_token_has_expired_ends_with_320() -> None:
    peer = World().connect()
    peer.protocol.cut_off("credentials_expired", "these credentials have expired")
    peer.world.turn()
    assert peer.error() == (True, 320, (0, 0))


class Renewing(Peer):
    """Who it is, is its password."""

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        identity = Identity(str(user) or "alice", verified=True, credential="x", groups=frozenset({str(password)}))
        self.world.soon.append(lambda: self.protocol.authenticated(identity, self.world.now))
        return None


class Homes(Reference):
    def namespace_of(self, asker: Asker) -> str:
        return "acme" if "tenants" in asker.groups else ""


@pytest.mark.parametrize(("secret", "code"), [("guests", None), ("nobody", 403), ("tenants", 530)])
def test_a_new_secret_is_of_the_same_namespace_and_may_connect(secret: str, code: int | None) -> None:
    world = World()
    world.broker.use_permissions(Homes(allow("connect", group="guests"), allow("connect", group="tenants")))
    peer = Renewing(world)
    peer.shake_hands(PLAIN._replace(response=b"\0alice\0guests"))
    peer.say(first.ConnectionUpdateSecret(secret.encode()), 0)
    if code is None:
        assert peer.method() == first.ConnectionUpdateSecretOk()
    else:
        assert peer.error()[:2] == (True, code)


# -- channels ---------------------------------------------------------------------------------------------------------


def address_in(found: list[Got]) -> str:
    """Where to answer the one request that has come."""
    (request,) = found
    assert request.properties is not None
    return str(request.properties.reply_to)


def test_an_answer_by_direct_reply_to_with_mandatory_is_delivered() -> None:
    world = World()
    client, server = world.channel(), world.channel()
    server.declare()
    client.consume("amq.rabbitmq.reply-to", "c", no_ack=True)
    client.publish("q", b"?", reply_to="amq.rabbitmq.reply-to")
    server.publish(address_in(server.consume(no_ack=True)), b"!", mandatory=True)
    assert server.got() == []
    assert bodies(client) == [b"!"]


@pytest.mark.parametrize("may", [False, True])
def test_to_answer_by_direct_reply_to_needs_publish_on_its_topics(may: bool) -> None:
    world = World()
    world.channel().declare()
    answers = [allow("publish", "$exchange/amq%2Edefault/amq/rabbitmq/reply-to/#")] if may else []
    world.broker.use_permissions(Reference(
        allow("connect"), allow("publish request", "$exchange/amq%2Edefault/q"), allow("subscribe", "$queue/q"),
        *answers,
    ))  # fmt: skip
    client, server = world.channel(), world.channel()
    client.consume("amq.rabbitmq.reply-to", "c", no_ack=True)
    client.publish("q", b"?", reply_to="amq.rabbitmq.reply-to")
    server.publish(address_in(server.consume(no_ack=True)), b"!")
    if may:
        assert bodies(client) == [b"!"]
    else:
        assert server.error() == (False, 403, (60, 40))
        assert client.got() == []
