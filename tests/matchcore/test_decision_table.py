"""The cells and the formats of decision tables: what each reads as, and what is refused."""

import pytest

from matchcore import InvalidSelector
from matchcore.cells import cell_condition
from matchcore.decision_table import read_table
from matchcore.kleene import attribute_of, holds
from matchcore.selector import Constant
from matchcore.where import parse_where

A = attribute_of("a")


@pytest.mark.parametrize(
    ("cell", "where"),
    [
        ("foo", "a = 'foo'"), (" foo ", "a = 'foo'"), ("10", "a = 10"), ("-1.5", "a = -1.5"), ("true", "a = TRUE"),
        ("'10'", "a = '10'"), ('"a,b"', "a = 'a,b'"), ("'it''s'", "a = 'it''s'"), ("'foo*'", "a = 'foo*'"),
        ("foo*", "a LIKE 'foo%' ESCAPE '!'"), ("*o_1*", "a LIKE '%o!_1%' ESCAPE '!'"),
        (">=10", "a >= 10"), ("> 10", "a > 10"), ("<x", "a < 'x'"), ("<=1", "a <= 1"), ("<>1", "a <> 1"),
        ("!=x", "a <> 'x'"), ("=foo*", "a = 'foo*'"), ("=", "a = ''"),
        ("[10,20)", "a >= 10 AND a < 20"), ("(10, 20]", "a > 10 AND a <= 20"), ("[10,)", "a >= 10"),
        ("(,5]", "a <= 5"), ("['a','b,c']", "a >= 'a' AND a <= 'b,c'"),
        ("{x,y}", "a IN ('x', 'y')"), ("{1, 2,1.0}", "a IN (1, 2)"), ("{x}", "a IN ('x')"),
        ("{x,y*,'a,b'}", "a IN ('x', 'a,b') OR a LIKE 'y%' ESCAPE '!'"),
        ("!x", "NOT (a = 'x')"), ("!{x,y}", "NOT (a IN ('x', 'y'))"), ("![1,2]", "NOT (a >= 1 AND a <= 2)"),
        ("!x*", "NOT (a LIKE 'x%' ESCAPE '!')"), ("!!x", "NOT NOT (a = 'x')"),
        (5, "a = 5"), (True, "a = TRUE"), (["x", 5], "a IN ('x', 5)"), ([">=5", "x"], "a IN ('x') OR a >= 5"),
    ],
)  # fmt: skip
def test_a_cell_is_a_condition(cell: object, where: str) -> None:
    assert cell_condition(A, cell) == parse_where(where)


@pytest.mark.parametrize("cell", ["", "*", "  ", None])
def test_a_cell_may_be_no_condition(cell: object) -> None:
    assert cell_condition(A, cell) is None


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("!", "nothing is left"), ("!*", "nothing is left"), ("{}", "no value"), ("{a,*}", "nothing is left"),
        ("[1,2,3]", "two ends"), ("(foo)", "two ends"), ("[,]", "one end at least"), ("[1,x]", "one end is a number"),
        ("[true,2]", "no order"), (">", "without a value"), (">true", "no order"), ("1e999", "beyond"),
        ("9223372036854775808", "64 bits"), (float("nan"), "beyond"), ({"a": 1}, "no text"), ("x" * 5_000, "4096"),
        ("9" * 5_000, "4096"), ("*" * 5_000, "4096"), ("!" * 40 + "x", "inside each other"), ([], "no value"),
        ([[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]], "inside each other"), (list(range(1_001)), "more than 1000"),
    ],
)  # fmt: skip
def test_a_cell_is_refused(cell: object, reason: str) -> None:
    with pytest.raises(InvalidSelector, match=reason):
        cell_condition(A, cell)


