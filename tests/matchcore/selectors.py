"""Random selectors and messages, of few names and values so that they meet."""

from hypothesis import strategies as st

from matchcore.kleene import Untyped
from matchcore.selector import (
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Constant,
    In,
    Like,
    Matches,
    Not,
    Or,
    Present,
    Selector,
    Source,
)

NAMES = ("price", "x-y", "in", "a.b")
ATTRIBUTES = st.one_of(
    st.builds(Attribute, st.just(Source.HEADER), st.tuples(st.sampled_from(NAMES))),
    st.builds(Attribute, st.just(Source.PAYLOAD), st.sampled_from([("a",), ("a", "b"), ('q"', "or")])),
    st.sampled_from([Attribute(Source.MESSAGE, ("qos",)), Attribute(Source.MESSAGE, ("word", "2"))]),
)
EXACT = 2**53  # from which floats leave integers out
NUMBERS = st.one_of(
    st.integers(-3, 3), st.sampled_from([EXACT, EXACT + 1, -(2**63), 2**63 - 1]),
    st.sampled_from([0.0, 0.5, -1.0, float(EXACT), 1e300]),
)
TEXTS = st.text("ab%_!'é", max_size=4)
VALUES = st.one_of(st.booleans(), NUMBERS, TEXTS)


@st.composite
def likes(draw: st.DrawFn) -> Like:
    escape = draw(st.sampled_from([None, "!", "%"]))
    pieces = ["a", "b", "é", "'", "%" if escape != "%" else "%%", "_"] + ([f"{escape}_", escape * 2] if escape else [])
    return Like(draw(ATTRIBUTES), "".join(draw(st.lists(st.sampled_from(pieces), max_size=5))), escape)


def _distinct(values: list[bool | int | float | str]) -> tuple[bool | int | float | str, ...]:
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


FILTERS = st.one_of(
    st.lists(st.sampled_from(["a", "b", "", "*", "#"]), max_size=4).map(".".join),
    st.lists(st.sampled_from(["a", "b", "", "$a", "+"]), min_size=2, max_size=4).map("/".join),
    st.lists(st.sampled_from(["a", "$a", "+"]), min_size=1, max_size=3).map(lambda words: "/".join([*words, "#"])),
)
TOPICS = st.lists(st.sampled_from(["a", "b", "", "$a", "x.y"]), max_size=4).flatmap(
    lambda words: st.sampled_from([".".join(words), "/".join(words)])
)
TESTS = st.one_of(
    st.builds(Compare, ATTRIBUTES, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.one_of(NUMBERS, TEXTS)),
    st.builds(Compare, ATTRIBUTES, st.sampled_from(["=", "<>"]), st.booleans()),
    st.builds(Between, ATTRIBUTES, NUMBERS, NUMBERS),
    st.builds(Between, ATTRIBUTES, TEXTS, TEXTS),
    st.builds(In, ATTRIBUTES, st.lists(VALUES, min_size=1, max_size=4).map(_distinct)),
    likes(),
    st.builds(Matches, ATTRIBUTES, FILTERS),
    st.builds(Present, ATTRIBUTES),
)


def _wider(parts: st.SearchStrategy[Selector]) -> st.SearchStrategy[Selector]:
    several = st.lists(parts, min_size=2, max_size=4).map(tuple)
    hits = several.flatmap(lambda many: st.builds(AtLeast, st.integers(1, len(many)), st.just(many)))
    return st.one_of(st.builds(Not, parts), st.builds(And, several), st.builds(Or, several), hits)


SELECTORS: st.SearchStrategy[Selector] = st.recursive(
    st.one_of(TESTS, st.builds(Constant, st.booleans())), _wider, max_leaves=8
)
FOUND = st.one_of(
    VALUES, TOPICS, st.none(), st.just(float("nan")), st.binary(max_size=2), st.just([1]),
    st.sampled_from(["1", "0.5", "true", "x", "1e999", "9" * 30]).map(Untyped), TEXTS.map(Untyped),
)
FIELDS = st.dictionaries(ATTRIBUTES, FOUND, max_size=6)
