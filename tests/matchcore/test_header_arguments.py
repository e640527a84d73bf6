"""AMQP's headers exchange: arguments of bindings as selectors, against a plain reading of what RabbitMQ does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchcore.errors import InvalidSelector
from matchcore.header_arguments import parse_header_arguments
from matchcore.kleene import holds
from matchcore.where import parse_where

READ: list[tuple[dict[str, object], str]] = [
    ({}, "TRUE"),
    ({"x-match": "any"}, "FALSE"),
    ({"a": 1}, "a = 1"),
    ({"x-match": "all", "a": 1, "b": None, "x-c": 2}, "a = 1 AND b IS NOT NULL"),
    ({"x-match": "any", "a": "it's", "b": True, "x-c": 2}, "a = 'it''s' OR b = TRUE"),
    ({"x-match": "all-with-x", "a": 1.5, "x-c": 2}, "a = 1.5 AND \"x-c\" = 2"),
    ({"x-match": "any-with-x", "x-c": 2}, "\"x-c\" = 2"),
    ({"payload.a": 1, "$qos": 1}, "\"payload.a\" = 1 AND \"$qos\" = 1"),
]


@pytest.mark.parametrize(("arguments", "text"), READ, ids=[text for _, text in READ])
def test_arguments_are_the_selector_of_a_text(arguments: dict[str, object], text: str) -> None:
    assert str(parse_header_arguments(arguments)) == str(parse_where(text))


REFUSED: list[tuple[dict[str, object], str, str]] = [
    ({"x-match": "some"}, "x-match", "is not known"),
    ({"x-match": ["all"]}, "x-match", "is not known"),
    ({"x-match": None}, "x-match", "is not known"),
    ({"a": b"x"}, "a", "cannot be compared"),
    ({"a": [1]}, "a", "cannot be compared"),
    ({"a": {"b": 1}}, "a", "cannot be compared"),
    ({"a": float("nan")}, "a", "cannot be compared"),
    ({"": 1}, "", "without a name"),
    ({"a": 2**63}, "a = 9223372036854775808", "64 bits"),
    ({f"h{n}": n for n in range(65)}, "h0 = 0", "65 tests"),
]


@pytest.mark.parametrize(("arguments", "text", "reason"), REFUSED, ids=[str(each[0])[:30] for each in REFUSED])
def test_what_is_refused_names_its_argument(arguments: dict[str, object], text: str, reason: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        parse_header_arguments(arguments)
    assert reason in str(caught.value)
    assert text.encode() in caught.value.text
    assert caught.value.advice


def fits(arguments: dict[str, object], headers: dict[str, object]) -> bool:
    """As RabbitMQ's headers exchange decides it."""
    kind = arguments.get("x-match", "all")
    verdicts = []
    for name, wanted in arguments.items():
        if name == "x-match" or (name.startswith("x-") and kind in ("all", "any")):
            continue
        found = headers.get(name)
        alike = isinstance(found, bool) is isinstance(wanted, bool) and found == wanted
        verdicts.append(name in headers and (wanted is None or alike))
    return all(verdicts) if kind in ("all", "all-with-x") else any(verdicts)


NAMES = st.sampled_from(["a", "b", "x-c", "é"])
VALUES = st.sampled_from([1, 1.0, 2, True, False, "1", "x", "", 0.5])
ARGUMENTS = st.dictionaries(NAMES, st.one_of(st.none(), VALUES), max_size=4)
KINDS = st.sampled_from([{}, *({"x-match": kind} for kind in ("all", "any", "all-with-x", "any-with-x"))])


@given(KINDS, ARGUMENTS, st.dictionaries(NAMES, VALUES, max_size=4))
def test_it_is_true_where_a_binding_fits(
    kind: dict[str, object], arguments: dict[str, object], headers: dict[str, object]
) -> None:
    both = {**kind, **arguments}
    assert (holds(parse_header_arguments(both), headers) is True) is fits(both, headers)
