"""Direct reply-to: answers without a queue that the client declares."""

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Got, Peer, World

REPLIES = "amq.rabbitmq.reply-to"


def asked(world: World) -> tuple[Peer, Peer, str]:
    """Client, server, and the address in the request that the server got."""
    client, server = world.channel(), world.channel()
    server.declare("q")
    server.consume("q", "s", no_ack=True)
    client.consume(REPLIES, "c", no_ack=True)
    client.publish("q", b"question", reply_to=REPLIES, correlation_id="7")
    (request,) = server.got()
    assert request.properties is not None
    assert request.properties.correlation_id == "7"
    return client, server, str(request.properties.reply_to)


def test_an_answer_to_the_default_exchange_comes(world: World) -> None:
    client, server, address = asked(world)
    assert address.startswith(REPLIES + ".")
    assert len(address) > len(REPLIES) + 20
    server.publish(address, b"answer", correlation_id="7")
    (answer,) = client.got()
    assert answer.method == basic.BasicDeliver("c", 1, False, "", address)
    assert (answer.properties.correlation_id, answer.body) == ("7", b"answer")
    server.publish(address, b"another")
    assert [each.body for each in client.got()] == [b"another"]


def test_each_channel_has_an_address_of_its_own(world: World) -> None:
    assert asked(world)[2] != asked(world)[2]


@pytest.mark.parametrize(
    ("before", "method", "text"),
    [
        (False, basic.BasicConsume(queue=REPLIES), "reply consumer cannot acknowledge"),
        (True, basic.BasicConsume(queue=REPLIES, no_ack=True), "reply consumer already set"),
    ],
)
def test_mistakes_close_the_channel(world: World, before: bool, method: object, text: str) -> None:
    peer = world.channel()
    if before:
        peer.consume(REPLIES, "c", no_ack=True)
    assert peer.ask(method) == first.ChannelClose(406, f"PRECONDITION_FAILED - {text}", 60, 20)
    assert len(world.broker.queues) == 0


def test_a_request_before_consuming_closes_the_channel(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    peer.publish("q", b"x", reply_to=REPLIES)
    closed = first.ChannelClose(406, "PRECONDITION_FAILED - fast reply consumer does not exist", 60, 40)
    assert peer.method() == closed


@pytest.mark.parametrize("how", ["cancel", "channel", "vanish"])
def test_the_address_ends_with_its_consumer(world: World, how: str) -> None:
    client, server, address = asked(world)
    assert server.ask(entity.QueueDeclare(queue=address, passive=True)) == entity.QueueDeclareOk(address, 0, 1)
    if how == "cancel":
        client.ask(basic.BasicCancel("c"))
    elif how == "channel":
        client.ask(first.ChannelClose(200, ""))
    else:
        client.vanish()
    server.publish(address, b"late", mandatory=True)
    (returned,) = server.got()
    assert isinstance(returned.method, basic.BasicReturn)
    assert [queue.name for queue in world.broker.queues] == ["q"]
    closed = server.ask(entity.QueueDeclare(queue=address, passive=True))
    assert (closed.reply_code, closed.class_id, closed.method_id) == (404, 50, 10)


def test_after_cancel_it_may_begin_anew(world: World) -> None:
    peer = world.channel()
    peer.consume(REPLIES, "c", no_ack=True)
    peer.ask(basic.BasicCancel("c"))
    peer.consume(REPLIES, "d", no_ack=True)
    assert len(world.broker.queues) == 1


def test_the_name_itself_is_declared_by_everybody(world: World) -> None:
    peer = world.channel()
    assert peer.ask(entity.QueueDeclare(queue=REPLIES, passive=True)) == entity.QueueDeclareOk(REPLIES, 0, 1)


def test_nobody_else_consumes_the_answers(world: World) -> None:
    _, server, address = asked(world)
    server.say(basic.BasicConsume(queue=address))
    assert server.error() == (False, 405, (60, 20))


def test_a_client_may_answer_itself(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    peer.consume(REPLIES, "c", no_ack=True)
    peer.publish("q", b"x", reply_to=REPLIES)
    peer.say(basic.BasicGet(queue="q", no_ack=True))
    (got,) = peer.got()
    assert isinstance(got, Got)
    peer.publish(str(got.properties.reply_to), b"answer")
    assert [each.body for each in peer.got()] == [b"answer"]
