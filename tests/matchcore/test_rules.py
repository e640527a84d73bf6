"""The rules of matching, one row each, asked of the index, of its mirror image and of the oracle."""

import pytest

import matchcore
from matchcore import reference

A, M = "amqp", "mqtt"

MATCHES = [
    # AMQP: one word, zero or more, anywhere
    ("forex.*", A, "forex.eur", A),
    ("*.eur", A, "forex.eur", A),
    ("#", A, "", A),
    ("#", A, "a.b.c", A),
    ("a.#", A, "a", A),
    ("a.#", A, "a.b.c", A),
    ("#.c", A, "c", A),
    ("#.c", A, "a.b.c", A),
    ("a.#.d", A, "a.d", A),
    ("a.#.d", A, "a.b.c.d", A),
    ("#.b.#", A, "b", A),
    ("#.b.#", A, "a.b.c", A),
    ("#.a.#.b.#", A, "x.a.y.y.b.z", A),
    ("#.a.b.#", A, "a.x.a.b", A),
    ("#.a.*.a.#", A, "a.a.b.a", A),
    ("#.a.a.#.a.a.#", A, "a.a.a.a", A),
    ("*.#", A, "a", A),
    ("#.*", A, "a.b", A),
    ("#.*.#", A, "a", A),
    ("#.#", A, "", A),
    ("*.#.*", A, "a.b", A),
    # AMQP: the empty key, empty words, words that look like wildcards
    ("", A, "", A),
    ("a..b", A, "a..b", A),
    ("a.*.b", A, "a..b", A),
    ("*.*", A, ".", A),
    (".", A, ".", A),
    ("a.", A, "a.", A),
    ("a.*", A, "a.", A),
    ("ab*", A, "ab*", A),
    ("foo#", A, "foo#", A),
    ("a.+", A, "a.+", A),
    ("a.*", A, "a.*", A),
    ("*", A, "#", A),
    ("#", A, "*.#", A),
    # MQTT
    ("site/+/temp", M, "site/12/temp", M),
    ("a/#", M, "a", M),
    ("a/#", M, "a/b/c", M),
    ("#", M, "a", M),
    ("#", M, "/", M),
    ("+", M, "a", M),
    ("+/+", M, "/", M),
    ("/+", M, "/a", M),
    ("+/#", M, "a", M),
    ("a//b", M, "a//b", M),
    ("a/+/b", M, "a//b", M),
    ("*", M, "*", M),
    ("a/*", M, "a/*", M),
    # `$`: the rule of the filter's syntax
    ("$SYS/#", M, "$SYS/broker", M),
    ("$SYS/+", M, "$SYS/broker", M),
    ("+/$x", M, "a/$x", M),
    ("#", A, "$SYS.broker", A),
    ("#", A, "$SYS/broker", M),
    ("*.broker", A, "$SYS/broker", M),
    ("+/a", M, "a$/a", M),
    # One index, two spellings, word by word
    ("forex.*", A, "forex/eur", M),
    ("forex.eur", A, "forex/eur", M),
    ("forex/eur", M, "forex.eur", A),
    ("forex/+", M, "forex.eur", A),
    ("forex/#", M, "forex", A),
    ("#", M, "", A),
    ("*", A, "a.b", M),
    ("+", M, "a/b", A),
    ("a/b", A, "a/b", A),
    # BRK.B: one word in MQTT spelling, two in AMQP's
    ("stock/nyse/BRK.B", M, "stock/nyse/BRK.B", M),
    ("stock.*.*", A, "stock/nyse/BRK.B", M),
    ("stock.*.BRK.B", A, "stock.nyse.BRK.B", A),
    ("stock/+/BRK/B", M, "stock.nyse.BRK.B", A),
]

DOES_NOT_MATCH = [
    ("forex.*", A, "forex", A),
    ("forex.*", A, "forex.eur.usd", A),
    ("*", A, "", A),
    ("*.#", A, "", A),
    ("#.*", A, "", A),
    ("*.#.*", A, "a", A),
    ("a.#", A, "", A),
    ("a.#", A, "b", A),
    ("#.c", A, "c.a", A),
    ("a.#.a", A, "a", A),
    ("#.a.#.b.#", A, "b.a", A),
    ("#.a.#.a.#", A, "b.a.b", A),
    ("#.a.b.#", A, "a.x.b", A),
    ("#.a.a.#.a.a.#", A, "a.a.a", A),
    ("#.a.a.#.a.a.#", A, "x.a.a.a.x", A),  # long enough, but the segments may not overlap
    ("#.a.b.#.b.c.#", A, "a.b.c.d", A),
    ("#.a.b.#.b", A, "x.a.b", A),  # nor a segment and the suffix
    ("a.#.a.b.#.c", A, "a.b.x.c", A),  # nor the prefix and a segment
    ("a.#.a.b.#.b", A, "a.a.b.x.x.x", A),
    ("a.b.#.b.c", A, "a.b.c", A),
    ("a", A, "", A),
    ("", A, "a", A),
    ("", A, ".", A),
    (".", A, "", A),
    ("a..b", A, "a.b", A),
    ("a", A, "a.", A),
    ("ab*", A, "abc", A),
    ("foo#", A, "foo", A),
    ("a.+", A, "a.b", A),
    ("a.b", A, "a.*", A),
    ("a.*", M, "a.b", M),
    ("site/+/temp", M, "site/temp", M),
    ("a/#", M, "b", M),
    ("a/#", M, "ab", M),
    ("+", M, "a/b", M),
    ("+", M, "/", M),
    ("a", M, "a/", M),
    ("a", M, "A", M),
    ("*", M, "a", M),
    ("#", M, "$SYS", M),
    ("#", M, "$SYS/broker", M),
    ("+/broker", M, "$SYS/broker", M),
    ("+/broker", M, "$SYS.broker", A),
    ("#", M, "$", M),
    ("a/b", A, "a/b", M),
    ("a/b", M, "a/b", A),
    ("a.b", A, "a.b", M),
    ("stock.*.*", A, "stock.nyse.BRK.B", A),
    ("stock.*.BRK.B", A, "stock/nyse/BRK.B", M),
    ("stock/nyse/BRK.B", M, "stock.nyse.BRK.B", A),
    ("é", A, "e\u0301", A),
]

