"""Churn: after any coming and going an index holds little more than a new one of the same filters would.

Counted bytes, which are exact. What may stay: the room of slots, words and nodes as they were at their most, half as
much again in each arena (and 64 kB, below which none is packed), and tables as large as before. The factors are what
was measured and a tenth.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from matchcore import FilterIndex, NameIndex

OF_FILTERS = 1.3
OF_NAMES = 2.6  # the nodes: some phases have twice as many as others


def bytes_of(make: Callable[[], Any], held: list[tuple[str, int]]) -> int:
    fresh = make()
    for text, id in held:
        fresh.insert(text, id)
    return int(fresh.nbytes)


def in_buckets() -> FilterIndex:
    index = FilterIndex()
    index._tune(small=0, pool_least=1_000_000)
    return index


def shapes(dice: random.Random, size: int) -> str:
    """A filter of a kind whose bucket, rows and text are as long as `size` (0..9) says."""
    word = f"w{dice.randrange(400)}"
    match dice.randrange(4):
        case 0:  # buckets that cannot be split, of records of all lengths
            return f"{word}{'.*' * dice.randrange(1 + 6 * size)}.#"
        case 1:  # a word at many places: long rows of words
            return "*." * dice.randrange(1 + 2 * size) + f"{word}.#"
        case 2:  # long texts and many residual literals
            return ".".join([word, *(f"v{dice.randrange(40)}" for _ in range(3 * size)), "*"])
        case _:  # checked word by word, with words anywhere
            return f"#.{word}{'.#.k' * (1 + size // 3)}.#.v{dice.randrange(40)}.#"


def test_filters_of_changing_sizes_come_and_go_in_bounded_memory() -> None:
    dice = random.Random(1)
    index = in_buckets()
    held: list[tuple[str, int]] = []
    for phase in (9, 1, 5, 9, 2, 7, 0, 3):
        for round in range(8_000):
            filter = shapes(dice, phase), round
            if index.insert(*filter):
                held.append(filter)
            if len(held) > 6_000:
                at = dice.randrange(len(held))
                held[at], held[-1] = held[-1], held[at]
                assert index.remove(*held.pop())
        assert index.nbytes < OF_FILTERS * bytes_of(in_buckets, held)


def test_lists_of_ids_grow_and_shrink_in_bounded_memory() -> None:
    dice = random.Random(2)
    texts = [f"t{i}.*" for i in range(300)]
    index = FilterIndex()
    ids: dict[str, list[int]] = {text: [] for text in texts}
    for phase in range(6):
        for number, text in enumerate(texts):
            wanted = dice.choice([1, 2, 3, 10, 60, 400]) if number % 6 == phase else dice.choice([1, 5])
            while len(ids[text]) < wanted:
                id = dice.randrange(2**32)
                if index.insert(text, id):
                    ids[text].append(id)
            while len(ids[text]) > wanted:
                assert index.remove(text, ids[text].pop(dice.randrange(len(ids[text]))))
        held = [(text, id) for text in texts for id in ids[text]]
        # A list has room for up to four times its ids before it is halved.
        assert index.nbytes < bytes_of(FilterIndex, held) + 4 * 4 * len(held) + 16_000


@pytest.mark.parametrize("slack", [16, -1])
def test_names_with_ever_other_fan_outs_come_and_go_in_bounded_memory(slack: int) -> None:
    """Blocks are powers of two: each phase has nearly all of its own in another size."""

    def make() -> NameIndex:
        names = NameIndex()
        names._tune(slack=slack)
        return names

    dice = random.Random(3)
    names = make()
    names.insert("keep", 0)
    before: list[tuple[str, int]] = []
    for fan_out in (2, 1, 4, 8, 16, 64, 256, 2_048, 16, 2, 512, 1):
        held = []
        for id in range(8_192):
            parent, child = divmod(id, fan_out)
            name = f"{fan_out}.p{parent}.c{child}" if fan_out % 3 else f"p{parent}", id
            assert names.insert(*name)
            held.append(name)
            if before:
                assert names.remove(*before.pop(dice.randrange(len(before))))
        assert not before
        assert names.nbytes < OF_NAMES * bytes_of(make, held)
        before = held
    assert names.match("#") == tuple(range(8_192))


def test_a_list_of_ids_that_fills_pages_of_its_own_shrinks_without_memory() -> None:
    """From 2 MiB on a block is pages, below it malloc's: on the way down memory is needed, and may be missing."""
    index = FilterIndex()
    for id in range(560_000):
        index.insert("a.*", id)
    full = index.nbytes
    assert full > 2 << 20
    index._fail_after(0)
    for id in reversed(range(100, 560_000)):
        assert index.remove("a.*", id)
    assert index.nbytes == full
    index._fail_after(-1)
    assert index.match("a.b") == tuple(range(100))
    for id in reversed(range(90, 100)):
        assert index.remove("a.*", id)
    assert index.nbytes < full // 2 + 1_000_000
    assert index.match("a.b") == tuple(range(90))
