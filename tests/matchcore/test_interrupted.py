"""A collection or a fork in the middle of what an index does: the answer is right, or it is said that it is not."""

import gc
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from matchcore import FilterIndex, explain, freeze

# ---- a collection in the middle ------------------------------------------------------------------------------


class Between:
    """Calls back at the start of each collection: in Python 3.11 wherever a list, a dict or a tuple is made.

    CPython keeps some of those for the next one to use, which then needs no collection: so many are made that none
    is left.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._busy = False
        self.calls = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" and not self._busy:
            self._busy = True
            self._call()
            self.calls += 1
            self._busy = False

    def during(self, ask: Callable[[], Any], threshold: int) -> Any:
        """What `ask` answers, or the RuntimeError it raises."""
        before = gc.get_threshold()
        gc.disable()
        kept = [[] for _ in range(200)], [{} for _ in range(200)], [(i,) for i in range(2_500)]  # type: ignore[var-annotated]
        gc.callbacks.append(self)
        gc.set_threshold(threshold, 1, 1)
        gc.enable()
        try:
            return ask()
        except RuntimeError as error:
            return error
        finally:
            gc.callbacks.remove(self)
            gc.set_threshold(*before)
            del kept


def fill(index: FilterIndex) -> None:
    for k in range(30):
        for j in range(1 + k % 4):
            index.insert(f"a.{k % 7}.*.{k}", k + 100 * j)


def looked_at(index: FilterIndex) -> list[Callable[[], Any]]:
    return [
        lambda: sorted(index.matching("a.3.q.17")),
        lambda: [(told.filter, told.id, told.rows) for told in explain(index, "a.3.q.17")],
        lambda: sorted(index.filters()),
    ]


def in_buckets() -> FilterIndex:
    index = FilterIndex()
    index._tune(split=2, small=3, pool_least=1_000_000)
    fill(index)
    return index


def test_a_collection_that_asks_something_else_does_not_change_an_answer() -> None:
    index = in_buckets()
    expected = [ask() for ask in looked_at(index)]
    between = Between(lambda: (index.match("x.y.z"), index.match(".".join("q" * 100)), explain(index, "a.5.q.5")))
    for threshold in range(1, 60):
        for ask, answer in zip(looked_at(index), expected, strict=True):
            assert between.during(ask, threshold) == answer
    assert between.calls


def test_a_collection_that_changes_the_index_is_told_or_too_late_to_matter() -> None:
    index = in_buckets()
    expected = [ask() for ask in looked_at(index)]

    def change() -> None:
        """All goes and comes again, in other slots."""
        for text, syntax, id in held:
            index.remove(text, id, syntax=syntax)
        for k in range(100):
            index.insert(f"{k}.a-word-that-is-longer-than-others.*", k)
        for k in range(100):
            index.remove(f"{k}.a-word-that-is-longer-than-others.*", k)
        fill(index)

    held = list(index.filters())
    between = Between(change)
    for threshold in range(1, 60):
        for ask, answer in zip(looked_at(index), expected, strict=True):
            got = between.during(ask, threshold)
            if not isinstance(got, RuntimeError):
                assert sorted(map(str, got)) == sorted(map(str, answer))
    assert between.calls


# ---- processes -----------------------------------------------------------------------------------------------


def ends(child: Callable[[], object]) -> bool:
    """Whether a forked process comes to an end of its own; one that waits for ever is ended by the alarm."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            child()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_process_forked_while_others_match_changes_its_own_index() -> None:
    """The threads that read without the GIL are not in the new process, and nobody waits for them."""
    index = FilterIndex()
    for id in range(2_000):
        index.insert(f"a.{id}.*.#", id)
    topics = [f"a.{id % 2_000}.b.c" for id in range(100_000)]
    stop = threading.Event()
    begun = threading.Event()

    def read() -> None:
        while not stop.is_set():
            index.match_many(topics)  # nearly all of it without the GIL
            begun.set()

    def child() -> None:
        assert index.insert("new.*", 7)
        assert index.match_many(["new.b", "a.5.x"])[1].tolist() == [7, 5]
        assert freeze(index).match("new.b") == (7,)
        assert index.remove("new.*", 7)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert begun.wait(20)
        assert all(ends(child) for _ in range(5))
        assert index.insert("new.*", 7)  # here the reader still is, and is waited for
    finally:
        stop.set()
        reader.join()
