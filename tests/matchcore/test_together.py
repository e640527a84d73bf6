"""match_many over several topics in turn, a step of each: the answers are those of one after the other.

It does so from 65,536 filters on; `_tune(together=0)` has it do so from the first.
"""

import random

import numpy
import pytest

from matchcore import FilterIndex, InvalidTopic, freeze
from tests.matchcore.test_tiers import device_filters, device_topics

COUNTS = [1, 2, 7, 8, 9, 16, 17, 100]


def filled(count: int, **tuning: int) -> FilterIndex:
    index = FilterIndex()
    index._tune(small=0, split=2, **tuning)
    for id, text in enumerate(device_filters(count, random.Random(1))):
        index.insert(text, id, syntax="mqtt")
        if id % 50 == 0:
            index.insert(text, id + 1_000_000, syntax="mqtt")
    index.insert("site/+/#", 7_000_000, syntax="mqtt")
    return index


def rows(index: FilterIndex, topics: list[str]) -> list[tuple[int, ...]]:
    ends, ids = index.match_many(topics, syntax="mqtt")
    return [tuple(part.tolist()) for part in numpy.split(ids, ends[1:-1])]


@pytest.mark.parametrize("count", COUNTS)
def test_the_answers_are_those_of_one_topic_after_the_other(count: int) -> None:
    index = filled(3_000, together=0)
    topics = device_topics(count, random.Random(count))
    alone = [index.match(topic, syntax="mqtt") for topic in topics]
    assert rows(index, topics) == alone
    assert any(len(ids) > 2 for ids in alone) or count < 16


def test_a_large_index_is_asked_so_without_being_told_to() -> None:
    index = FilterIndex()
    for id in range(70_000):
        index.insert(f"a/{id}/+", id, syntax="mqtt")
    topics = [f"a/{id * 7 % 80_000}/x" for id in range(1_000)]
    assert rows(index, topics) == [index.match(topic, syntax="mqtt") for topic in topics]
    assert rows(freeze(index), topics) == rows(index, topics)


@pytest.mark.parametrize("bad", [0, 3, 7, 8, 12, 19])
def test_the_first_invalid_topic_is_named_by_its_row(bad: int) -> None:
    index = filled(200, together=0)
    topics = device_topics(20, random.Random(2))
    topics[bad] = "site/+/x"
    topics[19] = "#"
    with pytest.raises(InvalidTopic) as caught:
        index.match_many(topics, syntax="mqtt")
    assert caught.value.row == bad


@pytest.mark.parametrize("together", [0, 1_000_000])
def test_a_topic_of_more_probes_than_a_batch_has_is_answered_among_others(together: int) -> None:
    """Hundreds of classes are alive: its batch is full several times before the others of its group are asked."""
    index = FilterIndex()
    index._tune(small=0, split=1, pool_least=1_000_000, together=together)
    for kind in "wabcdefgh":  # those of others make each word rare enough for a class of its own
        for mask in range(1, 512):
            text = ".".join(f"{kind}{i}" if mask >> i & 1 else "*" for i in range(9))
            index.insert(text, mask if kind == "w" else 10_000)
    many, few = ".".join(f"w{i}" for i in range(9)), ".".join(["w0", *["x"] * 8])
    assert index._tiers()["classes"] > 128
    ends, ids = index.match_many([few, many, few, many, many])
    assert numpy.diff(ends).tolist() == [1, 511, 1, 511, 511]
    assert ids[ends[1] : ends[2]].tolist() == list(range(1, 512))


def test_without_memory_nothing_is_lost() -> None:
    index = filled(500, together=0)
    topics = device_topics(40, random.Random(3))
    expected = rows(index, topics)
    before = index.nbytes
    failures = 0
    while True:
        index._fail_after(failures)
        try:
            found = rows(index, topics)
        except MemoryError:
            failures += 1
            continue
        finally:
            index._fail_after(-1)
        break
    assert failures >= 8  # each topic of a group has room of its own
    assert found == expected
    assert index.nbytes == before
