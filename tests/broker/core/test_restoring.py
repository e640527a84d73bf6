"""What is put back after a restart, all at once, is as if it had come one by one."""

from math import inf
from typing import Any

import pytest

from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.message import NEVER, Message
from fanlight_broker.wire.subscriptions import Subscriptions
from tests.broker.core.sessions import SYNTAX, World

Found = list[tuple[Message, Share | None, str | None]]


def stored(world: World, count: int = 40) -> Found:
    """Messages of three principals and of nobody; some have expired, some will."""
    shares = [None, *(world.broker.shares.of(f"user {name}") for name in "abc")]
    return [
        (
            Message(
                world.format, f"t.{at}".encode() if at % 5 else f"t/{at}".encode(), 0 if at % 5 else SYNTAX,
                b"x" * (at + 1), expires_at=NEVER if at % 3 else world.now + at - 9,
            ),
            shares[at % 4], f"client-{at}" if at % 2 else None,
        )
        for at in range(count)
    ]


def state(world: World) -> dict[str, Any]:
    broker = world.broker
    entries = [broker.retained.entry(id) for id in range(broker.retained.places)]
    return {
        "entries": [
            (each.message.topic, each.message.payload, each.key, each.revision, each.own, each.origin,
             each.share.principal if each.share is not None else None)
            for each in entries if each is not None
        ],
        "counts": (
            len(broker.retained), broker.retained.nbytes, broker.retained.revision, broker.ledger.stored,
            broker.ledger.stored_messages,
        ),
        "shares": {share.principal: (share.account.stored, share.held) for share in broker.shares},
        "totals": broker.shares.totals,
        "found": [sorted(broker.retained.ids(b"t.*", "amqp", part)) for part in range(broker.retained.parts)],
    }  # fmt: skip


@pytest.mark.parametrize(
    "limits",
    [
        {}, {"retained_messages_max": 20}, {"retained_messages_max": 40, "share_percent": 20},
        {"retained_bytes_max": 5_000}, {"retained_bytes_max": 12_000, "share_percent": 20}, {"stored_bytes_max": 4_000},
        {"stored_bytes_max": 30_000, "share_percent": 10}, {"share_percent": 90},
    ],
)
@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_retained_messages_are_restored_as_if_they_had_come_one_by_one(at_once: int, limits: dict[str, Any]) -> None:
    whole, single = World(**limits), World(**limits)
    found, expected = stored(whole), []
    refused = [
        message.topic for at in range(0, len(found), at_once)
        for message in whole.broker.retained.restore(found[at : at + at_once], whole.now)
    ]
    for message, share, origin in stored(single):
        expired = message.expired(single.now)
        if expired or not single.broker.retained.put(message, single.now, share=share, origin=origin):
            expected.append(message.topic)
    assert sorted(refused) == sorted(expected)
    assert len(expected) > 3
    assert state(whole) == state(single)
    whole.now, single.now = whole.now + 12, single.now + 12
    for world in (whole, single):
        world.broker.retained.sweep(world.now)
    assert whole.broker.retained.expired == single.broker.retained.expired
    assert state(whole) == state(single)


def test_messages_are_restored_beside_those_that_are_there() -> None:
    world = World()
    world.publish("t/1", "old", retain=True)
    world.publish("u", "x", retain=True)
    world.publish("u", "", retain=True)  # its id is free
    found = [(Message(world.format, f"t/{at}".encode(), SYNTAX, b"new"), None, None) for at in range(3)]
    assert world.broker.retained.restore(found, world.now) == []
    for at in range(3):
        message = world.broker.retained.get(f"t/{at}".encode(), "mqtt", world.now)
        assert message is not None
        assert message.payload == b"new"
    assert len(world.broker.retained) == 3


FILTERS = ((b"a/+", "mqtt"), (b"a/#", "mqtt"), (b"#.x.#", "amqp"), (b"$share", "mqtt"), (b"a.b", "mqtt"))


def test_subscriptions_are_restored_as_if_they_had_been_made_one_by_one() -> None:
    worlds = []
    for at_once in (True, False):
        world = World()
        session = world.connect("s", expiry=60.0).session
        variant = world.broker.variants.of(world.format, 1)
        made = [
            Subscription(session.window, variant, number, text, SYNTAXES.index(syntax), False)
            for number, (text, syntax) in enumerate(FILTERS, 1)
        ]
        if at_once:
            world.broker.subscribing.restore([(session.subscriber, made)])
        else:
            for each in made:
                world.broker.subscribing.begin(session.subscriber, each, None)
        broker, share = world.broker, session.share
        worlds.append((
            [(each.id, each.filter) for each in broker.router.subscriptions()], len(session.subscriptions),
            len(broker.router),
            broker.router.searching, session.subscriber.searching, broker.subscribing.begun, share.held,
            broker.ledger.subscriptions.used, [each.number for each in broker.router.matching(b"a/b", "mqtt")],
        ))  # fmt: skip
    assert worlds[0] == worlds[1]
    assert worlds[0][-1] == [1, 2]


def test_sessions_are_restored_as_if_they_had_begun_one_by_one() -> None:
    names = {"a": 5.0, "b": inf, "c": 2 * 86_400.0, "d": 1.0}
    worlds = []
    for at_once in (True, False):
        world = World(session_seconds_max=86_400.0)
        sessions, left = world.broker.sessions, world.now - 2
        shares = [world.broker.shares.of(f"user {at}") for at in range(2)]
        found = [
            (
                Subscriber(
                    name, "u" * at, "lines", world.format, shares[at % 2], "$inbox",
                    subscriptions=Subscriptions(by_filter=True),
                ), expiry, left,
            )
            for at, (name, expiry) in enumerate(names.items())
        ]  # fmt: skip
        if at_once:
            made = sessions.restore(found[:3]) + sessions.restore(found[3:])
        else:
            made = [sessions.begin(each, expiry, left) for each, expiry, _ in found]
        world.now += 10
        sessions.sweep(world.now)
        worlds.append((
            [(each.name, each.expiry, each.ended, each.nbytes, each.connected) for each in made],
            sorted(each.name for each in sessions), sessions.expired, sessions.away,
            [(each.principal, each.held, each.sessions.used, sessions.away_of(each)) for each in world.broker.shares],
            world.broker.ledger.sessions.used, world.broker.shares.totals,
        ))  # fmt: skip
    assert worlds[0] == worlds[1]
    assert worlds[0][1] == ["b", "c"]
