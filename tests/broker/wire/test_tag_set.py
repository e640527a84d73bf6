"""Packet identifiers kept as bits: the same as a set, and what they take is counted until it is given back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.wire.ledger import Pot
from fanlight_broker.wire.tag_set import TagSet

IDENTIFIER = st.one_of(st.sampled_from([1, 2, 2_047, 2_048, 65_534, 65_535]), st.integers(1, 65_535))


@given(st.lists(st.tuples(st.booleans(), IDENTIFIER), max_size=200))
def test_identifiers_are_a_set(steps: list[tuple[bool, int]]) -> None:
    pot = Pot("test")
    identifiers, model = TagSet(pot), set[int]()
    for comes, identifier in steps:
        if comes:
            assert identifiers.add(identifier)
            model.add(identifier)
        else:
            assert identifiers.discard(identifier) == (identifier in model)
            model.discard(identifier)
        assert len(identifiers) == len(model)
        assert (identifier in identifiers) == (identifier in model)
        assert pot.used == identifiers.nbytes
        assert (pot.used == 0) == (not model)
    identifiers.clear()
    assert (len(identifiers), pot.used) == (0, 0)


def test_all_identifiers_of_a_session_take_9_kib_at_most() -> None:
    """They took 828 KiB, and no limit counted them."""
    pot = Pot("test")
    identifiers = TagSet(pot)
    for identifier in range(1, 65_536):
        assert identifiers.add(identifier)
    assert len(identifiers) == 65_535
    assert 8 * 1024 <= pot.used <= 9 * 1024
    del identifiers
    assert pot.used == 0


def test_an_identifier_that_has_no_room_is_refused_and_those_that_are_there_stay() -> None:
    pot = Pot("test")
    identifiers = TagSet(pot)
    assert identifiers.add(1)
    pot.limit = pot.used + 255  # a page is 256 bytes
    assert identifiers.add(2)  # on the same one
    assert not identifiers.add(3_000)
    assert (pot.refused, list(filter(identifiers.__contains__, range(4_000)))) == (1, [1, 2])
    pot.limit += 1
    assert identifiers.add(3_000)


@pytest.mark.parametrize("identifier", [-1, 0, 65_536])
def test_what_is_no_identifier_is_refused(identifier: int) -> None:
    identifiers = TagSet(Pot("test"))
    assert identifier not in identifiers
    with pytest.raises(ValueError, match="it is 1 to 65535"):
        identifiers.add(identifier)


def test_a_pot_takes_up_to_its_limit_and_gives_back() -> None:
    pot = Pot("test", 100)
    assert pot.reserve(99)
    assert pot.reserve(1)
    assert not pot.reserve(1)
    assert (pot.used, pot.refused, pot.full) == (100, 1, False)
    pot.add(1)  # it is there already
    assert pot.full
    assert pot.reserve(-2)
    assert pot.reserve(1)
    pot.refund(100)
    assert pot.used == 0
