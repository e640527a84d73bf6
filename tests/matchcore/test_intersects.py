"""Whether two filters meet: against all topics of a few words, and against the oracle's walk."""

from itertools import product

import pytest
from hypothesis import example, given, settings

from matchcore import InvalidFilter, intersects, reference
from tests.matchcore.test_covers import Written, filters, of_three_words, pairs, with_dollars


def meet(a: Written, b: Written) -> bool:
    return intersects(a[0], b[0], a_syntax=a[1], b_syntax=b[1])


def test_filters_meet_where_some_topic_matches_both() -> None:
    assert intersects("stock.*", "*.ibm")
    assert intersects("a.#", "#.b")
    assert intersects("a.#.c", "a.*")
    assert intersects("#", "")
    assert intersects("site/+/temp", "site.12.#", a_syntax="mqtt")
    assert not intersects("a.*", "b.#")
    assert not intersects("a.*", "a.*.*")
    assert not intersects("a.#.b", "#.c")
    assert not intersects("*.#", "")


def test_a_wildcard_of_mqtt_does_not_meet_a_first_word_with_a_dollar() -> None:
    assert not intersects("#", "$SYS.#", a_syntax="mqtt")
    assert not intersects("+/a", "$SYS/a", a_syntax="mqtt", b_syntax="mqtt")
    assert intersects("+/a", "*.a", a_syntax="mqtt")
    assert intersects("+/#", "#.$SYS", a_syntax="mqtt")  # the second word may be $SYS
    assert intersects("#", "$SYS.#")


def test_the_empty_word_alone_is_no_topic() -> None:
    assert not intersects("#.", "*")
    assert intersects("#.", "*.*")
    assert not intersects("/#", "*", a_syntax="mqtt")


def test_a_topic_is_written_in_one_syntax() -> None:
    """No topic has both words: AMQP's has no dot in a word, MQTT's no slash."""
    assert intersects("x/y.*", "*.a")
    assert intersects("+/a.b", "*.#", a_syntax="mqtt")
    assert not intersects("x/y.*", "+/a.b", b_syntax="mqtt")


def test_an_invalid_filter_is_refused() -> None:
    with pytest.raises(InvalidFilter):
        intersects("a/#/b", "a", a_syntax="mqtt")
    with pytest.raises(InvalidFilter):
        intersects("a", "", b_syntax="mqtt")


def test_all_filters_of_three_words_agree_with_all_topics_of_six() -> None:
    """Two filters of three words that meet do so in a topic of six: each of its words is a literal of one of them, or
    a ONE, or may be left out. z stands for all words that are not named.
    """
    matched = of_three_words()
    for a, b in product(matched, matched):
        assert intersects(a, b) is (matched[a] & matched[b] != 0), (a, b)


def test_a_dollar_and_empty_words_agree_with_all_topics_of_four() -> None:
    matched = with_dollars(["", "$x", "z"])
    for a, b in product(matched, matched):
        assert meet(a, b) is reference.intersects(*a, *b) is (matched[a] & matched[b] != 0), (a, b)


@settings(max_examples=140, deadline=None)
@given(filters(), filters())
@example(("x/y.*", "amqp"), ("+/a.b", "mqtt"))
def test_any_two_filters_agree_with_the_oracle(a: Written, b: Written) -> None:
    assert meet(a, b) is meet(b, a) is reference.intersects(*a, *b)


@settings(max_examples=140, deadline=None)
@given(pairs())
def test_filters_that_are_nearly_alike_agree_with_the_oracle(pair: tuple[Written, Written]) -> None:
    a, b = pair
    assert meet(a, b) is reference.intersects(*a, *b)


def test_hundreds_of_hashes_take_no_exponential_time() -> None:
    assert intersects("#." + "a.#." * 400 + "a", "a.#." * 500 + "a")
    assert not intersects("#." + "a.#." * 400 + "b", "#." * 1 + "a.#." * 400 + "a")