TABLE = '''name,salience,country,"payload.price",topic,result
dear, 1, *, >=1000, orders.#, ask
near, 2, "{de,at}", , , take
rest, 3, , , , "wait, then ask"
'''
JSON = """
[{"name": "dear", "salience": 1, "payload.price": ">=1000", "topic": "orders.#", "result": "ask"},
 {"name": "near", "salience": 2, "country": ["de", "at"], "result": "take"},
 {"name": "rest", "salience": 3, "country": null, "result": "wait, then ask"}]
"""
TOML = """
[[rules]]
name = "dear"
salience = 1
"payload.price" = ">=1000"
topic = "orders.#"
result = "ask"
[[rules]]
name = "near"
salience = 2
where = "country IN ('de', 'at')"
result = "take"
[[rules]]
name = "rest"
salience = 3
result = "wait, then ask"
"""
ROWS = [
    {"name": "dear", "salience": 1, "payload.price": ">=1000", "topic": "orders.#", "result": "ask"},
    {"name": "near", "salience": 2, "country": ("de", "at"), "result": "take"},
    {"name": "rest", "salience": 3, "result": "wait, then ask"},
]


class Arrow:
    """What an Arrow table and a record batch have."""

    def to_pylist(self) -> list[dict[str, object]]:
        return [dict(row) for row in ROWS]


@pytest.mark.parametrize(
    ("source", "format"),
    [(TABLE, "csv"), (JSON, "json"), (f'{{"rules": {JSON}}}', "json"), (TOML, "toml"), (ROWS, "table"),
     (Arrow(), "table")],
)  # fmt: skip
def test_the_formats_read_alike(source: object, format: str) -> None:
    rows = read_table(source, format)
    assert [(row.name, row.salience, row.topic, row.result) for row in rows] == [
        ("dear", 1, "orders.#", "ask"), ("near", 2, None, "take"), ("rest", 3, None, "wait, then ask"),
    ]  # fmt: skip
    wanted = ("payload.price >= 1000", "country IN ('de', 'at')", "TRUE")
    assert [row.selector for row in rows] == [parse_where(text) for text in wanted]


def test_a_column_may_have_a_name_that_means_something() -> None:
    (row,) = read_table([{'"name"': "x", "$word[2]": "eur", "where": "b = 1", "name": 7, "salience": "0.5"}], "table")
    assert row.selector == parse_where("b = 1 AND name = 'x' AND $word[2] = 'eur'")
    assert (row.name, row.salience) == ("7", 0.5)
    assert holds(row.selector, {"b": 1, "name": "x", "$word[2]": "eur"}) is True


def test_an_empty_table_has_no_rows() -> None:
    assert read_table("", "csv") == read_table("[]", "json") == read_table([], "table") == []
    assert [row.selector for row in read_table([{}], "table")] == [Constant(True)]


@pytest.mark.parametrize(
    ("source", "format", "error", "reason"),
    [
        ("a,b\n1,(2)\n", "csv", InvalidSelector, "row 1, column b: a range has two ends"),
        ("a,salience\n1,2\n1,high\n", "csv", InvalidSelector, "row 2, column salience: the salience 'high'"),
        ("a,a\n1,2\n", "csv", ValueError, "one name"),
        ("a\n1,2\n", "csv", ValueError, "line 2 has 2 cells"),
        ('a\n"x', "csv", ValueError, "unexpected end|EOF"),
        ("{", "json", ValueError, "Expecting"),
        ("5", "json", ValueError, "no list of rules"),
        ("[5]", "json", ValueError, "row 1 of the table is no mapping"),
        ("rules = 5", "toml", ValueError, "no list of rules"),
        ("x = ", "toml", ValueError, "Invalid value"),
        ([{"where": "a ="}], "table", InvalidSelector, "row 1, column where"),
        ([{"where": 5}], "table", InvalidSelector, "neither text nor a dict"),
        ([{"$nothing": 5}], "table", InvalidSelector, "not known"),
        ([{"": 5}], "table", InvalidSelector, "no name"),
        ([{f"a{i}": 1 for i in range(65)}], "table", InvalidSelector, "row 1: 65 tests"),
        ("", "xml", ValueError, "the format is one of"),
    ],
)
def test_a_table_is_refused(source: object, format: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        read_table(source, format)
