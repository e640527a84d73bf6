"""A subscription that gets a selector, loses it or gets another: one step, whoever asks meanwhile, or what fails."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from matchcore import FilterIndex, InvalidFilter, InvalidSelector

PLAIN, PRICED, OTHER = None, "price > 0", "price > 0 AND region = 'eu'"
FIELDS = {"price": 1, "region": "eu"}


class ChangingFields(dict[str, object]):
    """While they are read, the subscription changes, as another thread may change it."""

    def __init__(self, index: FilterIndex, selectors: list[str | None]) -> None:
        super().__init__(FIELDS)
        self.index = index
        self.selectors = selectors

    def items(self) -> Any:
        while self.selectors:
            self.index.insert("a.#", 5, where=self.selectors.pop())
        return super().items()


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another selector"])
@pytest.mark.parametrize("changes", [[PLAIN], [OTHER], [PLAIN, OTHER], [PLAIN, OTHER, PLAIN], [PLAIN, OTHER] * 2])
def test_an_answer_has_a_subscription_that_changes_while_fields_are_read(
    changes: list[str | None], beside: bool
) -> None:
    index = FilterIndex()
    index.insert("*.b", 1)
    index.insert("a.#", 5, where=PRICED)
    if beside:
        index.insert("*.*", 9, where="price > 100")
    assert index.match("a.b", fields=ChangingFields(index, changes[::-1])) == (1, 5)
    index.insert("a.#", 5, where=PRICED)
    assert index.match_any("a.c", fields=ChangingFields(index, changes[::-1]))
    index.insert("a.#", 5, where=PRICED)
    rows = {name: [value] for name, value in FIELDS.items()}
    assert index.match_many(["a.b"], fields=rows)[1].tolist() == [1, 5]


class RestlessFields(dict[str, object]):
    """They change the index each time that they are read."""

    def __init__(self, index: FilterIndex) -> None:
        super().__init__(FIELDS)
        self.index = index
        self.times = 0

    def items(self) -> Any:
        self.times += 1
        assert self.index.insert("c.#", self.times)
        return super().items()


def test_fields_that_change_the_index_each_time_are_given_up() -> None:
    index = FilterIndex()
    index.insert("a.#", 5, where="price > 100")
    fields = RestlessFields(index)
    with pytest.raises(RuntimeError, match="changed again and again"):
        index.match("a.b", fields=fields)
    with pytest.raises(RuntimeError, match="changed again and again"):
        index.match_any("a.b", fields=fields)


class Watcher:
    """In a cycle, so that the collector ends it: then it asks, in the middle of whatever made the collector run."""

    seen: list[tuple[int, tuple[int, ...], bool]]

    def __init__(self, index: FilterIndex, seen: list[tuple[int, tuple[int, ...], bool]]) -> None:
        self.index = index
        self.seen = seen
        self.itself = self

    def __del__(self) -> None:
        index = self.index
        self.seen.append((len(index), index.match("a.b", fields=FIELDS), index.match_any("a.c", fields=FIELDS)))


@pytest.fixture
def restored_collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("restored_collector")
def test_a_collection_in_the_middle_of_a_change_sees_all_of_it_or_nothing() -> None:
    """Python 3.11 may collect where a tuple is made, and a finalizer may then ask, or let another thread run.

    The collector runs at each of the allocations of a change in turn.
    """
    index = FilterIndex()
    index.insert("*.b", 1)
    index.insert("a.#", 5)
    seen: list[tuple[int, tuple[int, ...], bool]] = []
    for allocations in range(1, 60):
        for where in (PRICED, OTHER, PLAIN):
            gc.collect()
            Watcher(index, seen)
            gc.set_threshold(allocations, 1_000, 1_000)
            index.insert("a.#", 5, where=where)
            gc.set_threshold(10_000, 1_000, 1_000)
    gc.collect()
    assert gc.isenabled()
    assert len(seen) == 3 * 59
    assert set(seen) == {(2, (1, 5), True)}


def state(index: FilterIndex) -> object:
    return len(index), sorted(index.filters()), index.selectors(), index.match("a.b", fields=FIELDS)


@pytest.mark.parametrize("before", [PLAIN, PRICED])
@pytest.mark.parametrize("after", [PLAIN, OTHER])
def test_a_change_that_fails_leaves_all_as_it_was(before: str | None, after: str | None) -> None:
    index = FilterIndex()
    index.insert("*.b", 1)
    index.insert("a.#", 5, where=before)
    held = state(index)
    with pytest.raises(InvalidFilter):
        index.insert("a." * 200, 5, where=after)
    with pytest.raises(InvalidSelector):
        index.insert("a.#", 5, where="price >")
    with pytest.raises(InvalidSelector, match="more than 64"):
        index.insert("a.#", 5, where=" OR ".join(f"price = {n} AND region = 'r{n}'" for n in range(60)))
    assert state(index) == held
    if before is not PLAIN and after is PLAIN:  # the plain one needs memory of the index
        index._fail_after(0)
        with pytest.raises(MemoryError):
            index.insert("a.#", 5)
        index._fail_after(-1)
        assert state(index) == held
    assert index.insert("a.#", 5, where=after) is (before != after)
    assert gc.isenabled()
