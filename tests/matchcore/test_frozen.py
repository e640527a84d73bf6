"""FrozenIndex: a copy that stays as it was, wherever its bytes lie and whoever asks it."""

import copy
import pickle
import random
import sys
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import FilterIndex, FrozenIndex, InvalidTopic, explain, freeze
from matchcore.reference import ReferenceFilterIndex
from tests.matchcore.test_against_reference import TUNINGS, ids, texts, told, tuned
from tests.matchcore.test_tiers import device_filters, device_topics


def filled(filters: list[str], syntax: str = "mqtt", **tuning: int) -> FilterIndex:
    index = FilterIndex()
    if tuning:
        index._tune(**tuning)
    for id, text in enumerate(filters):
        index.insert(text, id, syntax=syntax)
    return index


def of_all_kinds() -> FilterIndex:
    """A small one with something in every section."""
    index = FilterIndex()
    index._tune(split=2, small=5, pool_least=4)
    for i in range(12):
        index.insert(f"dev.{i}.*.temp", i)
        index.insert(f"*.{'a' * 20}.{i}.#", i)
        index.insert(f"exact.{i}.one", i)
    for text in ("*.*.#", "#.temp", "#", "#.x.#.y", "*.b", "+.c.*"):
        index.insert(text, 77)
        index.insert(text, 78)
    index.insert("site/+/floor/#", 5, syntax="mqtt")
    index.insert("+/#", 6, syntax="mqtt")
    assert min(index._tiers().values()) > 0
    return index


TOPICS = [
    "dev.3.x.temp", "dev.11.y.temp", f"q.{'a' * 20}.7.z.z", "exact.4.one", "exact.99.one", "a.b", "a.x.b.y", "",
    "dev.3", "nobody.knows.it", "+.c.d", "$sys.b", "site.1.floor.2",
]  # fmt: skip


def answers(index: FilterIndex) -> list[Any]:
    told = [index.match(topic) for topic in TOPICS]
    told += [index.match_any(topic) for topic in TOPICS]
    return [*told, index.match("site/1/floor/2", syntax="mqtt"), index.match("$sys/a", syntax="mqtt")]


# ---- the same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("tuning", TUNINGS)
@given(
    held=st.lists(st.tuples(texts(wildcards=True), ids), max_size=30),
    gone=st.sets(st.integers(0, 29)),
    later=st.lists(st.tuples(texts(wildcards=True), ids), max_size=8),
    topics=st.lists(texts(wildcards=False), max_size=12),
)
@settings(deadline=None, max_examples=60)
def test_a_copy_answers_as_the_index_did_whatever_becomes_of_it(
    tuning: str, held: Any, gone: Any, later: Any, topics: Any
) -> None:
    index, oracle = tuned(tuning), ReferenceFilterIndex()
    for (text, syntax), id in held:
        told(index.insert, text, id, syntax=syntax)
        told(oracle.insert, text, id, syntax=syntax)
    for i in gone:
        if i < len(held):
            (text, syntax), id = held[i]
            told(index.remove, text, id, syntax=syntax)
            told(oracle.remove, text, id, syntax=syntax)
    frozen = freeze(index)
    expected = [told(oracle.match, text, syntax=syntax) for text, syntax in topics]
    filters = set(index.filters())
    for round in range(2):
        for (text, syntax), answer in zip(topics, expected, strict=True):
            assert told(frozen.match, text, syntax=syntax) == told(index.match, text, syntax=syntax) or round == 1
            if isinstance(answer[0] if answer else None, int) or answer == ():
                assert frozen.match(text, syntax=syntax) == answer
                assert frozen.match_any(text, syntax=syntax) == bool(answer)
                assert [tuple(one.tolist()) for one in frozen.match_many([text], syntax=syntax)] == [
                    (0, len(answer)), answer,
                ]  # fmt: skip
                found = {(one.filter, one.syntax, one.id) for one in explain(frozen, text, syntax=syntax)}
                assert found == set(frozen.matching(text, syntax=syntax)) <= filters
        assert set(frozen.filters()) == filters
        assert len(frozen) == len(filters)
        if round == 0:
            for (text, syntax), id in later:
                told(index.insert, text, id, syntax=syntax)
            for text, syntax, id in filters:
                index.remove(text, id, syntax=syntax)


