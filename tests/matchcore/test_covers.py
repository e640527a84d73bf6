"""covers, subsumed and minimal_cover: against all topics of a few words, and against the oracle's walk."""

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matchcore import FilterIndex, InvalidFilter, Subsumed, covers, minimal_cover, reference, subsumed
from matchcore.inclusion import outline

SEPARATORS = {"amqp": ".", "mqtt": "/"}
WILDCARDS = {"amqp": ["*", "#"], "mqtt": ["+", "#"]}

Written = tuple[str, str]


def says(a: Written, b: Written) -> bool:
    return covers(a[0], b[0], a_syntax=a[1], b_syntax=b[1])


def oracle(a: Written, b: Written) -> bool:
    return reference.covers(*a, *b)


@st.composite
def filters(draw: st.DrawFn, most: int = 6) -> Written:
    """Up to so many words, of few kinds, the empty word and one that begins with `$` among them."""
    syntax = draw(st.sampled_from(["amqp", "amqp", "mqtt"]))
    chosen = st.sampled_from(["a", "a", "b", "", "$x", *WILDCARDS[syntax] * 3])
    words = draw(st.lists(chosen, max_size=most))
    if syntax == "mqtt":
        words = [word for word in words[:-1] if word != "#"] + words[-1:]
        if not any(words) and len(words) < 2:
            words = ["#"]
    return SEPARATORS[syntax].join(words), syntax


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Written, Written]:
    """A filter, and one made from it by putting wildcards here and there, so that it covers it now and then."""
    text, syntax = draw(filters(most=7))
    words = text.split(SEPARATORS[syntax]) if text else []
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(words)))
        words[at : at + draw(st.integers(0, 2))] = [draw(st.sampled_from(["*", "#", "a", "*"]))]
    words = ["*" if word == "+" else word for word in words]
    if draw(st.booleans()):
        return (".".join(words), "amqp"), (text, syntax)
    levels = ["+" if word == "*" else word for i, word in enumerate(words) if word != "#" or i == len(words) - 1]
    return ("/".join(levels) if any(levels) else "+/#", "mqtt"), (text, syntax)


def of_three_words() -> dict[str, int]:
    """All filters of up to three words from {a, b} and wildcards, each with the topics of up to six words from
    {a, b, z} that it matches, as bits.
    """
    texts = [".".join(words) for size in range(4) for words in product(["a", "b", "*", "#"], repeat=size)]
    topics = [".".join(words) for size in range(7) for words in product("abz", repeat=size)]
    return {text: bits_of((text, "amqp"), [(topic, "amqp") for topic in topics]) for text in texts}


def with_dollars(words: list[str]) -> dict[Written, int]:
    """All short filters with the empty word and one that begins with `$`, in both syntaxes, each with the topics of up
    to four of these words that it matches, as bits.
    """
    amqp = [".".join(words) for size in range(3) for words in product(["", "$x", "*", "#"], repeat=size)]
    mqtt = ["/".join(words) for words in product(["", "$x", "+"], ["", "$x", "+", "#"])]
    written = dict.fromkeys([(text, "amqp") for text in amqp] + [(text, "mqtt") for text in ["$x", "+", "#", *mqtt]])
    topics = [
        (SEPARATORS[syntax].join(chosen), syntax)
        for syntax in SEPARATORS
        for size in range(5)
        for chosen in product(words, repeat=size)
    ]
    topics = [(text, syntax) for text, syntax in topics if text or syntax == "amqp"]
    return {filter: bits_of(filter, topics) for filter in written}


def bits_of(filter: Written, topics: list[Written]) -> int:
    return sum(1 << i for i, topic in enumerate(topics) if reference.matches(*filter, *topic))


def test_a_filter_covers_what_is_less_general() -> None:
    assert covers("stock.#", "stock.*.ibm")
    assert covers("#", "")
    assert covers("*.#", "#.*")
    assert covers("a/+/c", "a.b.c", a_syntax="mqtt")
    assert not covers("a.*", "a.#")
    assert not covers("a.*.#", "a.#")
    assert not covers("a.b", "a.*")


