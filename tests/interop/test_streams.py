"""Streams (docs/amqp.md#streams) with pika, aio-pika and amqplib: positions, errors, a broker that is killed."""

import asyncio
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aio_pika
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker, NackError

import fanlight
import fanlight.sync
from tests.conftest import StartBroker, TestBroker
from tests.interop.mosquitto import pub
from tests.interop.test_amqp_clients import AMQPLIB
from tests.interop.test_pika import LIMIT_SECONDS, connect
from tests.require import command
from tests.system.http_api import ApiClient

STREAM: dict[str, Any] = {"x-queue-type": "stream"}
HERE = Path(__file__).parent


def start(start_broker: StartBroker, folder: Path, **settings: object) -> TestBroker:
    """Of a process that is killed, the disk has what was written: it need not be synced."""
    settings = {
        "amqp_port": 0, "archive": folder / "archive", "archive_receipts": True, "archive_durability": "none",
        "archive_batch_seconds_max": 0.01, **settings,
    }
    broker = start_broker(
        amqp=True, data=folder / "data", **{name: value for name, value in settings.items() if value is not None}
    )
    broker.wait_for(lambda: "amqp" in broker.addresses, LIMIT_SECONDS)
    return broker


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> TestBroker:
    return start(start_module_broker, tmp_path_factory.mktemp("streams"))


@pytest.fixture
def channel(broker: TestBroker) -> Iterator[BlockingChannel]:
    with connect(broker) as connection:
        yield connection.channel()


def declare(channel: BlockingChannel, name: str, **arguments: object) -> None:
    channel.queue_declare(name, durable=True, arguments={**STREAM, **arguments})


def publish(channel: BlockingChannel, key: str, *numbers: int, exchange: str = "", **properties: Any) -> None:
    for number in numbers:
        channel.basic_publish(exchange, key, b"%d" % number, pika.BasicProperties(**properties), mandatory=True)


def take(
    channel: BlockingChannel, name: str, count: int, offset: object = "first", *, prefetch: int = 5, acks: bool = True
) -> list[tuple[int, bytes]]:
    """Offsets and bodies of so many messages of a stream."""
    return [(properties.headers["x-stream-offset"], body) for _, properties, body in deliveries(
        channel, name, count, offset, prefetch=prefetch, acks=acks
    )]


def deliveries(
    channel: BlockingChannel, name: str, count: int, offset: object = "first", *, prefetch: int = 5, acks: bool = True
) -> list[tuple[Any, Any, bytes]]:
    channel.basic_qos(prefetch_count=prefetch)
    arguments = {"x-stream-offset": offset} if offset is not None else None
    found = []
    for method, properties, body in channel.consume(name, arguments=arguments, inactivity_timeout=LIMIT_SECONDS):
        assert method is not None, f"{len(found)} of {count} came"
        found.append((method, properties, body))
        if acks:
            channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.cancel()
    return found


def bodies(found: list[tuple[int, bytes]]) -> list[int]:
    offsets = [offset for offset, _ in found]
    assert offsets == sorted(set(offsets))
    return [int(body) for _, body in found]


