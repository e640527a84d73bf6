"""Quotas of replays: how many read at once, and that what they bring counts as delivered."""

from collections.abc import Callable

import pytest

from tests.broker.protocols.native.world import World, publish
from tests.broker.protocols.sinks import FREE, PACED, ByAddress, NativePeer, connect_native
from tests.broker.storage.archived import Archived
from tests.broker.storage.test_replay import ENDED, ERROR, MESSAGE, REPLAY, payloads, until

Build = Callable[..., Archived]
PAST = {"past_only": True}


@pytest.fixture
def archived(build: Build) -> Archived:
    made = build(world=World)
    publisher = connect_native(made.world, FREE)
    for number in range(5):
        publisher.send(publish("a", b"%d" % number))
    made.settled()
    return made


def test_more_replays_at_once_than_the_quota_are_refused_and_counted_until_they_end(archived: Archived) -> None:
    world = archived.world
    world.broker.clients.quotas = ByAddress(PACED, replays=1)
    one, other = connect_native(world, PACED), connect_native(world, PACED)
    one.say(REPLAY, 1, 7, "#", PAST)
    for peer in (one, other):
        peer.say(REPLAY, 2, 8, "#", PAST)
    (error,) = other.frames()
    assert error[:3] == [ERROR, 2, "limit_exceeded"]
    assert error[4] == {"limit": "quota replays", "value": 1}
    found = until(archived, one, ENDED)
    assert [fields[:2] for fields in found if fields[0] == ERROR] == [[ERROR, 2]]
    assert payloads(found) == [0, 1, 2, 3, 4]
    other.say(REPLAY, 3, 9, "#", PAST)
    assert payloads(until(archived, other, ENDED)) == [0, 1, 2, 3, 4]
    other.say(REPLAY, 4, 9, "#", PAST)
    other.vanish()
    one.say(REPLAY, 5, 9, "#", PAST)
    assert payloads(until(archived, one, ENDED)) == [0, 1, 2, 3, 4]


def test_one_user_leaves_places_for_the_replays_of_others(build: Build) -> None:
    world = build(world=World, archive_replays_max=8).world
    greedy, other = (connect_native(world, address) for address in (PACED, FREE))
    for number in range(1, 9):
        greedy.say(REPLAY, number, number, "#", PAST)
    refused = [fields for fields in greedy.frames() if fields[0] == ERROR]
    assert [fields[1:3] for fields in refused] == [[7, "limit_exceeded"], [8, "limit_exceeded"]]  # 75 % of 8
    assert refused[0][4] == {"limit": "archive_replays_max", "value": 6}
    for number in (1, 2, 3):
        other.say(REPLAY, number, number, "#", PAST)
    assert [fields[1] for fields in other.frames() if fields[0] == ERROR] == [3]  # 75 % of the two that are left
    greedy.vanish()
    other.say(REPLAY, 4, 4, "#", PAST)
    assert not [fields for fields in other.frames() if fields[0] == ERROR]


def test_a_replay_is_paid_for_and_the_next_one_waits_until_it_is(archived: Archived) -> None:
    world = archived.world
    world.broker.clients.quotas = ByAddress(PACED, deliver_messages=5)
    reader: NativePeer = connect_native(world, PACED)
    reader.say(REPLAY, 1, 7, "#", PAST)
    assert payloads(until(archived, reader, ENDED)) == [0, 1, 2, 3, 4]
    reader.say(REPLAY, 2, 7, "#", PAST)

    def waits() -> bool:
        world.turn()
        return reader.protocol.outbox.sits_out

    archived.loop.run_until(waits)
    assert [fields for fields in reader.frames() if fields[0] == MESSAGE] == []
    world.pass_time(0.21)
    assert not reader.protocol.outbox.sits_out
    assert payloads(until(archived, reader, ENDED)) == [0, 1, 2, 3, 4]
