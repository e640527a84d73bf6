"""Every path by which a message can reach an AMQP client, tried with rules that allow it and that deny it.

The other protocols' are in tests/broker/test_permission_paths.py. Here `p` publishes and makes what is between, and `r`
reads. A path does what it can, stops at the first 403, and says what `r` got.
"""

from collections.abc import Callable

import pytest

from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.exchanges.exchange import Destinations
from fanlight_broker.protocols.amqp.fields import SYNTAX
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.methods import AnyMethod
from fanlight_broker.protocols.amqp.permitted_keys import check_more_keys, permitted_when_due
from fanlight_broker.wire.message import Message
from tests.broker.core.reference import Reference, allow, deny
from tests.broker.protocols.amqp.test_permission_table import KnownPeer
from tests.broker.protocols.amqp.world import PLAIN, Got, Peer, World
from tests.broker.protocols.native import world as native

ALL = allow("all", "# $SYS/# $inbox/#")
REPLIES = "amq.rabbitmq.reply-to"


class Refused(Exception):
    """403: the path ends here."""


class PathWorld(World):
    plain = False

    def user(self, name: str) -> Peer:
        peer = KnownPeer(self)
        peer.shake_hands(PLAIN._replace(response=f"\0{name}\0x".encode()))
        assert peer.ask(first.ChannelOpen()) == first.ChannelOpenOk()
        return peer


class Ends:
    """p and r, and what an operator has made before them: queue `q`, exchange `e`."""

    def __init__(self, *rules: object) -> None:
        self.world = PathWorld()
        self.world.groups, self.world.own = {}, {}  # type: ignore[attr-defined]
        self.world.broker.use_permissions(Reference(ALL))
        self.boss, self.p, self.r = (self.world.user(name) for name in ("boss", "p", "r"))
        for each in ("q", "other"):
            self.boss.declare(each)
        do(self.boss, entity.ExchangeDeclare(exchange="e", type="topic"))
        do(self.boss, entity.QueueBind(queue="q", exchange="e", routing_key="#"))
        self.world.broker.use_permissions(Reference(*rules, ALL))  # type: ignore[arg-type]
        self.world.turn()

    def publish(self, key: str, exchange: str = "", **properties: object) -> None:
        do(self.p, entity.ConfirmSelect())
        self.p.publish(key, b"secret", exchange, **properties)
        checked(self.p)

    def read(self, queue: str = "q") -> list[bytes]:
        found = do(self.r, basic.BasicConsume(queue=queue, consumer_tag="r", no_ack=True))
        return [each.body for each in found if isinstance(each.method, basic.BasicDeliver)]


def do(peer: Peer, method: AnyMethod) -> list[Got]:
    """What came. Raises Refused."""
    peer.say(method)
    return checked(peer)


def checked(peer: Peer) -> list[Got]:
    found = peer.got()
    for each in found:
        if isinstance(each.method, first.ChannelClose):
            assert each.method.reply_code == 403, each.method
            raise Refused
    return found


# -- the paths --------------------------------------------------------------------------------------------------------


def consumed(ends: Ends) -> list[bytes]:
    ends.publish("q")
    return ends.read()


def fetched(ends: Ends) -> list[bytes]:
    ends.publish("q")
    found = do(ends.r, basic.BasicGet(queue="q", no_ack=True))
    return [each.body for each in found if isinstance(each.method, basic.BasicGetOk)]


def through_an_exchange(ends: Ends) -> list[bytes]:
    ends.publish("k", "e")
    return ends.read()


def by_cc(ends: Ends) -> list[bytes]:
    ends.publish("other", headers={"CC": ["q"]})
    return ends.read()


def by_bcc(ends: Ends) -> list[bytes]:
    ends.publish("other", headers={"BCC": ["q"]})
    return ends.read()


def in_a_transaction(ends: Ends) -> list[bytes]:
    do(ends.p, entity.TxSelect())
    ends.p.publish("q", b"secret")
    checked(ends.p)
    do(ends.p, entity.TxCommit())
    return ends.read()


