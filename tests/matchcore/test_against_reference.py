"""FilterIndex and NameIndex against the plain oracle: the same calls to both, and the same answers.

The alphabet is small, so that filters collide, share columns and words, and give slots back and forth;
its words are chosen to be awkward: empty, beginning with `$`, longer than a dictionary entry holds,
non-ASCII, not UTF-8, and holding separators and wildcards.
"""

from typing import Any, ClassVar

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

import matchcore
from matchcore.reference import ReferenceFilterIndex, ReferenceNameIndex, matches

SEPARATORS = {"amqp": b".", "mqtt": b"/"}
COMMON = [b"a", b"b", b"", b"$x"]
AWKWARD = [
    b"c", b"$", b"a.b", b"a/b", b"*", b"+", b"#", b"ab*", b"#a", "é".encode(), b"\xff",
    b"x" * 16, b"x" * 17, b"x" * 16 + b"y", b"x" * 40, b"%2F", b"A",
]  # fmt: skip

syntaxes = st.sampled_from(["amqp", "mqtt"])
words = st.sampled_from(COMMON * 4 + AWKWARD)
lengths = st.sampled_from([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5])
paddings = st.sampled_from([0] * 9 + [19, 21, 22, 23, 24, 25, 60])  # words: around the depth of the rows
ids = st.sampled_from([0, 1, 2, 3, 77, 2**31, 2**32 - 1])


@st.composite
def texts(draw: st.DrawFn, wildcards: bool) -> tuple[str | bytes, str]:
    """A text and its syntax: mostly valid, sometimes not; str where it can be, half of the time."""
    syntax = draw(syntaxes)
    count = draw(lengths)
    chosen = words
    if wildcards:
        one = b"*" if syntax == "amqp" else b"+"
        chosen = st.one_of(words, st.sampled_from([one, one, b"#"]))
    drawn = draw(st.lists(chosen, min_size=count, max_size=count))
    middle = draw(st.integers(0, count))
    drawn[middle:middle] = [b"a"] * draw(paddings)
    text = SEPARATORS[syntax].join(drawn)
    if draw(st.booleans()):
        try:
            return text.decode(), syntax
        except UnicodeDecodeError:
            pass
    return text, syntax


def told(call: Any, *arguments: Any, **keywords: Any) -> Any:
    """What a call answers, or the kind and the place of its complaint."""
    try:
        return call(*arguments, **keywords)
    except matchcore.TopicError as error:
        return type(error), error.text, error.position


# What FilterIndex._tune makes happen with few filters: every bucket is split, the pool opens, closes and is
# reviewed, and what it holds moves.
TUNINGS: dict[str, dict[str, int]] = {
    "all in the pool": {},
    "a bucket for each": {"split": 1, "small": 0, "pool_least": 1_000_000, "together": 0},
    "buckets of two": {"split": 2, "small": 3, "pool_least": 1_000_000},
    "a tiny pool": {"split": 1, "small": 5, "pool_least": 4, "together": 10},
    "a pool that opens late": {"split": 3, "small": 0, "pool_least": 6},
}


def tuned(tuning: str) -> matchcore.FilterIndex:
    index = matchcore.FilterIndex()
    index._tune(**TUNINGS[tuning])
    return index


