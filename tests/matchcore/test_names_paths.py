"""NameIndex on each way to an answer (down from the root, from the postings, name by name) against the oracle.

The names are few words of few kinds, so that words stand at many places and below themselves, and paths part and
join; some reach beyond the places that have postings of their own. `_tune` makes a few names behave like many: a search
turns to the postings at once, or after as many nodes as it likes.
"""

from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from matchcore import NameIndex
from matchcore.reference import ReferenceNameIndex

SEPARATORS = {"amqp": ".", "mqtt": "/"}
SLACKS = [-1, 0, 1, 16, 1_000_000]

syntaxes = st.sampled_from(["amqp", "mqtt"])
words = st.sampled_from(["a", "a", "b", "c", "", "$x", "word of more than sixteen bytes"])
ids = st.sampled_from([0, 1, 2, 3, 2**32 - 1])
padding = st.sampled_from([0] * 8 + [22, 23, 24, 25, 40])


@st.composite
def names(draw: st.DrawFn) -> tuple[str, str]:
    syntax = draw(syntaxes)
    drawn = draw(st.lists(words, max_size=5))
    at = draw(st.integers(0, len(drawn)))
    drawn[at:at] = ["a"] * draw(padding)
    text = SEPARATORS[syntax].join(drawn)
    return (text, syntax) if text or syntax == "amqp" else ("a", syntax)


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, str]:
    """AMQP's mostly: theirs have `#` anywhere."""
    syntax = draw(st.sampled_from(["amqp", "amqp", "amqp", "mqtt"]))
    one = "*" if syntax == "amqp" else "+"
    drawn = draw(st.lists(st.one_of(words, st.sampled_from([one, one, "#"])), max_size=7))
    at = draw(st.integers(0, len(drawn)))
    drawn[at:at] = [draw(st.sampled_from(["a", one]))] * draw(padding)
    if syntax == "mqtt":
        drawn = [word for word in drawn[:-1] if word != "#"] + drawn[-1:]
    text = SEPARATORS[syntax].join(drawn)
    return (text, syntax) if text or syntax == "amqp" else ("#", syntax)


class Names(RuleBasedStateMachine):
    slack: ClassVar[int] = 16

    def __init__(self) -> None:
        super().__init__()
        self.index, self.oracle = NameIndex(), ReferenceNameIndex()
        self.index._tune(slack=self.slack)

    @rule(given=st.lists(st.tuples(names(), ids), min_size=1, max_size=25))
    def insert(self, given: list[tuple[tuple[str, str], int]]) -> None:
        for (text, syntax), id in given:
            assert self.index.insert(text, id, syntax=syntax) is self.oracle.insert(text, id, syntax=syntax)

    @rule(part=st.floats(0, 1))
    def remove_some(self, part: float) -> None:
        held = sorted(self.oracle.names())
        for text, syntax, id in held[: int(part * len(held))]:
            assert self.index.remove(text, id, syntax=syntax) is self.oracle.remove(text, id, syntax=syntax) is True

    @rule(given=names(), id=ids)
    def remove_any(self, given: tuple[str, str], id: int) -> None:
        text, syntax = given
        assert self.index.remove(text, id, syntax=syntax) is self.oracle.remove(text, id, syntax=syntax)

    @rule(given=st.lists(filters(), min_size=1, max_size=12))
    def match(self, given: list[tuple[str, str]]) -> None:
        for text, syntax in given:
            assert self.index.match(text, syntax=syntax) == self.oracle.match(text, syntax=syntax), text

    @invariant()
    def they_hold_the_same(self) -> None:
        assert len(self.index) == len(self.oracle)
        assert sorted(self.index.names()) == sorted(self.oracle.names())

    def teardown(self) -> None:
        for text, syntax, id in list(self.oracle.names()):
            assert self.index.remove(text, id, syntax=syntax)
        assert self.index.nbytes < NameIndex().nbytes + 16_000


class NamesByPostings(Names):
    slack = -1


class NamesByBoth(Names):
    slack = 0


TestNames = Names.TestCase
TestNamesByPostings = NamesByPostings.TestCase
TestNamesByBoth = NamesByBoth.TestCase
for _machine in (TestNames, TestNamesByPostings, TestNamesByBoth):
    _machine.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
del _machine


@settings(max_examples=240, deadline=None)
@given(st.lists(names(), min_size=1, max_size=30), st.lists(filters(), min_size=1, max_size=8), st.sampled_from(SLACKS))
@example([("a.b.a.b.c", "amqp"), ("a.b", "amqp")], [("#.a.#.b.#", "amqp"), ("#.b.c", "amqp")], -1)
@example([("$x.a", "amqp"), ("b.a", "amqp")], [("+/a", "mqtt"), ("#", "mqtt")], -1)
def test_the_way_to_an_answer_does_not_change_it(
    held: list[tuple[str, str]], asked: list[tuple[str, str]], slack: int
) -> None:
    index, oracle = NameIndex(), ReferenceNameIndex()
    index._tune(slack=slack)
    for id, (text, syntax) in enumerate(held):
        index.insert(text, id, syntax=syntax)
        oracle.insert(text, id, syntax=syntax)
    for text, syntax in asked:
        assert index.match(text, syntax=syntax) == oracle.match(text, syntax=syntax), (text, syntax)


