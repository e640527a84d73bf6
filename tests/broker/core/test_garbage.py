"""The garbage collector has nothing to look at of what the tables of the broker keep, and still finds what they let go.

Its full pass goes through all that it tracks, in one step: 44 ms of CPU for 200,000 retained messages and 730 ms for
200,000 sessions, before they were hidden from it. So what counts here is how many things it looks at, and no time.
"""

import gc
import weakref
from collections.abc import Callable

import pytest

from fanlight_broker.core.marks import Mark
from fanlight_broker.core.subscriber import Client
from fanlight_broker.wire.message import Message
from tests.broker.core.sessions import SYNTAX, World

MANY = 1_000


class Name(str):
    """A text that a test can watch, of what refers to it: a session's name, a client's agent."""

    __slots__ = ("__weakref__",)


def retained(world: World) -> None:
    share = world.connect("publisher").client.subscriber.share
    for n in range(MANY):
        message = Message(world.format, b"kept/%d" % n, SYNTAX, b"x", retain=True, expires_at=1e9)
        assert world.broker.retained.put(message, world.now, share=share, origin="publisher")


def sessions(world: World) -> None:
    for n in range(MANY):
        peer = world.connect(f"client-{n}", expiry=60)
        peer.subscribe(f"for/{n}", 1)
        peer.leave()
        assert world.publish(f"for/{n}", qos=1) == 1  # it waits


def subscriptions(world: World) -> None:
    peer = world.connect("bridge", expiry=60)
    for n in range(MANY):
        peer.subscribe(f"bridged/{n}/+", 1)


def group_members(world: World) -> None:
    peer = world.connect("bridge", expiry=60)
    for n in range(MANY):
        peer.subscribe(f"work/{n}", 1, group="workers")


def routes(world: World) -> None:
    peer = world.connect("overlapping", expiry=60)
    peer.subscribe("r/+")
    peer.subscribe("r/#")
    for n in range(MANY):
        world.publish(f"r/{n}")


def marks(world: World) -> None:
    peer = world.connect("producers")
    for n in range(MANY):
        world.broker.marks.advance(Mark("user", f"producer-{n}", 1, 1), peer.client)


@pytest.mark.parametrize("fill", [retained, sessions, subscriptions, group_members, routes, marks])
def test_the_garbage_collector_does_not_look_at_what_the_broker_keeps(fill: Callable[[World], None]) -> None:
    world = World(share_percent=100)
    fill(world)  # what is made once
    gc.collect()
    world = World(share_percent=100)
    before = len(gc.get_objects())
    fill(world)
    gc.collect()
    assert len(gc.get_objects()) - before < MANY / 10


def test_a_session_that_has_ended_is_freed() -> None:
    world = World()
    names = [Name(f"client-{n}") for n in range(4)]
    seen = [weakref.ref(name) for name in names]
    ends_at_once, ended, replaced, expires = (world.connect(name, expiry=60) for name in names)
    ends_at_once.leave(expiry=0)
    for peer in (ended, expires):
        peer.leave()
    world.broker.sessions.end(ended.session, world.now)
    world.connect(str.__str__(names[2]), expiry=60, clean_start=True)  # another session in its stead
    replaced.leave()
    del names, ends_at_once, ended, replaced, expires, peer
    gc.collect()
    assert seen[0]() is None
    world.later(61)  # deadlines forget the others lazily: when their time has come
    gc.collect()
    assert all(each() is None for each in seen)


def test_a_client_whose_session_went_on_with_another_connection_is_freed() -> None:
    world = World()
    agent = Name("of the first connection")
    watched = weakref.ref(agent)
    first = world.connect("client", expiry=60, agent=agent)
    first.leave()
    second = world.connect("client", expiry=60, clean_start=False)
    assert second.present
    del first, agent
    gc.collect()
    assert watched() is None


def test_a_connection_that_ends_with_a_traceback_that_refers_to_it_is_freed() -> None:
    world = World()
    agent = Name("of the connection")
    watched = weakref.ref(agent)
    peer = world.connect("client", expiry=0, agent=agent)

    def fail(client: Client) -> None:
        try:
            raise RuntimeError(client)
        except RuntimeError as error:
            client.hold_times[0] = error  # type: ignore[assignment]  # whose frame refers to the client

    fail(peer.client)
    peer.leave()
    del peer, agent
    gc.collect()
    assert watched() is None
