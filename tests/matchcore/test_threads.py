"""Readers beside a writer: every call is atomic, so every answer is that of some moment."""

import gc
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from matchcore import FilterIndex, NameIndex
from tests.matchcore.switching import switching


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    with switching():
        yield


def test_readers_beside_writers_see_whole_changes() -> None:
    filters, names = FilterIndex(), NameIndex()
    filters.insert("a.*", 0)
    names.insert("a.b", 0)
    problems: list[object] = []
    done = threading.Event()

    def write(number: int) -> None:
        try:
            for round in range(1_500):
                word = f"w{number}.{round % 50}"
                filters.insert(f"#.{word}.*", number)
                names.insert(f"a.{word}", number)
                filters.insert("*.b", number)
                filters.remove("*.b", number)
                filters.remove(f"#.{word}.*", number)
                names.remove(f"a.{word}", number)
        except BaseException as error:
            problems.append(error)

    def read() -> None:
        try:
            while not done.is_set():
                ids = filters.match("a.b")
                offsets, many = filters.match_many(["a.b", "a.w1.3.x", "a.c"] * 5)
                found = names.match("a.#")
                if not (ids[0] == 0 == found[0] and set(ids) <= {0, 1, 2} and set(found) <= {0, 1, 2}):
                    problems.append((ids, found))
                if offsets[-1] != len(many) or not filters.match_any("a.zz"):
                    problems.append((offsets, many))
                try:
                    list(filters.filters())
                    list(names.names())
                except RuntimeError as error:
                    if "changed" not in str(error):
                        problems.append(error)
        except BaseException as error:
            problems.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert problems == []
    assert set(filters.filters()) == {("a.*", "amqp", 0)}
    assert set(names.names()) == {("a.b", "amqp", 0)}


class Meddler:
    """In a cycle, so that the collector ends it, and then it uses the index."""

    def __init__(self, index: FilterIndex) -> None:
        self.index = index
        self.itself = self

    def __del__(self) -> None:
        meddled.append(self.index.match("a.b"))
        self.index.insert("#.meddled", len(meddled))
        self.index.remove("#.meddled", len(meddled))


meddled: list[tuple[int, ...]] = []


def test_a_collection_in_the_middle_of_an_answer_may_use_the_index() -> None:
    """Python 3.11 may collect while the answer's tuple is made, and a finalizer may then match."""
    index = FilterIndex()
    for id in range(40):
        index.insert("a.*", id)
        index.insert("*.b", id + 20)
    expected = tuple(range(60))
    meddled.clear()
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(300):
            Meddler(index)
            assert index.match("a.b") == expected
            assert index.match_many(["a.b", "a.c"])[0].tolist() == [0, 60, 100]
            with suppress(RuntimeError):  # it may say that the index changed; never mix two states
                assert len(index.matching("a.b")) == 80
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert meddled
    assert set(meddled) == {expected}


def test_several_match_many_run_beside_each_other_and_a_change_waits_for_them() -> None:
    """Every answer is that of before or after a whole change, in every row of it."""
    index = FilterIndex()
    for id in range(3_000):
        index.insert(f"site/{id % 50}/dev/{id}/+", id, syntax="mqtt")
    index.insert("#", 9_999, syntax="mqtt")
    topics = [f"site/{id % 50}/dev/{id}/x" for id in range(3_000)]
    expected = [list(range(0, 6_001, 2)), list(range(0, 9_001, 3))]
    problems: list[object] = []
    done = threading.Event()
    asked = [0, 0, 0]

    def read(number: int) -> None:
        try:
            while not done.is_set():
                offsets, _ = index.match_many(topics, syntax="mqtt")
                asked[number] += 1
                if offsets.tolist() not in expected:
                    problems.append(offsets)
        except BaseException as error:
            problems.append(error)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for thread in readers:
        thread.start()
    changes = 0
    while not problems and (changes < 100 or min(asked) < 5):
        assert index.insert("site/+/dev/#", 5_000, syntax="mqtt")
        assert index.remove("site/+/dev/#", 5_000, syntax="mqtt")
        changes += 1
    done.set()
    for thread in readers:
        thread.join()
    assert problems == []


def test_a_subscription_that_gets_a_selector_or_loses_it_changes_in_one_step() -> None:
    """Also while another thread asks without the GIL, for which a change waits."""
    index = FilterIndex()
    for number in range(2_000):
        index.insert(f"a.*.{number}", number)
    index.insert("a.#", 5_000)
    topics = [f"a.b.{number}" for number in range(2_000)]
    problems: list[object] = []
    asked = threading.Event()
    done = threading.Event()

    def ask_many() -> None:
        while not done.is_set():
            index.match_many(topics)
            asked.set()

    def look() -> None:
        while not done.is_set():
            if len(index) != 2_001 or index.match("a.b.1", fields={"price": 1}) != (1, 5_000):
                problems.append((len(index), index.match("a.b.1", fields={"price": 1})))

    threads = [threading.Thread(target=ask_many), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    try:
        for number in range(200):
            asked.wait()
            asked.clear()
            index.insert("a.#", 5_000, where=f"price > 0 AND price < {number + 2}")
            index.insert("a.#", 5_000)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert problems == []
