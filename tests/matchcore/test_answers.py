"""What a match answers with: ids in ascending order, each once, however many; and how it may be asked."""

import inspect
import random

import pytest

from matchcore import FilterIndex, NameIndex

SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 255, 256, 257, 3_000]
HIGHEST = 2**32 - 1


def ids_of(count: int) -> list[int]:
    """In no order; the highest, the lowest and the sign bit's neighbours among them."""
    dice = random.Random(count)
    edges = [HIGHEST, 0, 2**31, 2**31 - 1, 255, 256, 65_536]
    return dice.sample(edges + dice.sample(range(1_000, HIGHEST), count), count)


TOPIC = ".".join(["a"] * 13)


def filter_of(number: int) -> str:
    """One of 8,192 that all match TOPIC."""
    return ".".join("a*"[number >> bit & 1] for bit in range(13))


@pytest.mark.parametrize("count", SIZES)
def test_filters_with_one_id_each_answer_in_order(count: int) -> None:
    index = FilterIndex()
    ids = ids_of(count)
    for i, id in enumerate(ids):
        index.insert(filter_of(i), id)
    assert index.match(TOPIC) == tuple(sorted(ids))
    assert index.match_many([TOPIC, TOPIC])[1].tolist() == sorted(ids) * 2


@pytest.mark.parametrize("count", [3, 4, 5, 6, 7, 8, 9, 12])
def test_few_ids_are_put_in_order_whatever_theirs_was(count: int) -> None:
    dice = random.Random(count)
    for _ in range(100):
        index = FilterIndex()
        ids = dice.sample(range(20), count) if dice.random() < 0.5 else dice.choices(range(20), k=count)
        for i, id in enumerate(ids):
            index.insert(filter_of(i), id)
        assert index.match(TOPIC) == tuple(sorted(set(ids)))


@pytest.mark.parametrize("count", SIZES)
def test_an_id_under_several_filters_is_answered_once(count: int) -> None:
    index = FilterIndex()
    ids = ids_of(count)
    for i, id in enumerate(ids + ids[: count // 2] + [ids[0]]):
        index.insert(filter_of(i), id)
    assert index.match(TOPIC) == tuple(sorted(ids))


@pytest.mark.parametrize("count", SIZES)
def test_filters_with_many_ids_answer_in_order(count: int) -> None:
    index = FilterIndex()
    names = NameIndex()
    ids = ids_of(count)
    for i, id in enumerate(ids):
        index.insert(("a.#", "#", "a.*", "a.b")[i % 4], id)
        index.insert("*.b", ids[0])
        names.insert(("a.b", "a.c", "a.d", "a")[i % 4], id)
        names.insert("a.e", ids[0])
    assert index.match("a.b") == tuple(sorted(ids))
    assert names.match("a.#") == tuple(sorted(ids))


@pytest.mark.parametrize("count", SIZES)
def test_the_highest_ids_are_not_taken_for_lists_of_ids(count: int) -> None:
    index = FilterIndex()
    highest = [2**32 - 1 - i for i in range(count)]
    for i, id in enumerate(highest):
        index.insert(filter_of(i), id)
        index.insert(f"x{i}", id)
        index.insert(f"x{i}", 7)
    assert index.match(TOPIC) == tuple(sorted(highest))
    index.insert(filter_of(0), 7)
    assert index.match(TOPIC) == (7, *sorted(highest))
    assert index.match_many([TOPIC, "x0"])[1].tolist() == [7, *sorted(highest), 7, 2**32 - 1]


def test_text_that_is_not_ascii_is_matched_by_its_utf8() -> None:
    index = FilterIndex()
    index.insert("börse.*", 1)
    index.insert("börse.日本".encode(), 2)
    assert index.match("börse.日本") == index.match("börse.日本".encode()) == (1, 2)


def test_the_syntax_may_be_any_str_that_says_it() -> None:
    index = FilterIndex()
    index.insert("a/+", 1, syntax="".join(["mq", "tt"]))
    assert index.match("a/b", syntax=b"mqtt".decode()) == (1,)


@pytest.mark.parametrize("method", [FilterIndex.match, FilterIndex.match_any, NameIndex.match])
def test_the_signature_can_be_asked_for(method: object) -> None:
    assert callable(method)
    assert str(inspect.signature(method)).startswith("(self, /, ")
    assert str(inspect.signature(method)).endswith("syntax='amqp')")
