"""Declarations over restarts and rounds: before they are claimed, while they are, and afterwards."""

from pathlib import Path

from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_rounds import Owner


def test_declarations_survive_a_restart_as_they_were_last(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    owner, other = Owner(world.broker.declarations), Owner(world.broker.declarations, "other")
    for key in (b"c", b"a", b"b"):
        owner.set(key, b"first")
        other.set(key, b"other")
    owner.set(b"a", b"second")
    owner.set(b"b", None)
    world.turn()
    world.crash()
    assert list(Owner(world.broker.declarations).bodies.items()) == [(b"c", b"first"), (b"a", b"second")]
    assert list(Owner(world.broker.declarations, "other").bodies) == [b"c", b"a", b"b"]
    assert Owner(world.broker.declarations, "third").bodies == {}


def test_what_nobody_has_claimed_survives_rounds(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    Owner(world.broker.declarations).set(b"a", b"body")
    for _ in range(3):
        world.turn()
        world.crash()
        world.round()
    assert Owner(world.broker.declarations).bodies == {b"a": b"body"}


def test_what_is_claimed_in_the_middle_of_a_round_is_in_it(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    owner = Owner(world.broker.declarations)
    for number in range(10):
        owner.set(b"%d" % number, b"body")
    world.turn()
    world.crash()
    world.checkpoint.begin()
    world.checkpoint.step(3)
    owner = Owner(world.broker.declarations)
    owner.set(b"0", None)
    owner.set(b"9", None)
    owner.set(b"10", b"new")
    world.slices()
    world.turn()
    assert world.checkpoint.rounds == 1
    world.crash()
    assert sorted(Owner(world.broker.declarations).bodies) == sorted(b"%d" % number for number in [*range(1, 9), 10])


def test_without_a_store_nothing_is_kept() -> None:
    world = StoredWorld.__mro__[1]()
    owner = Owner(world.broker.declarations)
    owner.set(b"a", b"body")
    owner.set(b"a", None)
    assert list(world.broker.declarations) == []
