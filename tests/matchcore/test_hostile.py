"""Sets and topics that an adversary would choose: a match ends, and answers as a plain scan does.

What a match costs at most is told in tiers.pxd; here are the limits that argument rests on, and the sets in which a
matcher that tries again would take 2**60 steps.
"""

import random
import subprocess
import sys

import pytest

from fanlight_bench import workloads
from matchcore import FilterIndex
from matchcore.reference import ReferenceFilterIndex, matches

TUNED: list[dict[str, int]] = [{}, {"split": 8, "small": 0, "pool_least": 1_000_000}]
tunings = pytest.mark.parametrize("tuning", TUNED, ids=["pool", "buckets"])


def filled(filters: list[str], tuning: dict[str, int], max_words: int = 128) -> FilterIndex:
    index = FilterIndex(max_words=max_words)
    index._tune(**tuning)
    for id, text in enumerate(filters):
        assert index.insert(text, id)
    return index


def answer(filters: list[str], topic: str) -> tuple[int, ...]:
    return tuple(id for id, text in enumerate(filters) if matches(text, "amqp", topic, "amqp"))


@tunings
def test_nested_hashes_over_a_topic_of_one_word_end(tuning: dict[str, int]) -> None:
    filters = [f"#{'.a.#' * depth}{tail}" for depth in range(60) for tail in ("", ".b", ".*.b.#", ".b.#.a")]
    index = filled(filters, tuning)
    every = ".".join(["a"] * 128)
    hashes = tuple(4 * depth for depth in range(60))
    assert index.match(every) == hashes
    ends = ".".join(["a"] * 127 + ["b"])
    assert index.match(ends) == tuple(sorted([*hashes, *(i + 1 for i in hashes), *(i + 2 for i in hashes)]))
    assert index.match_any(ends)
    assert not filled(filters[1::4], tuning).match_any(every)


