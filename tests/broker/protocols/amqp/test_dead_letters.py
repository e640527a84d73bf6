"""Dead letters of AMQP queues (x-dead-letter-exchange): where they go, and what their headers say.

What is expected here was seen at RabbitMQ 3.10.8.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.dead_letters import OWNER
from fanlight_broker.protocols.amqp.deaths import Death, buried, is_cycle
from fanlight_broker.protocols.amqp.field_table import LongInteger, Timestamp
from fanlight_broker.protocols.amqp.properties import BasicProperties, decode_properties, encode_properties
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.amqp.world import Got, Peer, World

DLX, KEY = "x-dead-letter-exchange", "x-dead-letter-routing-key"
FIRST = {"x-first-death-reason": "rejected", "x-first-death-queue": "q", "x-first-death-exchange": ""}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def peer(world: World) -> Peer:
    """With the queue `dead` behind the fanout exchange `dlx`, and the queue `q` that sends what dies there."""
    peer = world.channel()
    peer.declare("dead")
    peer.ask(entity.ExchangeDeclare(exchange="dlx", type="fanout"))
    peer.ask(entity.QueueBind(queue="dead", exchange="dlx"))
    return peer


def get(peer: Peer, queue: str = "dead", *, no_ack: bool = True) -> Got | None:
    peer.say(basic.BasicGet(queue=queue, no_ack=no_ack))
    (got,) = peer.got()
    return got if isinstance(got.method, basic.BasicGetOk) else None


def headers_of(got: Got | None) -> Mapping[str, Any]:
    assert got is not None
    assert got.properties is not None
    return got.properties.headers or {}


def deaths_of(got: Got | None) -> Sequence[Mapping[str, Any]]:
    found = headers_of(got)["x-death"]
    assert isinstance(found, list)
    return found


def reject(peer: Peer, queue: str = "q", *, requeue: bool = False) -> None:
    got = get(peer, queue, no_ack=False)
    assert got is not None
    peer.say(basic.BasicReject(got.method.delivery_tag, requeue))


def expire(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "dlx", "x-message-ttl": 1_000})
    peer.publish("q", b"x")
    peer.world.pass_time(1)


def reject_one(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "dlx"})
    peer.publish("q", b"x")
    reject(peer)


def overflow(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "dlx", "x-max-length": 1})
    peer.publish("q", b"x")
    peer.publish("q", b"y")


def exhaust(peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={DLX: "dlx", "x-delivery-limit": 2, "x-queue-type": "quorum"})
    peer.publish("q", b"x")
    for nth in range(3):
        assert peer.counts("dead")[0] == 0, nth
        reject(peer, requeue=True)


WAYS: dict[str, Callable[[Peer], None]] = {
    "expired": expire, "rejected": reject_one, "maxlen": overflow, "delivery_limit": exhaust,
}  # fmt: skip


@pytest.mark.parametrize("reason", WAYS)
def test_what_dies_goes_to_the_exchange_and_says_why(peer: Peer, reason: str) -> None:
    WAYS[reason](peer)
    got = get(peer)
    assert got is not None
    assert (got.method.exchange, got.method.routing_key, got.method.redelivered, got.body) == ("dlx", "q", False, b"x")
    assert headers_of(got) == {
        "x-death": [{
            "count": 1, "reason": reason, "queue": "q", "time": Timestamp(peer.world.now), "exchange": "",
            "routing-keys": ["q"],
        }],
        "x-first-death-reason": reason, "x-first-death-queue": "q", "x-first-death-exchange": "",
    }  # fmt: skip
    assert isinstance(deaths_of(got)[0]["time"], Timestamp)
    assert get(peer) is None


def test_the_key_of_the_queue_is_taken_and_copies_are_not(peer: Peer) -> None:
    peer.declare("copy")
    peer.declare("q", arguments={DLX: "", KEY: "dead"})
    peer.publish("q", b"x", headers={"CC": ["copy"], "BCC": ["hidden"], "k": 1}, expiration="0", delivery_mode=2,
                 priority=4)  # fmt: skip
    got = get(peer)
    assert got is not None
    assert got.properties is not None
    assert (got.method.exchange, got.method.routing_key) == ("", "dead")
    assert (got.properties.expiration, got.properties.delivery_mode, got.properties.priority) == (None, 2, 4)
    assert "CC" not in headers_of(got)
    assert headers_of(got)["k"] == 1
    (death,) = deaths_of(got)
    assert (death["routing-keys"], death["original-expiration"]) == (["q", "copy"], "0")
    assert peer.counts("copy")[0] == 0  # its copy expired as well, and that queue has no such exchange


def test_without_a_key_the_copies_go_along(peer: Peer) -> None:
    for queue in ("one", "two"):
        peer.declare(queue)
        peer.ask(entity.QueueBind(queue=queue, exchange="amq.direct", routing_key=queue))
    peer.declare("q", arguments={DLX: "amq.direct"})
    peer.ask(entity.QueueBind(queue="q", exchange="amq.fanout"))
    peer.publish("one", b"x", "amq.fanout", headers={"CC": ["two"]})
    reject(peer)
    for queue in ("one", "two"):
        got = get(peer, queue)
        assert headers_of(got)["CC"] == ["two"]
        (death,) = deaths_of(got)
        assert (death["exchange"], death["routing-keys"]) == ("amq.fanout", ["one", "two"])


def test_each_queue_and_reason_has_one_entry_and_the_last_death_is_first(peer: Peer) -> None:
    for queue in ("q", "r"):
        peer.declare(queue, arguments={DLX: "dlx"})
    headers: Mapping[str, Any] = {}
    seen = []
    for queue in ("q", "q", "r", "q"):
        peer.publish(queue, b"x", headers=headers)
        peer.world.pass_time(10)
        reject(peer, queue)
        got = get(peer)
        headers = headers_of(got)
        seen.append([(each["queue"], each["count"]) for each in deaths_of(got)])
    assert seen == [[("q", 1)], [("q", 2)], [("r", 1), ("q", 2)], [("q", 3), ("r", 1)]]
    assert {name: headers[name] for name in FIRST} == FIRST


def test_a_cycle_ends_where_nobody_has_rejected(peer: Peer) -> None:
    peer.declare("a", arguments={DLX: "", KEY: "b", "x-message-ttl": 1_000})
    peer.declare("b", arguments={DLX: "", KEY: "a", "x-message-ttl": 1_000})
    peer.publish("a", b"x")
    seen = []
    for _ in range(3):
        seen.append((peer.counts("a")[0], peer.counts("b")[0]))
        peer.world.pass_time(1)
    assert seen == [(1, 0), (0, 1), (0, 0)]


def test_a_cycle_goes_on_with_a_rejection_in_it(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "", KEY: "wait"})
    peer.declare("wait", arguments={DLX: "", KEY: "q", "x-message-ttl": 1_000})
    peer.publish("q", b"x")
    for nth in range(1, 20):
        reject(peer)
        peer.world.pass_time(1)
        got = get(peer, "q", no_ack=False)
        assert got is not None
        assert [(each["queue"], each["reason"], each["count"]) for each in deaths_of(got)] == [
            ("wait", "expired", nth), ("q", "rejected", nth),
        ]  # fmt: skip
        peer.say(basic.BasicReject(got.method.delivery_tag, requeue=True))


def test_a_queue_without_time_that_is_its_own_exchange_ends_at_once(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "", KEY: "q", "x-message-ttl": 0})
    peer.publish("q", b"x")
    assert peer.counts("q") == (0, 0)


@pytest.mark.parametrize("headers", [
    {"x-death": "nonsense"}, {"x-death": [1, "x", {"queue": 5}]}, {"x-death": [{"queue": "q", "reason": "rejected"}]},
    {"x-death": [{"queue": "q", "reason": "rejected", "count": 2**63 - 1}]}, {"CC": []},
])  # fmt: skip
def test_what_a_client_writes_as_deaths_does_no_harm(peer: Peer, headers: dict[str, Any]) -> None:
    peer.declare("q", arguments={DLX: "dlx"})
    peer.publish("q", b"x", headers=headers)
    reject(peer)
    (death, *_) = deaths_of(get(peer))
    assert (death["queue"], death["reason"]) == ("q", "rejected")
    assert death["count"] == 1


def test_values_keep_their_types() -> None:
    octets = encode_properties(BasicProperties(content_type="t", headers={"n": LongInteger(1)}, expiration="5"))
    table = octets.replace(b"\x01nl" + bytes(7) + b"\x01", b"\x01ns\x00\x01")  # an int16, which Python has not
    size = octets.index(b"\x01n") - 4
    table = table[:size] + (len(b"\x01ns\x00\x01")).to_bytes(4, "big") + table[size + 4 :]
    found = buried(table, [], Death("q", "expired", "", ["q"], 5, "5"), without_copies=False)
    assert b"\x01ns\x00\x01" in found
    assert decode_properties(found).content_type == "t"
    assert decode_properties(found).expiration is None


def test_a_cycle_is_one_only_without_a_rejection() -> None:
    deaths = [{"queue": "b", "reason": "expired"}, {"queue": "a", "reason": "maxlen"}]
    assert is_cycle("a", deaths)
    assert not is_cycle("c", deaths)
    assert not is_cycle("a", [{"queue": "b", "reason": "rejected"}, *deaths])
    assert not is_cycle("a", [{"queue": "a", "reason": "rejected"}])


def test_a_delaying_exchange_holds_dead_letters(peer: Peer) -> None:
    arguments = {"x-delayed-type": "fanout"}
    peer.ask(entity.ExchangeDeclare(exchange="later", type="x-delayed-message", arguments=arguments))
    peer.ask(entity.QueueBind(queue="dead", exchange="later"))
    peer.declare("q", arguments={DLX: "later"})
    peer.publish("q", b"x", headers={"x-delay": 1_000})
    reject(peer)
    assert get(peer) is None
    peer.world.pass_time(1)
    assert headers_of(get(peer))["x-delay"] == -1_000


def test_what_dies_before_the_owner_of_its_letters_is_there_waits_for_it(peer: Peer) -> None:
    queues = peer.world.broker.queues
    make = queues.burial.owners.pop(OWNER)
    peer.declare("q", arguments={DLX: "dlx"})
    for body in (b"1", b"2"):
        peer.publish("q", body)
        reject(peer)
    assert queues.find("q").inside.buried == 2
    assert get(peer) is None
    queues.bury_by(OWNER, make)
    peer.world.pass_time(0.25)
    assert [got.body for got in (get(peer), get(peer)) if got is not None] == [b"1", b"2"]


def test_an_exchange_that_is_not_there_drops_it(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "missing"})
    peer.publish("q", b"x")
    reject(peer)
    assert peer.counts("q") == (0, 0)
    peer.ask(entity.ExchangeDeclare(exchange="missing", type="fanout", internal=True))
    peer.ask(entity.QueueBind(queue="dead", exchange="missing"))
    peer.publish("q", b"x")
    reject(peer)
    assert peer.counts("dead")[0] == 1  # it may be internal


def test_amq_topic_may_be_the_exchange(peer: Peer) -> None:
    peer.declare("all")
    peer.ask(entity.QueueBind(queue="all", exchange="amq.topic", routing_key="dead.#"))
    peer.declare("q", arguments={DLX: "amq.topic", KEY: "dead.letters"})
    peer.publish("q", b"x")
    reject(peer)
    got = get(peer, "all")
    assert got is not None
    assert (got.method.exchange, got.method.routing_key) == ("amq.topic", "dead.letters")


def test_what_is_purged_or_ends_with_its_queue_is_no_dead_letter(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "dlx"})
    peer.publish("q", b"x")
    peer.ask(entity.QueuePurge(queue="q"))
    peer.publish("q", b"x")
    peer.ask(entity.QueueDelete(queue="q"))
    assert peer.counts("dead")[0] == 0


def test_quorum_queues_say_how_often_a_message_was_delivered_before(peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"x", content_type="a", headers={"n": 1, "x-delivery-count": 99}, reply_to="r", message_id="m")
    for nth in range(3):
        got = get(peer, "q", no_ack=False)
        assert got is not None
        assert headers_of(got) == {"n": 1, "x-delivery-count": nth}
        assert got.method.redelivered is (nth > 0)
        peer.say(basic.BasicNack(got.method.delivery_tag, requeue=True))
    (delivered,) = peer.consume("q")
    assert headers_of(delivered) == {"n": 1, "x-delivery-count": 3}
    assert (delivered.properties or BasicProperties()).reply_to == "r"


def test_reject_publish_dlx_sends_the_new_message_there_and_refuses_it(peer: Peer) -> None:
    peer.declare("q", arguments={DLX: "dlx", "x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    peer.ask(entity.ConfirmSelect())
    answers = []
    for body in (b"1", b"2"):
        peer.publish("q", body)
        answers += [each.method for each in peer.got()]
    assert answers == [basic.BasicAck(1), basic.BasicNack(2, False, False)]
    got = get(peer)
    assert got is not None
    assert (got.body, deaths_of(got)[0]["reason"]) == (b"2", "maxlen")
    assert peer.counts("q")[0] == 1


def test_who_may_not_publish_there_cannot_declare_such_a_queue(world: World) -> None:
    rules = allow("queue", "$queue/#"), allow("publish", "$exchange/dlx/good"), allow("subscribe", "$queue/q $queue/r")
    world.broker.use_permissions(Reference(allow("connect"), *rules))
    peer = world.channel()
    assert peer.declare("q", arguments={DLX: "dlx", KEY: "good"}) == "q"
    peer.say(entity.QueueDeclare(queue="r", arguments={DLX: "dlx", KEY: "bad"}))
    assert peer.error() == (False, 403, (50, 10))
    assert world.broker.queues.get("r") is None


def test_who_may_not_read_a_queue_cannot_have_its_letters_sent_elsewhere(world: World) -> None:
    rules = allow("queue", "$queue/#"), allow("publish", "$exchange/dlx/#")
    world.broker.use_permissions(Reference(allow("connect"), *rules))
    peer = world.channel()
    peer.say(entity.QueueDeclare(queue="q", arguments={DLX: "dlx", KEY: "k"}))
    assert peer.error() == (False, 403, (50, 10))