def test_the_word_behind_may_be_a_literal_of_the_other() -> None:
    """`*` lies on the second x where the `#` between is nothing, on what it holds where it is not."""
    assert covers("#.x.*.#", "x.#.x.#")
    assert not covers("#.x.*.*.#", "x.#.x.#")
    assert covers("#.x.*.*.#.y", "x.#.x.#.x.#.y")


def test_a_wildcard_of_mqtt_does_not_cover_what_may_begin_with_a_dollar() -> None:
    assert not covers("#", "*", a_syntax="mqtt")
    assert not covers("#", "$SYS.a", a_syntax="mqtt")
    assert covers("#", "a.#", a_syntax="mqtt")
    assert covers("#", "+/a", a_syntax="mqtt", b_syntax="mqtt")
    assert covers("#", "", a_syntax="mqtt")
    assert covers("#", "#", b_syntax="mqtt")
    assert covers("$SYS/#", "$SYS.a.#", a_syntax="mqtt")


def test_the_empty_word_alone_is_no_topic() -> None:
    assert covers("/+/#", "/#", a_syntax="mqtt", b_syntax="mqtt")
    assert covers("*.#.", "#.")
    assert covers("*.*.#", "#..#")
    assert not covers("*.#..#", "#..#")


def test_an_invalid_filter_is_refused() -> None:
    with pytest.raises(InvalidFilter):
        covers("a/#/b", "a", a_syntax="mqtt")
    with pytest.raises(InvalidFilter):
        covers("a", "", b_syntax="mqtt")
    with pytest.raises(InvalidFilter, match="1024"):
        covers("a", ".".join(["a"] * 1025))
    with pytest.raises(ValueError, match="syntax"):
        covers("a", "a", a_syntax="nats")
    with pytest.raises(InvalidFilter):
        minimal_cover([("a", "amqp"), ("a/#b", "mqtt")])


def test_all_filters_of_three_words_agree_with_all_topics_of_six() -> None:
    """Each topic up to six words from {a, b, z}: a MANY of a counterexample to filters of three words holds at most
    two, and two MANYs have a literal between them. z stands for all words that are not named.
    """
    matched = of_three_words()
    for a, b in product(matched, matched):
        expected = matched[b] & ~matched[a] == 0
        assert covers(a, b) is expected, (a, b)
        assert oracle((a, "amqp"), (b, "amqp")) is expected, (a, b)


def test_a_dollar_and_empty_words_agree_with_all_topics_of_four() -> None:
    matched = with_dollars(["", "$x", "$z", "z"])
    for a, b in product(matched, matched):
        expected = matched[b] & ~matched[a] == 0
        assert says(a, b) is oracle(a, b) is expected, (a, b)


@settings(max_examples=600, deadline=None)
@given(filters(), filters())
@example(("#", "mqtt"), ("#.$x", "amqp"))
@example(("#.a.*.#", "amqp"), ("#.a.#.a.*.#", "amqp"))
def test_any_two_filters_agree_with_the_oracle(a: Written, b: Written) -> None:
    assert says(a, b) is oracle(a, b)
    assert says(b, a) is oracle(b, a)


@settings(max_examples=600, deadline=None)
@given(pairs())
def test_filters_that_are_nearly_alike_agree_with_the_oracle(pair: tuple[Written, Written]) -> None:
    a, b = pair
    assert says(a, b) is oracle(a, b)


@settings(max_examples=320, deadline=None)
@given(pairs())
def test_what_covers_another_ranks_before_it_and_matches_its_topic(pair: tuple[Written, Written]) -> None:
    a, b = pair
    (a_rank, _), (b_rank, topic) = outline(*a), outline(*b)
    assert reference.matches(*b, topic, b[1])
    if says(a, b):
        assert reference.matches(*a, topic, b[1])
        assert a_rank <= b_rank
        assert says(b, a) is (a_rank == b_rank)


def test_hundreds_of_hashes_take_no_exponential_time() -> None:
    """By trying where each `#` may end, none of these would."""
    assert covers("#." + "a.#." * 400 + "a", "a.#." * 500 + "a")
    assert not covers("#." + "a.#." * 400 + "b.#", "a.#." * 500 + "a")
    assert not covers("#.a.a.#." + "a.#." * 400 + "a", "a.#." * 500 + "a")
    assert covers("*." * 400 + "#", "#." + "*." * 400 + "#")