@pytest.mark.parametrize("tuning", [{}, {"split": 1, "small": 0, "pool_least": 1_000_000}])
def test_a_copy_of_many_devices_answers_as_the_index(tuning: dict[str, int]) -> None:
    dice = random.Random(4)
    index = filled(device_filters(4_000, dice), **tuning)
    frozen = freeze(index)
    topics = device_topics(3_000, dice)
    for one in (frozen, FrozenIndex.from_buffer(frozen.to_bytes())):
        for mine, theirs in zip(
            one.match_many(topics, syntax="mqtt"), index.match_many(topics, syntax="mqtt"), strict=True
        ):
            assert (mine == theirs).all()
    assert frozen._tiers() == index._tiers()


def test_of_a_removed_filter_nothing_is_in_the_bytes() -> None:
    index = of_all_kinds()
    secret = "confidential-" * 30  # in an arena's large blocks
    for text in (f"{secret}.*", f"{secret}", "hush-hush.#", "hush-hush"):
        for id in range(40):
            index.insert(text, 0xBADC0DE + id)
    for text in (f"{secret}.*", f"{secret}", "hush-hush.#", "hush-hush"):
        for id in range(40):
            index.remove(text, 0xBADC0DE + id)
    data = freeze(index).to_bytes()
    assert b"confidential-" not in data
    assert b"hush" not in data
    for id in range(40):
        assert (0xBADC0DE + id).to_bytes(4, "little") not in data


@pytest.mark.parametrize(
    "filters",
    [
        [],
        ["a.b"],
        ["a.*"],
        ["#"],
        [""],
        ["a.b", "b.c", "c.d"],
        ["a.*", "#.b"],
        ["x" * 40 + ".*"],
        [".".join("a" * 128)],
    ],
)
@pytest.mark.parametrize("small", [0, 1536])
def test_small_ones_of_every_kind(filters: list[str], small: int) -> None:
    index = FilterIndex()
    index._tune(small=small)
    for id, text in enumerate(filters):
        index.insert(text, id)
    frozen = FrozenIndex.from_buffer(freeze(index).to_bytes())
    assert set(frozen.filters()) == set(index.filters())
    for topic in ("", "a", "a.b", "b", "x" * 40 + ".y", ".".join("a" * 128)):
        assert frozen.match(topic) == index.match(topic)
    assert frozen.match("a/b", syntax="mqtt") == index.match("a/b", syntax="mqtt")
    assert frozen._tiers() == index._tiers()


def test_limits_go_along() -> None:
    index = FilterIndex(max_words=1_024, max_bytes=5_000)
    index.insert("#." + ".".join("a" * 1_023), 1)
    frozen = FrozenIndex.from_buffer(freeze(index).to_bytes())
    assert frozen.match(".".join("a" * 1_024)) == (1,)
    with pytest.raises(InvalidTopic, match="limit is 1024"):
        frozen.match(".".join("a" * 1_025))
    with pytest.raises(InvalidTopic, match="limit is 5000"):
        frozen.match("a" * 5_001)
    with pytest.raises(InvalidTopic):
        frozen.match("a/+", syntax="mqtt")


def test_several_ids_of_one_filter() -> None:
    index = FilterIndex()
    for id in range(1_000, 0, -1):
        index.insert("a.*", id)
        index.insert("a.b", 2 * id)
    frozen = FrozenIndex.from_buffer(freeze(index).to_bytes())
    assert frozen.match("a.b") == index.match("a.b") == tuple(sorted({*range(1, 1_001), *range(2, 2_001, 2)}))
    assert len(frozen) == 2_000


# ---- what it is ------------------------------------------------------------------------------------------


def test_nobody_changes_it() -> None:
    frozen = freeze(of_all_kinds())
    before = frozen.to_bytes()
    for change in (frozen.insert, frozen.remove):
        with pytest.raises(TypeError, match="does not change"):
            change("a.b", 1)
    with pytest.raises(TypeError, match="does not change"):
        FilterIndex.insert(frozen, "a.b", 1)
    with pytest.raises(TypeError, match=r"matchcore\.freeze"):
        FrozenIndex()
    assert memoryview(frozen).readonly
    assert freeze(frozen) is copy.copy(frozen) is copy.deepcopy(frozen) is frozen
    answers(frozen)  # match_any learns which classes are likely, but not in the bytes
    assert frozen.to_bytes() == bytes(frozen) == before


