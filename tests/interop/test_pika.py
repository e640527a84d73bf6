"""pika's blocking client: declare, publish, consume, acknowledge, confirms, redelivery; MQTT and the SDK beside it."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    UnroutableError,
)

import fanlight
from tests.conftest import StartBroker, TestBroker
from tests.interop.mosquitto import Sub, pub
from tests.interop.peer import soon

COUNT = 200
LIMIT_SECONDS = 60.0  # for what comes at once, on a machine that is busy with something else


@pytest.fixture(scope="module")
def amqp_broker(start_module_broker: StartBroker) -> TestBroker:
    broker = start_module_broker(amqp=True)
    broker.wait_for(lambda: "amqp" in broker.addresses, LIMIT_SECONDS)
    return broker


def connect(broker: TestBroker, **options: object) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters(
        "127.0.0.1", broker.amqp_port, socket_timeout=LIMIT_SECONDS, blocked_connection_timeout=LIMIT_SECONDS, **options
    ))


@pytest.fixture
def channel(amqp_broker: TestBroker) -> Iterator[BlockingChannel]:
    with connect(amqp_broker) as connection:
        yield connection.channel()


def take(channel: BlockingChannel, queue: str, count: int, **options: object) -> list[tuple[bytes, bool]]:
    """Bodies and whether they were delivered before, of so many messages; none is acknowledged."""
    found = []
    for method, _, body in channel.consume(queue, inactivity_timeout=LIMIT_SECONDS, **options):
        assert method is not None, f"{len(found)} of {count} came"
        found.append((body, method.redelivered))
        if len(found) == count:
            break
    return found


def read_to_the_end(connection: pika.BlockingConnection) -> None:
    """Raises AMQPConnectionError when it has read what came before its socket was shut."""
    for _ in range(100):
        connection.process_data_events(1)


def test_what_is_published_is_consumed_in_order(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    channel.queue_declare("order", durable=True)
    for number in range(COUNT):
        channel.basic_publish("", "order", b"%d" % number, pika.BasicProperties(delivery_mode=2), mandatory=True)
    channel.basic_qos(prefetch_count=10)
    came = []
    for method, properties, body in channel.consume("order", inactivity_timeout=LIMIT_SECONDS):
        assert method is not None
        assert properties.delivery_mode == 2
        came.append(int(body))
        channel.basic_ack(method.delivery_tag)
        if len(came) == COUNT:
            break
    assert came == list(range(COUNT))
    channel.cancel()
    assert channel.queue_declare("order", passive=True).method.message_count == 0


def test_what_is_not_acknowledged_comes_again_after_a_disconnect(amqp_broker: TestBroker) -> None:
    first = connect(amqp_broker)
    channel = first.channel()
    channel.queue_declare("again")
    for body in (b"a", b"b", b"c"):
        channel.basic_publish("", "again", body)
    assert take(channel, "again", 3) == [(b"a", False), (b"b", False), (b"c", False)]
    channel.basic_ack(1)
    first._impl._transport._sock.shutdown(socket.SHUT_RDWR)  # without a word, as a process that is killed
    with connect(amqp_broker) as second:
        assert take(second.channel(), "again", 2) == [(b"b", True), (b"c", True)]
    with pytest.raises(AMQPConnectionError):
        read_to_the_end(first)


def test_confirms_returns_and_refusals_are_exceptions_of_pika(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    with pytest.raises(UnroutableError):
        channel.basic_publish("", "there-is-no-such-queue", b"x", mandatory=True)
    channel.queue_declare("small", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.basic_publish("", "small", b"1")
    with pytest.raises(NackError):
        channel.basic_publish("", "small", b"2")


def test_a_large_message_comes_in_many_frames(amqp_broker: TestBroker) -> None:
    body = bytes(range(256)) * 20_000
    with connect(amqp_broker, frame_max=4_096) as connection:
        channel = connection.channel()
        channel.queue_declare("large")
        channel.basic_publish("", "large", body)
    with connect(amqp_broker) as connection:
        assert take(connection.channel(), "large", 1, auto_ack=True) == [(body, False)]


def test_errors_have_rabbitmqs_codes_and_texts(amqp_broker: TestBroker) -> None:
    with connect(amqp_broker) as connection:
        with pytest.raises(ChannelClosedByBroker) as caught:
            connection.channel().queue_declare("missing", passive=True)
        assert caught.value.reply_code == 404
        assert caught.value.reply_text == "NOT_FOUND - no queue 'missing' in vhost '/'"
        connection.channel().queue_declare("equal", durable=True)
        with pytest.raises(ChannelClosedByBroker) as caught:
            connection.channel().queue_declare("equal")
        assert caught.value.reply_text == (
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'equal' in vhost '/': received 'false' but "
            "current is 'true'"
        )
        with pytest.raises(ConnectionClosedByBroker) as lost:
            connection.channel().exchange_declare("x", "quantum")
        assert lost.value.reply_code == 503


def test_a_fanout_and_a_topic_exchange(channel: BlockingChannel) -> None:
    channel.exchange_declare("news", "fanout")
    channel.exchange_declare("places", "topic")
    queues = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
    for queue in queues:
        channel.queue_bind(queue, "news")
    channel.queue_bind(queues[0], "places", "eu.#")
    channel.basic_publish("news", "", b"all")
    channel.basic_publish("places", "eu.ch.zh", b"one")
    assert take(channel, queues[0], 2) == [(b"all", False), (b"one", False)]
    channel.cancel()
    assert take(channel, queues[1], 1) == [(b"all", False)]


def test_mqtt_and_amqp_share_amq_topic(amqp_broker: TestBroker, channel: BlockingChannel) -> None:
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "sensors.*.t")
    pub(amqp_broker.mqtt_port, "-t", "sensors/7/t", "-m", "21", "-q", "1")
    assert take(channel, queue, 1) == [(b"21", False)]
    with Sub(amqp_broker.mqtt_port, "-t", "to/mqtt/#", "-q", "1") as sub:
        channel.basic_publish("amq.topic", "to.mqtt.x", b"from amqp", pika.BasicProperties(delivery_mode=2))
        (got,) = sub.messages(1)
        assert (got.topic, got.payload) == ("to/mqtt/x", b"from amqp")


async def test_the_sdk_and_amqp_share_amq_topic(amqp_broker: TestBroker, channel: BlockingChannel) -> None:
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "stock.#")
    async with fanlight.connect(amqp_broker.url) as client, client.subscribe("back.*") as sub:
        await client.publish("stock.eu.AAPL", b"189", headers={"n": 5}, receipt=True)
        got = await asyncio.to_thread(channel.basic_get, queue, True)
        assert (got[0].exchange, got[0].routing_key, got[1].headers, got[2]) == (
            "amq.topic", "stock.eu.AAPL", {"n": 5}, b"189",
        )
        channel.basic_publish("amq.topic", "back.1", b"x", pika.BasicProperties(content_type="text/plain"))
        came = await soon(anext(sub))
        assert (came.words, came.payload, dict(came.headers)) == (("back", "1"), b"x", {"content-type": "text/plain"})


def test_durable_queues_and_what_is_in_them_are_there_after_a_kill(start_broker: StartBroker, tmp_path: Path) -> None:
    before = start_broker(amqp=True, data=tmp_path, durability="written")
    before.wait_for(lambda: "amqp" in before.addresses, LIMIT_SECONDS)
    killed = connect(before)
    channel = killed.channel()
    channel.confirm_delivery()
    channel.queue_declare("kept", durable=True)
    channel.queue_bind("kept", "amq.topic", "kept.*")
    channel.basic_publish("", "kept", b"1", pika.BasicProperties(delivery_mode=2))
    channel.basic_publish("amq.topic", "kept.x", b"2", pika.BasicProperties(delivery_mode=2, headers={"a": 1}))
    before.kill()
    with pytest.raises(AMQPConnectionError):
        read_to_the_end(killed)
    after = start_broker(amqp=True, data=tmp_path, durability="written")
    after.wait_for(lambda: "amqp" in after.addresses, LIMIT_SECONDS)
    with connect(after) as connection:
        channel = connection.channel()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("amq.topic", "kept.y", b"3")
        got = [channel.basic_get("kept") for _ in range(3)]
        assert [(method.exchange, method.routing_key, body) for method, _, body in got] == [
            ("", "kept", b"1"), ("amq.topic", "kept.x", b"2"), ("amq.topic", "kept.y", b"3"),
        ]
        assert got[1][1].headers == {"a": 1}
