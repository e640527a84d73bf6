"""Exchanges of the type x-delayed-message: a message is held for its header x-delay, and routed then."""

from typing import Any

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Peer, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def peer(world: World) -> Peer:
    """With the delaying exchange `later`, of the type direct, and the queue `q` behind its key `k`."""
    peer = world.channel()
    arguments: dict[str, Any] = {"x-delayed-type": "direct"}
    peer.ask(entity.ExchangeDeclare(exchange="later", type="x-delayed-message", arguments=arguments))
    peer.declare("q")
    peer.ask(entity.QueueBind(queue="q", exchange="later", routing_key="k"))
    return peer


def test_a_message_is_routed_when_its_time_has_come(peer: Peer) -> None:
    peer.publish("k", b"late", "later", headers={"x-delay": 5_000, "n": 1}, message_id="m")
    peer.publish("k", b"soon", "later", headers={"x-delay": 1_000})
    peer.publish("k", b"now", "later")
    counts = []
    for _ in range(6):
        counts.append(peer.counts()[0])
        peer.world.pass_time(1)
    assert counts == [1, 2, 2, 2, 2, 3]
    _, _, got = peer.consume()
    assert got.properties is not None
    assert (got.method.exchange, got.method.routing_key, got.body) == ("later", "k", b"late")
    assert got.properties.headers == {"x-delay": -5_000, "n": 1}
    assert got.properties.message_id == "m"


def test_it_goes_where_bindings_lead_then(peer: Peer) -> None:
    peer.publish("other", b"x", "later", headers={"x-delay": 1_000})
    peer.publish("k", b"y", "later", headers={"x-delay": 1_000, "CC": ["other"]})
    peer.ask(entity.QueueUnbind(queue="q", exchange="later", routing_key="k"))
    peer.ask(entity.QueueBind(queue="q", exchange="later", routing_key="other"))
    peer.world.pass_time(1)
    assert [got.body for got in peer.consume()] == [b"x", b"y"]


def test_an_exchange_that_has_gone_takes_its_messages_along(peer: Peer) -> None:
    peer.publish("k", b"x", "later", headers={"x-delay": 1_000})
    peer.ask(entity.ExchangeDelete(exchange="later"))
    peer.world.pass_time(1)
    assert len(peer.world.broker.delayed) == 0
    assert peer.counts() == (0, 0)


def test_it_is_confirmed_when_it_is_held_and_not_returned(peer: Peer) -> None:
    peer.ask(entity.ConfirmSelect())
    peer.publish("nobody", b"x", "later", headers={"x-delay": 1_000}, mandatory=True)
    assert [each.method for each in peer.got()] == [basic.BasicAck(1)]
    peer.publish("k", b"x", "later", headers={"x-delay": 1 << 31}, mandatory=True)
    assert [each.method for each in peer.got()] == [basic.BasicAck(2)]


def test_amq_topic_behind_a_delaying_exchange_gets_it_then(peer: Peer) -> None:
    peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="news.#"))
    peer.ask(entity.ExchangeBind(destination="amq.topic", source="later", routing_key="news.eu"))
    peer.publish("news.eu", b"x", "later", headers={"x-delay": 1_000})
    assert peer.counts()[0] == 0
    peer.world.pass_time(1)
    assert peer.counts()[0] == 1


@pytest.mark.parametrize("headers", [{"x-delay": 0}, {"x-delay": -5}, {"x-delay": "1000"}, {}])
def test_without_a_time_it_is_routed_at_once(peer: Peer, headers: dict[str, Any]) -> None:
    peer.publish("k", b"x", "later", headers=headers)
    assert peer.counts()[0] == 1


def test_another_exchange_does_not_look_at_it(peer: Peer) -> None:
    peer.publish("q", b"x", headers={"x-delay": 5_000})
    assert peer.counts()[0] == 1
