"""Named queues with a selector (`where`): it decides what comes in, and belongs to the queue like its filter."""

from typing import Any

import pytest

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.queue_views import queue_view
from fanlight_broker.core.screens import ATTRIBUTES_MAX
from matchcore.selector import Attribute, Source
from tests.broker.core.parts import explained
from tests.broker.protocols.native.test_queue_requests import ask, done, payloads, refused
from tests.broker.protocols.native.test_queues import consume, deliveries, subscribe
from tests.broker.protocols.native.world import Peer, World, frame, publish

ERROR, OK, RECEIPT, DELIVERY = 13, 7, 5, 32
DEAR = "price > 100"


@pytest.fixture(params=[False, True], ids=["lane", "python"])
def world(request: pytest.FixtureRequest) -> World:
    return World(plain=request.param)


def sell(peer: Peer, *prices: int, topic: str = "orders.eu") -> list[int]:
    """Publish orders, which say their price. To how many each was routed, by its receipt."""
    peer.send(*(publish(topic, b"%d" % price, {"price": price}, request=price) for price in prices))
    receipts = [fields for fields in peer.frames() if fields[0] == RECEIPT]
    assert [fields[1] for fields in receipts] == list(prices)
    return [fields[2] for fields in receipts]


def got(peer: Peer) -> list[int]:
    return [int(payload) for _, _, payload in deliveries(peer)]


def test_only_what_the_selector_is_true_of_comes_in_whether_or_not_there_is_a_consumer(world: World) -> None:
    worker, shop = consume(world, where=DEAR), world.connect()
    assert sell(shop, 99, 101, 100, 150) == [0, 1, 0, 1]
    assert got(worker) == [101, 150]
    worker.vanish()
    assert sell(shop, 7, 200) == [0, 1]
    assert world.broker.ledger.filtered == 3
    assert got(consume(world, where=DEAR)) == [101, 150, 200]


def test_the_request_has_the_bytes_of_the_specification(world: World) -> None:
    peer = world.connect()
    options = b"\x83\xa8consumer\xa1q\xa3ack\xc3\xa5where\xa9price > 1"
    body = b"\x95\x06\x01\x07\xa8orders.#" + options
    octets = len(body).to_bytes(4, "big") + body
    for at in range(len(octets)):  # byte by byte, and a tail behind it
        peer.send(octets[at : at + 1])
    peer.send(frame(11, 1)[:3])
    peer.send(frame(11, 1)[3:])
    answer, pong = peer.frames()
    assert (answer[:2], answer[2]["consumer"], pong) == ([OK, 1], "q", [12, 1])
    assert str(world.broker.queues.find("q").condition) == "price > 1"
    body = b"\x94\x27\x02\xa3add\x83\xa4name\xa1p\xa7filters\x91\x92\xa3a.b\x00\xa5where\xa9price > 1"
    peer.send(len(body).to_bytes(4, "big") + body)
    assert peer.next() == [OK, 2, {"name": "p", "created": True}]
    assert str(world.broker.queues.find("p").condition) == "price > 1"


@pytest.mark.parametrize(
    ("first", "second", "agrees"),
    [
        (DEAR, "price  >  100", True),
        (DEAR, {"price": [{"numeric": [">", 100]}]}, True),
        (DEAR, "price > 101", False),
        (DEAR, None, False),
        (None, DEAR, False),
        (None, None, True),
    ],
)
def test_the_selector_is_part_of_what_a_queue_is(world: World, first: Any, second: Any, agrees: bool) -> None:
    consume(world, where=first)
    other, operator = world.connect(), world.connect()
    options = {"consumer": "billing", "durable": True, "ack": True}
    other.say(6, 1, 7, "orders.#", options if second is None else {**options, "where": second})
    wanted = {} if second is None else {"where": second}
    if agrees:
        assert other.next()[:2] == [OK, 1]
        assert done(operator, "add", name="billing", filters=["orders.#"], **wanted)["created"] is False
        return
    code, text, details = other.next()[2:]
    assert (code, details) == ("consumer_in_use", {"consumer": "billing", "option": "where"})
    assert text == (
        "the queue 'billing' exists with another where; all who declare it give the same selector, or none; give that, "
        "or choose another name"
    )
    assert refused(operator, "add", name="billing", filters=["orders.#"], **wanted) == (code, text)
    assert len(world.broker.queues) == 1


@pytest.mark.parametrize("where", ["x >", {"price": "x"}, "x LIKE 'a' ESCAPE 'bc'"])
def test_a_selector_that_cannot_be_read_is_refused_and_there_is_no_queue(world: World, where: Any) -> None:
    peer = world.connect()
    peer.say(6, 1, 7, "orders.#", {"consumer": "q", "ack": True, "where": where})
    code, _, details = peer.next()[2:]
    assert code == "invalid_selector"
    answer = ask(peer, "add", name="q", filters=["orders.#"], where=where)
    assert (answer[2], answer[4]) == (code, details)
    assert len(world.broker.queues) == len(world.broker.router) == 0


def test_a_message_of_two_filters_comes_in_once(world: World) -> None:
    operator = world.connect()
    done(operator, "add", name="q", filters=["orders.#", "*.eu", ["site/+", 1]], where=DEAR)
    assert sell(operator, 101, 99) == [1, 0]
    operator.send(publish("site/7", b"120", {"price": 120}, 1), publish("site/7", b"12", {"price": 12}, 1))
    assert payloads(operator, "q") == [b"101", b"120"]


