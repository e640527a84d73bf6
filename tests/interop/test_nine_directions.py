"""MQTT, AMQP and native clients, each to each: what of a message arrives, and as what. docs/amqp.md has the table.

Everybody publishes the same message in the words of its protocol. EXPECTED says what the others read of it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aio_pika
import pytest

import fanlight
from tests.conftest import StartBroker, TestBroker
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import WAIT_SECONDS, Endpoint, Message, Said, Wanted, soon

EXPIRY_SECONDS = 3_600
BODY = b"\x00\xffbody"


@dataclass(frozen=True)
class Seen:
    """What a client reads. topic: without separators, for these are the receiver's.

    expires  whether it says when
    quality  QoS of MQTT, delivery mode of AMQP less 1; native clients do not see it
    """

    body: bytes = BODY
    topic: tuple[str, ...] = ()
    content_type: str | None = "text/plain"
    correlation: str | None = "c1"
    reply: str | None = None
    expires: bool = False
    quality: int | None = None
    headers: dict[str, Any] = field(default_factory=dict)


# MQTT has texts only. The reply-to of AMQP is the name of a queue, and no topic: to others it is a header, as are the
# properties that they have none for (aio-pika gives each message a priority). The body, the topic, the content type and
# the correlation arrive in all directions, and so does a trace context (W3C), which is two headers like others.
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1,b@c=2"}
TEXTS, NUMBERS = {"a": "ü", "n": "2", **TRACE}, {"a": "ü", "n": 2, **TRACE}
OF_AMQP = {"reply-to": "to.me", "message-id": "m1"}
EXPECTED = {
    ("mqtt", "mqtt"): Seen(headers=TEXTS, reply="to/me", expires=True),
    ("mqtt", "amqp"): Seen(headers=TEXTS, reply="to.me", expires=True),
    ("mqtt", "native"): Seen(headers=TEXTS, reply="to/me"),
    ("amqp", "mqtt"): Seen(headers={**TEXTS, **OF_AMQP, "priority": "0"}, expires=True),
    ("amqp", "amqp"): Seen(headers=NUMBERS, reply="to.me", expires=True),
    ("amqp", "native"): Seen(headers={**NUMBERS, **OF_AMQP, "priority": 0}),
    ("native", "mqtt"): Seen(headers=TEXTS, reply="to/me"),
    ("native", "amqp"): Seen(headers=NUMBERS, reply="to.me"),
    ("native", "native"): Seen(headers=NUMBERS, reply="to.me"),
}


def expected(sender: str, receiver: str, quality: int, words: tuple[str, ...]) -> Seen:
    """MQTT's QoS and AMQP's delivery mode are one thing. Native messages have none, and AMQP has it of its own only."""
    arrives = {
        "mqtt": quality if sender != "native" else 0,
        "amqp": quality if sender == "amqp" else 1,  # 2, persistent, of others
        "native": None,
    }[receiver]
    return replace(EXPECTED[sender, receiver], topic=words, quality=arrives)


@pytest.fixture(scope="module")
def amqp_broker(start_module_broker: StartBroker) -> TestBroker:
    broker = start_module_broker(amqp=True)
    broker.wait_for(lambda: "amqp" in broker.addresses, WAIT_SECONDS)
    return broker


Publish = Callable[[tuple[str, ...], int], Awaitable[None]]
Receive = Callable[[], Awaitable[Seen]]


@asynccontextmanager
async def mqtt(broker: TestBroker, words: tuple[str, ...]) -> AsyncIterator[tuple[Publish, Receive]]:
    peer = PahoPeer(Endpoint(broker.mqtt_port), 5)
    await peer.connect(Wanted(f"reader-{'-'.join(words)}"))

    async def publish(to: tuple[str, ...], quality: int) -> None:
        said = Said(tuple(TEXTS.items()), "text/plain", "to/me", b"c1", expiry=EXPIRY_SECONDS)
        await peer.publish(Message("/".join(to), BODY, quality, said=said))

    async def receive() -> Seen:
        got = await peer.message()
        said = got.said
        assert said.expiry is None or 0 < said.expiry <= EXPIRY_SECONDS
        assert len({name for name, _ in said.user}) == len(said.user)
        return Seen(
            got.payload,
            tuple(got.topic.split("/")),
            said.content_type,
            said.correlation and said.correlation.decode(),
            said.response_topic,
            said.expiry is not None,
            got.qos,
            dict(said.user),
        )

    await peer.subscribe("/".join(words), 1)
    yield publish, receive
    await peer.disconnect()


@asynccontextmanager
async def amqp(broker: TestBroker, words: tuple[str, ...]) -> AsyncIterator[tuple[Publish, Receive]]:
    async with await aio_pika.connect(port=broker.amqp_port, host="127.0.0.1") as connection:
        channel = await connection.channel()
        topics = await channel.get_exchange("amq.topic")
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(topics, ".".join(words))

        async def publish(to: tuple[str, ...], quality: int) -> None:
            message = aio_pika.Message(
                BODY, headers=dict(NUMBERS), content_type="text/plain", correlation_id="c1", reply_to="to.me",
                message_id="m1", expiration=EXPIRY_SECONDS, delivery_mode=aio_pika.DeliveryMode(quality + 1),
            )  # fmt: skip
            await topics.publish(message, ".".join(to))

        async def receive() -> Seen:
            async with queue.iterator(no_ack=True) as messages:
                got = await anext(messages)
            assert got.routing_key is not None
            assert got.expiration in (None, EXPIRY_SECONDS)
            assert got.delivery_mode is not None
            return Seen(
                got.body,
                tuple(got.routing_key.split(".")),
                got.content_type,
                got.correlation_id,
                got.reply_to,
                got.expiration is not None,
                got.delivery_mode - 1,
                dict(got.headers),
            )

        yield publish, receive


@asynccontextmanager
async def native(broker: TestBroker, words: tuple[str, ...]) -> AsyncIterator[tuple[Publish, Receive]]:
    async with fanlight.connect(broker.url) as client, client.subscribe(".".join(words)) as messages:

        async def publish(to: tuple[str, ...], quality: int) -> None:
            headers = {**NUMBERS, "content-type": "text/plain", "correlation-id": "c1"}
            await client.publish(".".join(to), BODY, headers=headers, reply="to.me", receipt=True)

        async def receive() -> Seen:
            got = await anext(messages)
            headers: dict[str, Any] = dict(got.headers)
            return Seen(
                got.payload,
                got.words,
                headers.pop("content-type", None),
                headers.pop("correlation-id", None),
                got.reply,
                headers=headers,
            )

        yield publish, receive


CLIENTS = {"mqtt": mqtt, "amqp": amqp, "native": native}


@pytest.mark.parametrize("quality", [0, 1])
@pytest.mark.parametrize("receiver", CLIENTS)
@pytest.mark.parametrize("sender", CLIENTS)
async def test_a_message_arrives_in_the_words_of_its_receiver(
    amqp_broker: TestBroker, sender: str, receiver: str, quality: int
) -> None:
    words = sender, receiver, str(quality)
    async with (
        CLIENTS[receiver](amqp_broker, words) as (_, receive),
        CLIENTS[sender](amqp_broker, ("nobody",)) as (publish, _),
    ):
        await soon(publish(words, quality))
        assert await soon(receive()) == expected(sender, receiver, quality, words)
