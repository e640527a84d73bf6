"""A message that no queue has room for: its publisher hears of it, in both versions (docs/mqtt.md)."""

from typing import Any

import pytest

from fanlight_broker.core.shares import SharedPot
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import ConnAck, PubAck, Publish, PubRec
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World, connect

KIB = 1024
FULL = {"queue_messages_max": 3}  # of one queue
KEPT = {"session_expiry_interval": 1000}


def stay_away(world: World, client_id: str, filter: str, address: str = "192.0.2.1") -> None:
    """A session that keeps what comes for its client, which has gone."""
    peer = world.open(V5)
    peer.address = address
    peer.say(connect(client_id, **KEPT))
    peer.packets()
    peer.subscribe(filter, qos=2)
    peer.vanish()


def come_back(world: World, client_id: str) -> list[bytes]:
    """What the client of a session gets when it is there again, all of which it acknowledges."""
    peer = world.open(V5)
    peer.say(connect(client_id, clean_start=False, **KEPT))
    connack, *rest = peer.packets()
    assert isinstance(connack, ConnAck)
    peer.received = b"".join(encode(packet, V5) for packet in rest)
    return [message.payload for message in peer.messages()]


def code_of(answers: list[Any]) -> ReasonCode:
    (only,) = answers
    code: ReasonCode = only.reason_code
    return code


def test_a_stranger_who_fills_his_share_of_the_store_costs_the_others_no_message() -> None:
    world = World(stored_bytes_max=1024 * KIB)
    for number in range(6):
        stay_away(world, f"attacker-{number}", f"a/{number}", "192.0.2.66")
    stay_away(world, "victim", "v")
    attacker, publisher = world.connect("attacker"), world.connect("publisher")
    for number in range(600):
        attacker.publish(f"a/{number % 6}", bytes(4 * KIB), 1)
    assert world.broker.shares.of("address 192.0.2.66").refusals(SharedPot.STORED_BYTES) > 0
    codes = {code_of(publisher.publish("v", b"%d" % number, 1)) for number in range(100)}
    assert codes == {ReasonCode.SUCCESS}
    assert come_back(world, "victim") == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("retain", [False, True])
def test_a_message_that_nobody_could_keep_is_answered_quota_exceeded(qos: int, retain: bool) -> None:
    world = World(**FULL)
    stay_away(world, "away", "t")
    peer = world.connect()
    for number in range(3):
        assert code_of(peer.publish("t", b"%d" % number, 1)) == ReasonCode.SUCCESS
    for _ in range(2):
        assert code_of(peer.publish("t", b"more", qos, retain=retain)) == ReasonCode.QUOTA_EXCEEDED
    assert (world.broker.ledger.dropped_queue, len(world.broker.retained)) == (2, 0)
    assert code_of(peer.publish("nobody", b"", 1)) == ReasonCode.NO_MATCHING_SUBSCRIBERS
    assert come_back(world, "away") == [b"0", b"1", b"2"]
    assert code_of(peer.publish("t", b"now", 1)) == ReasonCode.SUCCESS


@pytest.mark.parametrize("taker", ["queue", "connection", "group"])
def test_a_message_that_one_taker_got_is_a_success_and_the_drop_is_the_queues(taker: str) -> None:
    world = World(**FULL)
    stay_away(world, "away", "t")
    peer = world.connect()
    for _ in range(3):
        peer.publish("t", b"", 1)
    if taker == "queue":
        stay_away(world, "other", "t")
    elif taker == "group":
        stay_away(world, "other", "$share/g/t")
    else:
        world.connect("there").subscribe("t", qos=0)
    assert code_of(peer.publish("t", b"", 1)) == ReasonCode.SUCCESS
    session = world.broker.sessions.get("away")
    assert session is not None
    assert session.window.queue.dropped == 1


def test_a_group_whose_queue_is_full_is_no_taker() -> None:
    world = World(**FULL)
    stay_away(world, "away", "$share/g/t")
    peer = world.connect()
    assert [code_of(peer.publish("t", b"", 1)) for _ in range(4)][-2:] == [
        ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED,
    ]  # fmt: skip