VECTORS = [(*row, True) for row in MATCHES] + [(*row, False) for row in DOES_NOT_MATCH]


@pytest.mark.parametrize(("filter", "filter_syntax", "topic", "topic_syntax", "expected"), VECTORS)
def test_the_rules(filter: str, filter_syntax: str, topic: str, topic_syntax: str, expected: bool) -> None:
    ids = (7,) if expected else ()
    filters = matchcore.FilterIndex()
    filters.insert(filter, 7, syntax=filter_syntax)
    assert filters.match(topic, syntax=topic_syntax) == ids
    assert filters.match_any(topic, syntax=topic_syntax) is expected
    names = matchcore.NameIndex()
    names.insert(topic, 7, syntax=topic_syntax)
    assert names.match(filter, syntax=filter_syntax) == ids
    assert reference.matches(filter, filter_syntax, topic, topic_syntax) is expected
    assert (matchcore.why_not(filter, filter_syntax, topic, topic_syntax) is None) is expected


def test_a_topic_longer_than_the_longest_filter_still_reaches_a_hash() -> None:
    index = matchcore.FilterIndex()
    index.insert("a.*.c", 1)
    index.insert("a.#", 2)
    index.insert("#.z", 3)
    for words in (2, 3, 23, 24, 25, 26, 27, 60, 128):
        topic = ".".join(["a"] + ["x"] * (words - 2) + ["z"])
        assert index.match(topic) == (2, 3)


def test_positions_deeper_than_any_row_are_still_compared() -> None:
    for depth in (22, 23, 24, 25, 26, 50, 126):
        index = matchcore.FilterIndex()
        stars = "*." * depth
        index.insert(stars + "a", 1)
        index.insert(stars + "b", 2)
        index.insert("#.a" + ".*" * depth, 3)
        index.insert("#.b" + ".*" * depth, 4)
        assert index.match("x." * depth + "a") == (1,)
        assert index.match("a" + ".x" * depth) == (3,)
        assert index.match("b" + ".x" * (depth - 1) + ".b") == (2, 4)
        assert index.match("a." * (depth - 1) + "a") == ()


def test_the_same_words_in_both_syntaxes_are_two_filters_and_both_match() -> None:
    index = matchcore.FilterIndex()
    pairs = [("a.b", "a/b"), ("a.*", "a/+"), ("a.#", "a/#"), ("*.b", "+/b"), ("#", "#")]
    for number, (amqp, mqtt) in enumerate(pairs):
        assert index.insert(amqp, 2 * number, syntax="amqp")
        assert index.insert(mqtt, 2 * number + 1, syntax="mqtt")
    assert index.match("a.b") == index.match("a/b", syntax="mqtt") == tuple(range(10))
    for number, (amqp, _) in enumerate(pairs):
        assert index.remove(amqp, 2 * number, syntax="amqp")
    assert index.match("a.b") == index.match("a/b", syntax="mqtt") == (1, 3, 5, 7, 9)


def test_two_filters_that_differ_only_in_the_dollar_rule_are_kept_apart() -> None:
    index = matchcore.FilterIndex()
    index.insert("#", 1, syntax="amqp")
    index.insert("#", 2, syntax="mqtt")
    index.insert("*.b", 3, syntax="amqp")
    index.insert("+/b", 4, syntax="mqtt")
    assert index.match("$x.b") == index.match("$x/b", syntax="mqtt") == (1, 3)
    assert index.match("x.b") == (1, 2, 3, 4)
    index.remove("#", 1, syntax="amqp")
    index.remove("*.b", 3, syntax="amqp")
    assert index.match("$x.b") == ()
    assert index.match("x.b") == (2, 4)


@pytest.mark.parametrize(
    "forms",
    [
        ["*.#.b", "#.*.b", "#.*.#.b", "*.#.#.b", "#.#.*.#.b"],
        ["a.#", "a.#.#", "a.#.#.#"],
        ["*.*.#", "#.*.*", "*.#.*", "#.*.#.*.#"],
    ],
)
def test_filters_with_one_meaning_are_removed_by_what_was_given(forms: list[str]) -> None:
    index = matchcore.FilterIndex()
    for number, text in enumerate(forms):
        assert index.insert(text, number)
    held = set(range(len(forms)))
    assert {text for text, _, _ in index.filters()} == set(forms)
    assert not index.remove(forms[0] + ".zzz", 0)
    for number in (1, 0, *range(2, len(forms))):
        assert index.match("a.x.b") == tuple(sorted(held))
        assert index.remove(forms[number], number)
        assert not index.remove(forms[number], number)
        held.remove(number)
    assert index.match("a.x.b") == ()
