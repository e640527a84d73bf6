"""The exact tier: a text is found by the hash of the whole, whichever syntax it was written in, whatever its length."""

import random

import pytest

from matchcore import FilterIndex, freeze


def of_size(size: int, dice: random.Random, separator: str) -> str:
    """A text of so many bytes, of words of which some are empty."""
    return "".join(separator if dice.random() < 0.2 else dice.choice("abc") for _ in range(size))


@pytest.mark.parametrize("size", [*range(1, 70), 127, 128, 129, 1_000])
def test_a_text_of_any_size_is_found_in_both_spellings(size: int) -> None:
    dice = random.Random(size)
    index = FilterIndex(max_words=1_024)
    texts = list(dict.fromkeys(of_size(size, dice, "/") for _ in range(20)))
    for id, text in enumerate(texts):
        index.insert(text, id, syntax="mqtt" if id % 2 else "amqp" if "/" not in text else "mqtt")
    frozen = freeze(index)
    assert index._tiers()["exact"] == len(texts)
    for id, text in enumerate(texts):
        for asked in (index, frozen):
            assert asked.match(text, syntax="mqtt") == (id,)
            assert asked.match(text.replace("/", "."), syntax="amqp") == (id,)
            assert asked.match_any(text.replace("/", "."))


def test_a_zero_byte_is_no_separator() -> None:
    index = FilterIndex()
    index.insert(b"a\0b", 1)
    index.insert(b"a.b", 2)
    index.insert(b"a/b", 3)
    assert [index.match(topic) for topic in (b"a\0b", b"a.b", b"a/b")] == [(1,), (2,), (3,)]
    assert index.match(b"a/b", syntax="mqtt") == (2,)


def test_a_topic_of_very_many_words_is_found_like_any_other() -> None:
    index = FilterIndex(max_words=1_024)
    text = ".".join(["w"] * 1_000)
    index.insert(text, 1)
    assert index.match(text) == index.match(text.replace(".", "/"), syntax="mqtt") == (1,)
    index.insert("x.*", 2)
    assert index.match(text) == (1,)