class Indexes(RuleBasedStateMachine):
    """Both indexes and both oracles, driven alike."""

    tuning: ClassVar[str] = "all in the pool"
    slack: ClassVar[int] = 16  # of the NameIndex: -1, and the postings take over at every literal
    held_filters = Bundle("held_filters")
    held_names = Bundle("held_names")

    def __init__(self) -> None:
        super().__init__()
        self.filters = tuned(self.tuning)
        self.names = matchcore.NameIndex()
        self.names._tune(slack=self.slack)
        self.filters_oracle = ReferenceFilterIndex()
        self.names_oracle = ReferenceNameIndex()

    @rule(target=held_filters, given=st.lists(st.tuples(texts(wildcards=True), ids), min_size=1, max_size=6))
    def insert_filters(self, given: list[tuple[tuple[str | bytes, str], int]]) -> Any:
        held = []
        for (text, syntax), id in given:
            expected = told(self.filters_oracle.insert, text, id, syntax=syntax)
            got = told(self.filters.insert, text, id, syntax=syntax)
            if isinstance(expected, tuple):
                # Of several faults in one text each may name another one.
                assert got[:2] == expected[:2]
            else:
                assert got is expected
                held.append((text, id, syntax))
        return multiple(*held)

    @rule(held=consumes(held_filters))
    def remove_filter(self, held: tuple[str | bytes, int, str]) -> None:
        text, id, syntax = held
        expected = self.filters_oracle.remove(text, id, syntax=syntax)
        assert self.filters.remove(text, id, syntax=syntax) is expected

    @rule(word=words)
    def a_word_dies(self, word: bytes) -> None:
        """All filters and names with it go; its number is the next new word's."""
        for index, oracle, held in (
            (self.filters, self.filters_oracle, self.filters_oracle.filters()),
            (self.names, self.names_oracle, self.names_oracle.names()),
        ):
            for text, syntax, id in list(held):
                raw = text.encode() if isinstance(text, str) else text
                if word in raw.split(SEPARATORS[syntax]):
                    assert oracle.remove(text, id, syntax=syntax)
                    assert index.remove(text, id, syntax=syntax)

    @rule(
        given=texts(wildcards=True), several=st.lists(words, min_size=1, max_size=3), id=ids,
        target=held_filters, memory=st.one_of(st.just(-1), st.integers(0, 12)),
    )  # fmt: skip
    def insert_while_memory_is_short(
        self, given: tuple[str | bytes, str], several: list[bytes], id: int, memory: int
    ) -> Any:
        """Words anywhere, and after `memory` allocations no more: the filter is there, or nothing has changed."""
        text, syntax = given
        raw = text.encode() if isinstance(text, str) else text
        raw = SEPARATORS[syntax].join([raw, b"#", *(part for word in several for part in (word, b"#"))])
        self.filters._fail_after(memory)
        try:
            got = told(self.filters.insert, raw, id, syntax=syntax)
        except MemoryError:
            self.filters._fail_after(-1)
            return multiple()
        self.filters._fail_after(-1)
        expected = told(self.filters_oracle.insert, raw, id, syntax=syntax)
        assert got[:2] == expected[:2] if isinstance(expected, tuple) else got is expected
        return multiple() if isinstance(expected, tuple) else multiple((raw, id, syntax))

    @rule(given=st.lists(words, min_size=1, max_size=4), times=st.integers(2, 9), syntax=syntaxes)
    def match_a_topic_of_repeated_words(self, given: list[bytes], times: int, syntax: str) -> None:
        """Each word several times, up to more words than rows are kept for."""
        self.ask(SEPARATORS[syntax].join(given * times), syntax)

    @rule(given=texts(wildcards=True), id=ids)
    def remove_any_filter(self, given: tuple[str | bytes, str], id: int) -> None:
        text, syntax = given
        got = told(self.filters.remove, text, id, syntax=syntax)
        expected = told(self.filters_oracle.remove, text, id, syntax=syntax)
        assert got[:2] == expected[:2] if isinstance(expected, tuple) else got is expected

    @rule(given=st.lists(texts(wildcards=False), min_size=1, max_size=8))
    def match_topics(self, given: list[tuple[str | bytes, str]]) -> None:
        valid: dict[str, list[str | bytes]] = {"amqp": [], "mqtt": []}
        for text, syntax in given:
            expected = told(self.filters_oracle.match, text, syntax=syntax)
            got = told(self.filters.match, text, syntax=syntax)
            if expected and expected[0] is matchcore.InvalidTopic:
                assert got[:2] == expected[:2]
                continue
            assert got == expected
            assert self.filters.match_any(text, syntax=syntax) is bool(expected)
            valid[syntax].append(text)
        for syntax, topics in valid.items():
            offsets, found = self.filters.match_many(topics, syntax=syntax)
            expected_offsets, expected_ids = self.filters_oracle.match_many(topics, syntax=syntax)
            assert (offsets.tolist(), found.tolist()) == (expected_offsets, expected_ids)
            raw = [topic.encode() if isinstance(topic, str) else topic for topic in topics]
            ends = numpy.cumsum([0, *map(len, raw)], dtype=numpy.int32)
            offsets, found = self.filters.match_many(b"".join(raw), offsets=ends, syntax=syntax)
            assert (offsets.tolist(), found.tolist()) == (expected_offsets, expected_ids)

    @rule(
        held=held_filters, filling=st.lists(words, min_size=3, max_size=3), syntax=syntaxes,
        misses=st.lists(st.tuples(st.integers(0, 7), words), max_size=4),
    )  # fmt: skip
    def match_an_instance(
        self, held: tuple[str | bytes, int, str], filling: list[bytes], syntax: str, misses: list[tuple[int, bytes]]
    ) -> None:
        """Topics made from a held filter, so that long filters match now and then; and others but for one word."""
        text, _, filter_syntax = held
        raw = text.encode() if isinstance(text, str) else text
        topic: list[bytes] = []
        for word in raw.split(SEPARATORS[filter_syntax]) if raw else []:
            if word == b"#":
                topic += filling
            elif word in (b"*", b"+"):
                topic.append(filling[0])
            else:
                topic.append(word)
        self.ask(SEPARATORS[syntax].join(topic), syntax)
        for at, word in misses:
            self.ask(SEPARATORS[syntax].join([*topic[:at], word, *topic[at + 1 :]]), syntax)

    def ask(self, topic: bytes, syntax: str) -> None:
        got = told(self.filters.match, topic, syntax=syntax)
        expected = told(self.filters_oracle.match, topic, syntax=syntax)
        if expected[:1] == (matchcore.InvalidTopic,):
            assert got[:1] == expected[:1]
            return
        assert got == expected
        assert self.filters.match_any(topic, syntax=syntax) is bool(expected)
        assert {found.id for found in matchcore.explain(self.filters, topic, syntax=syntax)} == set(expected)

    @rule(target=held_names, given=st.lists(st.tuples(texts(wildcards=False), ids), min_size=1, max_size=6))
    def insert_names(self, given: list[tuple[tuple[str | bytes, str], int]]) -> Any:
        held = []
        for (text, syntax), id in given:
            expected = told(self.names_oracle.insert, text, id, syntax=syntax)
            got = told(self.names.insert, text, id, syntax=syntax)
            if isinstance(expected, tuple):
                assert got[:2] == expected[:2]
            else:
                assert got is expected
                held.append((text, id, syntax))
        return multiple(*held)

    @rule(held=consumes(held_names))
    def remove_name(self, held: tuple[str | bytes, int, str]) -> None:
        text, id, syntax = held
        expected = self.names_oracle.remove(text, id, syntax=syntax)
        assert self.names.remove(text, id, syntax=syntax) is expected

    @rule(given=st.lists(texts(wildcards=True), min_size=1, max_size=8))
    def match_filters(self, given: list[tuple[str | bytes, str]]) -> None:
        for text, syntax in given:
            expected = told(self.names_oracle.match, text, syntax=syntax)
            got = told(self.names.match, text, syntax=syntax)
            if expected and expected[0] is matchcore.InvalidFilter:
                assert got[:2] == expected[:2]
            else:
                assert got == expected

    @invariant()
    def they_hold_the_same(self) -> None:
        assert len(self.filters) == len(self.filters_oracle)
        assert set(self.filters.filters()) == set(self.filters_oracle.filters())
        assert len(self.names) == len(self.names_oracle)
        assert set(self.names.names()) == set(self.names_oracle.names())

    def teardown(self) -> None:
        """All that is held goes again, and with it all memory but the scratch of a few matches."""
        for text, syntax, id in list(self.filters_oracle.filters()):
            assert self.filters.remove(text, id, syntax=syntax)
        for text, syntax, id in list(self.names_oracle.names()):
            assert self.names.remove(text, id, syntax=syntax)
        assert (len(self.filters), len(self.names)) == (0, 0)
        assert self.filters.nbytes < matchcore.FilterIndex().nbytes + 16_000
        assert self.names.nbytes < matchcore.NameIndex().nbytes + 16_000


