"""Clients and subscriptions: limits, endings, what is counted and what is told."""

import pytest

from fanlight_broker.core.clients import new_inbox
from fanlight_broker.core.errors import (
    InvalidFilter,
    LimitExceeded,
    NoSuchSubscription,
    SubscriptionInUse,
    Unsupported,
)
from fanlight_broker.core.topics import syntax_of
from tests.broker.core.parts import broker_with, connect, subscribe
from tests.broker.core.sessions import World
from tests.broker.wire.publisher import Publisher


def test_a_refused_subscription_leaves_nothing_behind() -> None:
    broker = broker_with(subscriptions_per_client_max=2, subscriptions_max=3)
    client, _ = connect(broker)
    other, _ = connect(broker)
    subscribe(broker, client, 1, b"a")
    with pytest.raises(SubscriptionInUse, match="subscription 1 is in use"):
        subscribe(broker, client, 1, b"b")
    with pytest.raises(InvalidFilter) as raised:
        subscribe(broker, client, 2, b"a/#/b", "mqtt")
    assert raised.value.details["position"] == 2
    subscribe(broker, client, 2, b"b")
    with pytest.raises(LimitExceeded, match="at most 2 \\(subscriptions_per_client_max\\)"):
        subscribe(broker, client, 3, b"c")
    subscribe(broker, other, 1, b"a")
    with pytest.raises(LimitExceeded, match="at most 3 \\(subscriptions_max\\)"):
        subscribe(broker, other, 2, b"a")
    assert len(broker.router) == broker.subscribing.begun == 3
    assert {s.number for s in client.subscriber.subscriptions} == {1, 2}
    with pytest.raises(NoSuchSubscription):
        broker.subscribing.unsubscribe(other, 2)
    assert broker.subscribing.ended == 0


def test_a_number_out_of_limits_is_free_again() -> None:
    broker = broker_with(subscriptions_max=1)
    client, _ = connect(broker)
    for _ in range(3):
        subscribe(broker, client, 1, b"#")
        broker.subscribing.unsubscribe(client, 1)
    assert len(broker.router) == 0


def test_waiting_messages_are_the_lesser_of_wish_and_limit() -> None:
    broker = broker_with(pending_messages_max=10)
    client, _ = connect(broker)
    wishes = {1: None, 2: 0, 3: 5, 4: 1_000}
    for number, wish in wishes.items():
        subscribe(broker, client, number, b"a", credit=0, waiting_max=wish)
    assert [broker.subscribing.find(client, number).waiting_max for number in wishes] == [10, 0, 5, 10]


def test_a_client_is_told_once_that_a_subscription_ended() -> None:
    broker = broker_with()
    client, connection = connect(broker)
    target = subscribe(broker, client, 7, b"a", after=1)
    target.end()
    broker.finish()
    broker.finish()
    assert connection.told == [("ended", 7, "after", 0, 0)]
    assert len(client.subscriber.subscriptions) == 0


def test_an_ending_is_overtaken_by_an_unsubscribe_or_the_end_of_the_client() -> None:
    broker = broker_with()
    client, connection = connect(broker)
    first, second = subscribe(broker, client, 1, b"a"), subscribe(broker, client, 2, b"a")
    first.end()
    broker.subscribing.unsubscribe(client, 1)
    again = subscribe(broker, client, 1, b"a")
    second.end()
    broker.clients.disconnect(client, "gone", 0.0)
    broker.finish()
    assert connection.told == []
    assert again.ended
    assert broker.clients.disconnect(client, "twice", 0.0) == []
    assert (broker.subscribing.begun, broker.subscribing.ended) == (3, 3)


def test_the_counts_of_a_subscription_take_back_what_was_evicted() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    client, _ = connect(broker, "drop_oldest")
    kept, victim = subscribe(broker, client, 1, b"a"), subscribe(broker, client, 2, b"b")
    publisher = Publisher(broker.ledger)
    publisher.route(b"a", [kept])
    publisher.route(b"b", [victim])
    for _ in range(5):
        publisher.publish(b"b", bytes(10_000))
    for _ in range(5):
        publisher.publish(b"a", bytes(10_000))
    assert (victim.delivered, victim.dropped) == (1, 4)
    assert (kept.delivered, kept.dropped) == (5, 0)


def test_names_numbers_and_inboxes() -> None:
    broker = broker_with()
    clients = [connect(broker)[0] for _ in range(3)]
    assert [client.number for client in clients] == [1, 2, 3]
    assert str(clients[0]) == "'client-1' (connection 1, 192.0.2.1 port 0)"
    inboxes = {new_inbox() for _ in range(200)}  # some are made together
    assert len(inboxes) == 200
    assert all(len(inbox) == len("$inbox.") + 32 for inbox in inboxes)


def test_a_client_hears_of_its_last_message_from_the_next_sweep_if_nobody_was_read_from() -> None:
    """A will's, say: whoever sent it is gone."""
    world = World()
    client, told = connect(world.broker)
    subscribe(world.broker, client, 1, b"a", "mqtt", after=1)
    assert world.publish("a") == 1
    assert told.told == []
    world.broker.sweep(world.now)
    assert told.told == [("ended", 1, "after", 1, 0)]
    assert len(world.broker.router) == 0


def test_syntaxes_by_their_numbers() -> None:
    assert [syntax_of(number) for number in (None, 0, 1)] == ["amqp", "amqp", "mqtt"]
    for number in (2, 2**64 - 1):
        with pytest.raises(Unsupported) as raised:
            syntax_of(number)
        assert raised.value.details == {"syntax": number}