def test_the_version_is_that_of_the_index() -> None:
    index = FilterIndex()
    assert index.version == 0
    assert index.insert("a.*", 1)
    assert not index.insert("a.*", 1)
    assert index.version == 1
    first = freeze(index)
    index.insert("a.*", 2)
    index.remove("a.*", 1)
    assert (first.version, index.version, freeze(index).version) == (1, 3, 3)
    assert pickle.loads(pickle.dumps(first)).version == 1


def test_two_copies_have_secrets_of_their_own() -> None:
    index = of_all_kinds()
    one, other = freeze(index), freeze(index)
    assert one.to_bytes() != other.to_bytes()
    assert answers(one) == answers(other) == answers(index)


def test_nbytes_counts_the_bytes_once() -> None:
    index = filled(device_filters(3_000, random.Random(1)))
    frozen = freeze(index)
    size = len(memoryview(frozen))
    opened = FrozenIndex.from_buffer(frozen)
    assert size < frozen.nbytes < size + 60_000
    assert abs(opened.nbytes - frozen.nbytes) < 200
    assert size < index.nbytes


def test_no_memory_and_nothing_has_happened() -> None:
    index = of_all_kinds()
    answers(index)  # with what a match keeps for the next one
    held = index.nbytes
    frozen = None
    for allowed in range(40):
        try:
            frozen = freeze(index, allowed)
            break
        except MemoryError:
            continue
    assert frozen is not None
    assert allowed > 3
    assert answers(frozen) == answers(index)
    assert index.nbytes == held


# ---- beside a writer ---------------------------------------------------------------------------------------


def test_readers_beside_a_writer_see_whole_moments() -> None:
    dice = random.Random(8)
    filters = device_filters(300, dice)
    topics = device_topics(8, dice)
    index = FilterIndex()
    index._tune(small=40, pool_least=10)
    moments: dict[int, list[tuple[int, ...]]] = {0: [()] * len(topics)}  # version -> the oracle's then
    published = [freeze(index)]
    problems: list[object] = []
    seen: set[int] = set()
    done = threading.Event()
    before = sys.getswitchinterval()

    def write() -> None:
        oracle = ReferenceFilterIndex()
        for _ in range(40):
            for id in dice.sample(range(len(filters)), 8):
                change = "insert" if dice.random() < 0.6 else "remove"
                getattr(index, change)(filters[id], id, syntax="mqtt")
                getattr(oracle, change)(filters[id], id, syntax="mqtt")
            moments[index.version] = [oracle.match(topic, syntax="mqtt") for topic in topics]
            published[0] = freeze(index)

    def read(number: int) -> None:
        last = 0
        while not done.is_set():
            frozen = published[0]
            if frozen.version < last:
                problems.append((frozen.version, last))
            last = frozen.version
            seen.add(last)
            ends, found = frozen.match_many(topics, syntax="mqtt")
            got = [tuple(found[ends[i] : ends[i + 1]].tolist()) for i in range(len(topics))]
            if got != moments[last]:
                problems.append((last, got))
            index.match_many(topics, syntax="mqtt")  # and beside readers of the index itself
            if frozen.match(topics[number], syntax="mqtt") != moments[last][number]:
                problems.append(last)

    def guarded(call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except BaseException as error:
            problems.append(error)

    sys.setswitchinterval(1e-5)
    try:
        readers = [threading.Thread(target=guarded, args=(read, number)) for number in range(2)]
        writer = threading.Thread(target=guarded, args=(write,))
        for thread in [*readers, writer]:
            thread.start()
        writer.join()
        done.set()
        for thread in readers:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []
    assert len(moments) > 20
    assert seen <= moments.keys()


def test_copies_that_come_and_go_leave_no_memory() -> None:
    index = of_all_kinds()
    held = index.nbytes
    sizes = {freeze(index).nbytes for _ in range(50)}
    assert len(sizes) == 1
    assert index.nbytes == held
