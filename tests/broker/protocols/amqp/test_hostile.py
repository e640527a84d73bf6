"""Clients that send whatever they like, in frames that are in order or nearly so: the broker goes on for the others."""

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.methods import AnyMethod, method_frame
from tests.broker.protocols.amqp.amqp_values import basic_properties, methods
from tests.broker.protocols.amqp.world import World, content, published

names = st.sampled_from(["q"] * 8 + ["", "r", "amq.topic", "amq.fanout", "x"])
tags = st.integers(0, 6)
flags = st.booleans()


def some(kind: type[AnyMethod], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[AnyMethod]:
    """Methods with these fields drawn, and the others at their defaults."""
    return st.fixed_dictionaries(fields).map(lambda drawn: kind(**drawn))


# What finds something to act upon, unlike methods whose fields are anything.
likely: st.SearchStrategy[AnyMethod] = st.one_of(
    some(entity.QueueDeclare, queue=names, exclusive=flags, auto_delete=flags, no_wait=flags),
    some(entity.QueueBind, queue=names, exchange=names, routing_key=names),
    some(entity.QueueUnbind, queue=names, exchange=names, routing_key=names),
    some(entity.QueueDelete, queue=names, if_empty=flags),
    some(entity.QueuePurge, queue=names),
    some(entity.ExchangeDeclare, exchange=names, type=st.sampled_from(["fanout", "topic"]), auto_delete=flags),
    some(entity.ExchangeDelete, exchange=names),
    some(basic.BasicConsume, queue=names, consumer_tag=names, no_ack=flags, exclusive=flags),
    some(basic.BasicCancel, consumer_tag=names),
    some(basic.BasicGet, queue=names, no_ack=flags),
    some(basic.BasicQos, prefetch_count=st.integers(0, 3), global_=flags),
    some(basic.BasicConsume, queue=st.just("amq.rabbitmq.reply-to"), consumer_tag=names, no_ack=st.just(True)),
    st.sampled_from([entity.TxSelect(), entity.TxCommit(), entity.TxCommit(), entity.TxRollback()]),
    some(basic.BasicAck, delivery_tag=tags, multiple=flags),
    some(basic.BasicNack, delivery_tag=tags, multiple=flags, requeue=flags),
    some(basic.BasicReject, delivery_tag=tags, requeue=flags),
    st.just(basic.BasicRecover(True)),
    st.just(entity.ConfirmSelect()),
)
numbers = st.integers(1, 3)
contents = st.builds(published, names, st.binary(max_size=20), st.sampled_from(["", "", "amq.fanout"]), numbers)
anew = numbers.map(  # valid on a channel that the broker has closed, too
    lambda number: method_frame(number, first.ChannelClose(200, "")) + method_frame(number, first.ChannelOpen())
)
requests = st.tuples(numbers, likely).map(lambda drawn: method_frame(*drawn))
frames = st.one_of(
    likely.map(lambda method: method_frame(1, method)), contents,
    methods.map(lambda method: method_frame(1, method)), methods.map(lambda method: method_frame(0, method)),
    st.tuples(st.binary(max_size=20), basic_properties).map(lambda drawn: content(1, *drawn)),
)
sequences = st.lists(st.one_of(requests, requests, contents, anew), max_size=25)


@settings(deadline=None, max_examples=200)
@given(sent=sequences)
def test_any_sequence_of_sensible_requests_leaves_nothing_behind(sent: list[bytes]) -> None:
    world = World()
    peer = world.channel()
    peer.say(first.ChannelOpen(), 2)
    peer.say(first.ChannelOpen(), 3)
    peer.say(entity.QueueDeclare(queue="q"))
    peer.publish("q", b"first")
    for octets in sent:
        peer.send(octets)
    world.pass_time(1)
    peer.vanish()
    assert world.counts.channels == 0
    for queue in world.broker.queues:
        assert (queue.consumers, queue.inside.windows) == ({}, [])
        assert not queue.subscriber.gone
    assert all(queue.unused_seconds > 0 for queue in world.broker.queues)
    assert world.broker.ledger.inboxes.used == 0
    assert world.channel().declare("alive") == "alive"


@settings(deadline=None, max_examples=200)
@given(sent=st.lists(frames, max_size=10), place=st.integers(0, 2_000), octet=st.integers(0, 255))
def test_methods_with_any_fields_and_changed_bytes_close_no_other_connection(
    sent: list[bytes], place: int, octet: int
) -> None:
    world = World()
    peer, other = world.channel(), world.channel()
    octets = bytearray(b"".join(sent))
    if octets:
        octets[place % len(octets)] = octet
    peer.send(bytes(octets))
    world.pass_time(1)
    assert other.declare("alive") == "alive"
    peer.got()
    peer.vanish()
    assert world.counts.channels == 1


@pytest.mark.parametrize("method", [
    entity.QueueDeclare(queue="new"), entity.QueueBind(queue="q", exchange="amq.headers"),
    entity.QueueUnbind(queue="q", exchange="amq.headers"), entity.ExchangeDeclare(exchange="new", type="topic"),
    entity.ExchangeBind(destination="amq.fanout", source="amq.headers"),
    entity.ExchangeUnbind(destination="amq.fanout", source="amq.headers"), basic.BasicConsume(queue="q"),
], ids=lambda method: type(method).__name__)  # fmt: skip
@pytest.mark.parametrize("most", [
    {"a": [None] * 999}, {"a": {"b": [[True, 1.0]] * 332, "c": 1, "d": 1}}, {f"{at}": at for at in range(1_000)},
], ids=["array", "nested", "table"])  # fmt: skip
def test_arguments_have_a_thousand_values_at_most(method: AnyMethod, most: dict[str, Any]) -> None:
    """A frame has room for 120,000, and each takes some microseconds that nobody else can have."""
    world = World()
    peer = world.channel()
    peer.declare("q")
    ok = peer.ask(method._replace(arguments=most))
    assert not isinstance(ok, first.ChannelClose | first.ConnectionClose), ok
    refused = peer.ask(method._replace(arguments={**most, "more": 1}))
    assert isinstance(refused, first.ChannelClose)
    assert (refused.reply_code, refused.reply_text) == (
        406, "PRECONDITION_FAILED - arguments with more than 1000 values",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["asked", "other"])
def test_a_header_with_a_large_array_is_not_walked_through(name: str) -> None:
    """No binding can have so many values, so it can only be asked whether the header is there."""
    world = World()
    peer = world.channel()
    for queue, arguments in ("there", {"asked": None}), ("equal", {"asked": [1]}), ("any", {"x-match": "all"}):
        peer.declare(queue)
        peer.ask(entity.QueueBind(queue=queue, exchange="amq.headers", arguments=arguments))
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    message = published("", b"x", "amq.headers", headers={name: [None] * 100_000})
    sys.setprofile(count)
    try:
        peer.send(message)
    finally:
        sys.setprofile(None)
    assert calls < 10_000
    assert [peer.counts(queue)[0] for queue in ("there", "equal", "any")] == [name == "asked", 0, 1]
