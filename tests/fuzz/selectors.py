"""Texts of selectors and suffixes of filters of any bytes at all, and what must hold whatever they are.

A tree, or InvalidSelector at a byte of the text; a tree's own text gives it back; what C reads, where.py reads; and a
screen that holds it answers as the definition does, for fields that it asks for. Used by hypothesis in every test run
(test_fuzz.py) and by atheris for as long as one likes (`make fuzz`).
"""

from matchcore.errors import InvalidSelector
from matchcore.fields import Attributes
from matchcore.kleene import Untyped, holds
from matchcore.quick_where import read_quickly
from matchcore.screen import Screen
from matchcore.selector import Attribute, Between, Compare, In, Like, Matches, Selector, leaves
from matchcore.suffix import parse_suffix
from matchcore.where import MAX_TEXT_BYTES, parse_where

TEXTS = (
    b"price > 100 AND region IN ('eu', 'us')", b"AT LEAST 2 OF (a = 1, NOT b, c <> 1.5e3)", b"payload.a.b IS NOT NULL",
    b"name LIKE 'a!%%_' ESCAPE '!' OR \"x-y\" BETWEEN -1 AND 2", b"$word[2] MATCHES 'site/+/#'", b"a NOT IN (1, TRUE)",
    b"1 < a AND (NOT (b = 'x''y') OR $qos = 1)",
)  # fmt: skip
SUFFIXES = (b"location=roomA&value>25", b"a>=-1.5e3& b <2", b"x=", b"a!=1")
FEW = 16  # selectors that are verified in a row: one more is under access keys


def try_octets(octets: bytes) -> None:
    """Raises AssertionError if anything that must hold does not."""
    try:
        tree = parse_where(octets)
    except InvalidSelector as error:
        _refused(error)
        return
    _held(tree)
    text = octets.decode()
    assert repr(parse_where(text)) == repr(tree)
    assert read_quickly(text) is None or repr(read_quickly(text)) == repr(tree)


def try_suffix(octets: bytes) -> None:
    """The same for what is behind the `?` of a filter."""
    try:
        tree = parse_suffix(octets)
    except InvalidSelector as error:
        _refused(error)
        return
    _held(tree)


def _refused(error: InvalidSelector) -> None:
    assert 0 <= error.position <= max(len(error.text), MAX_TEXT_BYTES)
    assert str(error)


def _held(tree: Selector) -> None:
    canonical = str(tree)
    try:
        assert repr(parse_where(canonical)) == repr(tree)
    except InvalidSelector as error:
        # It may be longer than what was written; the broker refuses such a selector.
        if not error.reason.startswith("the text has"):
            raise AssertionError(f"{canonical!r} is not read again") from error
    screen = Screen(Attributes())
    for id in range(FEW + 4):
        screen.insert(id, tree)
    for fields in _messages(tree):
        found = screen.match(fields)
        assert found == (tuple(range(FEW + 4)) if holds(tree, fields) is True else ())
    for id in range(FEW + 4):
        assert screen.remove(id)
    assert screen.attributes.count == 0


def _messages(tree: Selector) -> list[dict[Attribute, object]]:
    """Without fields, and with those that the tests ask for: a value of a test, the same without a type, zero."""
    exact: dict[Attribute, object] = {}
    for test in leaves(tree):
        exact.setdefault(test.attribute, _value(test))
    return [{}, exact, {name: Untyped(str(value)) for name, value in exact.items()}, dict.fromkeys(exact, 0)]


def _value(test: object) -> object:
    match test:
        case Compare(value=value) | Between(low=value) | Like(pattern=value) | Matches(filter=value):
            return value
        case In(values=values):
            return values[0]
    return True
