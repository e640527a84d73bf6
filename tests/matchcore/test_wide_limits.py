"""Indexes against the plain oracle where limits are narrow or wide, and words differ in little but their size.

Words of NULs and of one letter repeated look alike once a word of the dictionary is padded to its 8, 16 or more
bytes; topics of 129 words are read in another way than those of 128.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import matchcore
from matchcore.reference import ReferenceFilterIndex, ReferenceNameIndex

SEPARATORS = {"amqp": b".", "mqtt": b"/"}
TUNINGS: list[dict[str, int]] = [
    {},
    {"split": 1, "small": 0, "pool_least": 1_000_000},
    {"split": 2, "small": 3, "pool_least": 4},
]
WORDS = st.one_of(
    st.integers(0, 18).map(lambda n: b"a" + bytes(n)),
    st.integers(0, 18).map(bytes),
    st.sampled_from([7, 8, 9, 15, 16, 17, 31, 32, 33]).map(lambda n: b"x" * n),
    st.sampled_from([15, 16, 31]).map(lambda n: b"y" + b"x" * n),
)
LIMITS = st.sampled_from([1, 2, 24, 128, 129, 130, 1024])
LENGTHS = st.sampled_from([1, 2, 3, 3, 23, 24, 25, 127, 128, 129, 130, 300])  # the oracle is recursive


@st.composite
def texts(draw: st.DrawFn, wildcards: bool) -> tuple[bytes, str]:
    """A few words in turn, some of them wildcards: of any length, but not much to draw."""
    syntax = draw(st.sampled_from(["amqp", "mqtt"]))
    one = b"*" if syntax == "amqp" else b"+"
    words = draw(st.lists(st.one_of(WORDS, st.just(one)) if wildcards else WORDS, min_size=1, max_size=3))
    length = draw(LENGTHS)
    text = [words[i % len(words)] for i in range(length)]
    if wildcards and draw(st.booleans()):
        text[-1] = b"#"
    return SEPARATORS[syntax].join(text), syntax


def told(call: Any, *arguments: Any, **keywords: Any) -> Any:
    try:
        return call(*arguments, **keywords)
    except matchcore.TopicError as error:
        return type(error), error.text


@settings(max_examples=200, deadline=None)
@given(
    LIMITS,
    st.sampled_from(TUNINGS),
    st.lists(texts(wildcards=True), max_size=8),
    st.lists(texts(wildcards=False), max_size=5),
)
def test_any_limits_and_words_of_nearly_the_same_bytes(
    limit: int, tuning: dict[str, int], filters: list[tuple[bytes, str]], topics: list[tuple[bytes, str]]
) -> None:
    index, oracle = matchcore.FilterIndex(limit), ReferenceFilterIndex(limit)
    names, names_oracle = matchcore.NameIndex(limit), ReferenceNameIndex(limit)
    index._tune(**tuning)
    for id, (text, syntax) in enumerate(filters):
        assert told(index.insert, text, id, syntax=syntax) == told(oracle.insert, text, id, syntax=syntax)
    topics += [(text.replace(b"*", b"a").replace(b"+", b"a").replace(b"#", b"x"), syntax) for text, syntax in filters]
    frozen = matchcore.freeze(index)
    for id, (text, syntax) in enumerate(topics):
        expected = told(oracle.match, text, syntax=syntax)
        assert told(index.match, text, syntax=syntax) == told(frozen.match, text, syntax=syntax) == expected
        assert told(names.insert, text, id, syntax=syntax) == told(names_oracle.insert, text, id, syntax=syntax)
    for text, syntax in filters:
        assert told(names.match, text, syntax=syntax) == told(names_oracle.match, text, syntax=syntax)
