"""Arguments of queue.declare: what is refused, with RabbitMQ's texts (3.10.8), and what is obeyed."""

from typing import Any

import pytest

from fanlight_broker.core.queue_views import queue_view
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Peer, World

QUORUM = {"x-queue-type": "quorum"}
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"x-message-ttl": "1"}, "'x-message-ttl' for queue 'n' in vhost '/': \"expected integer, got longstr\""),
    ({"x-message-ttl": True}, "'x-message-ttl' for queue 'n' in vhost '/': \"expected integer, got bool\""),
    ({"x-message-ttl": -1}, "'x-message-ttl' for queue 'n' in vhost '/': {value_negative,-1}"),
    ({"x-message-ttl": 2**32}, "'x-message-ttl' for queue 'n' in vhost '/': {value_too_large,4294967296}"),
    ({"x-expires": 0}, "'x-expires' for queue 'n' in vhost '/': {value_zero,0}"),
    ({"x-max-length": -1}, "'x-max-length' for queue 'n' in vhost '/': {value_negative,-1}"),
    ({"x-max-length-bytes": "x"}, "'x-max-length-bytes' for queue 'n' in vhost '/': \"expected integer, got longstr\""),
    ({"x-max-priority": 256}, "'x-max-priority' for queue 'n' in vhost '/': {max_value_exceeded,256}"),
    ({"x-overflow": "x"}, "'x-overflow' for queue 'n' in vhost '/': invalid_overflow"),
    ({"x-overflow": 5}, "'x-overflow' for queue 'n' in vhost '/': {unacceptable_type,signedint}"),
    ({"x-dead-letter-routing-key": "k"},
     "'x-dead-letter-routing-key' for queue 'n' in vhost '/': routing_key_but_no_dlx_defined"),
    ({"x-dead-letter-exchange": "e" * 256}, "'x-dead-letter-exchange' for queue 'n' in vhost '/': more than 255 bytes"),
    ({"x-single-active-consumer": "true"},
     "'x-single-active-consumer' for queue 'n' in vhost '/': {unacceptable_type,longstr}"),
    ({"x-queue-type": "zzz"}, "'x-queue-type' for queue 'n' in vhost '/': \"unsupported queue type 'zzz'\""),
    ({"x-queue-mode": "zz"}, "'x-queue-mode' for queue 'n' in vhost '/': \"unsupported queue mode 'zz'\""),
    ({"x-delivery-limit": 3}, "'x-delivery-limit' for queue 'n' in vhost '/' of queue type rabbit_classic_queue"),
    ({"x-max-age": "1h"}, "'x-max-age' for queue 'n' in vhost '/' of queue type rabbit_classic_queue"),
    ({**QUORUM, "x-max-priority": 5}, "'x-max-priority' for queue 'n' in vhost '/' of queue type rabbit_quorum_queue"),
]  # fmt: skip
HAS: dict[str, Any] = {
    "x-max-length": 5, "x-message-ttl": 7, "x-dead-letter-exchange": "a", "x-unheard-of": 1,
}  # fmt: skip
UNEQUAL: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({**HAS, "x-max-length": 6}, {}, "'x-max-length' for queue 'q' in vhost '/': received '6' but current is '5'"),
    ({**HAS, "x-max-length": "z"}, {}, "'x-max-length' for queue 'q' in vhost '/': received 'z' but current is '5'"),
    ({}, {}, "'x-message-ttl' for queue 'q' in vhost '/': received none but current is the value '7' of type "
     "'signedint'"),
    ({**HAS, "x-single-active-consumer": True}, {}, "'x-single-active-consumer' for queue 'q' in vhost '/': received "
     "the value 'true' of type 'bool' but current is none"),
    ({**HAS, **QUORUM}, {}, "'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' of type 'longstr' "
     "but current is none"),
    (HAS, {"durable": True}, "'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'"),
    (HAS, {"auto_delete": True}, "'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'"),
]  # fmt: skip


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def peer(world: World) -> Peer:
    return world.channel()


def text_of(peer: Peer) -> tuple[int, str]:
    (got,) = peer.got()
    assert isinstance(got.method, first.ChannelClose), got
    return got.method.reply_code, got.method.reply_text


@pytest.mark.parametrize(("arguments", "text"), INVALID)
def test_an_invalid_argument_is_refused_as_rabbitmq_says_it(
    peer: Peer, arguments: dict[str, Any], text: str
) -> None:
    peer.say(entity.QueueDeclare(queue="n", durable=True, arguments=arguments))
    assert text_of(peer) == (406, f"PRECONDITION_FAILED - invalid arg {text}")
    assert peer.world.broker.queues.get("n") is None


@pytest.mark.parametrize(("arguments", "flags", "text"), UNEQUAL)
def test_an_unequal_redeclare_is_refused_as_rabbitmq_says_it(
    peer: Peer, arguments: dict[str, Any], flags: dict[str, bool], text: str
) -> None:
    peer.declare("q", arguments=HAS)
    peer.say(entity.QueueDeclare(queue="q", arguments=arguments, **flags))
    assert text_of(peer) == (406, f"PRECONDITION_FAILED - inequivalent arg {text}")


@pytest.mark.parametrize("flags", [{}, {"durable": True, "exclusive": True}, {"durable": True, "auto_delete": True}])
def test_a_quorum_queue_is_durable_shared_and_stays(peer: Peer, flags: dict[str, bool]) -> None:
    peer.say(entity.QueueDeclare(queue="n", arguments=QUORUM, **flags))
    assert text_of(peer)[0] == 406