def by_an_exchange_of_its_own(ends: Ends) -> list[bytes]:
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="fanout"))
    do(ends.p, entity.ExchangeBind(destination="e", source="mine"))
    ends.publish("k", "mine")
    return ends.read()


def by_a_queue_that_is_bound_elsewhere(ends: Ends) -> list[bytes]:
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="fanout"))
    do(ends.p, entity.QueueBind(queue="q", exchange="mine"))
    ends.publish("k", "mine")
    return ends.read()


def by_an_alternate_exchange(ends: Ends) -> list[bytes]:
    """An exchange of the publisher's own, without bindings, whose messages all go to `e`."""
    arguments = {"alternate-exchange": "e"}
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="fanout", arguments=arguments))
    ends.publish("k", "mine")
    return ends.read()


def delayed(ends: Ends) -> list[bytes]:
    arguments = {"x-delayed-type": "fanout"}
    do(ends.boss, entity.ExchangeDeclare(exchange="late", type="x-delayed-message", arguments=arguments))
    do(ends.boss, entity.QueueBind(queue="q", exchange="late"))
    ends.publish("k", "late", headers={"x-delay": 1_000})
    ends.world.pass_time(2)
    return ends.read()


def bound_to_the_exchange_by_the_reader(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="e", routing_key="#"))
    ends.publish("k", "e")
    return ends.read("own")


def an_exchange_of_the_reader_behind_it(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.ExchangeDeclare(exchange="readers", type="fanout"))
    do(ends.r, entity.ExchangeBind(destination="readers", source="e", routing_key="#"))
    do(ends.r, entity.QueueBind(queue="own", exchange="readers"))
    ends.publish("k", "e")
    return ends.read("own")


def bound_to_topics(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    ends.publish("a.b", "amq.topic")
    return ends.read("own")


def an_exchange_behind_topics(ends: Ends) -> list[bytes]:
    """For what a client of another protocol publishes."""
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.ExchangeDeclare(exchange="readers", type="fanout"))
    do(ends.r, entity.ExchangeBind(destination="readers", source="amq.topic", routing_key="a.#"))
    do(ends.r, entity.QueueBind(queue="own", exchange="readers"))
    writer = native.Peer(ends.world)  # type: ignore[arg-type]
    writer.send(native.frame(1, 1, {}), native.publish("a.b", b"secret"))
    return ends.read("own")


def topics_behind_an_exchange_of_its_own(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="fanout"))
    do(ends.p, entity.ExchangeBind(destination="amq.topic", source="mine"))
    ends.publish("a.b", "mine")
    return ends.read("own")


def topics_as_an_alternate_exchange(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    arguments = {"alternate-exchange": "amq.topic"}
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="fanout", arguments=arguments))
    ends.publish("a.b", "mine")
    return ends.read("own")


def an_answer(ends: Ends) -> list[bytes]:
    """By direct reply-to: `r` asks, `p` answers."""
    ends.r.consume(REPLIES, no_ack=True)
    ends.r.publish("other", b"question", reply_to=REPLIES)
    checked(ends.r)
    ends.boss.say(basic.BasicGet(queue="other", no_ack=True))
    (request,) = ends.boss.got()
    assert request.properties is not None
    ends.publish(str(request.properties.reply_to))
    return [each.body for each in ends.r.got()]


def delayed_and_led_to_topics_meanwhile(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    arguments = {"x-delayed-type": "fanout"}
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="x-delayed-message", arguments=arguments))
    ends.publish("a.b", "mine", headers={"x-delay": 1_000})
    do(ends.p, entity.ExchangeBind(destination="amq.topic", source="mine"))
    ends.world.pass_time(2)
    return ends.read("own")


def delayed_before_topics(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    arguments = {"x-delayed-type": "fanout"}
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="x-delayed-message", arguments=arguments))
    do(ends.p, entity.ExchangeBind(destination="amq.topic", source="mine"))
    ends.publish("a.b", "mine", headers={"x-delay": 1_000})
    ends.world.pass_time(2)
    return ends.read("own")


