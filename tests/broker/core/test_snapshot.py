"""A snapshot of the subscriptions: each that stays is told once, with all that decides what it gets."""

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.router import Router
from fanlight_broker.core.subscriber import Client
from tests.broker.core.parts import broker_with, connect, subscribe
from tests.broker.core.sessions import World


def test_a_row_says_who_wants_what_and_how() -> None:
    world = World()
    world.connect("ann's", user="ann", expiry=60).subscribe("a", 1, group="g")
    client, _ = connect(world.broker)
    subscribe(world.broker, client, 9, b"b.\xff", no_echo=True)
    rows, following = BrokerInspection(world.broker, lambda: 0.0, dict, lambda: True).snapshot(place=0, places=10)
    assert (rows, following) == (
        [
            {"id": 0, "client": "ann's", "user": "ann", "filter": "a", "syntax": "mqtt", "group": "g", "qos": 1,
             "no_echo": False, "session": True},
            {"id": 1, "client": client.subscriber.name, "user": "", "filter": "b.\udcff", "syntax": "amqp",
             "group": None, "qos": 0, "no_echo": True, "session": False},
        ],
        None,
    )  # fmt: skip


def filled(subscriptions: int) -> tuple[Router, Client]:
    broker = broker_with()
    client, _ = connect(broker)
    for number in range(subscriptions):
        subscribe(broker, client, number, b"f.%d" % number)
    return broker.router, client


def test_slices_by_place_find_what_stays_once_whatever_comes_and_goes() -> None:
    router, client = filled(100)
    found, following = router.from_place(0, 30)
    assert ([each.id for each in found], following) == (list(range(30)), 30)
    subscriptions = client.subscriber.subscriptions
    numbered = {number: each for number in range(100) if (each := subscriptions.numbered(number)) is not None}
    for number in (3, 40, 41):  # behind, and ahead
        router.remove(numbered[number])
    found, following = router.from_place(30, 30)
    assert ([each.number for each in found], following) == ([30, *range(31, 40), *range(42, 60)], 60)
    found, following = router.from_place(60, 40)
    assert ([each.number for each in found], following) == (list(range(60, 100)), None)


def test_a_slice_is_so_many_places_also_where_nothing_is_left_of_them() -> None:
    router, client = filled(100)
    for subscription in list(client.subscriber.subscriptions):
        router.remove(subscription)
    assert router.from_place(0, 30) == ([], 30)
    assert router.from_place(90, 30) == ([], None)
    assert router.from_place(500, 30) == ([], None)


def test_what_is_over_and_only_not_taken_out_yet_is_not_told() -> None:
    router, client = filled(5)
    client.outbox.close()
    assert router.from_place(0, 30) == ([], None)