@tunings
@pytest.mark.parametrize("words", [128, 1024])
def test_as_many_words_as_there_may_be(words: int, tuning: dict[str, int]) -> None:
    filters = [".".join(["*"] * at + ["deep"] + ["*"] * (words - 1 - at)) for at in range(0, words, 9)]
    filters += ["#." + ".".join(["a"] * half) + ".b.#" for half in (2, words // 4, words // 2)]
    index = filled(filters, tuning, words)
    topic = ["a"] * words
    assert index.match(".".join(topic)) == ()
    assert index.match(".".join([*topic[:-1], "b"])) == tuple(range(len(filters) - 3, len(filters)))
    for number, at in enumerate(range(0, words, 9)):
        assert index.match(".".join([*topic[:at], "deep", *topic[at + 1 :]])) == (number,)


@tunings
def test_filters_of_one_literal_that_no_bucket_can_part_do_not_make_other_topics_dear(tuning: dict[str, int]) -> None:
    filters = list(dict.fromkeys("a." + ".".join("*#"[i >> bit & 1] for bit in range(11)) for i in range(2_048)))
    index = filled(filters, tuning)
    dice = random.Random(1)
    for id in range(3_000):
        index.insert(f"{dice.randrange(10**9)}.b.*", 100_000 + id)
    tiers = index._tiers()
    assert tiers["pool"] >= len(filters) - 64 - 8  # a bucket that cannot be split takes 64
    for length in (0, 1, 5, 11, 12, 30):
        topic = ".".join(["a"] + ["x"] * length)
        assert index.match(topic) == answer(filters, topic)
    assert index.match("z.b.c") == ()


def test_a_filter_of_many_ids_answers_with_them_all() -> None:
    index = FilterIndex()
    for id in reversed(range(20_000)):
        index.insert("a.*", id)
    index.insert("#", 20_000)
    assert index.match("a.b") == tuple(range(20_001))
    assert index.match("b") == (20_000,)


def test_words_that_share_a_bit_of_the_bloom_are_only_verified() -> None:
    """A word's bit is its number modulo 32, and numbers are given in order: it can be arranged."""
    index, oracle = FilterIndex(), ReferenceFilterIndex()
    index._tune(**TUNED[1])
    filters = [f"#.w{32 * i}.#.w{32 * i + 32}.#" for i in range(120)]
    for id in range(4_000):
        index.insert(f"w{id}.x.*", 10_000 + id)
        oracle.insert(f"w{id}.x.*", 10_000 + id)
    for id, text in enumerate(filters):
        index.insert(text, id)
        oracle.insert(text, id)
    for topic in ("w64.w32", "w32.w64", ".".join(f"w{32 * i}" for i in range(100)), "w31.w63"):
        assert index.match(topic) == oracle.match(topic)


@pytest.mark.parametrize("name", ["W4c", "W4f"])
def test_no_more_classes_and_keys_than_the_bound_of_a_match_says(name: str) -> None:
    work = workloads.make(name)
    index = FilterIndex()
    for id, text in enumerate(work.filters):
        index.insert(text, id, syntax=work.syntax)
    tiers = index._tiers()
    assert tiers["classes"] <= 512
    assert tiers["buckets"] <= 64 * max(tiers["keys"], 1)
    oracle = ReferenceFilterIndex()
    for id, text in enumerate(work.filters[:500]):
        oracle.insert(text, id, syntax=work.syntax)
    for topic in work.topics[:6]:
        found = [id for id in index.match(topic, syntax=work.syntax) if id < 500]
        assert tuple(found) == oracle.match(topic, syntax=work.syntax)


SECRETS = """
import ctypes, matchcore.hashing
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
name = ctypes.pythonapi.PyCapsule_GetName
name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
for function, count in ("hash_secret", 4), ("hash_multipliers", 64):
    capsule = matchcore.hashing.__pyx_capi__[function]
    numbers = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_uint64))(pointer(capsule, name(capsule)))()
    print(*numbers[:count])
"""


def test_the_secrets_of_the_hashes_are_drawn_in_each_process() -> None:
    drawn = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", SECRETS], capture_output=True, text=True, timeout=60, check=True)
        drawn.append([int(number) for number in run.stdout.split()])
    assert [len(numbers) for numbers in drawn] == [68, 68]
    assert not set(drawn[0]) & set(drawn[1])
    assert all(number % 2 and number > 2**32 for numbers in drawn for number in numbers)


def reaches(text: str, topic: str) -> bool:
    """What `matches` says, for several hashes over a long topic: the positions that each word of the filter leaves."""
    words = topic.split(".")
    left = {0}
    for token in text.split("."):
        if token == "#":
            left = set(range(min(left, default=len(words) + 1), len(words) + 1))
        else:
            left = {at + 1 for at in left if at < len(words) and token in ("*", words[at])}
    return len(words) in left


@tunings
@pytest.mark.parametrize("seed", range(3))
def test_segments_that_fit_nearly_everywhere(seed: int, tuning: dict[str, int]) -> None:
    drawn = random.Random(seed)

    def run(letters: str, most: int) -> list[str]:
        """A word again and again, with few others in between."""
        return [drawn.choice(letters) if drawn.random() < 0.1 else letters[0] for _ in range(drawn.randint(1, most))]

    filters = []
    for _ in range(150):
        inside = [*run("ab*", 40), "#", *run("abc", 20)] if drawn.random() < 0.5 else run("*ab", 30)
        filters.append(".".join([*drawn.choice([[], run("ab", 2)]), "#", *inside, "#", *run("ab", 2)[:1]]))
    filters = sorted({text.removesuffix(drawn.choice([".a", ".b"])) for text in filters})
    index = filled(filters, tuning)
    topics = [run("ab", 60) + run("abcd", 68) for _ in range(30)] + [["a"] * 127 + [end] for end in "abd"]
    matching = 0
    for topic in (".".join(words) for words in topics):
        found = tuple(id for id, text in enumerate(filters) if reaches(text, topic))
        assert index.match(topic) == found
        assert index.match_any(topic) == bool(found)
        matching += len(found)
    assert 0 < matching < len(filters) * len(topics)