def dead_by_cc(ends: Ends) -> list[bytes]:
    """A message dies, and its CC keys are those of the exchange for dead letters."""
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    ends.p.declare("mortal", arguments={"x-dead-letter-exchange": "amq.topic", "x-message-ttl": 1})
    ends.publish("mortal", headers={"CC": ["a.b"]})
    ends.world.pass_time(2)
    return ends.read("own")


def dead_by_cc_of_an_exchange(ends: Ends) -> list[bytes]:
    ends.p.declare("mortal", arguments={"x-dead-letter-exchange": "e", "x-message-ttl": 1})
    ends.publish("mortal", headers={"CC": ["k"]})
    ends.world.pass_time(2)
    return ends.read()[:1]


def dead_through_an_exchange_to_topics(ends: Ends) -> list[bytes]:
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange="amq.topic", routing_key="a.#"))
    do(ends.p, entity.ExchangeDeclare(exchange="mine", type="fanout"))
    do(ends.p, entity.ExchangeBind(destination="amq.topic", source="mine"))
    arguments = {"x-dead-letter-exchange": "mine", "x-dead-letter-routing-key": "a.b", "x-message-ttl": 1}
    do(ends.p, entity.QueueDeclare(queue="mortal", arguments=arguments))
    ends.publish("mortal")
    ends.world.pass_time(2)
    return ends.read("own")


PATHS: list[tuple[Callable[[Ends], list[bytes]], str, str, str]] = [
    # what is denied to whom, for the path to be closed
    (consumed, "publish", "$exchange/amq%2Edefault/q", "p"),
    (consumed, "subscribe", "$queue/q", "r"),
    (fetched, "publish", "$exchange/amq%2Edefault/#", "p"),
    (fetched, "subscribe", "$queue/q", "r"),
    (through_an_exchange, "publish", "$exchange/e/#", "p"),
    (through_an_exchange, "subscribe", "$queue/q", "r"),
    (by_cc, "publish", "$exchange/amq%2Edefault/q", "p"),
    (by_bcc, "publish", "$exchange/amq%2Edefault/q", "p"),
    (in_a_transaction, "publish", "$exchange/amq%2Edefault/q", "p"),
    (by_an_exchange_of_its_own, "queue", "$exchange/e", "p"),
    (by_an_exchange_of_its_own, "publish", "$exchange/e/#", "p"),
    (by_an_exchange_of_its_own, "publish", "$exchange/e/other", "p"),
    (by_an_exchange_of_its_own, "publish", "$exchange/mine/#", "p"),
    (by_a_queue_that_is_bound_elsewhere, "queue", "$queue/q", "p"),
    (by_an_alternate_exchange, "publish", "$exchange/e/#", "p"),
    (by_an_alternate_exchange, "publish", "$exchange/e/k", "p"),
    (by_an_alternate_exchange, "publish", "$exchange/mine/#", "p"),
    (delayed, "publish", "$exchange/late/#", "p"),
    (bound_to_the_exchange_by_the_reader, "subscribe", "$exchange/e/#", "r"),
    (bound_to_the_exchange_by_the_reader, "subscribe", "$exchange/e/secret", "r"),
    (an_exchange_of_the_reader_behind_it, "subscribe", "$exchange/e/#", "r"),
    (bound_to_topics, "subscribe", "a/#", "r"),
    (bound_to_topics, "subscribe", "a/b", "r"),
    (bound_to_topics, "publish", "a/b", "p"),
    (an_exchange_behind_topics, "subscribe", "a/#", "r"),
    (topics_behind_an_exchange_of_its_own, "publish", "a/b", "p"),
    (topics_behind_an_exchange_of_its_own, "subscribe", "a/#", "r"),
    (topics_as_an_alternate_exchange, "publish", "a/b", "p"),
    (an_answer, "publish", "$exchange/amq%2Edefault/#", "p"),
    (delayed_before_topics, "publish", "a/b", "p"),
    (delayed_before_topics, "publish", "$exchange/mine/#", "p"),
    (dead_by_cc, "publish", "a/b", "p"),
    (dead_by_cc, "publish", "$exchange/amq%2Edefault/a/b", "p"),
    (dead_by_cc_of_an_exchange, "publish", "$exchange/e/k", "p"),
    (dead_through_an_exchange_to_topics, "publish", "a/b", "p"),
    (dead_through_an_exchange_to_topics, "publish", "$exchange/mine/a/b", "p"),
]