def test_filters_of_a_site_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: candidates are few, whether nothing is redundant, a part of it, or all."""
    asked = 0

    def counted(*arguments: str, **named: str) -> bool:
        nonlocal asked
        asked += 1
        return covers(*arguments, **named)

    monkeypatch.setattr("matchcore.subsumption.covers", counted)
    index = FilterIndex()
    for i in range(12_000):
        site, floor, device = i % 97, i % 7, i % 3_001
        below = ("+/+/dev/{d}/#", "floor/{f}/dev/{d}/#", "floor/{f}/+/{i}")[i % 3].format(d=device, f=floor, i=i)
        index.insert(f"site/{site}/{below}", i, syntax="mqtt")
    few = len(subsumed(index))
    assert asked < 2 * len(index)
    for site in range(97):
        index.insert(f"site.{site}.#", 20_000 + site)
    asked = 0
    assert len(subsumed(index)) > few + 7_000
    assert asked < 3 * len(index)


@settings(max_examples=200, deadline=None)
@given(st.lists(filters(most=4), max_size=14))
def test_a_minimal_cover_covers_all_and_none_of_it_another(given: list[Written]) -> None:
    left = minimal_cover(given)
    for filter in given:
        assert any(oracle(by, filter) for by in left)
    for i, a in enumerate(left):
        for j, b in enumerate(left):
            assert i == j or not oracle(a, b)
    places = iter(given)
    assert all(filter in places for filter in left)  # in the order given


@settings(max_examples=140, deadline=None)
@given(st.lists(st.tuples(filters(most=4), st.integers(0, 3)), max_size=12))
def test_what_is_subsumed_is_covered_by_what_is_not(given: list[tuple[Written, int]]) -> None:
    index = FilterIndex()
    for (text, syntax), id in given:
        index.insert(text, id, syntax=syntax)
    found = subsumed(index)
    redundant = {(one.filter, one.syntax) for one in found}
    held = {(text, syntax) for text, syntax, _ in index.filters()}
    assert len(redundant) == len(found)
    for one in found:
        assert (one.by, one.by_syntax) in held - redundant
        assert covers(one.by, one.filter, a_syntax=one.by_syntax, b_syntax=one.syntax)
    left = [(str(text), syntax) for text, syntax in held - redundant]
    assert sorted(minimal_cover(left)) == sorted(left)


def test_without_the_subsumed_filters_the_same_topics_match() -> None:
    index = FilterIndex()
    for id, text in enumerate(["site.#", "site.1.*", "#.temp", "site.temp", "gate.*", "gate.1", "#.*.temp"]):
        index.insert(text, id)
    index.insert("site/+", 9, syntax="mqtt")
    found = subsumed(index)
    assert Subsumed("site.1.*", "amqp", "site.#", "amqp") in found
    assert Subsumed("site/+", "mqtt", "site.#", "amqp") in found
    assert Subsumed("#.*.temp", "amqp", "#.temp", "amqp") in found
    assert {one.filter for one in found} == {"site.1.*", "site/+", "site.temp", "gate.1", "#.*.temp"}
    left = FilterIndex()
    for filter, syntax, number in index.filters():
        if (filter, syntax) not in {(one.filter, one.syntax) for one in found}:
            left.insert(filter, number, syntax=syntax)
    for words in product(["site", "gate", "temp", "1"], repeat=3):
        for size in range(4):
            topic = ".".join(words[:size])
            assert left.match_any(topic) is index.match_any(topic)


def test_filters_that_only_together_cover_another_leave_it() -> None:
    given = [("a.#", "amqp"), ("a", "amqp"), ("a.*", "amqp"), ("a.*.*.#", "amqp")]
    assert minimal_cover(given) == [("a.#", "amqp")]
    assert minimal_cover(given[1:]) == given[1:]
    assert minimal_cover([("*.#", "amqp"), ("#.*", "amqp"), ("*.#", "amqp")]) == [("*.#", "amqp")]
    assert minimal_cover([]) == []
