"""Topics and filters as values, the limits, and errors that say where."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchcore
from matchcore import (
    FilterIndex,
    InvalidFilter,
    InvalidTopic,
    NameIndex,
    Wildcard,
    explain,
    parse_filter,
    reference,
    split_topic,
)

ONE, MANY = Wildcard.ONE, Wildcard.MANY


@pytest.mark.parametrize(
    ("topic", "syntax", "words"),
    [
        ("", "amqp", ()),
        (".", "amqp", (b"", b"")),
        ("a..b", "amqp", (b"a", b"", b"b")),
        ("*.#.a/b", "amqp", (b"*", b"#", b"a/b")),
        (b"\0\xff.b", "amqp", (b"\0\xff", b"b")),
        ("/", "mqtt", (b"", b"")),
        ("stock/nyse/BRK.B", "mqtt", (b"stock", b"nyse", b"BRK.B")),
        ("é/日本", "mqtt", ("é".encode(), "日本".encode())),
    ],
)
def test_a_topic_is_its_words(topic: str | bytes, syntax: str, words: tuple[bytes, ...]) -> None:
    assert split_topic(topic, syntax) == words


@pytest.mark.parametrize(
    ("text", "syntax", "tokens"),
    [
        ("a.*.#", "amqp", (b"a", ONE, MANY)),
        ("#.*.#.b", "amqp", (ONE, MANY, b"b")),
        ("a.#.#", "amqp", (b"a", MANY)),
        ("#.*.*.a.#.*", "amqp", (ONE, ONE, MANY, b"a", ONE, MANY)),
        ("a/+/#", "mqtt", (b"a", ONE, MANY)),
        ("+.a#", "amqp", (b"+", b"a#")),
        ("*/b", "mqtt", (b"*", b"b")),
        ("", "amqp", ()),
    ],
)
def test_a_filter_is_its_canonical_tokens(text: str, syntax: str, tokens: tuple[Any, ...]) -> None:
    parsed = parse_filter(text, syntax)
    assert parsed.tokens == tokens
    assert (parsed.text, parsed.syntax) == (text.encode(), syntax)
    assert parsed.is_exact is reference.is_exact(text, syntax)
    if parsed.is_exact:
        assert parsed.words == tokens


def test_the_constituents_of_a_filter() -> None:
    parsed = parse_filter("a.*.#.b.c.#.*.d.#.e.f", "amqp")
    assert parsed.prefix == (b"a", ONE)
    assert parsed.segments == ((b"b", b"c", ONE), (b"d",))
    assert parsed.suffix == (b"e", b"f")
    assert (parsed.fewest_words, parsed.has_many, parsed.refuses_dollar) == (8, True, False)
    exact = parse_filter("a.b", "amqp")
    assert (exact.prefix, exact.segments, exact.suffix) == ((b"a", b"b"), (), ())
    assert parse_filter("+/b", "mqtt").refuses_dollar
    assert parse_filter("#", "mqtt").refuses_dollar
    assert not parse_filter("b/+", "mqtt").refuses_dollar
    assert not parse_filter("*.b", "amqp").refuses_dollar


def test_a_filter_is_immutable_and_a_key() -> None:
    parsed = parse_filter("a.*", "amqp")
    with pytest.raises(dataclasses.FrozenInstanceError):
        parsed.text = b"b"  # type: ignore[misc]
    assert {parsed: 1}[parse_filter(b"a.*", "amqp")] == 1
    assert parsed != parse_filter("a.*", "mqtt")


@given(
    st.lists(st.sampled_from(["#", "*", "+", "a", "", "a#", "#b", "+b"]), max_size=8),
    st.sampled_from(["amqp", "mqtt"]),
)
def test_filters_are_refused_just_as_by_the_oracle(words: list[str], syntax: str) -> None:
    text = (".", "/")[syntax == "mqtt"].join(words)
    try:
        reference.filter_words(text, syntax)
    except InvalidFilter:
        with pytest.raises(InvalidFilter):
            parse_filter(text, syntax)
    else:
        assert parse_filter(text, syntax).text == text.encode()


def whole(text: str | bytes, syntax: str) -> list[Callable[[], object]]:
    """Everything that reads a filter."""
    return [
        lambda: parse_filter(text, syntax),
        lambda: FilterIndex().insert(text, 1, syntax=syntax),
        lambda: FilterIndex().remove(text, 1, syntax=syntax),
        lambda: NameIndex().match(text, syntax=syntax),
        lambda: matchcore.why_not(text, syntax, "a", syntax),
    ]


@pytest.mark.parametrize(
    ("text", "position", "reason", "advice"),
    [
        ("", 0, "it is empty", "at least one character"),
        ("a+", 1, "'+' must be a whole level", "alone between slashes"),
        ("+a", 0, "'+' must be a whole level", "alone between slashes"),
        ("a/b#", 3, "'#' must be a whole level", "alone between slashes"),
        ("a/#/b", 2, "'#' must be the last level", "use '+' for one level"),
        ("#/", 0, "'#' must be the last level", "end the filter there"),
        ("é/a+", 4, "'+' must be a whole level", "alone between slashes"),  # bytes, not characters
        ("a\0b", 1, "a NUL byte", "leave it out"),
    ],
)
def test_an_invalid_mqtt_filter_is_shown_with_the_position(text: str, position: int, reason: str, advice: str) -> None:
    for call in whole(text, "mqtt"):
        with pytest.raises(InvalidFilter) as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert (caught.value.text, caught.value.syntax) == (text.encode(), "mqtt")
        assert caught.value.position == position
        assert repr(text) in str(caught.value)
        assert f"byte {position} (counting from 0): {reason}" in str(caught.value)
        assert advice in str(caught.value)


@pytest.mark.parametrize(("topic", "position"), [("", 0), ("a+", 1), ("a/#", 2), ("+", 0), ("é\0", 2)])
def test_an_invalid_mqtt_topic_is_shown_with_the_position(topic: str, position: int) -> None:
    index, names = FilterIndex(), NameIndex()
    for call in (
        lambda: split_topic(topic, "mqtt"),
        lambda: index.match(topic, syntax="mqtt"),
        lambda: index.match_any(topic, syntax="mqtt"),
        lambda: index.match_many([topic], syntax="mqtt"),
        lambda: explain(index, topic, syntax="mqtt"),
        lambda: names.insert(topic, 1, syntax="mqtt"),
        lambda: names.remove(topic, 1, syntax="mqtt"),
    ):
        with pytest.raises(InvalidTopic) as caught:
            call()
        assert caught.value.position == position
        assert repr(topic) in str(caught.value)


def test_text_that_has_no_utf_8_is_refused_with_the_position() -> None:
    with pytest.raises(InvalidTopic, match=r"byte 3 .*lone surrogate"):
        FilterIndex().match("é.\udc80")
    for call in whole("aé\ud800", "amqp")[:4]:
        with pytest.raises(InvalidFilter, match=r"byte 3 .*lone surrogate"):
            call()


def test_a_long_text_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidFilter) as caught:
        FilterIndex().insert("a" * 65_536, 1)
    assert len(str(caught.value)) < 400
    assert "65536 bytes, and the limit is 65535" in str(caught.value)
    assert len(caught.value.text) == 65_536


@pytest.mark.parametrize(("syntax", "separator"), [("amqp", "."), ("mqtt", "/")])
def test_the_limits_are_128_words_and_65535_bytes(syntax: str, separator: str) -> None:
    index, names = FilterIndex(), NameIndex()
    longest = separator.join(["ab"] * 128)
    index.insert(longest, 1, syntax=syntax)
    index.insert("a" * 65_535, 2, syntax=syntax)
    names.insert(longest, 1, syntax=syntax)
    assert index.match(longest, syntax=syntax) == names.match(longest, syntax=syntax) == (1,)
    assert index.match("a" * 65_535, syntax=syntax) == (2,)
    too_many = longest + separator + "z"
    for filter_call in whole(too_many, syntax)[:4]:
        with pytest.raises(InvalidFilter, match="129 words, and the limit is 128") as caught:
            filter_call()
        assert caught.value.position == len(longest) + 1
    for topic_call in (index.match, index.match_any, names.insert):
        arguments = (too_many, 1) if topic_call == names.insert else (too_many,)
        with pytest.raises(InvalidTopic, match="129 words, and the limit is 128"):
            topic_call(*arguments, syntax=syntax)  # type: ignore[operator]
    with pytest.raises(InvalidTopic, match="65536 bytes") as long:
        index.match(b"a" * 65_536, syntax=syntax)
    assert long.value.position == 65_535


@pytest.mark.parametrize("make", [FilterIndex, NameIndex])
def test_the_limits_can_be_set(make: Callable[..., Any]) -> None:
    index = make(max_words=3, max_bytes=8)
    index.insert("a.b.c", 1)
    index.insert("12345678", 2)
    for text, reason in (("a.b.c.d", "4 words, and the limit is 3"), ("123456789", "9 bytes, and the limit is 8")):
        with pytest.raises(matchcore.TopicError, match=reason):
            index.insert(text, 1)
        with pytest.raises(matchcore.TopicError, match=reason):
            index.match(text)
    wide = make(max_words=1024, max_bytes=1 << 20)
    text = ".".join(["a" * 1000] * 1000)
    wide.insert(text, 1)
    assert wide.match(text) == wide.match(text.encode()) == (1,)
    assert wide.match("b" + text[1:]) == ()


@pytest.mark.parametrize("make", [FilterIndex, NameIndex])
def test_nonsense_limits_are_refused(make: Callable[..., Any]) -> None:
    for keywords in (
        {"max_words": 0},
        {"max_words": 1025},
        {"max_bytes": 0},
        {"max_bytes": 1 << 31},
        {"max_words": -1},
    ):
        with pytest.raises(ValueError, match="must be within"):
            make(**keywords)
    for bad in ("3", None, 2.5):
        with pytest.raises(TypeError, match="must be an int"):
            make(max_words=bad)
