"""What passes between MQTT clients and the broker, in both versions: the ordinary course of things."""

from collections.abc import Callable
from itertools import count, pairwise

import pytest

from fanlight_broker.core.retained import SLICE
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
    WillFields,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import World, connect

versions = pytest.mark.parametrize("version", [V3, V5])


@versions
def test_a_client_connects_pings_and_says_goodbye(version: Version) -> None:
    world = World()
    peer = world.connect("sensor", version, keep_alive=30)
    assert peer.connack is not None
    assert not peer.connack.session_present
    peer.say(PingReq())
    assert peer.next() == PingResp()
    peer.say(Disconnect())
    assert peer.gone
    assert peer.packets() == []
    assert not len(world.broker.sessions)


@versions
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_message_reaches_a_subscriber_at_the_lower_qos(version: Version, qos: int, granted: int) -> None:
    world = World()
    subscriber, publisher = world.connect("s", version), world.connect("p", version)
    assert subscriber.subscribe("site/+/temp", qos=granted) == (granted,)
    answers = publisher.publish("site/7/temp", b"21.5", qos)
    assert [type(answer) for answer in answers] == [[], [PubAck], [PubRec, PubComp]][qos]
    (message,) = subscriber.messages()
    assert (message.topic, message.payload, message.qos, message.retain, message.dup) == (
        "site/7/temp", b"21.5", min(qos, granted), False, False,
    )
    assert subscriber.protocol.session.window.in_flight == 0


def test_a_known_message_of_a_transport_without_a_compiled_read_needs_no_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    subscriber, publisher = world.connect("subscriber"), world.connect("publisher")
    subscriber.subscribe("a/b")
    publisher.publish("a/b", b"the topic becomes known")
    asked: list[int | None] = []
    monkeypatch.setattr(publisher.protocol, "process", lambda event, now: asked.append(event))
    publisher.publish("a/b", b"1")
    publisher.publish("a/b", b"2")
    assert [message.payload for message in subscriber.messages()] == [b"the topic becomes known", b"1", b"2"]
    assert asked == []


@pytest.mark.parametrize("where", [(), (("where", "x > 1"),)], ids=["plain", "where"])
def test_others_have_their_turn_within_a_packet_of_many_filters(where: tuple[tuple[str, str], ...]) -> None:
    """3.8, 3.10: the packets behind it wait for its answer, which has a code for each filter in their order."""
    world = World()
    peer, other = world.connect("many", keep_alive=1), world.connect("other")
    filters = tuple(f"t/{n}" if n != 700 else "/" * 200 for n in range(1_000))
    at_turns: list[int] = []
    next_turn = peer.next_turn

    def turn_over(go_on: Callable[[], None]) -> None:
        at_turns.append(len(world.broker.router))
        other.say(PingReq())
        assert other.next() == PingResp()
        world.now += 1.0
        peer.protocol.idle(world.now)  # the silence is the broker's own
        next_turn(go_on)

    looks = count(1)
    world.broker.turns.over = lambda: next(looks) % 256 == 0
    peer.next_turn = turn_over  # type: ignore[method-assign]
    properties = Properties(user_properties=where)
    peer.say(Subscribe(1, tuple(Subscription(each) for each in filters), properties), PingReq())
    suback, pingresp = peer.packets()
    assert isinstance(suback, SubAck)
    assert [code != 0 for code in suback.reason_codes] == [n == 700 for n in range(1_000)]
    assert pingresp == PingResp()
    assert 3 <= len(at_turns) <= 4
    assert all(0 < after - before <= 256 for before, after in pairwise([0, *at_turns]))
    at_turns.clear()
    peer.say(Unsubscribe(2, filters))
    unsuback = peer.next()
    assert isinstance(unsuback, UnsubAck)
    assert [code != 0 for code in unsuback.reason_codes] == [n == 700 for n in range(1_000)]
    assert 3 <= len(at_turns) <= 4
    assert all(0 < before - after <= 256 for before, after in pairwise([999, *at_turns]))


def test_many_subscribes_in_one_read_get_one_slice_of_retained_messages_in_that_turn() -> None:
    world = World()
    publisher, peer = world.connect("p"), world.connect("s")
    for n in range(2 * SLICE):
        publisher.publish(f"{n}", b"x", retain=True)
    peer.reads = False
    peer.say(*(Subscribe(n, (Subscription("#"),)) for n in range(1, 21)))
    assert 0 < peer.protocol.outbox.messages <= SLICE
    peer.read_all()
    assert len([packet for packet in peer.packets() if isinstance(packet, Publish)]) == 2 * SLICE


def test_a_packet_of_many_filters_ends_with_its_connection() -> None:
    world = World()
    peer = world.connect("many", session_expiry_interval=60)
    next_turn = peer.next_turn

    def break_off(go_on: Callable[[], None]) -> None:
        next_turn(go_on)
        peer.vanish()

    looks = count(1)
    world.broker.turns.over = lambda: next(looks) % 256 == 0
    peer.next_turn = break_off  # type: ignore[method-assign]
    peer.say(Subscribe(1, tuple(Subscription(f"t/{n}") for n in range(1_000))))
    made = len(world.broker.router)
    assert 0 < made <= 256
    again = world.connect("many", clean_start=False)
    assert again.subscribe("t/999") == (0,)
    assert len(world.broker.router) == made + 1


