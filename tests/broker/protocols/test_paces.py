"""Publishers over their rate: held back or refused, in each protocol, and nobody else waits for them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native
from tests.broker.protocols.native.world import messages
from tests.broker.protocols.sinks import FREE as SLOW
from tests.broker.protocols.sinks import PACED as FAST
from tests.broker.protocols.sinks import ByAddress


def native_world(**entries: Any) -> native.World:
    world = native.World(idle_seconds_max=0)
    world.broker.clients.quotas = ByAddress(FAST, **entries)
    return world


def open_native(world: native.World, address: str) -> native.Peer:
    peer = world.open()
    peer.address = address
    peer.send(native.frame(1, 1, {}))
    assert peer.next()[0] == 2
    return peer


def got(peer: native.Peer) -> int:
    return len(messages(peer.frames()))


def subscribed(world: native.World) -> native.Peer:
    peer = open_native(world, SLOW)
    peer.send(native.frame(6, 1, 1, "#"))
    assert peer.next()[0] != 13
    return peer


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12))
def test_so_many_messages_pass_as_the_rate_allows_and_none_is_lost(rate: int, steps: list[tuple[int, int]]) -> None:
    world = native_world(publish_messages=rate)
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    tokens, waiting, passed = float(rate), 0, 0
    for count, eighths in steps:
        publisher.send(native.publish("a", b"x") * count)
        waiting += count
        for seconds in (0, eighths / 8):
            world.pass_time(seconds)
            tokens = min(tokens + seconds * rate, float(rate))
            now_passed = min(waiting, int(tokens))
            tokens, waiting, passed = tokens - now_passed, waiting - now_passed, passed + now_passed
            assert got(subscriber) == now_passed
        assert publisher.held_back == (tokens < 1 and waiting > 0) or not waiting
    for _ in range(waiting):
        world.pass_time(1.0)
        waiting -= got(subscriber)
    assert waiting == 0


def test_a_message_that_takes_more_than_there_is_passes_and_the_next_one_waits_for_it() -> None:
    world = native_world(publish_bytes=1_000)
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    publisher.send(native.publish("a", bytes(2_999)) + native.publish("a", b"x"))
    assert got(subscriber) == 1
    for _ in range(2):
        world.pass_time(0.999)
        assert got(subscriber) == 0
    world.pass_time(0.01)
    assert got(subscriber) == 1


def test_all_clients_of_a_principal_have_one_rate_and_take_turns() -> None:
    world = native_world(publish_messages=4)
    subscriber, publishers = subscribed(world), [open_native(world, FAST) for _ in range(2)]
    for number, publisher in enumerate(publishers):
        publisher.send(b"".join(native.publish(f"{number}", b"x") for _ in range(10)))
    by_publisher = [0, 0]
    for _ in range(4):
        for topic in (fields[2] for fields in subscriber.frames()):
            by_publisher[int(topic)] += 1
        world.pass_time(1.0)
    for topic in (fields[2] for fields in subscriber.frames()):
        by_publisher[int(topic)] += 1
    assert sum(by_publisher) == 20
    assert not any(publisher.gone for publisher in publishers)


def test_another_principal_publishes_while_one_is_held_back() -> None:
    world = native_world(publish_messages=1)
    subscriber, fast, slow = subscribed(world), open_native(world, FAST), open_native(world, SLOW)
    fast.send(native.publish("a", b"x") * 100)
    assert got(subscriber) == 1
    slow.send(native.publish("b", b"x") * 100)
    assert got(subscriber) == 100
    assert world.broker.paces.held >= 1


def test_who_connects_again_still_owes() -> None:
    world = native_world(publish_messages=10)
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    publisher.send(native.publish("a", b"x") * 100)
    publisher.vanish()
    assert got(subscriber) == 10
    again = open_native(world, FAST)
    again.send(native.publish("a", b"x") * 100)
    assert got(subscriber) == 0
    world.pass_time(0.1)
    assert got(subscriber) == 1
    again.vanish()
    world.pass_time(1.0)
    assert len(world.broker.paces) == 0  # it owes nothing, and is forgotten
    open_native(world, FAST).send(native.publish("a", b"x") * 100)
    assert got(subscriber) == 10


def test_a_native_publish_over_its_rate_is_refused_where_it_is_to_be() -> None:
    world = native_world(publish_messages=2, over_rate="refuse")
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    publisher.send(b"".join(native.publish("a", b"x", request=n) for n in range(4)))
    assert got(subscriber) == 2
    answers = publisher.frames()
    assert [fields[0] for fields in answers] == [5, 5, 13, 13]
    assert answers[2][2] == "limit_exceeded"
    assert "published too fast; again in 0.5 s" in answers[2][3]
    world.pass_time(0.5)
    publisher.send(native.publish("a", b"x", request=9))
    assert got(subscriber) == 1


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("over_rate", ["hold", "refuse"])
def test_mqtt_holds_back_or_refuses_and_acknowledges_nothing_that_is_lost(version: Version, over_rate: str) -> None:
    world = mqtt.World()
    world.broker.clients.quotas = ByAddress(FAST, publish_messages=2, over_rate=over_rate)
    subscriber = world.connect("s", version)
    assert subscriber.subscribe("#", qos=1) == (1,)
    publisher = world.open(version)
    publisher.address = FAST
    publisher.say(mqtt.connect("p", version))
    publisher.next()
    publisher.say(*(Publish("a", bytes([n]), qos=1, packet_id=n) for n in range(1, 5)))
    acknowledged = [packet for packet in publisher.packets() if isinstance(packet, PubAck)]
    refuses = over_rate == "refuse" and version is V5
    assert [packet.reason_code for packet in acknowledged] == [R.SUCCESS] * 2 + [R.QUOTA_EXCEEDED] * 2 * refuses
    assert [packet.payload for packet in subscriber.messages()] == [b"\1", b"\2"]
    world.pass_time(1.0)
    later = [packet.payload for packet in subscriber.messages()]
    assert later == ([] if refuses else [b"\3", b"\4"])
    assert len([packet for packet in publisher.packets() if isinstance(packet, PubAck)]) == len(later)


def test_connections_of_a_principal_are_bounded_and_a_session_may_be_taken_over() -> None:
    world = mqtt.World()
    world.broker.clients.quotas = ByAddress(FAST, connections=2)

    def hello(name: str, address: str = FAST) -> mqtt.Peer:
        peer = world.open(V5)
        peer.address = address
        peer.say(mqtt.connect(name, V5))
        return peer

    assert [hello(name).next().reason_code for name in ("a", "b")] == [0, 0]  # type: ignore[union-attr]
    refused = hello("c")
    assert refused.next().reason_code == R.QUOTA_EXCEEDED  # type: ignore[union-attr]
    assert hello("b").next().reason_code == 0  # type: ignore[union-attr]
    assert hello("c", SLOW).next().reason_code == 0  # type: ignore[union-attr]


def test_pots_are_bounded_by_a_quota_beside_the_share() -> None:
    world = native_world(subscriptions=3)
    client = open_native(world, FAST)
    client.send(b"".join(native.frame(6, n, n, f"f.{n}") for n in range(1, 6)))
    answers = client.frames()
    assert [fields[0] == 13 for fields in answers] == [False] * 3 + [True] * 2
    assert "has used up its quota of subscriptions" in answers[-1][3]
    assert answers[-1][4] == {"limit": "quota subscriptions", "value": 3}


def test_what_is_delayed_counts_when_it_is_published_and_not_when_it_is_due() -> None:
    world = native_world(publish_messages=2)
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    publisher.send(native.frame(3, None, "a", b"x", None, None, None, None, {"delay": 5.0}) * 4)
    assert (len(world.broker.delayed), publisher.held_back) == (2, True)
    world.pass_time(1.0)
    assert len(world.broker.delayed) == 4
    publisher.vanish()  # nobody is there whom they could be counted for when they are due
    again = open_native(world, FAST)
    again.send(native.publish("a", b"y") * 9)
    assert got(subscriber) == 0
    world.pass_time(5.0)
    assert got(subscriber) == 4 + 2  # what waited, and the burst: what was due was paid


@pytest.mark.parametrize("what", ["a repetition", "no permission"])
def test_what_goes_nowhere_counts_all_the_same(what: str) -> None:
    world = native_world(publish_messages=10)
    publisher = open_native(world, FAST)
    mark = ["p", 0, 7] if what == "a repetition" else None
    topic = "a" if mark else "$SYS.a"
    publisher.send(native.frame(3, 1, topic, b"x", None, None, None, mark) * 30)
    assert len(publisher.frames()) == 10
    world.pass_time(0.5)
    assert len(publisher.frames()) == 5


def test_many_that_wait_for_a_quick_bucket_are_let_go_on_together() -> None:
    world = native_world(publish_messages=1_000, burst_seconds=0.1)
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    publisher.send(native.publish("a", b"x") * 200)
    assert got(subscriber) == 100
    world.pass_time(0.005)
    assert got(subscriber) == 0  # each look takes as long as a hundred messages
    world.pass_time(0.0051)
    assert got(subscriber) == 10
    for _ in range(9):
        world.pass_time(0.0101)
    assert got(subscriber) == 90
    assert world.broker.paces.held <= 11


def test_a_bucket_that_is_full_before_is_looked_at_more_often() -> None:
    world = native_world(publish_messages=1_000, burst_seconds=0.004)
    subscriber, publisher = subscribed(world), open_native(world, FAST)
    publisher.send(native.publish("a", b"x") * 50)
    for passed in (4, 2, 2, 2):
        assert got(subscriber) == passed
        world.pass_time(0.0021)
