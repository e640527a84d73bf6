"""The list of those who get one message of a topic with selectors: it is the next message's too, if that has the same.

Who is in it is checked in test_screens.py.
"""

import sys

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.clients import Client
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.limits import Limits
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.route import Route
from tests.broker.core.parts import at_once, connect, subscribe
from tests.broker.core.test_screens import message_of


@pytest.fixture
def broker() -> Broker:
    return Broker(Limits(), lambda: None, at_once)


def wanting(broker: Broker, count: int, group: str | None = None) -> list[Client]:
    """Clients that want messages whose x is above their number."""
    clients = [connect(broker)[0] for _ in range(count)]
    for number, client in enumerate(clients):
        subscribe(broker, client, number, b"a", group=group, condition=condition_of(f"x > {number}"))
    return clients


def route_of(broker: Broker, x: int) -> Route:
    return broker.router.for_message(broker.router.route(b"a", "amqp"), message_of(b"a", {"x": x}), None)


def numbers(route: Route) -> list[int]:
    return [target.number for target in route.targets]


def test_messages_that_the_same_want_have_one_list_and_others_have_their_own(broker: Broker) -> None:
    wanting(broker, 40)
    first = route_of(broker, 30).targets
    assert route_of(broker, 30).targets is first  # so they are joined to a batch
    assert numbers(route_of(broker, 31)) == list(range(31))
    assert [target.number for target in first] == list(range(30))  # as it was
    assert numbers(route_of(broker, 30)) == list(range(30))


def test_another_subscription_with_the_id_of_one_that_was_in_the_list(broker: Broker) -> None:
    clients = wanting(broker, 3)
    old = route_of(broker, 5).targets
    ids = [target.id for target in old]
    broker.subscribing.unsubscribe(clients[1], 1)
    subscribe(broker, clients[1], 9, b"a", condition=condition_of("x > 1"))
    new = route_of(broker, 5).targets
    assert [target.id for target in new] == ids
    assert sorted(target.number for target in new) == [0, 2, 9]


@pytest.mark.parametrize("x", [3, 7])
def test_who_leaves_between_the_choice_and_the_fan_out_gets_nothing(broker: Broker, x: int) -> None:
    clients = wanting(broker, 4)
    route = route_of(broker, x)
    broker.subscribing.unsubscribe(clients[0], 0)
    broker.subscribing.unsubscribe(clients[2], 2)
    assert publish(route, broker.ledger, None, message_of(b"a", {"x": x})) == (1 if x == 3 else 2)


@pytest.mark.parametrize("group", [None, "g"])
def test_who_has_left_is_not_kept_by_the_last_list(broker: Broker, group: str | None) -> None:
    clients = wanting(broker, 2, group)
    route_of(broker, 5)
    left = next(each for each in broker.router.subscriptions() if each.number == 1)
    kept = sys.getrefcount(left)
    broker.subscribing.unsubscribe(clients[1], 1)
    assert sys.getrefcount(left) < kept
    assert sys.getrefcount(left) == 2  # here, and the call's


def test_a_group_is_once_in_a_route_however_many_members_want_the_message(broker: Broker) -> None:
    for client in [connect(broker)[0] for _ in range(20)]:
        subscribe(broker, client, 1, b"a", group="g", condition=condition_of("x > 1"))
        subscribe(broker, client, 2, b"#", group="h", condition=condition_of("x > 2"))
    route = route_of(broker, 3)
    assert (numbers(route), [group.name for group in route.groups]) == ([], ["g", "h"])
    assert [group.name for group in route_of(broker, 2).groups] == ["g"]
    assert publish(route_of(broker, 3), broker.ledger, None, message_of(b"a", {"x": 3})) == 2
    assert publish(route_of(broker, 0), broker.ledger, None, message_of(b"a", {"x": 0})) == 0