def test_consumers_read_the_same_messages_each_from_its_own_position(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    declare(channel, "own")
    publish(channel, "own", *range(50))
    found = take(channel, "own", 50)
    assert bodies(found) == list(range(50))
    assert take(channel, "own", 50) == found  # they are there still, and in the same places
    offset = found[20][0]
    assert take(channel, "own", 30, offset) == found[20:]
    assert take(channel, "own", 50, 0) == found  # before the first
    assert take(channel, "own", 50, "1h") == found
    assert take(channel, "own", 50, datetime.now(UTC) - timedelta(minutes=1)) == found
    assert take(channel, "own", 1, "last") == found[-1:]


def test_the_next_message_is_the_default_and_live_messages_follow(broker: TestBroker, channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    declare(channel, "live")
    publish(channel, "live", 1, 2)
    with connect(broker) as other:
        reader, got = other.channel(), []
        reader.basic_qos(prefetch_count=1)
        reader.basic_consume("live", lambda _, method, properties, body: got.append((method, body)))
        for number in range(3, 6):
            publish(channel, "live", number)
            while not got:
                other.process_data_events(LIMIT_SECONDS)
            ((method, body),) = got
            got.clear()
            assert int(body) == number
            reader.basic_ack(method.delivery_tag)
        publish(channel, "live", 6)
        assert bodies(take(channel, "live", 6)) == [1, 2, 3, 4, 5, 6]


def test_acknowledgements_are_credit(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    declare(channel, "credit")
    publish(channel, "credit", *range(10))
    channel.basic_qos(prefetch_count=3)
    got: list[tuple[int, int]] = []
    channel.basic_consume(
        "credit", lambda _, method, properties, body: got.append((method.delivery_tag, int(body))),
        arguments={"x-stream-offset": "first"},
    )
    while len(got) < 3:
        channel.connection.process_data_events(LIMIT_SECONDS)
    channel.queue_declare("credit", passive=True)
    assert [body for _, body in got] == [0, 1, 2]
    channel.basic_ack(got[1][0], multiple=True)
    while len(got) < 5:
        channel.connection.process_data_events(LIMIT_SECONDS)
    channel.queue_declare("credit", passive=True)
    assert [body for _, body in got] == [0, 1, 2, 3, 4]


def test_properties_and_headers_come_as_they_were_published(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    declare(channel, "whole")
    said = {
        "content_type": "text/plain", "content_encoding": "gzip", "delivery_mode": 2, "priority": 3,
        "correlation_id": "c", "reply_to": "r", "expiration": "60000", "message_id": "m", "timestamp": 1_700_000_000,
        "type": "t", "user_id": "guest", "app_id": "a",
        "headers": {"n": 5, "t": {"deep": [1, "two", None]}, "b": True, "amqp-message": "not ours"},
    }  # fmt: skip
    channel.basic_publish("", "whole", b"\0\xff" * 100_000, pika.BasicProperties(**said), mandatory=True)
    ((method, properties, body),) = deliveries(channel, "whole", 1)
    assert body == b"\0\xff" * 100_000  # several frames
    assert (method.exchange, method.routing_key, method.redelivered) == ("", "whole", False)
    assert isinstance(properties.headers.pop("x-stream-offset"), int)
    assert {name: getattr(properties, name) for name in said} == said


def test_bindings_lead_to_a_stream_from_exchanges_and_from_the_topics_of_others(
    broker: TestBroker, channel: BlockingChannel
) -> None:
    channel.confirm_delivery()
    declare(channel, "bound.a")
    declare(channel, "bound/b")
    channel.exchange_declare("x.y", "topic")
    for name in ("bound.a", "bound/b"):
        channel.queue_bind(name, "x.y", "k.#")
        channel.queue_bind(name, "amq.topic", "to.streams.#")
    channel.queue_declare("ordinary")
    channel.queue_bind("ordinary", "x.y", "#")
    publish(channel, "k.*.1", 1, exchange="x.y")
    publish(channel, "to.streams.x", 2, exchange="amq.topic")
    pub(broker.mqtt_port, "-t", "to/streams/y", "-m", "3", "-q", "1")
    publish(channel, "k", 4, exchange="x.y")
    for name in ("bound.a", "bound/b"):
        found = deliveries(channel, name, 4)
        assert [int(body) for _, _, body in found] == [1, 2, 3, 4]
        assert [(method.exchange, method.routing_key) for method, _, _ in found] == [
            ("x.y", "k.*.1"), ("amq.topic", "to.streams.x"), ("amq.topic", "to.streams.y"), ("x.y", "k"),
        ]  # fmt: skip
    assert channel.queue_declare("ordinary", passive=True).method.message_count == 2


def test_a_message_with_very_many_headers_costs_the_archive_no_other(channel: BlockingChannel) -> None:
    """Its topic is archived as well, without headers: the batch that all of them are in was lost."""
    channel.confirm_delivery()
    declare(channel, "many")
    channel.queue_bind("many", "amq.topic", "many.headers")
    headers = {f"h{number}": number for number in range(1_500)}
    publish(channel, "many.headers", 1, exchange="amq.topic")
    publish(channel, "many.headers", 2, exchange="amq.topic", headers=headers)
    publish(channel, "many.headers", 3, exchange="amq.topic")
    found = deliveries(channel, "many", 3)
    assert [int(body) for _, _, body in found] == [1, 2, 3]
    said = found[1][1].headers
    del said["x-stream-offset"]
    assert said == headers


def test_a_stream_that_was_deleted_and_declared_anew_is_empty(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    declare(channel, "again")
    publish(channel, "again", 1)
    channel.queue_delete("again")
    declare(channel, "again")
    publish(channel, "again", 2)
    assert bodies(take(channel, "again", 1)) == [2]


def test_a_stream_that_is_deleted_cancels_its_consumers(channel: BlockingChannel) -> None:
    declare(channel, "gone")
    channel.basic_qos(prefetch_count=1)
    cancelled: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    tag = channel.basic_consume("gone", lambda *_: None)
    channel.queue_delete("gone")
    while not cancelled:
        channel.connection.process_data_events(LIMIT_SECONDS)
    assert cancelled == [tag]


@pytest.mark.parametrize(("arguments", "flags", "code"), [
    ({}, {"durable": False}, 406), ({}, {"exclusive": True}, 406), ({}, {"auto_delete": True}, 406),
    ({"x-max-age": "1 day"}, {}, 406), ({"x-message-ttl": 1_000}, {}, 406), ({"x-max-priority": 3}, {}, 406),
    ({"x-dead-letter-exchange": ""}, {}, 406), ({"x-stream-max-segment-size-bytes": "1"}, {}, 406),
])  # fmt: skip
def test_what_a_stream_cannot_be_declared_with(
    channel: BlockingChannel, arguments: dict[str, Any], flags: dict[str, bool], code: int
) -> None:
    with pytest.raises(ChannelClosedByBroker) as refused:
        channel.queue_declare("refused", arguments={**STREAM, **arguments}, **{"durable": True, **flags})
    assert refused.value.reply_code == code


def test_arguments_of_retention_are_accepted_and_compared(broker: TestBroker, channel: BlockingChannel) -> None:
    arguments: dict[str, Any] = {
        "x-max-age": "7D", "x-max-length-bytes": 2_000_000_000, "x-stream-max-segment-size-bytes": 500_000_000,
        "x-initial-cluster-size": 1, "x-queue-leader-locator": "client-local",
    }
    declare(channel, "kept", **arguments)
    declare(channel, "kept", **arguments)
    with urllib.request.urlopen(f"{broker.http_url}/queues", timeout=LIMIT_SECONDS) as answer:
        assert "x-max-age" in json.dumps(json.load(answer))
    with pytest.raises(ChannelClosedByBroker, match="inequivalent arg 'x-max-age'"):
        declare(channel, "kept", **{**arguments, "x-max-age": "8D"})


def consume(channel: BlockingChannel, offset: object = "next", prefetch: int = 1, **options: Any) -> None:
    if prefetch:
        channel.basic_qos(prefetch_count=prefetch)
    channel.basic_consume("errors", lambda *_: None, arguments={"x-stream-offset": offset}, **options)


def nack(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    publish(channel, "errors", 1)
    deliveries(channel, "errors", 1, "first", acks=False)
    channel.basic_qos(prefetch_count=1)
    tags: list[int] = []
    channel.basic_consume("errors", lambda _, method, *__: tags.append(method.delivery_tag),
                          arguments={"x-stream-offset": "first"})  # fmt: skip
    while not tags:
        channel.connection.process_data_events(LIMIT_SECONDS)
    channel.basic_nack(tags[0])
    channel.queue_declare("errors", passive=True)


@pytest.mark.parametrize(("act", "error", "code"), [
    (lambda channel: channel.basic_get("errors"), ConnectionClosedByBroker, 540),
    (lambda channel: channel.queue_purge("errors"), ConnectionClosedByBroker, 540),
    (lambda channel: channel.queue_delete("errors", if_empty=True), ConnectionClosedByBroker, 540),
    (lambda channel: consume(channel, auto_ack=True), ConnectionClosedByBroker, 540),
    (nack, ConnectionClosedByBroker, 540),
    (lambda channel: consume(channel, prefetch=0), ChannelClosedByBroker, 406),
    (lambda channel: consume(channel, "soon"), ChannelClosedByBroker, 406),
    (lambda channel: consume(channel, -1), ChannelClosedByBroker, 406),
    (lambda channel: consume(channel, True), ChannelClosedByBroker, 406),
    (lambda channel: consume(channel, "1w"), ChannelClosedByBroker, 406),
])  # fmt: skip
def test_what_a_stream_cannot_do(broker: TestBroker, act: Any, error: type[Exception], code: int) -> None:
    connection = connect(broker)
    channel = connection.channel()
    declare(channel, "errors")
    with pytest.raises(error) as refused:
        act(channel)
    assert getattr(refused.value, "reply_code", None) == code
    if connection.is_open:
        connection.close()


def test_without_an_archive_the_error_names_the_setting(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start(start_broker, tmp_path)
    with connect(broker) as connection:
        channel = connection.channel()
        declare(channel, "stays")
    broker.terminate()
    broker = start(start_broker, tmp_path, archive=None, archive_receipts=None, archive_durability=None)
    with connect(broker) as connection:
        channel = connection.channel()
        with pytest.raises(ChannelClosedByBroker, match=r"archive.*FANLIGHT_ARCHIVE"):
            declare(channel, "other")
        channel = connection.channel()
        channel.confirm_delivery()
        with pytest.raises(NackError):  # it is there from before, and takes nothing
            publish(channel, "stays", 1)
        with pytest.raises(ChannelClosedByBroker, match="FANLIGHT_ARCHIVE"):
            take(channel, "stays", 1)


def test_a_consumer_counts_as_a_replay_as_long_as_it_is_there(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start(start_broker, tmp_path, archive_replays_max=1)
    with connect(broker) as connection:
        channel, other = connection.channel(), connection.channel()
        declare(channel, "errors")
        consume(channel)
        with pytest.raises(ChannelClosedByBroker, match="archive_replays_max") as refused:
            consume(other)
        assert refused.value.reply_code == 406
        channel.cancel()
        for tag in channel.consumer_tags:
            channel.basic_cancel(tag)
        consume(connection.channel())


def test_to_read_a_stream_needs_the_permission_to_replay(start_broker: StartBroker, tmp_path: Path) -> None:
    file = tmp_path / "permissions.toml"
    file.write_text(
        '[default]\nconnect = "allow"\n'
        '[[allow]]\npublish = "$exchange.#"\nsubscribe = "$queue.#"\nqueue = "$queue.#"\n'
        '[[allow]]\nreplay = "$queue.open"\n', encoding="utf-8",
    )
    broker = start(start_broker, tmp_path, permissions=file)
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for name in ("open", "closed"):
            declare(channel, name)
            publish(channel, name, 1)
        assert bodies(take(channel, "open", 1)) == [1]
        with pytest.raises(ChannelClosedByBroker) as refused:
            take(channel, "closed", 1)
        assert refused.value.reply_code == 403


def replayed(broker: TestBroker, filter: str) -> list[str] | str:
    """Topics of the archive, or why a native client may not have them."""
    with fanlight.sync.connect(broker.url) as client:
        try:
            with client.replay(filter, past_only=True) as messages:
                return [message.topic for message in messages]
        except fanlight.NotPermitted:
            return "not_permitted"


def test_no_client_writes_to_a_stream_past_its_queue(start_broker: StartBroker, tmp_path: Path) -> None:
    """A message that an AMQP client cannot read ended all consumers of the stream, whenever they came to it."""
    broker = start(start_broker, tmp_path, archive_topics="#")
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        declare(channel, "aimed")
        publish(channel, "aimed", 1)
        (topic,) = replayed(broker, "$stream.aimed.#")
        with fanlight.sync.connect(broker.url) as client:
            for syntax, spelled in (("amqp", topic), ("mqtt", topic), ("mqtt", topic.replace(".", "/"))):
                for delay in (None, 0.01):
                    with pytest.raises(fanlight.NotPermitted):
                        client.publish(
                            spelled, b"7", headers={"amqp-message": "x"}, syntax=syntax, receipt=True, delay=delay
                        )
        spelled = topic.replace(".", "/")
        pub(broker.mqtt_port, "-t", spelled, "-m", "8", "-q", "1", version=3)  # which has no way to refuse it
        other = connection.channel()
        other.confirm_delivery()
        with pytest.raises(ChannelClosedByBroker) as refused:
            publish(other, topic, 9, exchange="amq.topic")
        assert refused.value.reply_code == 403
        publish(channel, "aimed", 2)
        assert bodies(take(channel, "aimed", 2)) == [1, 2]
        assert replayed(broker, "$stream.aimed.#") == [topic, topic]
        assert replayed(broker, "#") == []
        assert ApiClient(broker.http_url).ok("GET", "/archive/messages?filter=%23")["items"] == []


def test_streams_are_read_past_no_rule(start_broker: StartBroker, tmp_path: Path) -> None:
    """Whoever may replay everything has the streams of queues, and not their topics in the archive."""
    file = tmp_path / "permissions.toml"
    file.write_text(
        '[default]\nconnect = "allow"\nadmin = "allow"\n'
        '[[deny]]\nreplay = "$queue.secret"\n[[allow]]\neverything = "#"\n', encoding="utf-8",
    )
    broker = start(start_broker, tmp_path, permissions=file, archive_topics="#")
    api = ApiClient(broker.http_url)
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for name in ("open", "secret"):
            declare(channel, name)
            channel.queue_bind(name, "amq.topic", "plain")
            publish(channel, name, 1)
        publish(channel, "plain", 2, exchange="amq.topic")
        assert bodies(take(channel, "open", 2)) == [1, 2]
        with pytest.raises(ChannelClosedByBroker) as refused:
            take(channel, "secret", 1)
        assert refused.value.reply_code == 403
    for filter in ("#", "*.#"):
        assert replayed(broker, filter) == ["plain"]
    for filter in ("$stream.#", "$stream.secret.#"):
        assert replayed(broker, filter) == "not_permitted"
        api.refused(403, "GET", f"/archive/messages?filter={quote(filter)}")


async def test_a_consumer_of_aio_pika_goes_on_where_it_was_when_the_broker_is_killed(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start(start_broker, tmp_path)
    port = broker.amqp_port
    found: list[tuple[int, int]] = []
    for kill in range(3):
        connection = await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{port}/")
        channel = await connection.channel(publisher_confirms=True)
        await channel.set_qos(prefetch_count=20)
        queue = await channel.declare_queue("killed", durable=True, arguments=STREAM)
        sent = [int(kill * 1_000 + number) for number in range(200)]
        await asyncio.gather(*(
            channel.default_exchange.publish(aio_pika.Message(b"%d" % number), "killed") for number in sent
        ))
        everything = asyncio.Event()
        wanted = 200 * (kill + 1)

        async def take(
            message: aio_pika.abc.AbstractIncomingMessage, everything: asyncio.Event = everything, wanted: int = wanted
        ) -> None:
            found.append((int(str(message.headers["x-stream-offset"])), int(message.body)))
            await message.ack()
            if len(found) == wanted:
                everything.set()

        begin = found[-1][0] + 1 if found else 0
        await queue.consume(take, arguments={"x-stream-offset": begin})
        await asyncio.wait_for(everything.wait(), LIMIT_SECONDS)
        broker.kill()
        await connection.close()
        broker = start(start_broker, tmp_path, amqp_port=port)
    offsets = [offset for offset, _ in found]
    assert offsets == sorted(set(offsets))
    assert [body for _, body in found] == [kill * 1_000 + number for kill in range(3) for number in range(200)]


def test_what_was_confirmed_is_in_the_stream_after_a_kill_in_the_middle(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start(start_broker, tmp_path)
    channel, confirmed = connect(broker).channel(), list[int]()
    declare(channel, "middle")
    channel.confirm_delivery()

    def publish_all() -> None:
        for number in range(100_000):
            if number == 150:
                broker.process.kill()
            publish(channel, "middle", number)
            confirmed.append(number)

    with pytest.raises(pika.exceptions.AMQPError):
        publish_all()
    broker.kill()
    broker = start(start_broker, tmp_path)
    with connect(broker) as connection:
        assert bodies(take(connection.channel(), "middle", len(confirmed))) == confirmed


def test_amqplib_reads_a_stream(broker: TestBroker) -> None:
    node = command("node", package="nodejs")
    if not AMQPLIB.is_dir():
        pytest.skip("needs amqplib in build/interop: `make test` installs it where there is npm")
    done = subprocess.run(
        [node, str(HERE / "amqplib_stream.cjs"), str(AMQPLIB), str(broker.amqp_port), str(int(time.time()) - 60)],
        capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["first 0,1,2,3,4", "4", "timestamp 0,1,2,3,4", "1h 0,1,2,3,4"]