@pytest.mark.parametrize("path", dict.fromkeys(each[0] for each in PATHS), ids=lambda path: path.__name__)
def test_a_message_comes_where_nothing_denies_it(path: Callable[[Ends], list[bytes]]) -> None:
    assert path(Ends()) == [b"secret"]


@pytest.mark.parametrize(("path", "action", "topics", "user"), PATHS)
def test_a_path_is_closed_by_what_denies_it(
    path: Callable[[Ends], list[bytes]], action: str, topics: str, user: str
) -> None:
    ends = Ends(deny(action, topics, user=user))
    try:
        got = path(ends)
    except Refused:
        got = []
    assert got == []
    counters = ends.world.broker.enforcement.counters()
    assert counters[f"{action}_denied"] == 1, counters


@pytest.mark.parametrize("rules", [[], [deny("publish", "a/b", user="p")], [deny("publish", "x", user="p")]])
def test_a_delayed_message_is_led_to_no_topic_that_its_publisher_was_not_asked_about(rules: list[object]) -> None:
    """The exchange is bound between publication and due time. The publisher gets no error, and no denial is counted."""
    ends = Ends(*rules)
    assert delayed_and_led_to_topics_meanwhile(ends) == []


@pytest.mark.parametrize(
    ("denied", "seen"), [(("queue", "subscribe"), (0, 0)), (("queue",), (1, 0)), (("subscribe",), (1, 0)), ((), (1, 0))]
)
def test_a_passive_declare_counts_for_those_alone_who_have_to_do_with_the_queue(
    denied: tuple[str, ...], seen: tuple[int, int]
) -> None:
    ends = Ends(*(deny(action, "$queue/q", user="r") for action in denied))
    ends.publish("q")
    (found,) = do(ends.r, entity.QueueDeclare(queue="q", passive=True))
    assert found.method == entity.QueueDeclareOk("q", *seen)


def test_no_exchange_leads_a_message_to_the_brokers_own_topics() -> None:
    ends = Ends()
    enforcement, client = ends.world.broker.enforcement, ends.boss.protocol.subscriber
    reached = Destinations(("q",), ("a.b", "$stream.q", "$SYS.broker"))
    message = Message(FORMAT, b"$exchange.mine.k", SYNTAX, b"")
    for keys in (("k",), ("k", "$stream.q")):
        with pytest.raises(NotPermitted, match="own"):
            check_more_keys(enforcement, client, "mine", keys, reached, message)
    assert permitted_when_due(enforcement, reached, message).topics == ()
    enforcement.has_restricted = False
    assert permitted_when_due(enforcement, reached, message).topics == ("a.b",)
    assert permitted_when_due(enforcement, reached, message).queues == ("q",)


@pytest.mark.parametrize(
    ("exchange", "key", "denied"),
    [
        ("amq.topic", "a.#", "a/#"), ("amq.topic", "a.b", "a/b"), ("amq.topic", "a.#", "$queue/own"),
        ("e", "#", "$exchange/e/#"), ("e", "k.b", "$exchange/e/k/b"), ("e", "#", "$queue/own"),
    ],
)  # fmt: skip
def test_what_was_permitted_ends_when_other_permissions_are_in_force(exchange: str, key: str, denied: str) -> None:
    ends = Ends()
    ends.r.declare("own", exclusive=True)
    do(ends.r, entity.QueueBind(queue="own", exchange=exchange, routing_key=key))
    ends.r.consume("own", "c", no_ack=True)
    routed_by = "a.b" if exchange == "amq.topic" else "k.b"
    ends.publish(routed_by, exchange)
    assert [each.body for each in ends.r.got()] == [b"secret"]
    ends.world.broker.use_permissions(Reference(deny("subscribe", denied, user="r"), ALL))
    ends.world.turn()
    assert [each.method for each in ends.r.got()] == [basic.BasicCancel("c", True)]
    ends.publish(routed_by, exchange)
    assert ends.r.got() == []
    assert ends.r.close_reason is None
