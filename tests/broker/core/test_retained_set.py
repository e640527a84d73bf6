"""Retained messages that no limit refuses are set in compiled code, as Python sets them (wire/retained.pxd)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.shares import Share
from fanlight_broker.core.topics import canonical
from fanlight_broker.wire.message import NEVER, Message
from fanlight_broker.wire.retained import RetainedEntry
from tests.broker.core.sessions import World
from tests.broker.core.test_restoring import state

TIGHT = [
    {"retained_messages_max": 4}, {"retained_messages_max": 9, "share_percent": 40}, {"retained_bytes_max": 3_000},
    {"retained_bytes_max": 6_000, "share_percent": 40}, {"stored_bytes_max": 3_000},
    {"stored_bytes_max": 6_000, "share_percent": 40},
]  # fmt: skip
TOPICS = [(b"t/1", 1), (b"t.1", 0), (b"t.2", 0), (b"t/2", 1), (b"t.3/4", 0), (b"", 0), (b"t/5", 1), (b"$SYS/x", 1)]


class Told:
    """The journal's part."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None:
        self.told.append((message.topic, message.payload, share.principal if share is not None else None, origin))

    def cleared(self, topic: bytes, syntax: str) -> None:
        self.told.append((topic, syntax))


def world_of(limits: dict[str, Any]) -> tuple[World, list[Share | None], Told]:
    world, journal = World(**limits), Told()
    world.broker.retained.journal = journal
    world.connect("a", address="192.0.2.1")  # its share is known, another's is not
    shares = [world.broker.shares.of(f"address 192.0.2.{at}") for at in (1, 2)]
    world.broker.retained.put(Message(world.format, b"$SYS/x", 1, b"own"), world.now, own=True)
    return world, [*shares, None], journal


OPERATIONS = st.tuples(
    st.sampled_from(TOPICS), st.sampled_from([0, 1, 1, 1, 900]), st.sampled_from([NEVER, NEVER, -1.0, 5.0]),
    st.integers(0, 2), st.sampled_from([None, "a"]),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(OPERATIONS, max_size=30), st.sampled_from([{}, *TIGHT]))
def test_compiled_code_sets_what_python_sets(operations: list[Any], limits: dict[str, Any]) -> None:
    (one, shares, told), (two, plain_shares, plain_told) = world_of(limits), world_of(limits)
    for (topic, syntax), size, lifetime, who, origin in operations:
        found: list[RetainedEntry | None] = []
        for world, share in ((one, shares[who]), (two, plain_shares[who])):
            message = Message(world.format, topic, syntax, b"x" * size, expires_at=world.now + lifetime)
            if world is one:
                found.append(world.broker.retained.set(message, world.now, share, origin))
            else:
                world.broker.retained.put(message, world.now, share=share, origin=origin)
        id = one.broker.retained.by_key.get(canonical(topic, syntax))
        assert found == [None if id is None else one.broker.retained.entries[id]]
        assert told.told == plain_told.told
        assert state(one) == state(two)
        one.now, two.now = one.now + 1, two.now + 1
    for world in (one, two):
        world.now += 10
        world.broker.retained.sweep(world.now)
    assert state(one) == state(two)
    assert one.broker.retained.refused == two.broker.retained.refused
    assert one.broker.shares.refused == two.broker.shares.refused


@pytest.mark.parametrize(
    ("filter", "syntax", "found"),
    [(b"t/1", 1, True), (b"t.1", 0, True), (b"t/2", 1, False), (b"t/+", 1, True), (b"u/+", 1, False), (b"#", 0, True)],
)
def test_a_cursor_begins_where_something_may_match(filter: bytes, syntax: int, found: bool) -> None:
    world = World()
    assert world.broker.retained.first_match(filter, syntax) is None
    world.publish("t/1", retain=True)
    assert (world.broker.retained.first_match(filter, syntax) is not None) == found