@pytest.mark.parametrize("arguments", [
    HAS, {**HAS, "x-queue-type": "classic"}, {**HAS, "x-unheard-of": "another"}, dict(HAS),
])  # fmt: skip
def test_an_equal_redeclare_is_in_order(peer: Peer, arguments: dict[str, Any]) -> None:
    peer.declare("q", arguments=HAS)
    assert peer.declare("q", arguments=arguments) == "q"


def test_all_arguments_are_in_the_view_of_the_queue(peer: Peer) -> None:
    arguments = {"x-unheard-of": "x" * 500, "x-table": {"a": 1}, "x-max-length": 5, "n": None}
    peer.declare("q", arguments={**arguments, **{f"x-{nth}": nth for nth in range(50)}})
    view = queue_view(peer.world.broker.queues.find("q"), 0.0)["arguments"]
    assert isinstance(view, dict)
    assert len(view) == 32
    assert (view["x-max-length"], view["n"], view["x-table"]) == (5, None, "{'a': 1}")
    assert view["x-unheard-of"] == "x" * 100


def test_bytes_are_those_of_bodies(peer: Peer) -> None:
    peer.declare("q", arguments={"x-max-length-bytes": 10})
    for body in (b"12345", b"67890", b"", b"abc"):
        peer.publish("q", body, headers={"long": "x" * 100})
    assert [got.body for got in peer.consume()] == [b"67890", b"", b"abc"]


def test_reject_publish_refuses_by_bodies_as_well(peer: Peer) -> None:
    peer.declare("q", arguments={"x-max-length-bytes": 10, "x-overflow": "reject-publish"})
    peer.ask(entity.ConfirmSelect())
    answers = []
    for body in (b"12345", b"67890", b"1", b""):
        peer.publish("q", body)
        answers += [type(each.method) for each in peer.got()]
    assert answers == [basic.BasicAck, basic.BasicAck, basic.BasicNack, basic.BasicAck]


def test_a_message_without_time_is_for_a_consumer_that_waits(peer: Peer) -> None:
    peer.declare("q", arguments={"x-message-ttl": 0})
    peer.publish("q", b"lost")
    assert peer.counts()[0] == 0
    peer.consume("q", no_ack=True)
    peer.publish("q", b"got")
    assert [got.body for got in peer.got()] == [b"got"]


def test_a_message_expires_when_it_is_the_oldest(peer: Peer) -> None:
    peer.declare("q")
    peer.publish("q", b"stays")
    peer.publish("q", b"short", expiration="1000")
    peer.world.pass_time(2)
    assert peer.counts()[0] == 2
    peer.say(basic.BasicGet(queue="q", no_ack=True))
    assert [got.body for got in peer.got()] == [b"stays"]
    peer.world.pass_time(0.25)
    assert peer.counts()[0] == 0


def test_get_takes_from_a_queue_with_a_single_active_consumer(peer: Peer) -> None:
    peer.declare("q", arguments={"x-single-active-consumer": True})
    peer.publish("q", b"1")
    peer.say(basic.BasicGet(queue="q"))
    assert [got.body for got in peer.got()] == [b"1"]
    peer.consume("q", "active")
    peer.consume("q", "standby")
    for body in (b"2", b"3"):
        peer.publish("q", body)
    assert [got.method.consumer_tag for got in peer.got()] == ["active", "active"]
    peer.say(basic.BasicCancel("active"))
    cancelled, *returned = peer.got()
    assert cancelled.method == basic.BasicCancelOk("active")
    assert [(got.method.consumer_tag, got.body) for got in returned] == [("standby", b"2"), ("standby", b"3")]
    peer.publish("q", b"4")
    assert {got.method.consumer_tag for got in peer.got()} == {"standby"}
    peer.say(basic.BasicConsume(queue="q", consumer_tag="alone", exclusive=True))
    assert text_of(peer) == (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")


def test_consumers_of_a_higher_priority_come_first_as_long_as_they_have_room(peer: Peer) -> None:
    peer.declare("q")
    peer.ask(basic.BasicQos(prefetch_count=2))
    for tag, priority in (("low", -5), ("none", None), ("high", 7), ("high too", 7)):
        peer.consume("q", tag, arguments={} if priority is None else {"x-priority": priority})
    for nth in range(8):
        peer.publish("q", b"%d" % nth)
    got = peer.got()
    assert [each.method.consumer_tag for each in got] == ["high", "high too"] * 2 + ["none"] * 2 + ["low"] * 2
    peer.publish("q", b"next")
    peer.say(basic.BasicAck(got[6].method.delivery_tag))
    assert [each.method.consumer_tag for each in peer.got()] == ["low"]
    for each in got[:6:2]:
        peer.say(basic.BasicAck(each.method.delivery_tag))
    peer.publish("q", b"again")
    assert [each.method.consumer_tag for each in peer.got()] in (["high"], ["high too"])


@pytest.mark.parametrize("priority", ["5", True])
def test_a_priority_of_a_consumer_is_an_integer(peer: Peer, priority: Any) -> None:
    peer.declare("q")
    peer.say(basic.BasicConsume(queue="q", arguments={"x-priority": priority}))
    kind = "bool" if priority is True else "longstr"
    assert text_of(peer) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got {kind}\"",
    )  # fmt: skip
