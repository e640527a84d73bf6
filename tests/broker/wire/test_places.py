"""Many ids, of which some are taken and the rest is kept as bits (wire/places.pyx), beside lists."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.wire.places import split_ids, take_ids

PART = 64


@given(st.sets(st.integers(0, PART - 1)), st.sampled_from([0, 64, 2**32 - 64]), st.integers(1, 70))
def test_all_ids_come_in_order_whatever_is_taken_at_once(places: set[int], first: int, most: int) -> None:
    ids = [first + place for place in sorted(places)]
    taken, rest = split_ids(array("I", ids), first, most, PART)
    found = list(taken)
    while rest:
        assert len(taken) == most
        assert len(rest) == PART // 8
        taken, rest = take_ids(rest, first, most)
        assert taken
        found += taken
    assert found == ids


@pytest.mark.parametrize("id", [63, 128])
def test_an_id_of_another_part_is_refused(id: int) -> None:
    with pytest.raises(ValueError, match=f"id {id} is not among the 64 from 64 on"):
        split_ids(array("I", [id]), 64, 1, PART)


def test_an_array_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="array of I"):
        split_ids(array("Q", [1]), 0, 1, PART)
