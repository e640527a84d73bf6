"""The garbage collector has nothing to look at of what the store keeps beside sessions, and finds what has ended."""

import gc
import weakref
from pathlib import Path

from tests.broker.core.test_garbage import MANY, Name, sessions
from tests.broker.storage.stored_world import StoredWorld


def test_the_garbage_collector_does_not_look_at_what_is_kept_beside_sessions(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path, share_percent=100)
    world.turn()
    gc.collect()
    before = len(gc.get_objects())
    sessions(world)
    world.turn()
    gc.collect()
    assert len(gc.get_objects()) - before < MANY / 10
    world.crash()
    gc.collect()
    assert world.recovered.messages == world.recovered.sessions == MANY
    assert len(gc.get_objects()) - before < MANY / 10


def test_a_session_that_has_ended_is_freed_and_what_is_kept_beside_it(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    name = Name("client")
    seen = weakref.ref(name)
    peer = world.connect(name, expiry=60)
    peer.subscribe("t", 1)
    peer.leave()
    assert world.publish("t", qos=1) == 1
    del peer, name
    world.turn()
    world.later(61)
    world.turn()
    assert len(world.broker.sessions) == 0
    gc.collect()
    assert seen() is None
