"""No acknowledgement before what it promises is synced: each row of the table in docs/decisions/0013-store.md."""

from collections.abc import Callable

import pytest

from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.core.held_journal import HeldJournal
from tests.broker.protocols.mqtt.test_store import SlowRecorder
from tests.broker.protocols.mqtt.world import Peer, World, connect

VERSIONS = pytest.mark.parametrize("version", [V3, V5])
DAY = 86_400


class Durable(World):
    """A broker whose journal is synced by `sync`."""

    def __init__(self, **limits: int) -> None:
        super().__init__(**limits)
        self.journal = HeldJournal(self.broker)

    def sync(self, changes: int | None = None) -> None:
        self.journal.sync(changes, self.now)
        self.turn()

    def durable(self, name: str, version: Version = V5, *filters: str, qos: int = 2) -> Peer:
        """A client whose session outlives its connection, with subscriptions. Everything is synced."""
        peer = self.knock(name, version)
        self.sync()
        assert [type(packet) for packet in peer.packets()] == [ConnAck]
        if filters:
            peer.say(Subscribe(1, tuple(Subscription(each, qos) for each in filters)))
            self.sync()
            assert [type(packet) for packet in peer.packets()] == [SubAck]
        return peer

    def knock(self, name: str, version: Version = V5, **fields: object) -> Peer:
        """The same, but CONNACK may still wait."""
        peer = self.open(version)
        fields = {"clean_start": False, **({"session_expiry_interval": DAY} if version is V5 else {}), **fields}
        peer.say(connect(name, version, **fields))
        return peer

    def publisher(self, version: Version = V5) -> Peer:
        """A client whose session ends with its connection."""
        return self.connect("p", version, clean_start=True)


def answered_after(peer: Peer, *packets: Packet) -> list[tuple[type[Packet], int]]:
    peer.say(*packets)
    return answered(peer)


def answered(peer: Peer) -> list[tuple[type[Packet], int]]:
    """Kind and identifier of what came."""
    return [(type(packet), getattr(packet, "packet_id", 0)) for packet in peer.packets()]


# -- publishers ---------------------------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("present", [True, False])
def test_puback_waits_until_the_message_is_synced_for_a_durable_session(version: Version, present: bool) -> None:
    world = Durable()
    listener, peer = world.durable("s", version, "a", qos=1), world.publisher(version)
    if not present:
        listener.vanish()
        world.sync()
    for number in (1, 2, 3):  # the first finds the route, the others stay in the lane
        assert peer.publish("a", b"x", 1, packet_id=number) == []
    world.sync(1)
    assert answered(peer) == [(PubAck, 1)]
    world.sync()
    assert answered(peer) == [(PubAck, 2), (PubAck, 3)]
    assert len(peer.publish("b", b"x", 1, packet_id=4)) == 1, "nobody stores it"
    assert world.broker.acknowledgements.receipts.count == 0


@VERSIONS
def test_what_no_durable_session_gets_waits_for_nothing(version: Version) -> None:
    world = Durable()
    world.durable("s", V5, "other")
    listener, peer = world.connect("l", version, clean_start=True), world.publisher(version)
    listener.subscribe("a", qos=1)
    world.journal.position.appended += 1  # something else waits for its sync
    assert answered_after(peer, Publish("a", b"x", 1, packet_id=1)) == [(PubAck, 1)]
    assert answered_after(peer, Publish("a", b"x", 1, packet_id=2)) == [(PubAck, 2)]
    assert peer.publish("a", b"x", 0) == []
    assert len(listener.messages()) == 3


@VERSIONS
def test_acknowledgements_of_one_connection_keep_their_order_behind_one_that_waits(version: Version) -> None:
    world = Durable()
    world.durable("s", version, "a", qos=1)
    peer, other = world.publisher(version), world.connect("q", version, clean_start=True)
    for topic, number in (("a", 1), ("b", 2), ("b", 3), ("a", 4), ("b", 5)):
        assert answered_after(peer, Publish(topic, b"x", 1, packet_id=number)) == []
    assert answered_after(other, Publish("b", b"x", 1, packet_id=9)) == [(PubAck, 9)]
    world.sync(1)
    assert answered(peer) == [(PubAck, 1), (PubAck, 2), (PubAck, 3)]
    world.sync()
    assert answered(peer) == [(PubAck, 4), (PubAck, 5)]


