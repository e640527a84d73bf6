"""Memory: it grows in proportion, comes back, and its want leaves an index as it was."""

from collections.abc import Callable
from typing import Any

import pytest

from matchcore import FilterIndex, NameIndex

TEXTS = ["a.b", "a.*", "*.b.#", "#.a.#.b.#", "x" * 30 + ".*", "a.b.c.d.*", "*." * 30 + "z", "#." + "y." * 30 + "z"]


def buckets() -> FilterIndex:
    """One whose wildcard filters are in buckets from the first on, each bucket split at once."""
    index = FilterIndex()
    index._tune(split=1, small=0, pool_least=1_000_000)
    return index


def held(index: FilterIndex | NameIndex) -> set[Any]:
    return set(index.filters() if isinstance(index, FilterIndex) else index.names())


def fail_at_every_allocation(index: Any, change: Callable[[], bool]) -> int:
    """`change` with each of its allocations failing in turn, then with none; how many it has."""
    before = held(index)
    failures = 0
    while True:
        index._fail_after(failures)
        try:
            changed = change()
        except MemoryError:
            failures += 1
            index._fail_after(-1)
            assert held(index) == before
            continue
        index._fail_after(-1)
        assert changed
        return failures


@pytest.mark.parametrize("make", [FilterIndex, NameIndex, buckets])
def test_when_memory_is_out_an_insert_raises_and_the_index_is_unchanged(make: Callable[[], Any]) -> None:
    index = make()
    failures = 0
    for round in range(3):  # into an empty index, a growing one, and one with free slots
        for number, text in enumerate(TEXTS):
            # A lambda of this round: it is called before the loop goes on.
            failures += fail_at_every_allocation(index, lambda: index.insert(text, number))  # noqa: B023
            failures += fail_at_every_allocation(index, lambda: index.insert(text, 1000 + round))  # noqa: B023
        topics = [text.replace("*", "q").replace("#", "q.q") for text in TEXTS]
        for number, (text, topic) in enumerate(zip(TEXTS, topics, strict=True)):
            asked = topic if isinstance(index, FilterIndex) else text
            assert {number, 1000 + round} <= set(index.match(asked))
        for number, text in enumerate(TEXTS):
            assert index.remove(text, number)
            if round != 1:
                assert index.remove(text, 1000 + round)
    assert failures > 40


@pytest.mark.parametrize("make", [FilterIndex, NameIndex, buckets])
@pytest.mark.parametrize("text", TEXTS)
def test_an_insert_that_failed_leaves_nothing_behind(make: Callable[[], Any], text: str) -> None:
    index = make()
    fail_at_every_allocation(index, lambda: index.insert(text, 1))
    assert index.remove(text, 1)
    assert index.nbytes == make().nbytes


@pytest.mark.parametrize("make", [FilterIndex, NameIndex, buckets])
def test_removing_needs_no_memory(make: Callable[[], Any]) -> None:
    index = make()
    for id in range(300):
        for text in TEXTS:
            index.insert(text, id)
            index.insert(f"{text}.{id}", id)
    index._fail_after(0)
    for id in range(300):
        for text in TEXTS:
            assert index.remove(text, id)
            assert index.remove(f"{text}.{id}", id)
    assert len(index) == 0


def test_when_memory_is_out_a_match_raises_and_the_next_one_answers() -> None:
    index = FilterIndex()
    for id in range(1000):
        index.insert("a.*", id)
        index.insert("#", id + 500)
        index.insert(f"*.{id}", id)
    for call in (index.match, lambda topic: index.match_many([topic])):
        failures = 0
        while True:
            index._fail_after(failures)
            try:
                call("a.7")
                break
            except MemoryError:
                failures += 1
        index._fail_after(-1)
        assert failures
    assert index.match("a.7") == tuple(range(1500))


@pytest.mark.parametrize("make", [FilterIndex, NameIndex, buckets])
@pytest.mark.parametrize("shape", ["word{0}.x.*", "#.word{0}.#", "a.b.{0}", "s.#.m{0}.*.{0}"])
def test_memory_is_in_proportion_to_what_is_held(make: Callable[[], Any], shape: str) -> None:
    """Distinct words, so a new row for each filter: ten times as many take ten times as much."""

    def per_text(count: int) -> float:
        index = make()
        empty = index.nbytes
        for i in range(count):
            index.insert(shape.format(i), i)
        return float(index.nbytes - empty) / count

    few, many = per_text(3_000), per_text(30_000)
    assert many < 1.7 * few  # tables double, so a factor either way is rounding; a square would be 10
    assert many < 1500


@pytest.mark.parametrize("make", [FilterIndex, NameIndex, buckets])
def test_memory_comes_back_when_all_is_removed(make: Callable[[], Any]) -> None:
    index = make()
    empty = index.nbytes
    for _ in range(3):
        for i in range(5_000):
            index.insert(f"a.{i}.*.{'w' * (i % 40)}", i)
            index.insert("#.a", i)
        full = index.nbytes
        assert full > empty + 500_000
        for i in range(5_000):
            index.remove(f"a.{i}.*.{'w' * (i % 40)}", i)
            index.remove("#.a", i)
        assert index.nbytes == empty


@pytest.mark.parametrize("make", [FilterIndex, NameIndex, buckets])
def test_coming_and_going_does_not_make_it_grow(make: Callable[[], Any]) -> None:
    index = make()
    for i in range(1_000):
        index.insert(f"a.{i}.*", i)
    sizes = []
    for round in range(60):
        for i in range(1_000):
            index.insert(f"{round}.{i}.b.*", i)
        for i in range(1_000):
            index.remove(f"{round}.{i}.b.*", i)
        sizes.append(index.nbytes)
    # Up and down as arenas are packed now and then, always between the same bounds.
    assert max(sizes[30:]) <= max(sizes[:30]) * 1.05


@pytest.mark.parametrize("shape", ["w{0}.*", "*.w{0}", "#.w{0}", "#.w{0}.#", "#.a.#.w{0}.#.b.*"])
def test_no_row_outlives_its_filters(shape: str) -> None:
    """What stays when one filter is left is the room for the others: the same whatever rows they had."""
    index = FilterIndex()
    index.insert("keep.*", 0)
    before = index.nbytes
    for i in range(2_000):
        index.insert(shape.format(i), i)
    for i in range(2_000):
        index.remove(shape.format(i), i)
    assert index.nbytes < before + 2_000 * 200  # 141 bytes each: slots to use again; a row is 100
    used = index.nbytes
    for i in range(2_000):
        index.insert(shape.format(i), i)
    assert index.nbytes > used + 2_000 * 68  # and the rows are there when the filters are


def test_the_buffers_of_a_huge_answer_are_not_kept() -> None:
    index = FilterIndex()
    for id in range(200_000):
        index.insert("a", id)
    before = index.nbytes
    assert len(index.match("a")) == 200_000
    assert index.nbytes < before + 1_000


def test_nbytes_counts_long_texts_and_many_ids() -> None:
    index = FilterIndex()
    before = index.nbytes
    index.insert("w" * 60_000 + ".*", 1)
    assert index.nbytes > before + 120_000  # the text and its word
    before = index.nbytes
    for id in range(10_000):
        index.insert("a", id)
    assert index.nbytes > before + 40_000
