"""Queues and exchanges (1.6, 1.7): declared, bound, purged, deleted; RabbitMQ's answers to mistakes."""


import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.methods import AnyMethod
from tests.broker.protocols.amqp.world import Peer, World

DECLARE, BIND = (50, 10), (50, 20)


def test_a_queue_is_declared_and_declared_again(world: World) -> None:
    peer = world.channel()
    for _ in range(2):
        assert peer.ask(entity.QueueDeclare(queue="q", durable=True)) == entity.QueueDeclareOk("q", 0, 0)
    assert world.channel().counts() == (0, 0)
    assert world.broker.queues.find("q").options.durable


def test_a_queue_without_a_name_gets_one_and_is_the_one_that_an_empty_name_means(world: World) -> None:
    peer = world.channel()
    name = peer.declare("")
    assert name.startswith("amq.gen-")
    assert len(name) == len("amq.gen-") + 22
    assert peer.ask(entity.QueueBind(exchange="amq.direct")) == entity.QueueBindOk()
    peer.publish(name, b"x", "amq.direct")
    assert peer.ask(entity.QueuePurge()) == entity.QueuePurgeOk(1)


def test_nowait_is_not_answered(world: World) -> None:
    peer = world.channel()
    peer.say(entity.QueueDeclare(queue="q", no_wait=True))
    peer.say(entity.QueueBind(queue="q", exchange="amq.fanout", no_wait=True))
    assert peer.got() == []
    assert peer.counts() == (0, 0)


