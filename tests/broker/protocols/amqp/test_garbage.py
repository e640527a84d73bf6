"""The garbage collector does not look at channels and consumers as long as they are open, and frees them afterwards.

10,000 connections with a channel and a consumer each were 260,000 things to it, and its full pass took 0.2 s.
"""

import gc
import weakref
from collections.abc import Callable

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Peer, World

MANY = 50


class Name(str):
    """A text that a test can watch, of what refers to it."""

    __slots__ = ("__weakref__",)


def looked_at() -> int:
    """How many of the broker's objects the garbage collector looks at, and containers of whatever kind."""
    gc.collect()
    ours = (each for each in gc.get_objects() if not str(type(each).__module__).startswith(("tests.", "_pytest")))
    return sum(1 for _ in ours)


def test_channels_and_consumers_are_no_work_for_the_collector() -> None:
    peer = World().channel()
    peer.declare()
    peer.consume()
    before = looked_at()
    for number in range(2, MANY + 2):
        peer.ask(first.ChannelOpen(), number)
        peer.ask(basic.BasicConsume(queue="q", consumer_tag="c"), number)
    assert looked_at() - before < MANY / 10


def close_channel(peer: Peer) -> None:
    peer.ask(first.ChannelClose(200, ""))


def break_channel(peer: Peer) -> None:
    peer.ask(basic.BasicAck(99))
    peer.say(first.ChannelCloseOk())


def close_connection(peer: Peer) -> None:
    peer.ask(first.ConnectionClose(200, ""), 0)


ENDS: dict[str, Callable[[Peer], object]] = {
    "the channel is closed": close_channel,
    "the broker closes it": break_channel,
    "the connection is closed": close_connection,
    "the connection breaks": Peer.vanish,
}


@pytest.mark.parametrize("together", [False, True], ids=["", "global prefetch"])
@pytest.mark.parametrize("end", ENDS)
def test_a_channel_that_has_ended_is_freed_with_its_consumers(end: str, together: bool) -> None:
    world = World()
    peer = world.channel()
    peer.declare()
    if together:
        peer.ask(basic.BasicQos(0, 1, True))
    peer.consume()
    peer.publish("q", b"x")
    peer.got()
    (channel,) = peer.protocol._channels.values()
    channel.entities.last, (consumer,) = Name("q"), channel.consumers._by_number.values()
    consumer.tag = Name("c")
    watched = [weakref.ref(channel.entities.last), weakref.ref(consumer.tag)]
    del channel, consumer
    ENDS[end](peer)
    world.turn()
    gc.collect()
    assert [each() for each in watched] == [None, None]


@pytest.mark.parametrize("end", [
    basic.BasicCancel("c"), entity.QueueDelete(queue="q"), entity.QueuePurge(queue="q"),
])  # fmt: skip
def test_a_consumer_that_has_ended_is_freed_while_its_channel_goes_on(end: object) -> None:
    world = World()
    peer = world.channel()
    peer.declare()
    peer.consume()
    (channel,) = peer.protocol._channels.values()
    (consumer,) = channel.consumers._by_number.values()
    consumer.tag = Name("c")
    watched = weakref.ref(consumer.tag)
    del channel, consumer
    peer.say(end)
    world.turn()
    gc.collect()
    assert (watched() is None) == (not isinstance(end, entity.QueuePurge))