@VERSIONS
def test_pubrec_waits_for_message_and_identifier_and_pubcomp_for_its_release(version: Version) -> None:
    world = Durable()
    peer = world.durable("p", version)
    assert answered_after(peer, Publish("a", b"x", 2, packet_id=7)) == []
    assert world.journal.unreleased["p"] == {7}
    world.sync()
    assert answered(peer) == [(PubRec, 7)]
    assert answered_after(peer, Publish("a", b"x", 2, packet_id=7, dup=True)) == [(PubRec, 7)], "it is synced"
    assert answered_after(peer, PubRel(7)) == []
    assert world.journal.unreleased["p"] == set()
    world.sync()
    assert answered(peer) == [(PubComp, 7)]


@VERSIONS
def test_pubrec_is_sent_again_only_when_the_first_one_could_be(version: Version) -> None:
    world = Durable()
    peer = world.durable("p", version)
    assert answered_after(peer, Publish("a", b"x", 2, packet_id=7)) == []
    peer.vanish()
    back = world.knock("p", version)
    assert back.packets() == []
    back.say(Publish("a", b"x", 2, packet_id=7, dup=True))
    assert back.packets() == []
    world.sync()
    assert answered(back) == [(ConnAck, 0), (PubRec, 7)]
    assert world.broker.ledger.messages_in == 1


@VERSIONS
@pytest.mark.parametrize("payload", [b"x", b""])
def test_puback_of_a_retained_message_waits_until_that_is_synced(version: Version, payload: bytes) -> None:
    world = Durable()
    peer = world.publisher(version)
    assert peer.publish("r", b"first", 1, retain=True, packet_id=1) == []
    world.sync()
    assert answered(peer) == [(PubAck, 1)]
    assert answered_after(peer, Publish("r", payload, 1, retain=True, packet_id=2)) == []
    assert [*world.journal.kept] == ([b"r"] if payload else [])
    world.sync()
    assert answered(peer) == [(PubAck, 2)]
    assert peer.publish("r", b"x", 0, retain=True) == []


@VERSIONS
def test_a_message_in_the_queue_of_a_durable_group_waits_too(version: Version) -> None:
    world = Durable()
    member, peer = world.durable("m", version, "$share/g/a", qos=1), world.publisher(version)
    assert answered_after(peer, Publish("a", b"1", 1, packet_id=1)) == []
    world.sync()
    assert answered(peer) == [(PubAck, 1)]
    member.vanish()
    world.sync()
    assert answered_after(peer, Publish("a", b"2", 1, packet_id=2)) == []
    world.sync()
    assert answered(peer) == [(PubAck, 2)]


# -- deliveries ---------------------------------------------------------------------------------------------------


@VERSIONS
def test_qos_2_is_sent_to_a_durable_session_when_message_and_tag_are_synced(version: Version) -> None:
    world = Durable()
    listener, peer = world.durable("s", version, "a"), world.publisher(version)
    peer.publish("a", b"1", 2, packet_id=1)
    peer.publish("a", b"2", 1, packet_id=2)
    peer.publish("a", b"3", 2, packet_id=3)
    peer.publish("a", b"4", 0)
    assert [packet.payload for packet in published(listener)] == [b"4"]
    window = listener.protocol.session.window
    assert (window.unsent, window.sent, [flight.tag for flight in window.flights()]) == (3, 0, [1, 2, 3])
    world.sync(1)
    assert [(one.payload, one.packet_id) for one in published(listener)] == [(b"1", 1), (b"2", 2)]
    world.sync()
    assert [(one.payload, one.packet_id, one.dup) for one in published(listener)] == [(b"3", 3, False)]
    assert (window.unsent, window.sent, world.broker.ledger.redelivered) == (0, 3, 0)
    peer.publish("a", b"5", 1, packet_id=5)
    assert [one.payload for one in published(listener)] == [b"5"], "QoS 1 may arrive twice, and waits for nothing"


def published(peer: Peer) -> list[Publish]:
    found = peer.packets()
    assert all(isinstance(packet, Publish) for packet in found), found
    return [packet for packet in found if isinstance(packet, Publish)]


