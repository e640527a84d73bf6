"""Room for a new session in its principal's share (core/room.py): looked for first, made only where it suffices."""

from typing import Any

import pytest

from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.room import ENDED_AT_ONCE
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.wire.window import Window
from tests.broker.core.sessions import World
from tests.captured_logs import capture_logs

A, B = {"address": "192.0.2.66"}, {"address": "192.0.2.1"}
KIB, MIB = 1024, 1024 * 1024
LONG = 1e9


def away(world: World, *names: str, **wanted: Any) -> None:
    """Sessions whose clients have gone."""
    for name in names:
        world.connect(name, **{"expiry": LONG, **A, **wanted}).leave()


def names(world: World) -> set[str]:
    return {session.name for session in world.broker.sessions}


def refused(world: World, name: str, **wanted: Any) -> LimitExceeded:
    with pytest.raises(LimitExceeded) as raised:
        world.connect(name, **{**A, **wanted})
    return raised.value


def large(world: World, nbytes: int) -> dict[str, Any]:
    return {"will": world.will("will", "w" * nbytes, delay=LONG)}


def test_a_will_that_can_never_fit_ends_no_session() -> None:
    world = World(sessions_bytes_max=MIB)
    away(world, *(f"a{number}" for number in range(10)))
    before = names(world)
    assert refused(world, "new", **large(world, 800 * KIB)).details["limit"] == "sessions_share_percent"
    assert (names(world), world.broker.sessions.made_room) == (before, 0)
    assert world.broker.shares.of("address 192.0.2.66").refusals(SharedPot.SESSIONS_BYTES) == 1


def test_no_more_sessions_end_than_a_new_one_needs() -> None:
    world = World(sessions_bytes_max=MIB)
    away(world, *(f"a{number}" for number in range(10)), **large(world, 60 * KIB))
    with capture_logs() as logs:
        world.connect("new", **A, **large(world, 200 * KIB))
    ended = [f"a{number}" for number in range(10) if f"a{number}" not in names(world)]
    assert ended == ["a0", "a1"]
    (line,) = [entry for entry in logs if entry["event"] == "session_made_room"]
    assert (line["client"], line["sessions"], line["for_client"]) == ("a0", 2, "new")


def test_a_refused_clean_start_ends_neither_the_old_session_nor_its_connection() -> None:
    world = World(sessions_bytes_max=MIB)
    there = world.connect("c", expiry=LONG, **A)
    refused(world, "c", **large(world, 900 * KIB))
    assert there.session.connected
    assert (there.connection.told, world.broker.sessions.taken_over) == ([], 0)


@pytest.mark.parametrize("address", ["192.0.2.66", "192.0.2.1"])
def test_the_old_session_of_a_clean_start_makes_room_whoever_had_it(address: str) -> None:
    world = World(sessions_max=4, share_percent=100)
    for name in "abcd":
        world.connect(name, expiry=LONG, **A)
    assert world.connect("d", address=address).session.connected
    assert len(world.broker.sessions) == 4


def test_what_a_large_window_took_is_given_back_when_its_session_ends() -> None:
    world = World()
    peer = world.connect("c", expiry=LONG, receive_max=1000, **A)
    peer.subscribe("t", 1)
    for _ in range(600):
        world.publish("t", "x", 1)
    window: Window = peer.session.window
    assert window.nbytes >= 8 * 600
    held = peer.session.charged
    assert held == world.broker.ledger.sessions.used
    peer.leave(expiry=0)
    assert (window.nbytes, world.broker.ledger.sessions.used) == (0, 0)


def test_a_share_that_others_have_made_small_shrinks_a_little_with_each_new_session() -> None:
    """All that was too much ended at once, in one turn of the loop: 28,000 sessions with the default limits."""
    world = World(sessions_max=2_000)
    away(world, *(f"a{number}" for number in range(1_500)))
    away(world, *(f"b{number}" for number in range(400)), **B)
    share = world.broker.shares.of("address 192.0.2.66")
    excess = share.used(SharedPot.SESSIONS) - world.broker.shares.most(share, SharedPot.SESSIONS)
    assert excess > 8 * ENDED_AT_ONCE
    before, rounds = share.used(SharedPot.SESSIONS), 0
    while share.used(SharedPot.SESSIONS) > world.broker.shares.most(share, SharedPot.SESSIONS):
        away(world, f"new-{rounds}")
        rounds += 1
        assert 0 < before - share.used(SharedPot.SESSIONS) < ENDED_AT_ONCE
        before = share.used(SharedPot.SESSIONS)
    assert rounds <= excess // (ENDED_AT_ONCE - 1) + 1


def test_a_share_in_bytes_that_others_have_made_small_shrinks_too() -> None:
    world = World(sessions_bytes_max=4 * MIB)
    away(world, *(f"a{number}" for number in range(950)))
    away(world, *(f"b{number}" for number in range(10)), **B, **large(world, 60 * KIB))
    share = world.broker.shares.of("address 192.0.2.66")
    before = share.used(SharedPot.SESSIONS_BYTES)
    assert before > world.broker.shares.most(share, SharedPot.SESSIONS_BYTES)
    world.connect("new", **A, **large(world, 60 * KIB))
    assert share.used(SharedPot.SESSIONS_BYTES) < before
    assert world.broker.sessions.made_room <= ENDED_AT_ONCE
