"""NameIndex as the broker calls it: names in, a filter asked, ids out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchcore import InvalidFilter, InvalidTopic, NameIndex


def test_a_filter_finds_the_names_it_matches() -> None:
    index = NameIndex()
    assert index.insert("site/1/temp", 1, syntax="mqtt") is True
    assert index.insert("site.2.temp", 2) is True
    assert index.insert("site", 3) is True
    assert index.insert("site", 3) is False
    assert index.match("site/+/temp", syntax="mqtt") == (1, 2)
    assert index.match("site.#") == (1, 2, 3)
    assert index.match("site") == (3,)
    assert index.match("#.temp") == (1, 2)
    assert index.match("nowhere.*") == ()
    assert len(index) == 3
    assert set(index.names()) == {("site/1/temp", "mqtt", 1), ("site.2.temp", "amqp", 2), ("site", "amqp", 3)}


def test_ids_come_distinct_and_ascending() -> None:
    index = NameIndex()
    for id in (5, 2**32 - 1, 0):
        for name in ("a.b", "a", "a.b.c"):
            index.insert(name, id)
            index.insert(name.replace(".", "/"), id, syntax="mqtt")
    assert index.match("#") == index.match("a.#") == (0, 5, 2**32 - 1)
    for filter in ("#", "a.*", "nowhere"):
        array = index.match_array(filter)
        assert array.typecode == "I"
        assert tuple(array.tolist()) == index.match(filter)
    with pytest.raises(InvalidFilter):
        index.match_array("a#", syntax="mqtt")


def test_a_removed_name_leaves_those_above_and_below_it() -> None:
    index = NameIndex()
    for id, name in enumerate(["a", "a.b", "a.b.c", "a.x"]):
        index.insert(name, id)
    assert index.remove("a.b", 1) is True
    assert index.remove("a.b", 1) is False
    assert index.match("#") == (0, 2, 3)
    assert index.remove("a.b.c", 2)
    assert index.match("a.#") == (0, 3)
    assert index.match("a.b.#") == ()
    assert index.remove("a", 0)
    assert index.match("#") == (3,)


def test_the_empty_key_and_empty_words_are_names() -> None:
    index = NameIndex()
    index.insert("", 1)
    index.insert(".", 2)
    index.insert("/", 3, syntax="mqtt")
    assert index.match("") == (1,)
    assert index.match("#") == (1, 2, 3)
    assert index.match("*.*") == (2, 3)
    assert index.remove("", 1)
    assert index.match("#") == (2, 3)


def test_the_dollar_rule_is_that_of_the_filter() -> None:
    index = NameIndex()
    index.insert("$SYS.a", 1)
    index.insert("$SYS/a", 2, syntax="mqtt")
    index.insert("a.$SYS", 3)
    assert index.match("#", syntax="mqtt") == index.match("+/+", syntax="mqtt") == (3,)
    assert index.match("#") == index.match("*.*") == (1, 2, 3)
    assert index.match("$SYS/#", syntax="mqtt") == (1, 2)
    assert index.match("+/$SYS", syntax="mqtt") == (3,)


def test_several_hashes_over_a_deep_trie_take_no_exponential_time() -> None:
    """Twenty `#` over names of a hundred words: by backtracking this would not end."""
    index = NameIndex()
    for id in range(20):
        index.insert(".".join(["a"] * (80 + id)), id)
    assert index.match("#." + "a.#." * 40 + "b") == ()
    assert index.match("#." + "a.#." * 40 + "a") == tuple(range(20))


def test_invalid_names_and_filters_are_refused() -> None:
    index = NameIndex()
    with pytest.raises(InvalidTopic):
        index.insert("a/+", 1, syntax="mqtt")
    with pytest.raises(InvalidFilter):
        index.match("a/#/b", syntax="mqtt")
    assert len(index) == 0


def test_changing_the_index_while_its_names_are_iterated_over_is_a_runtime_error() -> None:
    index = NameIndex()
    index.insert("a", 1)
    index.insert("b", 1)
    iterator = index.names()
    next(iterator)
    index.remove("b", 1)
    with pytest.raises(RuntimeError, match="changed"):
        next(iterator)


def test_a_filter_with_a_word_that_no_name_has_need_not_be_asked() -> None:
    index = NameIndex()
    assert not index.may_match("#")
    index.insert("site.1.temp", 1)
    index.insert("hall/2", 2, syntax="mqtt")
    for filter in ("#", "*", "site.#", "site.1.temp", "2.hall.*", "temp"):
        assert index.may_match(filter)
    assert index.may_match("site/+", syntax="mqtt")
    for filter in ("site.3", "#.x", "Site.#"):
        assert not index.may_match(filter)
    index.remove("hall/2", 2, syntax="mqtt")
    assert not index.may_match("hall.#")
    with pytest.raises(InvalidFilter):
        index.may_match("a#", syntax="mqtt")


@given(
    st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join), max_size=4),
    st.lists(st.sampled_from("abcd*#"), min_size=1, max_size=4).map(".".join),
)
def test_what_may_not_match_does_not(names: list[str], filter: str) -> None:
    index = NameIndex()
    for id, name in enumerate(names):
        index.insert(name, id)
    words = {word for name in names for word in name.split(".")}
    assert index.may_match(filter) == (bool(names) and set(filter.split(".")) - {"*", "#"} <= words)
    assert index.may_match(filter) or index.match(filter) == ()
