"""Spans of messages, as a receiver of OpenTelemetry gets them from a broker."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from opentelemetry.sdk.trace import TracerProvider

import fanlight
from fanlight.tracing import trace_context, trace_headers
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.span_receiver import LIMIT_SECONDS, Received, SpanReceiver, receiving
from tests.system.views import stats

TRACE = "0af7651916cd43dd8448eb211c80319c"


def parent(number: int, *, sampled: bool = True) -> dict[str, str]:
    return {"traceparent": f"00-{TRACE}-{number:016x}-0{int(sampled)}", "tracestate": f"a={number}"}


@pytest.fixture(scope="module")
def receiver() -> Iterator[SpanReceiver]:
    with receiving() as server:
        yield server


@pytest.fixture(scope="module")
def traced(
    start_module_broker: StartBroker, receiver: SpanReceiver, tmp_path_factory: pytest.TempPathFactory
) -> TestBroker:
    """With a store; nothing is traced by chance."""
    broker = start_module_broker(
        trace_endpoint=receiver.url, trace_ratio=0, trace_service="shop", amqp=True,
        data=tmp_path_factory.mktemp("data"),
    )
    broker.wait_for(lambda: "amqp" in broker.addresses, LIMIT_SECONDS)
    return broker


def children(receiver: SpanReceiver, publish: Received, name: str) -> list[Received]:
    return receiver.spans(1, name=name, parent=publish.id)


async def test_native_messages_with_a_context(traced: TestBroker, receiver: SpanReceiver) -> None:
    async with fanlight.connect(traced.url, name="n") as client, client.subscribe("native.#") as messages:
        await client.publish("native.a", b"1")  # the next ones are of a topic that is known, and compiled
        await client.publish("native.a", b"22", headers=parent(1, sampled=False))
        await client.publish("native.a", b"333", headers=parent(2))
        await client.publish("native.first", b"", headers=parent(3), receipt=True)
        got = [await anext(messages) for _ in range(4)]
        refused = client.publish("$SYS.no", b"", headers=parent(4), receipt=True)
        with pytest.raises(fanlight.BrokerError):
            await refused
    assert [each.payload for each in got] == [b"1", b"22", b"333", b""]  # in their order
    assert got[2].headers == parent(2)  # as they came
    (publish,) = receiver.spans(1, name="publish", parent=f"{2:016x}")
    assert (publish.trace, publish.state, publish.error) == (TRACE, "a=2", "")
    assert publish.attributes == {
        "messaging.system": "fanlight", "messaging.operation.name": "publish", "messaging.destination.name": "native.a",
        "messaging.message.body.size": 3, "messaging.client.id": "n", "network.protocol.name": "native",
        "fanlight.subscriptions": 1, "fanlight.delayed": False,
    }
    (delivery,) = children(receiver, publish, "deliver")
    assert publish.began <= delivery.began <= delivery.ended
    assert delivery.attributes["messaging.destination.subscription.name"] == "native.#"
    assert delivery.attributes["fanlight.delivery"] == "sent"
    receiver.spans(1, name="publish", parent=f"{3:016x}")
    (failed,) = receiver.spans(1, name="publish", parent=f"{4:016x}")
    assert failed.attributes["error.type"] == "NotPermitted"
    assert failed.error
    assert "shop" in receiver.services
    assert (await stats(traced))["traced_messages"] == 3
    # Neither the one without a context, nor the one that is not sampled.
    assert not {"", f"{1:016x}"} & {each.parent for each in receiver.spans(0, name="publish")}


async def test_the_random_word_of_an_inbox_is_not_shown(traced: TestBroker, receiver: SpanReceiver) -> None:
    """Whoever sees the spans could publish there, in the place of the reply."""
    async with (
        fanlight.connect(traced.url, name="asks") as asks, fanlight.connect(traced.url, name="answers") as answers,
        answers.subscribe("service") as requests,
    ):  # fmt: skip
        answer = asyncio.ensure_future(asks.request("service", b""))
        inbox = (await anext(requests)).reply
        assert inbox is not None
        await answers.publish(inbox, b"", headers=parent(71))
        await answer
    (publish,) = receiver.spans(1, name="publish", parent=f"{71:016x}")
    (delivery,) = children(receiver, publish, "deliver")
    for name in (
        publish.attributes["messaging.destination.name"], delivery.attributes["messaging.destination.subscription.name"]
    ):
        assert str(name).startswith("$inbox.masked-")
        assert inbox.split(".")[1] not in str(name)


async def test_mqtt_messages_with_a_context(traced: TestBroker, receiver: SpanReceiver) -> None:
    async with await MqttPeer.connect(traced.mqtt_port, "m") as peer:
        await peer.subscribe("mqtt/#", qos=1)
        for number, user in ((1, ()), (2, tuple(parent(12).items()))):
            await peer.send(Publish(
                topic="mqtt/a", payload=b"x", qos=1, packet_id=number,
                properties=Properties(user_properties=user),
            ))
        found = [await peer.packet() for _ in range(4)]
    got = [each for each in found if isinstance(each, Publish)]
    assert sum(isinstance(each, PubAck) for each in found) == 2
    assert dict(got[1].properties.user_properties) == parent(12)
    (publish,) = receiver.spans(1, name="publish", parent=f"{12:016x}")
    assert publish.attributes["network.protocol.name"] == "mqtt"
    assert publish.attributes["network.protocol.version"] == "5.0"
    (delivery,) = children(receiver, publish, "deliver")
    assert delivery.attributes["messaging.client.id"] == "m"


def test_amqp_messages_with_a_context_are_stored(traced: TestBroker, receiver: SpanReceiver) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", traced.amqp_port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("traced", durable=True)
        for number in (None, 21, 22):
            properties = pika.BasicProperties(
                delivery_mode=2, content_type="text/plain", headers=None if number is None else parent(number)
            )
            channel.basic_publish("", "traced", b"x", properties)
        got = [channel.basic_get("traced", auto_ack=True) for _ in range(3)]
    assert got[1][1].headers == parent(21)
    for number in (21, 22):
        (publish,) = receiver.spans(1, name="publish", parent=f"{number:016x}")
        assert publish.attributes["network.protocol.name"] == "amqp"
        (stored,) = children(receiver, publish, "store")
        assert publish.began <= stored.began < stored.ended <= publish.ended
        (delivery,) = children(receiver, publish, "deliver")
        assert delivery.attributes["fanlight.delivery"] == "queued"
        assert delivery.attributes["messaging.consumer.group.name"] == "traced"


async def test_a_program_s_own_spans(traced: TestBroker, receiver: SpanReceiver) -> None:
    tracer = TracerProvider().get_tracer("program")
    async with fanlight.connect(traced.url) as client, client.subscribe("program.#") as messages:
        assert trace_headers({"a": 1}) == {"a": 1}  # no span is current
        with tracer.start_as_current_span("order") as order:
            await client.publish("program.a", b"", headers=trace_headers())
        message = await anext(messages)
        with tracer.start_as_current_span("handle", trace_context(message)) as handle:
            assert handle.get_span_context().trace_id == order.get_span_context().trace_id
    receiver.spans(1, name="publish", parent=f"{order.get_span_context().span_id:016x}")


async def test_a_receiver_that_does_not_answer_holds_nobody_up(start_broker: StartBroker, tmp_path: Path) -> None:
    config = tmp_path / "fanlight.toml"
    config.write_text("trace_ratio = 1\n")
    with receiving() as server:
        broker = start_broker(
            trace_endpoint=server.url, trace_spans_max=16, trace_messages_per_second_max=100_000, config=config
        )
        server.open.clear()
        async with fanlight.connect(broker.url) as client:
            await client.publish("a", b"", receipt=True)
            assert server.asked.wait(LIMIT_SECONDS)  # the thread waits for its answer now
            for _ in range(40):
                await client.publish("a", b"", receipt=True)
            found = await stats(broker)
            assert found["trace_spans_waiting"] == 16
            assert found["trace_spans_dropped"] == 24
            config.write_text("trace_ratio = 0\n")
            broker.process.send_signal(signal.SIGHUP)
            broker.wait_for_line("reloaded")
            await client.publish("a", b"", receipt=True)
            assert (await stats(broker))["traced_messages"] == 41
        server.open.set()
        assert len(server.spans(17, name="publish")) == 17
