"""How a screen comes to a selector: the keys, the row or the list that an explanation names."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchcore import FilterIndex, explain
from matchcore.fields import Attributes
from matchcore.kleene import Untyped, key_of
from matchcore.reached import found_by
from matchcore.screen import Screen
from matchcore.selector import Attribute, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS

FEW = 16  # selectors of a screen that are verified in a row


def screen_of(*texts: str, others: str = "other = {}") -> Screen:
    """These under ids from 0, behind enough others for access keys."""
    screen = Screen(Attributes())
    for number in range(100):
        screen.insert(1_000 + number, parse_where(others.format(number)))
    for id, text in enumerate(texts):
        screen.insert(id, parse_where(text))
    return screen


def test_in_a_small_screen_all_are_in_one_list() -> None:
    screen = Screen(Attributes())
    for id in range(FEW):
        screen.insert(id, parse_where(f"a = {id}"))
    assert found_by(screen, [3, 99], {"a": 3}) == [("list of 16",), ()]


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("region = 'eu' AND a > 1", {"region": "eu", "a": 2}, ("key region = 'eu'",)),
        ("region = 'eu' AND a > 1", {"region": "us", "a": 2}, ()),
        ("region = 'eu' AND a > 1", {}, ()),
        ("n IN (1, 2, 3)", {"n": 2.0}, ("key n = 2.0",)),
        ("n IN (1, 2, 3)", {"n": Untyped("3")}, ("key n = '3'",)),
        ("n IN (1, '1')", {"n": Untyped("1")}, ("key n = '1'",)),
        ("payload.a.b = TRUE", {"payload.a.b": True}, ("key payload.a.b = TRUE",)),
        ("a = 1 OR b = 2", {"a": 1, "b": 2}, ("key a = 1", "key b = 2")),
        ("a = 1 OR b = 2", {"a": 0, "b": 2}, ("key b = 2",)),
        ("AT LEAST 2 OF (a = 1, b = 2, c = 3)", {"a": 1, "b": 2, "c": 3}, ("key a = 1", "key b = 2")),
        ("urgent IS NOT NULL", {"urgent": b""}, ("key urgent is present",)),
        ("name LIKE 'ab%'", {"name": "abc"}, ("key name begins with 'ab'",)),
        ("name LIKE 'ab%'", {"name": "a"}, ()),
        ("name LIKE '%.jpg'", {"name": "\u00e9.jpg"}, ("key name ends with '.jpg'",)),
        ("name LIKE 'ab'", {"name": "ab"}, ("key name = 'ab'",)),
        ("a <> 1", {"a": 2}, ("row of 17",)),
        ("a <> 1", {}, ("row of 17",)),
    ],
)
def test_it_is_found_by(text: str, fields: dict[str, object], expected: tuple[str, ...]) -> None:
    screen = screen_of(text)
    assert found_by(screen, [0], fields) == [expected]
    assert (0 in screen.match(fields)) <= bool(expected)


def test_a_range_is_found_by_its_cells() -> None:
    screen = screen_of("price BETWEEN 500 AND 505", others="price BETWEEN {0}0 AND {0}5")
    assert found_by(screen, [0], {"price": 501}) == [("key price is in its cells",)]
    assert found_by(screen, [0], {"price": 5}) == [()]
    assert found_by(screen, [0], {"price": "501"}) == [()]


def test_an_explanation_says_by_what() -> None:
    index = FilterIndex()
    for id in range(40):
        index.insert("orders.#", id, where=f"id = {id}")
    index.insert("orders.#", 40, where="id <> 3")
    index.insert("orders.*", 41, where="id > 3")
    found = {each.id: each for each in explain(index, "orders.eu", fields={"id": 37})}
    assert {id: each.found_by for id, each in found.items()} == {
        37: ("key id = 37",), 40: ("row of 17",), 41: ("list of 1",),
    }
    assert found[37].reason.endswith("; screen: key id = 37; true: id = 37")
    assert [each.id for each in explain(index, "orders.eu", fields={"id": 37}, ids={40})] == [40]


class Meddling(dict[str, object]):
    """Changes the screen whenever its items are asked for."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(a=1)
        self.screen = screen

    def items(self) -> object:  # type: ignore[override]
        for id in range(200):
            self.screen.remove(id)
        for number in range(40):
            self.screen.insert(5_000 + number, parse_where(f"new{number} = 1"))
        gc.collect()
        return super().items()


def test_a_screen_may_change_while_the_fields_are_read() -> None:
    screen = screen_of(*(f"a = {number}" for number in range(200)))
    assert found_by(screen, range(3), Meddling(screen)) == [(), (), ()]


class Removing(int):
    """A number that takes a selector out of an index when it is shown."""

    index: FilterIndex

    def __repr__(self) -> str:
        self.index.remove("a", 100)
        return "1"


def test_an_index_that_changes_while_a_key_is_shown_says_so() -> None:
    index = FilterIndex()
    for id in range(40):
        index.insert("a", id, where=f"other = {id}")
    index.insert("a", 100, where="x = 1 OR y = 1")
    one = Removing(1)
    one.index = index
    with pytest.raises(RuntimeError, match="changed while its matches were explained"):
        index.selected("a", fields={"x": one, "y": one})


@given(st.lists(SELECTORS, min_size=1, max_size=30), FIELDS)
def test_whatever_is_true_is_found_by_something(selectors: list[Selector], fields: dict[Attribute, object]) -> None:
    for copies in (1, 3):
        screen = Screen(Attributes())
        for copy in range(copies):
            for id, selector in enumerate(selectors):
                screen.insert(100 * copy + id, selector)
        true = screen.match(fields)
        assert all(found_by(screen, true, fields))
        assert found_by(screen, true, {key_of(each): value for each, value in fields.items()}) == found_by(
            screen, true, fields
        )
