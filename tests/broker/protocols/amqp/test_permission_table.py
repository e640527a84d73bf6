"""The table of decisions of the other protocols (tests/broker/test_permission_decisions.py) in AMQP: 403 for each no.

A client publishes to amq.topic, and binds a queue of its own to it. Differences follow from the protocol: rules for
native or MQTT clients are not about it, it has no client identifier of its own (%c), and a queue gets all that its
filter matches or is not bound, where the others may subscribe to a part.
"""

from typing import Any

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.core.reference import Reference, allow, deny
from tests.broker.protocols.amqp.world import PLAIN, Peer, World
from tests.broker.protocols.permitted import Known
from tests.broker.test_permission_decisions import GROUPS, ROWS, RULES

QUEUES = (allow("queue subscribe", "$queue/#"), allow("queue", "# $SYS/# $inbox/#"))
OTHERS = {  # the decisions that are others here
    ("alice", "native/a"): "no", ("alice", "mqtt/a"): "no", ("bob", "native/a"): "no", ("-", "native/a"): "no",
    ("alice", "old/mqtt/a"): "yes",
    ("alice", "commands/alice/go"): "no", ("alice", "commands/alice/+"): "no", ("bob", "commands/bob/stop"): "no",
    ("alice", "plant/#"): "no", ("root", "plant/#"): "no", ("root", "#"): "no",  # plant/locked is in each
}  # fmt: skip


class KnownPeer(Known, Peer):
    """Its user is verified."""


def known(world: World, user: str, *rules: object) -> Peer:
    """A client with channel 1 open, under these rules."""
    world.groups, world.own = GROUPS, {}  # type: ignore[attr-defined]
    world.broker.use_permissions(Reference(*rules))  # type: ignore[arg-type]
    peer = KnownPeer(world)
    if user == "-":
        peer.shake_hands(PLAIN._replace(mechanism="ANONYMOUS", response=b""))
    else:
        peer.shake_hands(PLAIN._replace(response=f"\0{user}\0x".encode()))
    assert peer.ask(first.ChannelOpen()) == first.ChannelOpenOk()
    return peer


@pytest.mark.parametrize(("user", "action", "topic", "expected"), ROWS)
def test_decision(user: str, action: str, topic: str, expected: str) -> None:
    expected = OTHERS.get((user, topic), expected)
    permitted = expected == "yes"
    world = World()
    peer = known(world, user, *QUEUES, *RULES)
    key = topic.replace("/", ".").replace("+", "*")
    if action == "subscribe":
        peer.declare("own", exclusive=True)
        answer = peer.ask(entity.QueueBind(queue="own", exchange="amq.topic", routing_key=key))
        ids = (50, 20)
        assert (answer == entity.QueueBindOk()) == permitted, answer
    else:
        peer.ask(entity.ConfirmSelect())
        peer.publish(key.replace("*", "p").replace("#", "p"), b"x", "amq.topic")
        answer, ids = peer.method(), (60, 40)
        assert (answer == basic.BasicAck(1)) == permitted, answer
        assert world.broker.ledger.messages_in == permitted
    if not permitted:
        assert (answer.reply_code, answer.class_id, answer.method_id) == (403, *ids)
        assert answer.reply_text.startswith("ACCESS_REFUSED - ")
    assert peer.close_reason is None


@pytest.mark.parametrize(
    ("rules", "method", "permitted"),
    [
        ("", entity.QueueDeclare(queue="new"), False),
        ("", entity.QueueDeclare(queue="q", passive=True), True),
        ("queue $queue/new", entity.QueueDeclare(queue="new"), True),
        ("queue $queue/new", entity.QueueDeclare(queue="other"), False),
        ("queue $queue/#", entity.QueueDelete(queue="q"), True),
        ("subscribe $queue/#", entity.QueueDelete(queue="q"), False),
        ("subscribe $queue/q", basic.BasicConsume(queue="q", consumer_tag="c"), True),
        ("queue $queue/q", basic.BasicConsume(queue="q", consumer_tag="c"), False),
        ("subscribe $queue/q", basic.BasicGet(queue="q"), True),
        ("", basic.BasicGet(queue="q"), False),
        ("", entity.QueuePurge(queue="q"), False),
        ("", basic.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True), True),
        ("queue $exchange/e", entity.ExchangeDeclare(exchange="e", type="fanout"), True),
        ("queue $exchange/f", entity.ExchangeDeclare(exchange="e", type="fanout"), False),
        ("queue $queue/q", entity.QueueBind(queue="q", exchange="amq.direct", routing_key="k"), False),
    ],
)
def test_queues_and_exchanges(rules: str, method: object, permitted: bool) -> None:
    world = World()
    world.channel().declare("q")
    action, _, filters = rules.partition(" ")
    peer = known(world, "alice", allow("connect"), *([allow(action, filters)] if rules else []))
    answer = peer.ask(method)
    if permitted:
        assert not isinstance(answer, first.ChannelClose), answer
    else:
        assert answer.reply_code == 403, answer


def test_publishing_to_the_default_exchange_is_about_amq_default() -> None:
    world = World()
    world.channel().declare("q")
    denied = deny("publish", "$exchange/amq%2Edefault/r")
    peer = known(world, "alice", allow("connect"), denied, allow("publish", "$exchange/#"))
    peer.ask(entity.ConfirmSelect())
    peer.publish("q", b"x")
    assert peer.method() == basic.BasicAck(1)
    peer.publish("r", b"x")
    assert peer.error() == (False, 403, (60, 40))


@pytest.mark.parametrize(("rules", "alternate", "permitted"), [
    ((allow("subscribe", "$exchange/e/#"), allow("publish", "$exchange/a/#")), "a", True),
    ((allow("subscribe", "$exchange/e/#"), allow("publish", "$exchange/b/#")), "a", False),
    ((allow("subscribe", "$exchange/e/#"), allow("publish", "$exchange/a/k")), "a", False),  # not all of its keys
    ((allow("publish", "$exchange/a/#"),), "a", False), ((allow("subscribe", "#"), allow("publish", "#")), "a", True),
    ((allow("subscribe", "$exchange/e/#"), allow("publish", "a/#")), "amq.topic", False),
])  # fmt: skip
def test_an_alternate_exchange_is_one_that_the_client_may_publish_to(
    rules: tuple[Any, ...], alternate: str, permitted: bool
) -> None:
    peer = known(World(), "alice", allow("connect"), allow("queue", "$exchange/e"), *rules)
    answer = peer.ask(entity.ExchangeDeclare(exchange="e", type="fanout", arguments={"alternate-exchange": alternate}))
    assert (answer == entity.ExchangeDeclareOk()) == permitted, answer
    assert permitted or answer.reply_code == 403