@versions
@pytest.mark.parametrize("how", ["error", "idle", "cut off", "goodbye"])
def test_a_session_leaves_when_the_broker_closes_however_long_the_peer_takes(version: Version, how: str) -> None:
    """Its share of a group goes to others, its will is published, and nothing follows DISCONNECT [MQTT-3.14.4-1]."""
    world = World()
    watcher, other, publisher = (world.connect(name, version) for name in ("watcher", "other", "publisher"))
    watcher.subscribe("will")
    expiry = {"session_expiry_interval": 60} if version is V5 else {}
    peer = world.connect("p", version, clean_start=False, keep_alive=10, will=WillFields("will", b"gone"), **expiry)
    assert peer.subscribe("own", qos=1) == (1,)
    for member in (peer, other):
        assert member.subscribe("$share/g/t", qos=1) == (1,)
    peer.reads = False
    peer.close = lambda reason="": peer.protocol.outbox.close()  # type: ignore[method-assign]  # it does not close
    match how:
        case "error":
            peer.send(b"\x36\x00")
        case "idle":
            world.pass_time(20)
        case "cut off":
            peer.protocol.cut_off("slow_consumer", "too slow")
        case "goodbye":
            peer.protocol.say_goodbye("shutting_down", "the broker stops")
    world.turn()
    assert not peer.gone
    unsent = peer.protocol.outbox.size
    for n in range(10):
        publisher.publish("t", b"%d" % n, n % 2)
        publisher.publish("own", b"%d" % n, n % 2)
    assert [message.payload for message in other.messages()] == [b"%d" % n for n in range(10)]
    assert [message.payload for message in watcher.messages()] == [b"gone"]
    assert peer.protocol.outbox.size == unsent
    again = world.open(version)
    again.say(connect("p", version, clean_start=False, **expiry))
    connack, *waiting = again.packets()
    assert connack.session_present  # type: ignore[attr-defined]
    assert [packet.payload for packet in waiting if isinstance(packet, Publish)] == [b"1", b"3", b"5", b"7", b"9"]
    assert watcher.messages() == []  # a will is published once


@versions
def test_an_unsubscribed_client_gets_nothing_more(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    peer.subscribe("a", "b")
    peer.say(Unsubscribe(9, ("a", "never/there")))
    codes = (ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED) if version is V5 else ()
    assert peer.next() == UnsubAck(9, codes)
    peer.publish("a", b"1")
    peer.received = b""
    world.connect("p", version).publish("b", b"2")
    assert [message.payload for message in peer.messages()] == [b"2"]


@versions
def test_a_retained_message_is_there_for_who_comes_later_until_it_is_cleared(version: Version) -> None:
    world = World()
    publisher = world.connect("p", version)
    publisher.publish("door", b"open", retain=True)
    publisher.publish("door", b"shut", 1, retain=True)
    late = world.connect("late", version)
    late.subscribe("#", qos=1)
    (message,) = late.messages()
    assert (message.payload, message.retain, message.qos) == (b"shut", True, 1)
    publisher.publish("door", b"", retain=True)
    (cleared,) = late.messages()
    assert (cleared.payload, cleared.retain) == (b"", False)
    assert not world.broker.retained
    world.connect("later", version).subscribe("#")


@versions
def test_what_a_session_missed_comes_when_its_client_is_back(version: Version) -> None:
    world = World()
    options = {"clean_start": False} | ({"session_expiry_interval": 60} if version is V5 else {})
    away = world.connect("away", version, **options)
    away.subscribe("news", qos=1)
    away.vanish()
    publisher = world.connect("p", version)
    for text in (b"1", b"2", b"3"):
        publisher.publish("news", text, 1)
    peer = world.open(version)
    peer.say(connect("away", version, **options))
    connack, *rest = peer.packets()
    assert isinstance(connack, ConnAck)
    assert connack.session_present
    assert [packet.payload for packet in rest if isinstance(packet, Publish)] == [b"1", b"2", b"3"]


def test_properties_pass_through_unchanged_and_the_expiry_is_what_is_left() -> None:
    world = World()
    peer = world.connect("s")
    peer.subscribe(Subscription("a", 1), subscription_identifiers=(7,))
    world.connect("p").publish(
        "a", b"text", 1, payload_format_indicator=1, message_expiry_interval=60, content_type="text/plain",
        response_topic="r/1", correlation_data=b"\x01", user_properties=(("k", "1"), ("k", "2")),
    )
    (message,) = peer.messages()
    assert message.properties == Properties(
        payload_format_indicator=1, message_expiry_interval=60, content_type="text/plain", response_topic="r/1",
        correlation_data=b"\x01", user_properties=(("k", "1"), ("k", "2")), subscription_identifiers=(7,),
    )


def test_each_version_gets_what_the_other_publishes() -> None:
    world = World()
    old, new = world.connect("old", V3), world.connect("new", V5)
    old.subscribe("#")
    new.subscribe("#")
    world.connect("p5", V5).publish("a", b"1", content_type="x")
    world.connect("p3", V3).publish("b", b"2")
    assert [message.topic for message in old.messages()] == ["a", "b"]
    assert [message.properties.content_type for message in new.messages()] == ["x", None]
