"""Sessions by name and by place: gone through in steps while others begin, end and are renamed."""

import random

import pytest

from fanlight_broker.core import session_table
from fanlight_broker.core import sessions as sessions_module
from fanlight_broker.core.session_table import SessionTable
from tests.broker.protocols.mqtt.world import World


def test_what_is_there_from_the_first_step_to_the_last_is_found_once() -> None:
    chance = random.Random(3)
    world = World()
    everything = []
    for number in range(60):
        world.connect(f"client {number}", session_expiry_interval=100)
        everything.append(world.broker.sessions.get(f"client {number}"))
    sessions = [each for each in everything if each is not None]
    for _ in range(50):
        table = SessionTable()
        outside = sessions[30:]
        for each in sessions[:30]:
            table.put(each)
        stays = set(chance.sample(sessions[:30], 15))
        found: list[str] = []
        place: int | None = 0
        while place is not None:
            some, place = table.from_place(place, 4)
            found += [each.name for each in some]
            for _ in range(3):
                leaving = chance.choice([each for each in table if each not in stays] or [None])
                if leaving is not None and chance.random() < 0.5:
                    table.remove(leaving)
                    outside.append(leaving)
                if outside and chance.random() < 0.6:
                    table.put(outside.pop(0))
        assert all(found.count(each.name) == 1 for each in stays)
        for each in table:
            assert table.get(each.name) is each
        for each in list(table):
            table.remove(each)
        assert (len(table), table.from_place(0, 1_000)) == (0, ([], None))


def test_a_session_that_is_replaced_leaves_the_name_to_the_other_one() -> None:
    world = World()
    world.connect("a", session_expiry_interval=100)
    old = world.broker.sessions.get("a")
    world.connect("a", session_expiry_interval=100, clean_start=True)
    new = world.broker.sessions.get("a")
    assert old is not None
    assert new is not old
    assert world.broker.sessions.from_place(0, 10) == ([new], None)


def test_expired_messages_are_searched_for_in_all_sessions_by_and_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "LOOKED_AT_PER_SWEEP", 4)
    world = World()
    for number in range(5):
        away = world.connect(f"away {number}", session_expiry_interval=1_000)
        away.subscribe("a", qos=1)
        away.vanish()
    world.connect("publisher").publish("a", b"x", qos=1, message_expiry_interval=1)
    queues = [session.window.queue for session in world.broker.sessions]
    assert sum(len(queue) for queue in queues) == 5
    for _ in range(6):
        world.broker.sessions.sweep(world.broker.ledger.now + 10.0)
    assert sum(len(queue) for queue in queues) == 0


def test_sessions_go_by_in_pieces_and_a_piece_without_one_is_a_step_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_table, "PIECE", 4)
    world = World()
    sessions = world.broker.sessions
    for number in range(14):
        world.connect(f"client {number}", session_expiry_interval=100)
    all_of_them = list(sessions)
    for session in all_of_them[4:8]:  # a whole piece
        sessions.end(session, world.now)
    found: list[str | None] = []
    for each in sessions.in_pieces():
        found.append(each.name if each is not None else None)
        if each is all_of_them[0]:
            sessions.end(all_of_them[1], world.now)  # of the piece that was looked at
            sessions.end(all_of_them[9], world.now)
    assert found == [*("client 0", "client 2", "client 3"), None, *(f"client {each}" for each in (8, 10, 11, 12, 13))]
