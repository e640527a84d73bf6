"""SUBSCRIBE with the User Property `where`: only messages of which the selector is true, at each quality of service."""

import pytest

from fanlight_broker.protocols.mqtt.packets import Publish, SubAck, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.broker.protocols.native import world as native

QUALITIES = pytest.mark.parametrize("qos", [0, 1, 2])


class BothWorlds(World):
    """MQTT connections, and native ones to the same broker."""

    plain = False


def subscribe(peer: Peer, *filters: str | Subscription, where: str, qos: int = 0, **properties: object) -> None:
    codes = peer.subscribe(*filters, qos=qos, user_properties=(("where", where),), **properties)
    assert all(code < 0x80 for code in codes)


def publish(peer: Peer, topic: str, price: str, qos: int, *, retain: bool = False) -> int | None:
    """The reason code of the answer; None without one. The payload is the price."""
    answers = peer.publish(topic, price.encode(), qos, retain=retain, user_properties=(("price", price),))
    return answers[0].reason_code if answers else None  # type: ignore[union-attr]


@QUALITIES
@pytest.mark.parametrize("retain", [False, True])
def test_only_what_the_selector_is_true_of_is_delivered(qos: int, retain: bool) -> None:
    world = World()
    listener, publisher = world.connect("s"), world.connect("p")
    subscribe(listener, "stock/+", where="price > 100", qos=qos)
    codes = [publish(publisher, "stock/a", price, qos, retain=retain) for price in ("99", "1e3", "abc", "101", "100")]
    assert [message.payload for message in listener.messages()] == [b"1e3", b"101"]
    assert (world.broker.ledger.filtered, world.broker.ledger.unroutable) == (3, 0)
    if qos:
        assert codes == [0x10, 0, 0x10, 0, 0x10]
    if retain:
        other = world.connect("o")
        other.subscribe("stock/a")
        assert [message.payload for message in other.messages()] == [b"100"]  # it is retained all the same


@QUALITIES
def test_what_waits_for_an_absent_client_is_what_it_wants(qos: int) -> None:
    world = World()
    listener = world.connect("s", session_expiry_interval=1_000)
    subscribe(listener, "stock/+", where="price > 100", qos=2)
    listener.vanish()
    publisher = world.connect("p")
    for price in ("50", "150", "60", "160"):
        publish(publisher, "stock/a", price, qos)
    again = world.open()
    again.say(connect("s", clean_start=False, session_expiry_interval=1_000))
    got = [packet.payload for packet in again.packets() if isinstance(packet, Publish)]
    assert got == ([b"150", b"160"] if qos else [])


@QUALITIES
def test_overlapping_subscriptions_are_one_copy_of_those_that_want_it(qos: int) -> None:
    world = World()
    listener, publisher = world.connect("s"), world.connect("p")
    subscribe(listener, "stock/#", where="price > 10", qos=2, subscription_identifiers=(1,))
    subscribe(listener, "stock/+", where="price > 20", qos=1, subscription_identifiers=(2,))
    listener.subscribe("+/a", qos=0, subscription_identifiers=(3,))
    for price in ("5", "15", "25"):
        publish(publisher, "stock/a", price, qos)
    got = [(message.payload, message.qos, message.properties.subscription_identifiers)
           for message in listener.messages()]
    assert got == [(b"5", 0, (3,)), (b"15", qos, (1, 3)), (b"25", qos, (1, 2, 3))]


def test_a_selector_that_cannot_be_read_is_refused_with_its_byte() -> None:
    world = World()
    peer = world.connect("s")
    assert peer.subscribe("a", qos=1) == (1,)
    peer.say(Subscribe(9, (Subscription("a"), Subscription("b")), Properties(user_properties=(("where", "x >"),))))
    suback = peer.next()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == (ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,) * 2
    assert "byte 3" in (suback.properties.reason_string or "")
    assert len(world.broker.router) == 1  # the one that was there stays
    twice = Properties(user_properties=(("where", "x = 1"), ("where", "y = 1")))
    peer.say(Subscribe(10, (Subscription("a"),), twice))
    suback = peer.next()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == (ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,)


@QUALITIES
def test_another_selector_for_the_same_filter_takes_the_place_of_the_first(qos: int) -> None:
    world = World()
    listener, publisher = world.connect("s"), world.connect("p")
    wheres = ["price > 10", "price  >  10", "price < 5", None, "price > 100"]
    wanted = [["15", "150"], ["15", "150"], ["1"], ["1", "15", "150"], ["150"]]
    for where, expected in zip(wheres, wanted, strict=True):
        if where is None:
            assert listener.subscribe("a", qos=2) == (2,)
        else:
            subscribe(listener, "a", where=where, qos=2)
        assert len(world.broker.router) == 1
        for price in ("1", "15", "150"):
            publish(publisher, "a", price, qos)
        assert [message.payload.decode() for message in listener.messages()] == expected
    world.broker.sessions.unsubscribe(listener.protocol.session, b"a", None)
    assert (len(world.broker.router), len(world.broker.router.screens)) == (0, 0)


@QUALITIES
def test_shared_subscriptions_of_one_selector_are_a_group(qos: int) -> None:
    world = World()
    workers, publisher = [world.connect(f"w{n}") for n in range(3)], world.connect("p")
    for worker in workers:
        subscribe(worker, "$share/g/stock/+", where="price > 4", qos=2)
    for price in range(10):
        publish(publisher, "stock/a", str(price), qos)
    got = [[int(message.payload) for message in worker.messages()] for worker in workers]
    assert sorted([*got[0], *got[1], *got[2]]) == [5, 6, 7, 8, 9]


def test_a_will_and_a_client_of_3_1_1_are_screened_too() -> None:
    world = World()
    listener, publisher = world.connect("s"), world.connect("p", V3)
    subscribe(listener, "a", where="$bytes > 3 AND $qos = 0 AND NOT $retain")
    publisher.publish("a", b"abc")
    publisher.publish("a", b"abcd")
    assert [message.payload for message in listener.messages()] == [b"abcd"]


def test_messages_of_the_other_protocol_have_types() -> None:
    """Text of a User Property is a number where it is compared with one; a native header is what it is."""
    world = BothWorlds()
    listener = world.connect("s")
    subscribe(listener, "a", where="price > 100")
    peer = native.Peer(world)  # type: ignore[arg-type]
    peer.say(1, 1, {})
    for price in (101, "101", 99):
        peer.send(native.publish("a", str(price).encode(), {"price": price}))
    assert [message.payload for message in listener.messages()] == [b"101"]
