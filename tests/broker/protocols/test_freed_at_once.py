"""A connection that has ended is freed by its last reference, without the garbage collector.

A host may open and end thousands in a second. What the collector alone finds is kept until its next full pass, which
goes through all of it in one step.
"""

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

import pytest

from fanlight_broker import event_log
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER
from fanlight_broker.protocols.amqp.methods import method_frame
from tests.broker.net.test_garbage import NoSink
from tests.broker.protocols.amqp import world as amqp
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native

MANY = 20
# A session and its subscriber refer to each other, whatever has ended: they are for the collector. So is the share of a
# principal of whom nobody is there any more.
SESSION = {"Origin", "Session", "Share", "Subscriber", "TagSet", "Window"}
CLOSE = first.ConnectionClose(200, "bye", 0, 0)
GET = basic.BasicGet(queue="x")
REPLIES = basic.BasicConsume(queue="amq.rabbitmq.reply-to", no_ack=True)
OWN = entity.QueueDeclare(queue="x", exclusive=True)
# What a client of AMQP says before it is gone: on channel 1, or octets.
AMQP: dict[str, tuple[Any, ...]] = {
    "nothing": (),
    "close": (method_frame(0, CLOSE),),
    "a channel closed": (first.ChannelClose(200, "bye", 0, 0),),
    "a consumer": (OWN, basic.BasicConsume(queue="x"), amqp.published("x", b"a")),
    "a consumer cancelled": (OWN, basic.BasicConsume(queue="x", consumer_tag="c"), basic.BasicCancel("c")),
    "a get": (OWN, amqp.published("x", b"a"), GET),
    "a queue deleted under its consumer": (
        entity.QueueDeclare(queue="x"), amqp.published("x", b"a"), GET, amqp.published("x", b"b"),
        basic.BasicConsume(queue="x"), entity.QueueDelete(queue="x"),
    ),
    "a prefetch of the channel": (
        OWN, basic.BasicQos(0, 1, True), basic.BasicConsume(queue="x"), amqp.published("x", b"a") * 2,
    ),
    "a transaction": (OWN, entity.TxSelect(), amqp.published("x", b"a")),
    "a direct reply": (REPLIES,),
    "half a content": (amqp.published("x", b"a")[:-9],),
    "an error of the channel": (basic.BasicAck(77),),
    "an error, closed": (basic.BasicAck(77), first.ChannelCloseOk()),
    "an error of the connection": (method_frame(1, basic.BasicPublish(routing_key="x")) * 2,),
    "no such channel": (method_frame(7, GET),),
    "no method": (method_frame(1, GET)[:-2] + b"xx",),
    "no frame": (b"\x07\0\0\0\0\0\0\0",),
}  # fmt: skip


@pytest.fixture
def uncollected() -> Iterator[None]:
    before = event_log.use(NoSink())
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    event_log.use(before)


def seen() -> Counter[str]:
    """The broker's objects and the frames of exceptions, by their types. Those of an open connection are hidden."""
    kinds = (type(each) for each in gc.get_objects())
    ours = [each for each in kinds if each.__module__.startswith("fanlight_broker.") or each is FrameType]
    return Counter(each.__qualname__ for each in ours)


def check_freed(world: Any, connect: Callable[[], Any], kept: Collection[str] = ()) -> None:
    """connect: opens a connection, and does something with it. It is broken off here."""
    alive: list[weakref.ref[Any]] = []

    def one() -> None:
        peer = connect()
        peer.vanish()
        alive.append(weakref.ref(peer.protocol))
        world.peers.clear()
        del peer.protocol  # as a transport does that has ended

    one()  # what is made once
    before = seen()
    for _ in range(MANY):
        one()
        world.turn()
    assert not [each for each in alive if each() is not None]
    more = seen() - before
    left = sorted(name for name, count in more.items() if count >= MANY / 2 and name not in kept)
    assert not left


@pytest.mark.parametrize("said", AMQP.values(), ids=AMQP.keys())
def test_a_connection_of_amqp_is_freed_at_its_end(said: tuple[Any, ...], uncollected: None) -> None:
    world = amqp.World()

    def connect() -> amqp.Peer:
        peer = world.channel()
        for each in said:
            if isinstance(each, bytes):
                peer.send(each)
            else:
                peer.say(each)
        return peer

    check_freed(world, connect)


@pytest.mark.parametrize("octets", [
    b"", b"AMQP\0\0\1\1", PROTOCOL_HEADER, PROTOCOL_HEADER + method_frame(0, amqp.PLAIN._replace(response=b"x")),
], ids=["silent", "another version", "no login", "refused"])  # fmt: skip
def test_one_that_never_logs_in_is_freed_at_its_end(octets: bytes, uncollected: None) -> None:
    world = amqp.World()

    def connect() -> amqp.Peer:
        peer = world.open()
        peer.send(octets)
        return peer

    check_freed(world, connect)


def by_mqtt(world: mqtt.World) -> mqtt.Peer:
    peer = world.connect("c")
    peer.subscribe("a/+", qos=1)
    peer.publish("a/b", b"x", qos=1)
    return peer


def by_mqtt_with_an_error(world: mqtt.World) -> mqtt.Peer:
    peer = world.connect("c")
    peer.send(b"\xf7\xff\xff")
    return peer


def natively(world: native.World) -> native.Peer:
    peer = world.connect()
    peer.say(6, 1, 1, "a.*")
    peer.send(native.publish("a.b", b"x"))
    return peer


def natively_with_an_error(world: native.World) -> native.Peer:
    peer = world.connect()
    peer.send(b"\0\0\0\1\xc1")
    return peer


@pytest.mark.parametrize(("made", "connect"), [
    (mqtt.World, by_mqtt), (mqtt.World, by_mqtt_with_an_error),
    (native.World, natively), (native.World, natively_with_an_error),
], ids=["mqtt", "mqtt, an error", "native", "native, an error"])  # fmt: skip
def test_a_connection_of_another_protocol_is_freed_at_its_end(
    made: Callable[[], Any], connect: Callable[[Any], Any], uncollected: None
) -> None:
    world = made()
    check_freed(world, lambda: connect(world), SESSION if made is mqtt.World else ())