def test_no_more_wait_for_their_tags_than_the_client_takes() -> None:
    world = Durable()
    listener, peer = world.knock("s", receive_maximum=2), world.publisher()
    world.sync()
    listener.packets()
    listener.say(Subscribe(1, (Subscription("a", 2),)))
    world.sync()
    listener.packets()
    for number in range(1, 6):
        peer.say(Publish("a", b"%d" % number, 2, packet_id=number))
    window = listener.protocol.session.window
    assert (window.unsent, len(window.queue)) == (2, 3)
    world.sync()
    assert [one.payload for one in published(listener)] == [b"1", b"2"]
    listener.say(PubRec(1), PubRec(2))
    world.sync()
    assert answered(listener) == [(PubRel, 1), (PubRel, 2)]
    listener.say(PubComp(1), PubComp(2))
    assert (window.unsent, listener.packets()) == (2, [])
    world.sync()
    assert [one.payload for one in published(listener)] == [b"3", b"4"]


def test_an_acknowledgement_of_what_was_not_sent_is_unknown() -> None:
    world = Durable()
    listener, peer = world.durable("s", V5, "a"), world.publisher()
    peer.say(Publish("a", b"1", 2, packet_id=1))
    for packet in (PubAck(1), PubComp(1)):
        listener.say(packet)
    listener.say(PubRec(1))
    assert (world.counts.unknown_acknowledgements, listener.gone) == (3, False)
    world.sync()
    message, rel = listener.packets()
    assert isinstance(rel, PubRel)
    assert rel.reason_code is ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
    assert isinstance(message, Publish)


@VERSIONS
def test_what_was_not_sent_before_the_connection_ended_is_sent_once_to_the_next(version: Version) -> None:
    world = Durable()
    listener, peer = world.durable("s", version, "a"), world.publisher(version)
    for number in (1, 2):
        peer.publish("a", b"%d" % number, number, packet_id=number)
        peer.publish("a", b"%d" % number, 2, packet_id=10 + number)
    assert [one.payload for one in published(listener)] == [b"1"]
    listener.vanish()
    back = world.knock("s", version)
    assert back.packets() == []
    world.sync()
    first, *rest = back.packets()
    assert isinstance(first, ConnAck)
    assert all(isinstance(packet, Publish) for packet in rest)
    assert [(one.payload, one.packet_id, one.dup) for one in rest if isinstance(one, Publish)] == [
        (b"1", 1, True), (b"1", 2, False), (b"2", 3, False), (b"2", 4, False)
    ]  # fmt: skip
    world.sync()
    assert back.packets() == []


@VERSIONS
def test_pubrel_waits_until_the_journal_has_what_pubrec_says(version: Version) -> None:
    world = Durable()
    listener, peer = world.durable("s", version, "a"), world.publisher(version)
    peer.say(Publish("a", b"1", 2, packet_id=1))
    world.sync()
    assert len(published(listener)) == 1
    for _ in range(2):  # by the lane; the second may come when the first PUBREL has not
        assert answered_after(listener, PubRec(1)) == []
    world.sync()
    assert answered(listener) == [(PubRel, 1), (PubRel, 1)]
    listener.say(PubComp(1))
    assert (listener.packets(), world.broker.ledger.acknowledged) == ([], 1)


def test_pubrel_of_a_pubrec_with_properties_waits_too() -> None:
    world = Durable()
    listener, peer = world.durable("s", V5, "a"), world.publisher()
    peer.say(Publish("a", b"1", 2, packet_id=1))
    world.sync()
    published(listener)
    assert answered_after(listener, PubRec(1, properties=Properties(reason_string="thanks"))) == []
    world.sync()
    assert answered(listener) == [(PubRel, 1)]


# -- sessions ------------------------------------------------------------------------------------------------------


@VERSIONS
def test_connack_suback_and_unsuback_of_a_durable_session_wait(version: Version) -> None:
    world = Durable()
    peer = world.knock("s", version)
    peer.say(Subscribe(1, (Subscription("a", 1),)))
    assert (peer.packets(), peer.held_back, world.journal.subscriptions) == ([], True, {})
    world.sync()
    assert answered(peer) == [(ConnAck, 0)]
    assert not peer.held_back
    assert world.journal.subscriptions == {("s", b"a", None): 1}
    world.sync()
    assert answered(peer) == [(SubAck, 1)]
    assert answered_after(peer, Unsubscribe(2, ("a",))) == []
    world.sync()
    assert answered(peer) == [(UnsubAck, 2)]
    assert answered_after(peer, Unsubscribe(3, ("a",))) == [(UnsubAck, 3)], "nothing has changed"


