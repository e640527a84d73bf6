"""What the retained messages take that are still to be sent to a client: bounded, and counted with its session."""

import pytest

from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.retained import CURSOR_BYTES, PART, PLACES_BYTES
from tests.broker.core.sessions import Peer, World

LONG = 1e9
TOPICS = 2 * PART + 500


@pytest.fixture(scope="module")
def world() -> World:
    """One with retained messages in three parts of the index, two of them whole."""
    world = World()
    publisher = world.connect("publisher")
    for number in range(TOPICS):
        publisher.publish(f"t/{number % 2}/{number}", str(number), retain=True)
    return world


def read_all(world: World, peer: Peer) -> list[str]:
    """The payloads, in the order they come."""
    payloads: list[str] = []
    while True:
        payloads += [line.split()[1] for line in peer.got()]
        peer.acknowledge()
        more = world.broker.sessions.advance(peer.session, world.now)
        if not more and not peer.outbox.size:
            return payloads


@pytest.mark.parametrize("filter", ["#", "t/#", "t/+/#", "t/1/+", "+/+/77"])
@pytest.mark.parametrize("qos", [0, 1])
def test_each_retained_message_is_sent_once_however_often_its_client_makes_it_wait(
    world: World, filter: str, qos: int
) -> None:
    peer = world.connect(f"{filter} {qos}")
    peer.subscribe(filter, qos, retained=True)
    payloads = read_all(world, peer)
    wanted = {"t/1/+": range(1, TOPICS, 2), "+/+/77": range(77, 78)}.get(filter, range(TOPICS))
    assert sorted(map(int, payloads)) == list(wanted)
    assert not peer.session.cursors
    peer.leave()


def test_a_client_that_is_away_keeps_a_few_kib_of_what_is_still_to_be_sent(world: World) -> None:
    """It was a list of all topics of a part that match, 32 KiB for a session of 3 KiB, and nobody counted it."""
    used = world.broker.ledger.sessions.used
    peer = world.connect("away", expiry=LONG)
    before = world.broker.ledger.sessions.used
    peer.subscribe("t/#", retained=True)
    peer.subscribe("t/0/#", retained=True)
    (cursor, other) = peer.session.cursors.values()
    assert (0 < cursor.sent < TOPICS, other.sent) == (True, 0)
    assert cursor.nbytes <= PLACES_BYTES
    peer.leave()
    assert world.broker.ledger.sessions.used - before == 2 * CURSOR_BYTES + PLACES_BYTES
    world.broker.sessions.end(peer.session, world.now)
    assert world.broker.ledger.sessions.used == used


def test_what_a_client_still_had_to_get_goes_on_when_it_comes_back(world: World) -> None:
    peer = world.connect("back", expiry=LONG)
    peer.subscribe("t/+/+", 1, retained=True)
    first = [line.split()[1] for line in peer.got()]
    assert 0 < len(first) < TOPICS
    peer.acknowledge()
    peer.leave()
    peer = world.connect("back", clean_start=False)
    assert sorted({*map(int, first), *map(int, read_all(world, peer))}) == list(range(TOPICS))
    peer.leave()


@pytest.mark.parametrize("ends", ["unsubscribe", "again", "sent"])
def test_what_is_counted_for_a_cursor_is_given_back(world: World, ends: str) -> None:
    peer = world.connect("counted")
    before = world.broker.ledger.sessions.used
    peer.subscribe("t/#", retained=True)
    assert world.broker.ledger.sessions.used - before == CURSOR_BYTES + PLACES_BYTES
    if ends == "again":
        peer.subscribe("t/#", retained=True)
        assert world.broker.ledger.sessions.used - before == CURSOR_BYTES + PLACES_BYTES
    if ends == "unsubscribe":
        world.broker.sessions.unsubscribe(peer.session, b"t/#", None)
    else:
        read_all(world, peer)
    assert world.broker.ledger.sessions.used == before
    peer.leave()


def test_without_room_for_one_more_cursor_the_retained_messages_are_refused() -> None:
    world = World(sessions_bytes_max=1024 * 1024)
    world.connect("publisher").publish("t/1", retain=True)
    peer = world.connect("c", address="192.0.2.66")

    pot = world.broker.ledger.sessions
    pot.limit = pot.used + CURSOR_BYTES
    with pytest.raises(LimitExceeded, match="no room for the retained messages"):
        peer.subscribe("t/#", retained=True)
    assert not peer.session.cursors
    assert pot.used == pot.limit - CURSOR_BYTES