ERRORS: dict[str, tuple[AnyMethod, int, tuple[int, int]]] = {
    "a missing queue, passive": (entity.QueueDeclare(queue="x", passive=True), 404, DECLARE),
    "a missing exchange, passive": (entity.ExchangeDeclare(exchange="x", passive=True), 404, (40, 10)),
    "no queue declared before": (entity.QueuePurge(), 404, (50, 30)),
    "a bind to a missing exchange": (entity.QueueBind(queue="q", exchange="x"), 404, BIND),
    "a bind of a missing queue": (entity.QueueBind(queue="x", exchange="amq.direct"), 404, BIND),
    "consuming a missing queue": (basic.BasicConsume(queue="x"), 404, (60, 20)),
    "get from a missing queue": (basic.BasicGet(queue="x"), 404, (60, 70)),
    "purging a missing queue": (entity.QueuePurge(queue="x"), 404, (50, 30)),
    "another durable": (entity.QueueDeclare(queue="q", durable=True), 406, DECLARE),
    "another auto-delete": (entity.QueueDeclare(queue="q", auto_delete=True), 406, DECLARE),
    "another argument": (entity.QueueDeclare(queue="q", arguments={"x-max-length": 5}), 406, DECLARE),
    "another exclusive": (entity.QueueDeclare(queue="q", exclusive=True), 405, DECLARE),
    "a reserved name": (entity.QueueDeclare(queue="amq.mine"), 403, DECLARE),
    "a reserved exchange": (entity.ExchangeDeclare(exchange="amq.mine"), 403, (40, 10)),
    "the default exchange": (entity.QueueBind(queue="q", exchange=""), 403, BIND),
    "a malformed argument": (entity.QueueDeclare(queue="n", arguments={"x-message-ttl": "1"}), 406, DECLARE),
    "a negative argument": (entity.QueueDeclare(queue="n", arguments={"x-max-length": -1}), 406, DECLARE),
    "no time to expire": (entity.QueueDeclare(queue="n", arguments={"x-expires": 0}), 406, DECLARE),
    "a priority above 255": (entity.QueueDeclare(queue="n", arguments={"x-max-priority": 256}), 406, DECLARE),
    "an unknown overflow": (entity.QueueDeclare(queue="n", arguments={"x-overflow": "x"}), 406, DECLARE),
    "an unknown type": (entity.QueueDeclare(queue="n", arguments={"x-queue-type": "x"}), 406, DECLARE),
    "a quorum queue that is not durable": (
        entity.QueueDeclare(queue="n", arguments={"x-queue-type": "quorum"}), 406, DECLARE
    ),
    "an acknowledgement of nothing": (basic.BasicAck(7), 406, (60, 80)),
    "an acknowledgement of 0": (basic.BasicAck(0), 406, (60, 80)),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_a_channel_closes_that_alone(world: World, name: str) -> None:
    method, code, ids = ERRORS[name]
    peer = world.channel()
    peer.declare("q")
    peer.ask(first.ChannelOpen(), 2)
    fresh = 2
    peer.say(method, fresh)
    assert peer.error() == (False, code, ids)
    peer.say(entity.QueueDeclare(queue="ignored"), fresh)
    assert peer.got() == []
    peer.say(first.ChannelCloseOk(), fresh)
    assert peer.ask(first.ChannelOpen(), fresh) == first.ChannelOpenOk()
    assert peer.counts("q") == (0, 0)
    assert world.broker.queues.get("ignored") is None


def test_without_an_archive_there_are_no_streams_and_that_is_said(world: World) -> None:
    peer = world.channel()
    peer.say(entity.QueueDeclare(queue="n", durable=True, arguments={"x-queue-type": "stream"}))
    assert peer.error() == (False, 406, DECLARE)
    assert world.broker.queues.get("n") is None


def test_an_exchange_of_an_unknown_type_closes_the_connection(world: World) -> None:
    peer = world.channel()
    peer.say(entity.ExchangeDeclare(exchange="x", type="quantum"))
    assert peer.error() == (True, 503, (40, 10))


def test_unknown_arguments_are_accepted(world: World) -> None:
    peer = world.channel()
    peer.declare("n", arguments={"x-unheard-of": 1})
    peer.declare("n", arguments={"x-unheard-of": 2})


def test_deleting_and_unbinding_what_is_missing_is_no_error(world: World) -> None:
    peer = world.channel()
    assert peer.ask(entity.QueueDelete(queue="x")) == entity.QueueDeleteOk(0)
    assert peer.ask(entity.QueueUnbind(queue="x", exchange="y")) == entity.QueueUnbindOk()
    assert peer.ask(entity.ExchangeDelete(exchange="x")) == entity.ExchangeDeleteOk()


def test_a_queue_is_purged_and_deleted(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    for _ in range(3):
        peer.publish("q", b"x")
    assert peer.ask(entity.QueuePurge(queue="q")) == entity.QueuePurgeOk(3)
    peer.publish("q", b"x")
    assert peer.ask(entity.QueueDelete(queue="q")) == entity.QueueDeleteOk(1)
    assert world.broker.queues.get("q") is None


def test_delete_may_ask_for_a_queue_without_consumers_or_messages(world: World) -> None:
    peer, other = world.channel(), world.channel()
    peer.declare("q")
    other.consume()
    peer.ask(first.ChannelOpen(), 2)
    peer.say(entity.QueueDelete(queue="q", if_unused=True), 2)
    assert peer.error() == (False, 406, (50, 40))
    other.vanish()
    peer.publish("q", b"x")
    peer.ask(first.ChannelOpen(), 3)
    peer.say(entity.QueueDelete(queue="q", if_empty=True), 3)
    assert peer.error() == (False, 406, (50, 40))


# -- whose it is ----------------------------------------------------------------------------------------------------


def exclusive(world: World) -> Peer:
    peer = world.channel()
    peer.declare("mine", exclusive=True)
    return peer


@pytest.mark.parametrize(
    "method",
    [
        entity.QueueDeclare(queue="mine", passive=True), entity.QueueDeclare(queue="mine", exclusive=True),
        entity.QueueDelete(queue="mine"), entity.QueuePurge(queue="mine"),
        entity.QueueBind(queue="mine", exchange="amq.direct"), basic.BasicConsume(queue="mine"),
        basic.BasicGet(queue="mine"),
    ],
)  # fmt: skip
def test_the_exclusive_queue_of_another_connection_is_locked(world: World, method: AnyMethod) -> None:
    exclusive(world)
    other = world.channel()
    other.say(method)
    assert other.error()[:2] == (False, 405)


def test_others_may_publish_to_it_and_it_goes_with_its_connection(world: World) -> None:
    peer = exclusive(world)
    world.channel().publish("mine", b"x")
    assert peer.counts("mine") == (1, 0)
    peer.vanish()
    assert world.broker.queues.get("mine") is None
    exclusive(world)


def test_an_auto_delete_queue_goes_with_its_last_consumer_and_not_before_the_first(world: World) -> None:
    peer, other = world.channel(), world.channel()
    peer.declare("q", auto_delete=True)
    world.pass_time(10)
    peer.ask(basic.BasicGet(queue="q"))
    assert peer.counts() == (0, 0)
    peer.consume()
    other.consume()
    assert peer.ask(basic.BasicCancel("c")) == basic.BasicCancelOk("c")
    assert other.counts() == (0, 1)
    other.vanish()
    assert world.broker.queues.get("q") is None


def test_a_queue_that_is_not_durable_stays_without_consumers(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    peer.consume()
    peer.ask(basic.BasicCancel("c"))
    world.pass_time(100_000)
    assert peer.counts() == (0, 0)


def test_a_queue_expires_when_it_is_not_used(world: World) -> None:
    peer = world.channel()
    peer.declare("q", arguments={"x-expires": 10_000})
    for _ in range(3):
        world.pass_time(6)
        peer.counts()
    world.pass_time(10)
    assert world.broker.queues.get("q") is None


def test_a_bounded_queue_drops_its_oldest(world: World) -> None:
    peer = world.channel()
    peer.declare("q", arguments={"x-max-length": 2})
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    assert [each.body for each in peer.consume()] == [b"2", b"3"]


def test_messages_of_a_queue_have_their_time(world: World) -> None:
    peer = world.channel()
    peer.declare("q", arguments={"x-message-ttl": 5_000})
    peer.publish("q", b"x")
    world.pass_time(6)
    assert peer.counts() == (0, 0)


def test_higher_priorities_come_first(world: World) -> None:
    peer = world.channel()
    peer.declare("q", arguments={"x-max-priority": 5})
    for body, priority in ((b"low", 1), (b"none", None), (b"high", 5), (b"higher", 200)):
        peer.publish("q", body, priority=priority)
    assert [each.body for each in peer.consume()] == [b"high", b"higher", b"low", b"none"]


# -- exchanges ------------------------------------------------------------------------------------------------------


def test_messages_go_where_exchanges_say(world: World) -> None:
    peer = world.channel()
    for queue in ("a", "b", "c"):
        peer.declare(queue)
    peer.ask(entity.ExchangeDeclare(exchange="d", type="direct"))
    peer.ask(entity.ExchangeDeclare(exchange="f", type="fanout"))
    peer.ask(entity.ExchangeDeclare(exchange="t", type="topic"))
    for queue, exchange, key in (("a", "d", "k"), ("b", "f", ""), ("c", "f", ""), ("c", "t", "x.#"), ("b", "d", "k")):
        peer.ask(entity.QueueBind(queue=queue, exchange=exchange, routing_key=key))
    peer.publish("k", b"1", "d")
    peer.publish("", b"2", "f")
    peer.publish("x", b"3", "t")
    peer.publish("y", b"4", "t")
    assert [peer.counts(queue)[0] for queue in ("a", "b", "c")] == [1, 2, 2]
    peer.ask(entity.QueueUnbind(queue="b", exchange="d", routing_key="k"))
    peer.ask(entity.ExchangeDelete(exchange="f"))
    peer.publish("k", b"5", "d")
    assert [peer.counts(queue)[0] for queue in ("a", "b", "c")] == [2, 2, 2]


def test_exchanges_are_bound_to_exchanges_and_a_queue_gets_one_copy(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    for name in ("one", "two"):
        peer.ask(entity.ExchangeDeclare(exchange=name, type="fanout"))
        peer.ask(entity.QueueBind(queue="q", exchange=name))
    assert peer.ask(entity.ExchangeBind(destination="two", source="one")) == entity.ExchangeBindOk()
    peer.publish("", b"x", "one")
    assert peer.counts() == (1, 0)
    assert peer.ask(entity.ExchangeUnbind(destination="two", source="one")) == entity.ExchangeUnbindOk()


def test_a_message_of_several_keys_comes_once_and_bcc_is_not_shown(world: World) -> None:
    peer = world.channel()
    for queue in ("a", "b", "c"):
        peer.declare(queue)
    peer.publish("a", b"x", headers={"CC": ["b", "a", 5], "BCC": ["c"], "kept": 1})
    for queue in ("a", "b", "c"):
        (got,) = peer.consume(queue, tag=queue)
        assert got.method.routing_key == "a"
        assert got.properties is not None
        assert got.properties.headers == {"CC": ["b", "a", 5], "kept": 1}


def test_bindings_go_with_their_queue(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    peer.ask(entity.QueueBind(queue="q", exchange="amq.fanout"))
    peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="a.#"))
    peer.ask(entity.QueueDelete(queue="q"))
    peer.declare("q")
    peer.publish("", b"x", "amq.fanout")
    peer.publish("a", b"x", "amq.topic")
    assert peer.counts() == (0, 0)
    assert len(world.broker.router) == 0