@VERSIONS
def test_sessions_that_end_with_their_connection_wait_for_nothing(version: Version) -> None:
    world = Durable()
    world.journal.position.appended += 1  # something else waits for its sync
    peer = world.publisher(version)
    assert len(peer.subscribe("a", qos=1)) == 1
    assert answered_after(peer, Unsubscribe(9, ("a",))) == [(UnsubAck, 9)]
    assert answered_after(peer, Publish("b", b"x", 2, packet_id=1)) == [(PubRec, 1)]
    assert answered_after(peer, PubRel(1)) == [(PubComp, 1)]


@VERSIONS
def test_a_clean_start_waits_until_the_old_session_is_over_for_good(version: Version) -> None:
    world = Durable()
    world.durable("s", version, "a").vanish()
    world.sync()
    peer = world.open(version)
    peer.say(connect("s", version, clean_start=True))
    assert peer.packets() == []
    world.sync()
    (connack,) = peer.packets()
    assert isinstance(connack, ConnAck)
    assert not connack.session_present


def test_a_connection_whose_connack_waits_is_taken_over_and_gets_a_refusal() -> None:
    world = Durable()
    first, second = world.knock("s"), world.knock("s")
    (refusal,) = first.packets()
    assert isinstance(refusal, ConnAck)  # a DISCONNECT must not come before CONNACK [MQTT-3.14.0-1]
    assert refusal.reason_code >= 0x80
    assert first.gone
    world.sync()
    assert answered(second) == [(ConnAck, 0)]
    assert first.received == b""
    world.sync()
    assert world.broker.acknowledgements.receipts.count == 0


@VERSIONS
def test_a_connection_that_ends_while_its_acknowledgements_wait_leaves_nothing(version: Version) -> None:
    world = Durable()
    world.durable("s", version, "a", qos=1)
    waiting = world.knock("w", version)
    gone, stays = world.publisher(version), world.connect("q", version, clean_start=True)
    for number in (1, 2):
        for peer in (gone, stays):
            peer.say(Publish("a", b"x", 1, packet_id=number))
    assert world.broker.acknowledgements.receipts.count == 5
    gone.vanish()
    waiting.vanish()
    assert world.broker.acknowledgements.receipts.count == 2
    again = world.connect("p", version, clean_start=True)
    world.sync()
    assert answered(again) == []
    assert answered(stays) == [(PubAck, 1), (PubAck, 2)]
    assert (gone.received, waiting.received) == (b"", b"")


def test_a_disconnect_with_another_expiry_is_reported_and_nobody_waits_for_it() -> None:
    world = Durable()
    peer = world.durable("s")
    before = world.journal.position.appended
    peer.say(Disconnect(properties=Properties(session_expiry_interval=60)))
    assert peer.gone
    assert world.journal.position.appended > before
    assert world.journal.sessions["s"][:2] == (60.0, False)


# -- with an archive -----------------------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("first", ["sync", "flush"])
def test_one_ring_waits_for_the_archive_and_the_journal(version: Version, first: str) -> None:
    world = Durable()
    store = SlowRecorder(world)
    world.broker.router.archive_selection = ArchiveSelection(store.tap, [(b"a/#", "mqtt")])
    world.broker.record_to(store)
    world.durable("s", version, "+/d", qos=1)
    peer, other = world.publisher(version), world.connect("q", version, clean_start=True)
    topics = ["a/d", "a/n", "b/d", "b/n"]  # both, archive, journal, none
    for number, topic in enumerate(topics, start=1):
        peer.say(Publish(topic, b"x", 1, packet_id=number))
    assert answered(peer) == []
    assert answered_after(other, Publish("b/n", b"x", 1, packet_id=1)) == [(PubAck, 1)]
    steps: dict[str, Callable[[], None]] = {"sync": world.sync, "flush": store.flush}
    steps.pop(first)()
    world.turn()
    assert answered(peer) == []
    (last,) = steps.values()
    last()
    world.turn()
    assert answered(peer) == [(PubAck, 1), (PubAck, 2), (PubAck, 3), (PubAck, 4)]
