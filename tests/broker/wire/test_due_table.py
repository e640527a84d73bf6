"""The table of what is due one day, against a plain dict."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.wire.due_table import DueTable

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "put off", "discard", "first"]), st.integers(1, 60),
        st.sampled_from([0.0, 1.0, 2.5, 7.0, 7.0]),
    ),
    max_size=200,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_it_says_what_a_plain_dict_says(steps: list[tuple[str, int, float]]) -> None:
    table = DueTable()
    plain: dict[int, float] = {}
    late: set[int] = set()
    for step, number, due in steps:
        id = number * 0x1_0000_0001  # both halves of an id count
        if step == "add" and id not in plain:
            table.add(id, due, number, 2 * number)
            plain[id] = due
        elif step == "put off" and id in plain:
            table.put_off(id, due)
            plain[id] = due
            late.add(id)
        elif step == "discard":
            assert table.discard(id) == (plain.pop(id, None) is not None)
        elif step == "first" and plain:
            assert table.discard(table.first_id)
            del plain[min(plain, key=lambda id: (plain[id], id))]
        late &= set(plain)
        assert table.late == len(late)
        ordered = sorted(plain, key=lambda id: (plain[id], id))
        assert len(table) == len(plain)
        assert (table.first_id, table.first) == ((ordered[0], plain[ordered[0]]) if ordered else (0, None))
        assert table.ids(7, inf) == ordered[:7]
        assert table.ids(100, 2.5) == [id for id in ordered if plain[id] <= 2.5]
        assert {id: (due, nbytes, publisher) for id, due, nbytes, publisher in table} == {
            id: (due, id & 0xFFFF, 2 * (id & 0xFFFF)) for id, due in plain.items()
        }
        assert sorted(filter(None, map(table.at, range(table.places)))) == sorted(plain)
        assert (id in table, table.get(id) is not None) == (id in plain, id in plain)


def test_many_go_in_and_out_in_the_order_of_their_times() -> None:
    table = DueTable()
    for number in range(1, 5_001):
        table.add(number, float(number * 7_919 % 5_000), 1, 0)
    seen = []
    while len(table):
        seen.append(table.first)
        table.discard(table.first_id)
    assert seen == sorted(float(number) for number in range(5_000))
    assert table.places == 0, "its memory is given back"
    table.add(9, 1.0, 1, 0)
    assert table.ids(9, inf) == [9]


def test_an_id_is_there_once_and_is_not_0() -> None:
    table = DueTable()
    table.add(1, 1.0, 1, 0)
    for id in (0, 1):
        with pytest.raises(ValueError, match="there already"):
            table.add(id, 1.0, 1, 0)
    with pytest.raises(KeyError):
        table.put_off(2, 1.0)
    assert table.get(2) is None
    assert table.at(99) == 0
