"""SUBSCRIBE with the option `where` (section 3.5): only messages of which the selector is true."""

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest

from fanlight_broker.core.payload_formats import PayloadFormats
from tests.broker.protocols.native.test_subscribing import error_of
from tests.broker.protocols.native.world import Peer, World, frame, messages, publish

LANES = pytest.mark.parametrize("plain", [False, True], ids=["lane", "python"])


def subscribe(peer: Peer, number: int, filter: str, where: Any, **options: Any) -> None:
    peer.say(6, 1, number, filter, {"where": where, **options})
    assert peer.next()[:2] == [7, 1]


def priced(topic: str, price: Any, payload: bytes = b"", request: int | None = None) -> bytes:
    return publish(topic, payload, {"price": price}, request=request)


@LANES
def test_only_what_the_selector_is_true_of_is_delivered(plain: bool) -> None:
    world = World(plain=plain)
    listener, publisher = world.connect(), world.connect()
    subscribe(listener, 1, "stock.#", "price > 100")
    for price in (99, 100, 101, 100.5, "500", None, True, [200]):
        publisher.send(priced("stock.a", price, str(price).encode(), request=7))
    publisher.send(publish("stock.a", b"no headers", request=7))
    assert messages(listener.frames()) == [(1, b"101"), (1, b"100.5")]
    assert [fields[2] for fields in publisher.frames()] == [0, 0, 1, 1, 0, 0, 0, 0, 0]
    ledger = world.broker.ledger
    assert (ledger.filtered, ledger.unroutable, ledger.messages_in) == (7, 0, 9)


@LANES
@pytest.mark.parametrize("topics", [1, 40], ids=["one topic", "each topic once"])
def test_messages_that_are_read_together_are_told_apart(plain: bool, topics: int) -> None:
    world = World(plain=plain, routes_max=16)
    plain_one, dear, cheap, publisher = (world.connect() for _ in range(4))
    plain_one.say(6, None, 5, "#")
    subscribe(dear, 1, "stock.*", "price >= 30")
    subscribe(cheap, 2, "stock.#", "price < 10 OR price = 35")
    publisher.send(b"".join(priced(f"stock.{n % topics}", n, b"%d" % n) for n in range(40)))
    assert messages(plain_one.frames()) == [(5, b"%d" % n) for n in range(40)]
    assert messages(dear.frames()) == [(1, b"%d" % n) for n in range(30, 40)]
    assert messages(cheap.frames()) == [(2, b"%d" % n) for n in (*range(10), 35)]
    assert world.broker.ledger.filtered == 0
    assert sum(world.broker.router.messages_by_route().values()) >= (40 if topics == 1 else 0)


def test_batches_of_what_goes_to_the_same_are_still_made() -> None:
    world = World()
    listener, publisher = world.connect(), world.connect()
    subscribe(listener, 1, "a", "price > 0")
    publisher.send(b"".join(priced("a", 1 + n % 7, b"x" * 100) for n in range(200)))
    assert len(messages(listener.frames())) == 200
    assert world.broker.routes.batcher.joined > 100


def test_fields_of_the_body_and_of_the_message() -> None:
    world = World()
    listener, publisher = world.connect(), world.connect(client="alice")
    subscribe(listener, 1, "#", "payload.order.total > 10 AND $word[2] = 'eu' AND $client = 'alice' AND $words = 3")
    order = {"order": {"total": 12}}
    for content_type, body in (
        ("application/json", b'{"order": {"total": 12}}'), ("application/msgpack", msgpack.packb(order)),
        ("application/json; charset=utf-8", b'{"order": {"total": 9}}'), ("text/plain", b'{"order": {"total": 12}}'),
        ("application/json", b'{"order": '), ("application/json", b"[" * 50_000),
        ("application/msgpack", b"\x81\x90\x01"), ("application/x-msgpack", b"\xc1"),
        ("application/msgpack", b"\x91" * 50_000),
    ):
        publisher.send(publish("shop.eu.new", body, {"content-type": content_type}))
    publisher.send(publish("shop.us.new", msgpack.packb(order), {"content-type": "application/msgpack"}))
    expected = [(1, b'{"order": {"total": 12}}'), (1, msgpack.packb(order))]
    assert messages(listener.frames()) == expected
    bodies = world.broker.router.screens.bodies
    assert bodies.malformed >= 2
    assert bodies.malformed + bodies.too_large >= 4
    assert not publisher.gone


def test_a_selector_may_be_a_map() -> None:
    world = World()
    listener, publisher = world.connect(), world.connect()
    subscribe(listener, 1, "a", {"price": [{"numeric": [">", 100]}], "region": ["eu", "us"]})
    for headers in ({"price": 101, "region": "us"}, {"price": 101, "region": "cn"}, {"price": 1, "region": "us"}):
        publisher.send(publish("a", headers["region"].encode(), headers))
    assert messages(listener.frames()) == [(1, b"us")]