def test_with_drop_oldest_the_newest_is_always_kept() -> None:
    world = World(**FULL, queue_policy="drop_oldest")
    stay_away(world, "away", "t")
    peer = world.connect()
    assert {code_of(peer.publish("t", b"", 1)) for _ in range(9)} == {ReasonCode.SUCCESS}


# -- 3.1.1 has no word for it ----------------------------------------------------------------------------------------


def full(world: World) -> Peer:
    """A 3.1.1 publisher whose only subscriber is away, with a queue that is full."""
    stay_away(world, "away", "t")
    peer = world.connect("publisher", V3)
    for number in range(3):
        assert isinstance(peer.publish("t", b"%d" % number, 1)[0], PubAck)
    return peer


@pytest.mark.parametrize(("qos", "answer"), [(1, PubAck), (2, PubRec)])
def test_a_publisher_of_3_1_1_waits_and_goes_on_once_there_is_room(qos: int, answer: type) -> None:
    world = World(**FULL)
    peer = full(world)
    peer.say(Publish("t", b"waits", qos, packet_id=10), Publish("t", b"behind", qos, packet_id=11))
    world.pass_time(5)
    assert (peer.packets(), peer.held_back, peer.gone) == ([], True, False)
    messages = world.broker.ledger.messages_in
    (publisher,) = (client for client in world.broker.clients if client.subscriber.name == "publisher")
    assert (publisher.outbox.published, publisher.outbox.published_bytes) == (3, 6)
    assert come_back(world, "away") == [b"0", b"1", b"2"]
    away = world.peers[-1]
    world.pass_time(1)
    first, second = peer.packets()
    assert isinstance(first, answer)
    assert (first.packet_id, second.packet_id) == (10, 11)  # type: ignore[attr-defined,union-attr]
    assert [message.payload for message in away.messages()] == [b"waits", b"behind"]
    ledger = world.broker.ledger
    assert ledger.messages_in == ledger.meter.messages_in == messages + 2
    assert (publisher.outbox.published, publisher.outbox.published_bytes) == (5, 6 + 6 + 7)
    assert sum(count for _, count in ledger.messages_by_recipients()) == ledger.messages_in
    assert world.counts.counters()["mqtt_publishers_waited"] == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publisher_of_3_1_1_is_closed_without_an_acknowledgement_when_no_room_comes(qos: int) -> None:
    world = World(**FULL, unkept_seconds_max=10)
    peer = full(world)
    peer.say(Publish("t", b"waits", qos, packet_id=10))
    world.pass_time(9)
    assert not peer.gone
    world.pass_time(1)
    assert (peer.received, peer.gone, peer.close_reason) == (b"", True, "closed by the broker: quota_exceeded")
    assert world.broker.ledger.dropped_queue == 1


def test_a_publisher_of_3_1_1_goes_on_when_the_full_session_is_no_more() -> None:
    world = World(**FULL)
    peer = full(world)
    peer.say(Publish("t", b"waits", 1, packet_id=10))
    world.connect("away").vanish()  # clean start, and over with its connection
    world.pass_time(1)
    assert isinstance(peer.next(), PubAck)


@pytest.mark.parametrize("share", [75, 100])
def test_a_publisher_of_3_1_1_is_disconnected_where_the_store_has_less_room_than_its_message(share: int) -> None:
    """What was left of the store seemed room enough: it was asked again and again, and waited without end."""
    world = World(stored_bytes_max=1024 * KIB, share_percent=share)
    stay_away(world, "away", "t")
    peer = world.connect("publisher", V3)
    while peer.publish("t", bytes(60_000), 1):
        pass
    assert peer.held_back
    for _ in range(11):
        world.pass_time(1)
    assert peer.gone


@pytest.mark.parametrize("version", [V3, V5])
def test_a_client_that_has_used_up_the_sessions_leaves_room_for_the_next(version: Version) -> None:
    world = World(sessions_max=2000)
    for number in range(2000):
        stay_away(world, f"attacker-{number}", "a", "192.0.2.66")
    assert len(world.broker.sessions) == 1500
    assert not world.connect("victim", version).gone
