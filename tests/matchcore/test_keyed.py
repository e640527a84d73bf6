"""One call for a topic behind several key words: the smallest id that `match` finds for any of them."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore.errors import InvalidFilter, InvalidTopic
from matchcore.filters import FilterIndex
from matchcore.keyed import IdAnswers, KeyedIndex, KeyedSearch

SEPARATORS = {"amqp": ".", "mqtt": "/"}
KEYS = ["k0", "k1", "k2"]
words = st.sampled_from(["a", "b", "c"])
filters = st.tuples(
    st.sampled_from(KEYS), st.lists(st.one_of(words, st.sampled_from(["+", "#"])), min_size=1, max_size=4),
    st.integers(0, 20), st.sampled_from(list(SEPARATORS)),
)  # fmt: skip


class Asking(KeyedSearch):
    """It notes what it was asked otherwise, and says no."""

    def __init__(self) -> None:
        self.otherwise: list[tuple[str, bytes, str]] = []

    def ask_otherwise(self, kind: str, topic: bytes, syntax: str) -> bool:
        self.otherwise.append((kind, topic, syntax))
        return False


@settings(max_examples=200, deadline=None)
@given(
    st.lists(filters, max_size=12),
    st.lists(st.sampled_from(KEYS), max_size=4),
    st.lists(words, min_size=1, max_size=4),
    st.sampled_from(list(SEPARATORS)),
    st.sampled_from([1, 700]),
    st.booleans(),
)
def test_it_is_the_smallest_of_what_each_key_finds(  # type: ignore[no-untyped-def]
    given, keys, topic, syntax, times, by_key,
) -> None:
    """times: long words, for topics that do not fit on the stack. by_key: filters are in buckets, not in the pool."""
    index = FilterIndex()
    if by_key:
        index._tune(split=8, small=0, pool_least=1_000_000)
    for key, filter, id, own in given:
        if "#" in filter and own == "mqtt":
            filter = [*filter[: filter.index("#")], "#"]
        any_word = "*" if own == "amqp" else "+"
        filled = [any_word if word == "+" else word if word == "#" else word * times for word in filter]
        index.insert(SEPARATORS[own].join([key, *filled]), id, syntax=own)
    separator = SEPARATORS[syntax]
    text = separator.join(word * times for word in topic)
    found = [id for key in keys for id in index.match(f"{key}{separator}{text}", syntax=syntax)]
    answers = IdAnswers(bytes(id % 2 for id in range(21)))
    search = Asking()
    search.begin(KeyedIndex(index, answers, {"read": 1}, {"read": True}), tuple((key.encode(), 1, ()) for key in keys))
    least = min(found, default=None)
    assert search.least(text.encode(), 1, syntax) == least
    assert search.least(text.encode(), 1, syntax) == least  # what a search needs is used again
    assert search.ask("read", text.encode(), syntax) is (least is None or least % 2 == 1)
    assert search.otherwise == []
    assert [answers.count(id) for id in range(21)] == [id == least and id % 2 for id in range(21)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "*", "#"]), min_size=1, max_size=4), max_size=60), st.data())
def test_few_classes_are_asked_as_many_are(given: list[list[str]], data: st.DataObject) -> None:
    """Filters of few shapes have few sets of key positions: those are probed without a look at rows of words."""
    index = FilterIndex()
    index._tune(split=8, small=0, pool_least=1_000_000)
    for id, filter in enumerate(given):
        index.insert(".".join(["k", *filter]), id)
    search = KeyedIndex(index).search(((b"k", 1, ()),))
    for topic in data.draw(st.lists(st.lists(words, min_size=1, max_size=6), max_size=5)):
        found = index.match(".".join(["k", *topic]))
        assert search.least(".".join(topic).encode(), 1, "amqp") == min(found, default=None)


places = st.tuples(
    st.sampled_from([-5, -3, -2, -1, 0, 1, 2, 3, 5]), st.lists(st.sampled_from(["", "a", "b", "aa"]), max_size=2)
)


@settings(max_examples=140, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 3), st.lists(places, max_size=2)), max_size=4),
    st.lists(st.sampled_from(["", "a", "b", "aa"]), min_size=1, max_size=4), st.sampled_from(list(SEPARATORS)),
)
def test_a_key_counts_where_its_bits_and_its_words_are(given, topic, syntax) -> None:  # type: ignore[no-untyped-def]
    index = FilterIndex()
    for id, key in enumerate(KEYS):
        index.insert(f"{key}.#", id)
    separator = SEPARATORS[syntax]

    def stands(place: int, words: list[str]) -> bool:
        at = place - 1 if place > 0 else place
        return place != 0 and -len(topic) <= at < len(topic) and topic[at] in words

    asked = tuple(
        (key.encode(), bits, tuple((place, tuple(map(str.encode, words))) for place, words in named))
        for key, bits, named in given
    )
    text = separator.join(topic)
    search = KeyedIndex(index).search(((b"k2", 4, ()), *asked))
    for bits in (1, 2, 3, 4) if text else ():
        found = [
            KEYS.index(key) for key, own, named in given if own & bits and all(stands(*each) for each in named)
        ] + [2] * (bits == 4)
        assert search.least(text.encode(), bits, syntax) == min(found, default=None)


def test_more_keys_than_are_searched_for_together() -> None:
    index = FilterIndex()
    for id in range(20):
        index.insert(f"k{id}.{'a' * 300}.*", 100 - id)
    search = KeyedIndex(index).search(tuple((b"k%d" % id, 1, ()) for id in range(20)))
    assert search.least(b"a" * 300 + b".b", 1, "amqp") == 81
    assert search.least(b"a" * 299 + b".b", 1, "amqp") is None


def test_a_search_follows_its_index() -> None:
    index = FilterIndex()
    search = KeyedIndex(index).search(((b"new", 1, ()), (b"old", 1, ())))
    assert search.least(b"a", 1, "amqp") is None
    index.insert("old.*", 2)
    assert search.least(b"a", 1, "amqp") == 2
    index.insert("new.*", 1)  # a key that was no word of the dictionary
    assert search.least(b"a", 1, "amqp") == 1
    index.remove("new.*", 1)
    index.insert("other.*", 0)  # which has its number now
    assert search.least(b"a", 1, "amqp") == 2
    search.end()
    assert search.least(b"a", 1, "amqp") is None


def test_a_yes_is_counted() -> None:
    index = FilterIndex()
    index.insert("k.a", 1)
    index.insert("k.c", 2)
    index.insert("k.d", 3)  # for which there is no answer
    answers = IdAnswers(b"\0\1\0")
    search = Asking()
    assert search.ask("read", b"a", "amqp") is False  # before it has begun
    search.begin(KeyedIndex(index, answers, {"read": 1, "write": 2}, {"write": True}), ((b"k", 1, ()),))
    assert search.ask("read", b"a", "amqp") is search.ask("read", b"a", "mqtt") is True
    assert search.ask("write", b"a", "amqp") is True  # no key has its bit: as the others say
    assert search.ask("read", b"c", "amqp") is False
    del search.otherwise[0]
    assert search.otherwise == []
    odd = [("read", topic, "amqp") for topic in (b"b", b"", b"$a", b"d", b"a" * 70_000)]
    for kind, topic, syntax in odd:
        assert search.ask(kind, topic, syntax) is False
    assert search.otherwise == odd
    assert (len(answers), [answers.count(id) for id in range(3)]) == (3, [0, 2, 0])
    answers.add(2)
    assert ([answers[id] for id in range(3)], answers.count(2)) == ([False, True, False], 1)
    for wrong in (lambda: answers[3], lambda: answers.add(3), lambda: answers.count(3)):
        with pytest.raises(IndexError):
            wrong()


def test_what_is_wrong_is_said() -> None:
    index = FilterIndex(4)
    index.insert("k.#", 1)
    keyed = KeyedIndex(index)
    search = keyed.search(((b"k", 1, ()),))
    with pytest.raises(InvalidTopic, match=r"\b4\b"):
        search.least(b"a.b.c.d", 1, "amqp")
    with pytest.raises(ValueError, match="syntax"):
        search.least(b"a", 1, "nats")
    with pytest.raises(TypeError):
        keyed.search((("k", 1, ()),))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        keyed.search(((b"k", 1, ((1, ("a",)),)),))  # type: ignore[arg-type]
    for key in (b"", b"k.", b"k/l", b"#", b"+"):
        with pytest.raises(ValueError, match="one word"):
            keyed.search(((key, 1, ()),))
    with pytest.raises(NotImplementedError):
        search.ask("read", b"", "amqp")
    with pytest.raises(KeyError):
        search.ask("read", b"a", "amqp")


@pytest.mark.parametrize("filter", ["a.b", "a.*.#", "a.#.b", "", "a" * 200, "a.b.c.d.e", "a\0"])
@pytest.mark.parametrize("syntax", list(SEPARATORS))
def test_check_refuses_what_insert_refuses(filter: str, syntax: str) -> None:
    index, checked = FilterIndex(4, 100), FilterIndex(4, 100)
    filter = filter.replace(".", SEPARATORS[syntax])
    try:
        index.insert(filter, 1, syntax=syntax)
    except InvalidFilter as error:
        with pytest.raises(InvalidFilter, match=re.escape(str(error))):
            checked.check(filter, syntax=syntax)
    else:
        checked.check(filter, syntax=syntax)
    assert len(checked) == 0


@pytest.mark.parametrize("seed", range(6))
def test_topics_one_after_the_other_that_are_compared_word_by_word(seed: int) -> None:
    """What a search has noted of a topic's words is forgotten before the next topic, behind each of its keys."""
    drawn = random.Random(seed)

    def run(letters: str, most: int) -> list[str]:
        return [drawn.choice(letters) if drawn.random() < 0.1 else letters[0] for _ in range(drawn.randint(1, most))]

    index = FilterIndex()
    if seed % 2:
        index._tune(split=8, small=0, pool_least=1_000_000)
    for id in range(60):
        filter = [drawn.choice(KEYS), "#", *run("ab*", 20), "#", *run("ab", 6), "#", *run("ab", 1)]
        index.insert(".".join(filter), id)
    search = KeyedIndex(index).search(tuple((key.encode(), 1, ()) for key in KEYS))
    for _ in range(40):
        topic = ".".join(run("abcd", 80) + run("ab", 20))
        found = [id for key in KEYS for id in index.match(f"{key}.{topic}")]
        assert search.least(topic.encode(), 1, "amqp") == min(found, default=None)
