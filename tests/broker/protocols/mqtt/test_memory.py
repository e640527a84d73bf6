"""What an MQTT client can make the broker keep: counted, bounded, refused in the protocol's own words."""

from collections.abc import Callable

import pytest

from fanlight_broker.core.identity import ANONYMOUS
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, PingReq, PubAck, Publish, PubRec, WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.ledger import Pot
from tests.broker.protocols.mqtt.world import Peer, World, connect

KIB = 1024
MIB = 1024 * KIB


def inboxes(world: World) -> Pot:
    return world.broker.ledger.inboxes


def handshakes(world: World) -> Pot:
    return world.broker.ledger.handshakes


def ended_with(peer: Peer, reason: R) -> None:
    """The peer was told why, if its version has words for it, and is closed."""
    packets = peer.packets()
    assert [each.reason_code for each in packets if isinstance(each, Disconnect)] == \
        ([reason] if peer.version is V5 else [])
    assert peer.close_reason is not None
    assert peer.protocol.closed


# -- unfinished packets ----------------------------------------------------------------------------------------------


def half(version: Version = V5, part: int = MIB // 2) -> bytes:
    """The first `part` bytes of a large PUBLISH."""
    return encode(Publish("t", bytes(MIB - 100)), version)[:part]


@pytest.mark.parametrize("version", [V3, V5])
def test_unfinished_packets_of_all_connections_have_a_bound_and_the_newest_that_grows_goes(version: Version) -> None:
    """They were five times `outboxes_bytes_max`, and no limit was looked at."""
    world = World(inboxes_bytes_max=4 * MIB)
    peers = [world.connect(f"c{number}", version) for number in range(40)]
    for peer in peers:
        peer.send(half(version, part=64 * KIB), *(bytes(64 * KIB) for _ in range(7)))
    assert inboxes(world).used <= 4 * MIB + 64 * KIB
    alive = [peer for peer in peers if not peer.protocol.closed]
    assert 2 <= len(alive) < 40
    assert inboxes(world).refused == 40 - len(alive)
    for peer in peers:
        if peer.protocol.closed:
            ended_with(peer, R.QUOTA_EXCEEDED)
    # There is always one that goes, or one that gets through: it makes room for the others.
    for peer in alive:
        peer.send(encode(Publish("t", bytes(MIB - 100)), version)[peer.protocol.inbox.size :])
    assert sum(peer.protocol.closed for peer in alive) <= 2
    assert inboxes(world).used == 0
    assert len(world.connect("small").publish("t", b"x", qos=1)) == 1


@pytest.mark.parametrize("over", [0, 1])
def test_an_unfinished_packet_is_kept_up_to_the_bound_and_not_above_it(over: int) -> None:
    world = World()
    peer = world.connect("c")
    peer.send(half(part=60 * KIB))
    inboxes(world).limit = inboxes(world).used + 16 * KIB - over  # it grows by so much when there is little room
    peer.send(bytes(4 * KIB))
    assert peer.protocol.closed == bool(over)
    if over:
        ended_with(peer, R.QUOTA_EXCEEDED)


def test_a_small_rest_is_kept_however_full_it_is() -> None:
    world = World(inboxes_bytes_max=MIB)
    inboxes(world).add(2 * MIB)
    peer = world.connect("c")
    peer.send(half(part=16 * KIB))
    assert not peer.protocol.closed
    peer.send(bytes(KIB))
    ended_with(peer, R.QUOTA_EXCEEDED)
    inboxes(world).refund(2 * MIB)
    assert inboxes(world).used == 0


def test_a_publisher_that_is_held_back_is_not_closed_for_what_waits_in_its_inbox() -> None:
    """It has been read already, and will be parsed: only what is unfinished is given up."""
    world = World(inboxes_bytes_max=MIB, control_bytes_max=4 * KIB)
    peer = world.connect("c")
    peer.reads = False
    inboxes(world).add(2 * MIB)
    peer.send(encode(PingReq(), V5) * 30_000)
    assert peer.held_back
    assert peer.protocol.inbox.size > 10 * KIB
    assert not peer.protocol.closed
    peer.read_all()
    assert len(peer.packets()) == 30_000


# -- topic aliases ---------------------------------------------------------------------------------------------------


def aliased(number: int, size: int) -> bytes:
    return encode(Publish("t" * size, b"", 0, properties=Properties(topic_alias=number)), V5)


def test_the_aliases_of_a_connection_are_bounded_in_bytes() -> None:
    """64 of 65 KB were 4 MiB a connection."""
    world = World(options=MqttOptions(topic_alias_bytes_max=10 * KIB))
    peer = world.connect("c")
    base = inboxes(world).used
    peer.send(aliased(1, 10 * KIB - 33))  # a bytes object has 33 more
    assert not peer.protocol.closed
    assert inboxes(world).used - base <= 10 * KIB + 600
    peer.send(aliased(1, 100), aliased(2, 100))  # in place of it
    assert not peer.protocol.closed
    peer.send(aliased(3, 10 * KIB))
    ended_with(peer, R.QUOTA_EXCEEDED)


def test_the_aliases_of_all_connections_are_bounded_and_only_who_wants_more_goes() -> None:
    world = World(options=MqttOptions(topic_alias_bytes_max=MIB), inboxes_bytes_max=2 * MIB)
    peers = [world.connect(f"c{number}") for number in range(20)]
    for peer in peers:
        for number in range(4):
            peer.send(aliased(1 + number, 60_000))
    alive = [peer for peer in peers if not peer.protocol.closed]
    assert inboxes(world).used <= 2 * MIB
    assert 4 <= len(alive) < 20
    for peer in peers:
        if peer.protocol.closed:
            ended_with(peer, R.QUOTA_EXCEEDED)
    alive[0].send(encode(Publish("", b"", 0, properties=Properties(topic_alias=1)), V5))
    assert not alive[0].protocol.closed
    for peer in peers:
        peer.vanish()
    assert inboxes(world).used == 0  # though the connections themselves wait for the collector


def test_the_broker_gives_no_more_aliases_when_there_is_no_room() -> None:
    world = World(topic_bytes_max=2_000)
    subscriber = world.connect("s", topic_alias_maximum=10)
    publisher = world.connect("p")
    subscriber.subscribe("#")
    inboxes(world).limit = inboxes(world).used + 300
    for topic in ("one/topic", "one/topic", "another/topic", "another/topic", "one/topic"):
        publisher.publish(topic)
    got = [(each.topic, each.properties.topic_alias) for each in subscriber.packets() if isinstance(each, Publish)]
    assert got == [("one/topic", 1), ("", 1), ("another/topic", None), ("another/topic", None), ("", 1)]
    subscriber.vanish()
    assert inboxes(world).used == 0


# -- before CONNECT is accepted --------------------------------------------------------------------------------------


def long_connect(name: str, size: int) -> bytes:
    """A CONNECT with a long password, such as a token."""
    return encode(connect(name, V5, user_name="u", password=bytes(size)), V5)


def test_strangers_have_a_few_kib_each_and_share_the_rest() -> None:
    """6,000 unfinished CONNECTs of 60 KB were 357 MB."""
    world = World(handshakes_bytes_max=MIB)
    peers = [world.open() for _ in range(100)]
    for peer in peers:
        peer.send(long_connect("c", 60_000)[:59_000])
    held = [peer for peer in peers if not peer.protocol.closed]
    assert 15 <= len(held) <= 19
    assert handshakes(world).used <= MIB
    assert inboxes(world).used <= 100 * 4 * KIB
    assert handshakes(world).refused == 100 - len(held)
    assert not world.open().protocol.closed
    small = world.connect("small", user_name="u", password=b"p" * 1_000)  # it needs no share
    assert small.publish("t", qos=1)
    for peer in held:
        peer.send(long_connect("c", 60_000)[59_000:])
    assert handshakes(world).used == 0


@pytest.mark.parametrize("over", [0, 1])
def test_a_stranger_is_held_for_up_to_the_bound_and_not_above_it(over: int) -> None:
    world = World()
    peer = world.open()
    handshakes(world).limit = 10_000 - 4 * KIB - over
    peer.send(long_connect("c", 60_000)[:10_000])
    assert peer.protocol.closed == bool(over)


def test_a_connect_counts_as_a_strangers_until_its_password_is_checked() -> None:
    world = World()
    peer = world.open()
    peer.log_in = False
    peer.send(long_connect("c", 60_000))
    assert 50_000 < handshakes(world).used < 60_500
    peer.protocol.authenticated(ANONYMOUS, world.now)
    world.turn()
    assert isinstance(peer.next(), ConnAck)
    assert (handshakes(world).used, inboxes(world).used) == (0, 0)


@pytest.mark.parametrize("end", [Peer.vanish, lambda peer: peer.protocol.say_goodbye("handshake_timeout", "late")])
def test_what_a_stranger_sent_is_given_back_when_it_goes(end: Callable[[Peer], object]) -> None:
    world = World()
    waiting, unfinished = world.open(), world.open()
    waiting.log_in = False
    waiting.send(long_connect("c", 60_000))
    unfinished.send(long_connect("d", 60_000)[:50_000])
    for peer in (waiting, unfinished):
        end(peer)
        peer.send(b"more")
    world.turn()
    assert (handshakes(world).used, inboxes(world).used) == (0, 0)


# -- names, wills, QoS 2 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "code"), [(V3, 2), (V5, R.CLIENT_IDENTIFIER_NOT_VALID)])
def test_a_client_identifier_above_the_limit_is_refused_by_code(version: Version, code: int) -> None:
    world = World(name_bytes_max=100)
    world.connect("c" * 100, version)
    peer = world.open(version)
    peer.say(connect("c" * 101, version))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    sent = encode(answer, version)
    assert sent[3] == code
    assert len(world.broker.sessions) == 1


@pytest.mark.parametrize(("version", "code"), [(V3, 3), (V5, R.QUOTA_EXCEEDED)])
def test_a_session_above_the_bound_of_all_is_refused_by_code(version: Version, code: int) -> None:
    world = World(sessions_bytes_max=MIB, share_percent=100)
    refused = None
    for number in range(100):
        peer = world.open(version)
        peer.say(connect(f"c{number}", version, will=WillFields("w", bytes(30_000)), clean_start=False))
        answer = peer.next()
        assert isinstance(answer, ConnAck)
        if answer.reason_code:
            refused = answer
            break
    assert refused is not None
    assert encode(refused, version)[3] == code
    assert 25 <= len(world.broker.sessions) <= 32
    assert world.broker.ledger.sessions.used <= MIB


@pytest.mark.parametrize("version", [V3, V5])
def test_qos_2_without_room_to_remember_it_is_not_published_and_ends_the_connection(version: Version) -> None:
    world = World()
    subscriber, peer = world.connect("s"), world.connect("c", version)
    subscriber.subscribe("t")
    pot = world.broker.ledger.sessions
    peer.say(Publish("t", b"1", 2, packet_id=1))
    assert isinstance(peer.next(), PubRec)
    pot.limit = pot.used
    peer.say(Publish("t", b"2", 2, packet_id=2))  # beside the other
    assert isinstance(peer.next(), PubRec)
    peer.say(Publish("t", b"3", 2, packet_id=60_000))
    ended_with(peer, R.QUOTA_EXCEEDED)
    assert [each.payload for each in subscriber.messages()] == [b"1", b"2"]
    assert isinstance(subscriber.publish("t", qos=1)[-1], PubAck | Publish)
