"""One call for a topic behind several key words: the smallest id that `match` finds for any of them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore.errors import InvalidFilter, InvalidTopic
from matchcore.filters import FilterIndex
from matchcore.keyed import least_id

SEPARATORS = {"amqp": ".", "mqtt": "/"}
KEYS = ["k0", "k1", "k2"]
words = st.sampled_from(["a", "b", "c"])
filters = st.tuples(
    st.sampled_from(KEYS), st.lists(st.one_of(words, st.sampled_from(["+", "#"])), min_size=1, max_size=4),
    st.integers(0, 20), st.sampled_from(list(SEPARATORS)),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(filters, max_size=12),
    st.lists(st.sampled_from(KEYS), max_size=4),
    st.lists(words, min_size=1, max_size=4),
    st.sampled_from(list(SEPARATORS)),
    st.sampled_from([1, 700]),
)
def test_it_is_the_smallest_of_what_each_key_finds(given, keys, topic, syntax, times) -> None:  # type: ignore[no-untyped-def]
    """times: long words, for topics that do not fit on the stack."""
    index = FilterIndex()
    for key, filter, id, own in given:
        if "#" in filter and own == "mqtt":
            filter = [*filter[: filter.index("#")], "#"]
        any_word = "*" if own == "amqp" else "+"
        text = [any_word if word == "+" else word if word == "#" else word * times for word in filter]
        index.insert(SEPARATORS[own].join([key, *text]), id, syntax=own)
    separator = SEPARATORS[syntax]
    text = separator.join(word * times for word in topic)
    found = [id for key in keys for id in index.match(f"{key}{separator}{text}", syntax=syntax)]
    asked = tuple(f"{key}{separator}".encode() for key in keys)
    assert least_id(index, asked, text.encode(), syntax) == min(found, default=None)


places = st.tuples(
    st.sampled_from([-5, -3, -2, -1, 0, 1, 2, 3, 5]), st.lists(st.sampled_from(["", "a", "b", "aa"]), max_size=2)
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.lists(places, max_size=2)), max_size=4),
    st.lists(st.sampled_from(["", "a", "b", "aa"]), min_size=1, max_size=4), st.sampled_from(list(SEPARATORS)),
)
def test_a_named_key_counts_where_its_words_stand(given, topic, syntax) -> None:  # type: ignore[no-untyped-def]
    index = FilterIndex()
    for id, key in enumerate(KEYS):
        index.insert(f"{key}.#", id)
    separator = SEPARATORS[syntax]

    def stands(place: int, words: list[str]) -> bool:
        at = place - 1 if place > 0 else place
        return place != 0 and -len(topic) <= at < len(topic) and topic[at] in words

    asked = tuple(
        (f"{key}{separator}".encode(), tuple((place, tuple(map(str.encode, words))) for place, words in named))
        for key, named in given
    )
    text = separator.join(topic)
    found = [KEYS.index(key) for key, named in given if text and all(stands(*each) for each in named)]
    if text:
        assert least_id(index, (), text.encode(), syntax, asked) == min(found, default=None)
        assert least_id(index, (f"k2{separator}".encode(),), text.encode(), syntax, asked) == min([2, *found])


def test_what_is_wrong_is_said() -> None:
    index = FilterIndex(4)
    index.insert("k.#", 1)
    with pytest.raises(InvalidTopic):
        least_id(index, (b"k.",), b"a.b.c.d", "amqp")
    with pytest.raises(TypeError):
        least_id(index, ("k.",), b"a", "amqp")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        least_id(index, (), b"a", "amqp", ((b"k.", ((1, ["a"]),)),))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="syntax"):
        least_id(index, (b"k.",), b"a", "nats")


@pytest.mark.parametrize("filter", ["a.b", "a.*.#", "a.#.b", "", "a" * 200, "a.b.c.d.e", "a\0"])
@pytest.mark.parametrize("syntax", list(SEPARATORS))
def test_check_refuses_what_insert_refuses(filter: str, syntax: str) -> None:
    index, checked = FilterIndex(4, 100), FilterIndex(4, 100)
    filter = filter.replace(".", SEPARATORS[syntax])
    try:
        index.insert(filter, 1, syntax=syntax)
    except InvalidFilter as error:
        with pytest.raises(InvalidFilter, match=re.escape(str(error))):
            checked.check(filter, syntax=syntax)
    else:
        checked.check(filter, syntax=syntax)
    assert len(checked) == 0
