"""Named queues without filters of their own: filters come and go, messages come by a route that a protocol names."""

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import InvalidFilter, LimitExceeded, QueueInUse
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Accepted, Direct, Refused
from fanlight_broker.core.subscriber import Client
from fanlight_broker.core.work_queue import QueueOptions, WorkQueue
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.route import Route
from tests.broker.core.parts import broker_with, connect
from tests.broker.wire.formats import LineFormat

FORMAT = LineFormat("lines")


def made(**limits: int) -> tuple[Broker, Client, WorkQueue]:
    broker = broker_with(**limits)
    client, _ = connect(broker)
    return broker, client, broker.queues.declare(client, "q", (), QueueOptions(), 0.0)


def publish(broker: Broker, client: Client, topic: bytes, route: Route | None = None) -> int:
    message = Message(FORMAT, topic, 0, b"x", qos=1)
    sender = Direct(broker.ledger, message, client.outbox)
    outcome = broker.publishing.accept(Publication(message, client.subscriber, route=route), sender, 1.0)
    assert isinstance(outcome, Accepted)
    return outcome.routed


def test_a_filter_that_is_added_brings_messages_and_one_that_is_removed_does_not() -> None:
    broker, client, queue = made()
    assert publish(broker, client, b"a.b") == 0
    broker.queues.bind(client, queue, b"a.*", "amqp")
    broker.queues.bind(client, queue, b"a.*", "amqp")
    with pytest.raises(QueueInUse):
        broker.queues.bind(client, queue, b"a.*", "mqtt")
    assert queue.filters == ((b"a.*", "amqp"),)
    assert (publish(broker, client, b"a.b"), len(queue.inside)) == (1, 1)
    broker.queues.unbind(queue, b"a.*", "mqtt")
    broker.queues.unbind(queue, b"a.*", "amqp")
    broker.queues.unbind(queue, b"a.*", "amqp")
    assert queue.filters == ()
    assert (publish(broker, client, b"a.b"), len(queue.inside)) == (0, 1)
    broker.queues.end(queue)
    assert len(broker.router) == 0


def test_a_filter_that_is_malformed_or_too_many_changes_nothing() -> None:
    broker, client, queue = made(subscriptions_per_client_max=2)
    with pytest.raises(InvalidFilter):
        broker.queues.bind(client, queue, b"a/#/b", "mqtt")
    broker.queues.bind(client, queue, b"a", "amqp")
    broker.queues.bind(client, queue, b"b", "amqp")
    with pytest.raises(LimitExceeded):
        broker.queues.bind(client, queue, b"c", "amqp")
    assert [text for text, _ in queue.filters] == [b"a", b"b"]


def test_a_queue_is_read_where_there_may_be_no_further_subscription() -> None:
    broker, client, queue = made(subscriptions_max=1)
    broker.queues.bind(client, queue, b"a", "amqp")
    with pytest.raises(LimitExceeded):
        broker.queues.bind(client, queue, b"b", "amqp")
    broker.queues.check_reader(client.subscriber, queue)  # what takes from it is no subscription


def test_a_publication_with_a_route_goes_there_and_nowhere_else() -> None:
    broker, client, queue = made()
    other = broker.queues.declare(client, "other", ((b"a.b", "amqp"),), QueueOptions(), 0.0)
    assert publish(broker, client, b"a.b", Route(b"", [], [queue.inside])) == 1
    assert (len(queue.inside), len(other.inside)) == (1, 0)
    assert publish(broker, client, b"a.b", Route(b"", [], [])) == 0


def test_a_queue_of_a_named_route_that_is_full_refuses() -> None:
    broker, client, _ = made()
    small = broker.queues.declare(client, "small", (), QueueOptions(messages_max=1), 0.0)
    route = Route(b"", [], [small.inside])
    assert publish(broker, client, b"a", route) == 1
    message = Message(FORMAT, b"a", 0, b"x")
    sender = Direct(broker.ledger, message, client.outbox)
    assert isinstance(
        broker.publishing.accept(Publication(message, client.subscriber, route=route), sender, 1.0), Refused
    )


def test_a_queue_without_filters_is_asked_for_by_its_name() -> None:
    broker, client, queue = made()
    assert queue.subjects == ((b"$queue.q", "amqp"),)
    broker.queues.bind(client, queue, b"a", "amqp")
    assert queue.subjects == ((b"a", "amqp"),)
    queue.addressed = True
    assert queue.subjects == ((b"a", "amqp"), (b"$queue.q", "amqp"))


def test_who_watches_is_called_when_a_queue_has_ended() -> None:
    broker, _, queue = made()
    seen: list[tuple[str, bool]] = []
    broker.queues.watchers.append(lambda ended: seen.append((ended.name, broker.queues.get(ended.name) is None)))
    broker.queues.end(queue)
    assert seen == [("q", True)]
