"""A store without room, and one that refuses: who is held back, who is refused, and what goes on."""

from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    PubAck,
    Publish,
    PubRec,
    SubAck,
    Subscribe,
    Subscription,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.test_synced import VERSIONS, Durable, answered, answered_after, published


@VERSIONS
def test_a_full_store_holds_back_who_needs_it_and_nobody_else(version: Version) -> None:
    world = Durable()
    listener = world.durable("s", version, "a", qos=1)
    peer, other = world.publisher(version), world.connect("q", version, clean_start=True)
    for each in (peer, other):
        each.say(Publish("a", b"x", 1, packet_id=1))  # its route is known now
    world.sync()
    for each in (listener, peer, other):
        each.packets()
    world.journal.position.full = True
    peer.say(Publish("a", b"y", 1, packet_id=2))
    assert peer.held_back
    assert answered_after(other, Publish("b", b"y", 1, packet_id=2), Publish("a", b"zero", 0)) == [(PubAck, 2)]
    assert not other.held_back
    listener.say(PubAck(1))
    assert [one.payload for one in published(listener)] == [b"zero"], "consumers drain, and QoS 0 goes on"
    retaining = world.connect("r", version, clean_start=True)
    retaining.say(Publish("n", b"kept", 0, retain=True))
    assert retaining.held_back, "the store would have to keep it"
    world.sync()
    assert (peer.held_back, world.broker.acknowledgements.held_back) == (True, 1)
    world.journal.position.full = False
    world.sync()
    assert not peer.held_back
    assert not retaining.held_back
    world.sync()
    assert answered(peer) == [(PubAck, 2)]


@VERSIONS
def test_a_full_ring_holds_publishers_back(version: Version) -> None:
    world = Durable()
    receipts = world.broker.acknowledgements.receipts
    receipts.most = 3
    world.durable("s", version, "a", qos=1)
    peer, other = world.publisher(version), world.connect("q", version, clean_start=True)
    for number in range(1, 10):
        peer.say(Publish("a", b"x", 1, packet_id=number))
    assert (receipts.count, peer.held_back) == (3, True)
    assert answered_after(other, Publish("b", b"x", 1, packet_id=1)) == [(PubAck, 1)]
    acknowledged = []
    while len(acknowledged) < 9:
        world.sync()
        found = answered(peer)
        assert found, "it waits without end"
        acknowledged += found
        assert receipts.count <= 3
    assert acknowledged == [(PubAck, number) for number in range(1, 10)]


def test_a_store_that_refuses_is_said_in_the_words_of_5_0() -> None:
    world = Durable()
    world.durable("s", V5, "a", qos=1)
    peer = world.publisher()
    assert peer.publish("a", b"x", 1, packet_id=1) == []
    world.sync()
    assert answered(peer) == [(PubAck, 1)]
    world.journal.position.refusing = True
    world.journal.position.appended += 1  # what came last cannot be synced
    for number, (qos, topic, retain) in enumerate([(1, "a", False), (2, "a", False), (1, "n", True)], start=2):
        peer.say(Publish(topic, b"x", qos, packet_id=number, retain=retain))
        (refusal,) = peer.packets()
        assert isinstance(refusal, PubAck | PubRec)
        assert (refusal.packet_id, refusal.reason_code) == (number, ReasonCode.QUOTA_EXCEEDED)
    assert len(peer.publish("b", b"x", 1, packet_id=9)) == 1
    assert peer.publish("a", b"x", 0) == []
    assert len(world.broker.retained) == 0
    world.journal.position.refusing = False
    assert answered_after(peer, Publish("a", b"x", 1, packet_id=10)) == []
    world.sync()
    assert answered(peer) == [(PubAck, 10)]


def test_a_refusal_of_what_comes_behind_an_unsynced_message_keeps_its_place() -> None:
    world = Durable()
    world.durable("s", V5, "a", qos=1)
    peer = world.publisher()
    peer.say(Publish("a", b"x", 1, packet_id=1))
    world.journal.position.refusing = True
    peer.say(Publish("a", b"y", 1, packet_id=2))
    assert peer.packets() == []
    world.journal.position.refusing = False
    world.sync()
    first, second = peer.packets()
    assert isinstance(first, PubAck)
    assert isinstance(second, PubAck)
    assert (first.packet_id, first.reason_code) == (1, ReasonCode.SUCCESS)
    assert (second.packet_id, second.reason_code) == (2, ReasonCode.QUOTA_EXCEEDED)


def test_a_3_1_1_publisher_waits_until_the_store_takes_its_message() -> None:
    world = Durable()
    listener, peer = world.durable("s", V3, "a", qos=1), world.publisher(V3)
    world.journal.position.refusing = True
    peer.say(Publish("a", b"x", 1, packet_id=1))
    assert (peer.packets(), peer.held_back) == ([], True)
    world.sync()
    assert (peer.packets(), peer.held_back) == ([], True)
    world.journal.position.refusing = False
    world.sync()
    assert not peer.held_back
    world.sync()
    assert answered(peer) == [(PubAck, 1)]
    assert [one.payload for one in published(listener)] == [b"x"]


@VERSIONS
def test_while_the_store_refuses_old_sessions_drain_and_new_ones_are_refused(version: Version) -> None:
    world = Durable()
    listener, peer = world.durable("s", version, "a", qos=1), world.publisher(version)
    listener.vanish()
    peer.publish("a", b"x", 1, packet_id=1)
    world.sync()
    world.journal.position.refusing = True
    back = world.knock("s", version)
    connack, message = back.packets()
    assert isinstance(connack, ConnAck)
    assert connack.session_present
    assert isinstance(message, Publish)
    back.say(PubAck(message.packet_id or 0))
    assert world.broker.ledger.acknowledged == 1
    back.say(Subscribe(2, (Subscription("b", 1),)))
    (suback,) = back.packets()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == ((ReasonCode.QUOTA_EXCEEDED,) if version is V5 else (0x80,))
    new = world.knock("n", version)
    (refusal,) = new.packets()
    assert isinstance(refusal, ConnAck)
    assert refusal.reason_code == (ReasonCode.QUOTA_EXCEEDED if version is V5 else ReasonCode.SERVER_UNAVAILABLE)
    assert world.broker.sessions.get("n") is None
    world.connect("clean", version, clean_start=True)