class IndexesOneBucketEach(Indexes):
    tuning = "a bucket for each"
    slack = -1


class IndexesBucketsOfTwo(Indexes):
    tuning = "buckets of two"


class IndexesTinyPool(Indexes):
    tuning = "a tiny pool"
    slack = -1


class IndexesLatePool(Indexes):
    tuning = "a pool that opens late"


# `make fuzz` goes on with these for longer: tests/fuzz/machines.py.
MACHINES = [Indexes, IndexesOneBucketEach, IndexesBucketsOfTwo, IndexesTinyPool, IndexesLatePool]


def _case(machine: type[Indexes], examples: int) -> Any:
    case = pytest.mark.filterwarnings("default")(machine.TestCase)
    case.settings = settings(max_examples=examples, stateful_step_count=30, deadline=None)
    return case


TestIndexes = _case(Indexes, 50)
TestIndexesOneBucketEach = _case(IndexesOneBucketEach, 50)
TestIndexesBucketsOfTwo = _case(IndexesBucketsOfTwo, 30)
TestIndexesTinyPool = _case(IndexesTinyPool, 40)
TestIndexesLatePool = _case(IndexesLatePool, 30)


@settings(max_examples=320, deadline=None)
@given(
    st.lists(st.tuples(texts(wildcards=True), ids), max_size=12),
    st.lists(texts(wildcards=False), min_size=1, max_size=6),
    st.sampled_from(sorted(TUNINGS)),
)
def test_any_set_of_filters_matches_any_topics_as_the_oracle_says(
    held: list[tuple[tuple[str | bytes, str], int]], topics: list[tuple[str | bytes, str]], tuning: str
) -> None:
    index, oracle = tuned(tuning), ReferenceFilterIndex()
    for (text, syntax), id in held:
        if told(oracle.insert, text, id, syntax=syntax) is True:
            assert index.insert(text, id, syntax=syntax)
    for text, syntax in topics:
        expected = told(oracle.match, text, syntax=syntax)
        if not expected or expected[0] is not matchcore.InvalidTopic:
            assert index.match(text, syntax=syntax) == expected


MANY_WILD = st.lists(st.sampled_from(["#", "*", "a", "b"]), max_size=9).map(".".join)
TWO_LETTERS = st.lists(st.sampled_from(["a", "b"]), max_size=12).map(".".join)


@settings(max_examples=1_000, deadline=None)
@given(MANY_WILD, TWO_LETTERS, st.sampled_from(sorted(TUNINGS)))
def test_several_hashes_over_two_letters(filter: str, topic: str, tuning: str) -> None:
    """The greedy check of segments against the recursion, where neighbours are nearly alike."""
    index, names = tuned(tuning), matchcore.NameIndex()
    index.insert(filter, 1)
    names.insert(topic, 1)
    expected = matches(filter, "amqp", topic, "amqp")
    assert index.match(topic) == names.match(filter) == ((1,) if expected else ())
    assert (matchcore.why_not(filter, "amqp", topic, "amqp") is None) is expected
    assert bool(matchcore.explain(index, topic)) is expected