@pytest.mark.parametrize(("where", "position"), [
    ("price >", 7), ("price > 1 AND", 13), ("a = 'x", 4), ("price + 1 > 2", 6), ("ä = 1", 0), ("x = 1" * 1_000, 4_096),
    ({"price": []}, 0), ({"price": list(range(100_000))}, 4_096), ({"price": [1] * 1_001}, None), ("", 0),
])
def test_what_is_no_selector_is_refused_with_its_byte(where: Any, position: int | None) -> None:
    world = World(frame_bytes_max=1 << 20)
    peer = world.connect()
    peer.say(6, 1, 1, "a", {"where": where})
    if position is None:  # a list of equal values is one value
        assert peer.next() == [7, 1]
        return
    assert error_of(peer, 1, "invalid_selector") == {"position": position}
    assert len(world.broker.router) == 0


@pytest.mark.parametrize("where", [5, b"a = 1", [1]])
def test_a_selector_of_another_type_breaks_the_protocol(where: Any) -> None:
    peer = World().connect()
    peer.say(6, 1, 1, "a", {"where": where})
    assert peer.frames()[0][:3] == [13, 1, "protocol_error"]
    assert peer.gone


def test_groups_of_one_name_and_two_selectors_are_two_groups() -> None:
    world = World()
    workers, publisher = [world.connect() for _ in range(4)], world.connect()
    for number, where in enumerate(["price > 5", "price > 5", "price < 8", None]):
        options = {"group": "g"} if where is None else {"group": "g", "where": where}
        workers[number].say(6, None, number, "a", options)
    publisher.send(b"".join(priced("a", n, b"%d" % n) for n in range(10)))
    got = [[int(payload) for _, payload in messages(worker.frames())] for worker in workers]
    assert sorted(got[0] + got[1]) == [6, 7, 8, 9]
    assert got[0]
    assert got[1]
    assert got[2] == list(range(8))
    assert got[3] == list(range(10))


def test_subscriptions_that_come_and_go_between_messages() -> None:
    world = World()
    listener, publisher = world.connect(), world.connect()
    expected: list[tuple[int, bytes]] = []
    begun: dict[int, int] = {}
    for step in range(60):
        number = step % 7
        if number in begun:
            del begun[number]
            listener.say(8, None, number)
        else:
            begun[number] = step % 5
            listener.say(6, None, number, "*" if step % 2 else "a", {"where": f"price > {step % 5}"})
        publisher.send(priced("a", step % 6, b"%d" % step))
        expected += [(each, b"%d" % step) for each in sorted(begun) if step % 6 > begun[each]]
        assert sorted(messages(listener.frames())) == sorted(expected)
        expected.clear()
    for number in begun:
        listener.say(8, None, number)
    assert (len(world.broker.router), len(world.broker.router.screens)) == (0, 0)
    world.turn()
    publisher.send(priced("a", 5, request=1))
    assert publisher.next() == [5, 1, 0]
    assert world.broker.ledger.unroutable > 0


def test_what_a_client_does_not_want_back_and_what_has_an_end() -> None:
    world = World()
    peer, other = world.connect(), world.connect()
    subscribe(peer, 1, "a", "price > 0", no_echo=True)
    subscribe(peer, 2, "a", "price > 1", after=2)
    peer.send(priced("a", 5, b"own"))
    other.send(priced("a", 1, b"one"), priced("a", 2, b"two"), priced("a", 2, b"three"))
    frames = peer.frames()
    assert messages(frames) == [(2, b"own"), (1, b"one"), (1, b"two"), (2, b"two"), (1, b"three")]
    assert [fields[:3] for fields in frames if fields[0] == 9] == [[9, 2, "after"]]


def test_a_selector_counts_in_its_share_of_memory() -> None:
    world = World()
    peer = world.connect()
    pot, router = world.broker.ledger.subscriptions, world.broker.router
    subscribe(peer, 1, "a", f"x IN ({', '.join(str(n) for n in range(500))})")
    assert pot.used - router.index_bytes > 500 * 50
    peer.say(8, 1, 1)
    assert pot.used == router.index_bytes  # it keeps what it has, for the next one
    world = World(subscriptions_bytes_max=20_000)
    peer = world.connect()
    peer.say(6, 1, 1, "a", {"where": f"x IN ({', '.join(str(n) for n in range(500))})"})
    assert peer.next()[:3] == [13, 1, "limit_exceeded"]


def test_frames_are_the_same_for_a_message_that_python_publishes() -> None:
    """With a reply topic a PUBLISH is Python's: it is screened like the others."""
    world = World()
    listener, publisher = world.connect(), world.connect()
    subscribe(listener, 1, "a", "price > 10")
    for price in (9, 11):
        publisher.send(frame(3, None, "a", b"%d" % price, {"price": price}, None, "reply.to"))
    assert messages(listener.frames()) == [(1, b"11")]


@LANES
def test_the_setting_says_what_bodies_are_that_have_no_content_type(plain: bool) -> None:
    world = World(plain=plain)
    formats = PayloadFormats("shop.#=json")
    world.broker.router.read_bodies_as(formats.of)
    listener, publisher = world.connect(), world.connect()
    subscribe(listener, 1, "#", "payload.total > 10 AND $time IS NULL")
    for topic in ("shop.a", "other", "shop.a"):
        publisher.send(publish(topic, b'{"total": 12}'), publish(topic, b'{"total": 9}'))
    publisher.send(publish("other", b'{"total": 13}', {"content-type": "application/json"}))
    assert [payload for _, payload in messages(listener.frames())] == [b'{"total": 12}'] * 2 + [b'{"total": 13}']