def test_a_full_queue_refuses_only_what_would_come_in(world: World) -> None:
    consume(world, where=DEAR, queue={"messages_max": 1}).vanish()
    shop, other = world.connect(), world.connect()
    other.say(6, 1, 1, "orders.#", {})
    other.frames()
    assert sell(shop, 101) == [2]
    shop.send(publish("orders.eu", b"", {"price": 102}, request=1), publish("orders.eu", b"", {"price": 9}, request=2))
    refusal, receipt = shop.frames()
    assert refusal[:3] == [ERROR, 1, "queue_full"]
    assert receipt[:3] == [RECEIPT, 2, 1]


def test_queues_with_one_filter_and_different_selectors_get_what_is_theirs(world: World) -> None:
    wheres = [None, "price > 100", "price <= 100", "region = 'eu'"]
    workers = [consume(world, name=f"q{number}", where=where) for number, where in enumerate(wheres)]
    assert sell(world.connect(), 99, 101) == [2, 2]
    assert [got(worker) for worker in workers] == [[99, 101], [101], [99], []]


def test_views_and_explain_say_it(world: World) -> None:
    worker, operator = consume(world, where=DEAR), world.connect()
    done(operator, "add", name="plain", filters=["orders.#"])
    assert done(operator, "info", name="billing")["where"] == DEAR
    assert done(operator, "info", name="plain")["where"] is None
    listed = {each["name"]: each["where"] for each in done(operator, "list")["queues"]}
    assert listed == {"billing": DEAR, "plain": None}
    assert queue_view(world.broker.queues.find("billing"), world.now)["where"] == DEAR
    view = explained(world.broker, b"orders.eu", "amqp", None, 10, {"price": 80})
    assert [(each["group"], each["where"]) for each in view["matches"]] == [("plain", None)]
    (filtered,) = view["filtered"]
    assert (filtered["group"], filtered["where"]) == ("billing", DEAR)
    assert filtered["reason"] == "price is 80; the selector wants > 100"
    view = explained(world.broker, b"orders.eu", "amqp", None, 10, {"price": 101})
    assert {each["group"]: each["where"] for each in view["matches"]} == {"billing": DEAR, "plain": None}
    rows, _ = BrokerInspection(world.broker, lambda: 0.0, dict, lambda: True).snapshot(place=0, places=10)
    assert {each["group"]: each.get("where") for each in rows} == {"billing": DEAR, "plain": None}
    assert not worker.gone


def test_what_it_takes_is_counted_and_given_back(world: World) -> None:
    pot, router = world.broker.ledger.subscriptions, world.broker.router
    operator = world.connect()
    before = pot.used
    done(operator, "add", name="q", filters=["a", "b"], where=DEAR)
    plain = World()
    asker = plain.connect()
    done(asker, "add", name="q", filters=["a", "b"])
    assert pot.used - before > plain.broker.ledger.subscriptions.used + len(DEAR)
    assert (len(router), len(router.screens)) == (2, 2)
    done(operator, "remove", name="q")
    world.turn()
    assert (len(router), len(router.screens)) == (0, 0)
    assert pot.used <= before + router.index_bytes


def test_a_selector_counts_for_each_filter_and_a_queue_with_one_has_ten_at_most(world: World) -> None:
    operator = world.connect()
    filters = [f"a.{number}" for number in range(11)]
    done(operator, "add", name="plain", filters=filters)
    code, text = refused(operator, "add", name="q", filters=filters, where=DEAR)
    assert (code, text) == ("limit_exceeded", "too many filters of one queue; at most 10 (queue_filters)")
    done(operator, "add", name="q", filters=filters[:10], where=DEAR)
    small = World(subscriptions_bytes_max=400_000)
    operator = small.connect()
    large = f"x IN ({', '.join(map(str, range(700)))})"
    code, _ = refused(operator, "add", name="q", filters=filters[:10], where=large)
    assert code == "limit_exceeded"
    assert len(small.broker.queues) == len(small.broker.router) == 0
    done(operator, "add", name="q", filters=filters[:2], where=large)


@pytest.mark.parametrize("deliver", [None, "last"])
def test_a_queue_whose_selector_has_no_room_in_the_router_is_not_there(world: World, deliver: str | None) -> None:
    router, peer = world.broker.router, world.connect()
    peer.say(6, 1, 1, "other", {"where": "x = 1"})
    peer.frames()
    attributes = router.screens.screen_of(next(router.subscriptions())).screen.attributes
    last = [attributes.acquire(Attribute(Source.HEADER, (f"h{number}",))) for number in range(1, ATTRIBUTES_MAX)][-1]
    options = {"consumer": "q", "durable": True, "ack": True, "where": DEAR}
    peer.say(6, 1, 7, "orders.#", options if deliver is None else {**options, "deliver": deliver})
    world.turn()
    assert peer.next()[:3] == [ERROR, 1, "limit_exceeded"]
    assert (len(world.broker.queues), len(router), len(router.screens)) == (0, 1, 1)
    attributes.release(last)
    subscribe(peer, "orders.#", "q", where=DEAR, deliver=deliver)
    assert sell(world.connect(), 99, 101) == [0, 1]
    assert got(peer) == [101]


def test_a_queue_of_one_client_has_a_selector_too_and_ends_with_it(world: World) -> None:
    worker = world.connect()
    subscribe(worker, "orders.#", "own", durable=None, where=DEAR)
    assert sell(world.connect(), 99, 101) == [0, 1]
    assert got(worker) == [101]
    worker.vanish()
    assert len(world.broker.router.screens) == 0


def test_move_puts_messages_into_a_queue_whatever_its_selector_says(world: World) -> None:
    operator = world.connect()
    done(operator, "add", name="all", filters=["orders.#"])
    done(operator, "add", name="dear", filters=["orders.#"], where=DEAR)
    sell(operator, 99)
    assert done(operator, "move", name="all", to="dear")["messages"] == 1
    assert payloads(operator, "dear") == [b"99"]