@pytest.mark.parametrize("slack", SLACKS)
def test_a_fleet_answers_as_the_oracle_says(slack: int) -> None:
    """Enough names that the postings of some words are long and of others short."""
    index, oracle = NameIndex(), ReferenceNameIndex()
    index._tune(slack=slack)
    for i in range(1_200):
        name = f"site/{i % 7}/floor/{i % 3}/dev/{i // 4}/metric{i % 4}"
        index.insert(name, i, syntax="mqtt")
        oracle.insert(name, i, syntax="mqtt")
    for text in [
        "site/3/#", "+/+/+/+/dev/17/#", "+/+/+/1/+/+/metric2", "site/+/floor/2/dev/+/metric1", "+/3/+/+/+/200/+",
        "+/+/+/+/+/+/metric3", "site/+/+/+/dev/299/metric3", "+/floor/#", "dev/#", "+/+/+/+/+/+/+", "#",
    ]:  # fmt: skip
        assert index.match(text, syntax="mqtt") == oracle.match(text, syntax="mqtt"), text
    for text in [
        "#.17.#", "#.dev.17.*", "site.#.metric2", "#.floor.1.#.metric1", "*.3.#.200.#", "#.1.#.1.#", "#.dev.#.dev.#",
        "#.*.3", "#.metric3", "site.5.#.dev.#.metric1", "#.dev.*.metric0",
    ]:  # fmt: skip
        assert index.match(text) == oracle.match(text), text


def test_a_name_in_both_syntaxes_keeps_the_ids_of_each() -> None:
    index = NameIndex()
    for id in (5, 3, 9):
        assert index.insert("a.b", id)
        assert index.insert(b"a/b", id + 1, syntax="mqtt")
    assert index.insert("a.b", 3) is index.remove("a.b", 4) is index.remove("a/b", 3, syntax="mqtt") is False
    assert index.match("a.b") == (3, 4, 5, 6, 9, 10)
    assert set(index.names()) == {("a.b", "amqp", id) for id in (3, 5, 9)} | {(b"a/b", "mqtt", id) for id in (4, 6, 10)}
    for id in (3, 5, 9):
        assert index.remove("a.b", id)
    assert index.match("#") == (4, 6, 10)
    assert index.remove("a/b", 6, syntax="mqtt")
    assert index.remove("a/b", 4, syntax="mqtt")
    assert list(index.names()) == [(b"a/b", "mqtt", 10)]
    assert index.insert("a.b", 10)
    assert len(index) == 2


def test_many_ids_of_one_name_come_and_go() -> None:
    index = NameIndex()
    index.insert("x", 0)
    before = index.nbytes
    for id in range(5_000, 0, -1):
        assert index.insert("a", id)
    assert index.match("a") == tuple(range(1, 5_001))
    for id in range(1, 5_001):
        assert index.remove("a", id)
    assert index.match("a") == ()
    assert index.nbytes < before + 200_000  # blocks to use again, all sizes up to the largest once; buffers
    used = index.nbytes
    for id in range(5_000):
        index.insert("a", id)
    assert index.nbytes <= used + 1_000  # what leads to several ids


def test_the_blocks_of_a_bag_that_comes_and_goes_are_used_again() -> None:
    """Each round makes a node of a thousand children, and lets it go one by one."""
    index = NameIndex()
    index.insert("keep", 0)
    sizes = []
    for round in range(12):
        for i in range(1_000):
            index.insert(f"{round}.{i}", i)
        for i in range(1_000):
            index.remove(f"{round}.{i}", i)
        sizes.append(index.nbytes)
    assert max(sizes[2:]) <= sizes[1]


def test_ids_beyond_a_few_are_sorted_and_distinct() -> None:
    index = NameIndex()
    expected = set()
    for i in range(500):
        id = i * 2_654_435_761 % 2**32
        expected.add(id)
        index.insert(f"a.{i}", id)
        index.insert(f"b.{i}", id)
    assert index.match("#") == tuple(sorted(expected))


def test_when_memory_is_out_a_match_raises_and_the_next_one_answers() -> None:
    index = NameIndex()
    for id in range(2_000):
        index.insert(f"a.{id}.b.{id % 3}", 2_000 - id)
    for text in ["a.#", "*.*.b.*", "#.b.#.1.#", "#.b.1"]:
        expected = index.match(text)
        assert len(expected) > 600
        failures = 0
        while True:
            fresh = NameIndex()
            for id in range(2_000):
                fresh.insert(f"a.{id}.b.{id % 3}", 2_000 - id)
            fresh._fail_after(failures)
            try:
                assert fresh.match(text) == expected
                break
            except MemoryError:
                failures += 1
            fresh._fail_after(-1)
            assert fresh.match(text) == expected
        assert failures > 2


def test_the_buffers_of_a_huge_answer_are_not_kept() -> None:
    index = NameIndex()
    for id in range(120_000):
        index.insert(f"a.{id % 300}.{id}", id)
    before = index.nbytes
    assert len(index.match("#")) == 120_000
    assert index.nbytes < before + 1_000
