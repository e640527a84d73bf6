"""FilterIndex as other programs call it: what goes in, what comes back, what is refused."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import matchcore
from matchcore import FilterIndex, InvalidFilter, InvalidTopic, explain


def test_the_example_of_the_documentation() -> None:
    index = FilterIndex()
    assert index.insert("forex.*", 7, syntax="amqp") is True
    assert index.insert("site/+/temp", 8, syntax="mqtt") is True
    assert index.insert("forex.*", 7, syntax="amqp") is False
    assert index.match("forex.eur", syntax="amqp") == (7,)
    assert index.match_any("forex.eur", syntax="amqp") is True
    assert index.match_any("forex", syntax="amqp") is False
    assert len(index) == 2
    assert index.remove("forex.*", 7, syntax="amqp") is True
    assert index.remove("forex.*", 7, syntax="amqp") is False
    assert len(index) == 1
    assert list(index.filters()) == [("site/+/temp", "mqtt", 8)]


def test_amqp_is_the_default_syntax() -> None:
    index = FilterIndex()
    index.insert("a.*", 1)
    assert list(index.filters()) == [("a.*", "amqp", 1)]
    assert index.match("a.b") == index.match("a.b", syntax="amqp") == (1,)


def test_ids_come_distinct_and_ascending_whatever_the_order_of_inserts() -> None:
    index = FilterIndex()
    for id in (5, 2**32 - 1, 0, 9, 3):
        for text in ("a.*", "*.b", "a.b", "#", "#.b.#"):
            index.insert(text, id)
        for text in ("a/+", "+/b", "a/b", "#"):
            index.insert(text, id, syntax="mqtt")
    assert index.match("a.b") == (0, 3, 5, 9, 2**32 - 1)


def test_many_ids_under_many_filters_are_merged() -> None:
    """More than are sorted by insertion, in runs that overlap."""
    index = FilterIndex()
    expected = set[int]()
    texts = ["a.b", "a.*", "*.b", "a.#", "#.b", "#", "*.*"]
    for number, text in enumerate(texts):
        ids = range(number * 7, 4000, number + 2)
        expected |= set(ids)
        for id in reversed(ids):
            index.insert(text, id)
    assert index.match("a.b") == tuple(sorted(expected))
    for number, text in enumerate(texts[:-1]):
        for id in range(number * 7, 4000, number + 2):
            assert index.remove(text, id)
    assert index.match("a.b") == tuple(range(6 * 7, 4000, 8))


def test_text_comes_back_in_the_type_it_was_first_given() -> None:
    index = FilterIndex()
    index.insert("s.*", 1)
    index.insert(b"b.*", 1)
    index.insert(b"s.*", 2)
    index.insert("é", 3)
    index.insert(b"\xff.\0", 4)
    held = {(1, "s.*"), (1, b"b.*"), (2, "s.*"), (3, "é"), (4, b"\xff.\0")}
    assert {(id, text) for text, _, id in index.filters()} == held
    assert index.match("é") == index.match("é".encode()) == (3,)
    assert index.match(b"\xff.\0") == (4,)


def test_str_and_bytes_of_one_text_are_one_filter() -> None:
    index = FilterIndex()
    assert index.insert("a.*", 1)
    assert not index.insert(b"a.*", 1)
    assert index.remove(b"a.*", 1)
    assert len(index) == 0


def test_identity_is_text_syntax_and_id() -> None:
    index = FilterIndex()
    assert index.insert("#", 1, syntax="amqp")
    assert index.insert("#", 1, syntax="mqtt")
    assert index.insert("#", 2, syntax="mqtt")
    assert not index.remove("#", 2, syntax="amqp")
    assert len(index) == 3
    assert index.match("a") == (1, 2)
    assert index.remove("#", 1, syntax="amqp")
    assert index.match("a") == (1, 2)


@pytest.mark.parametrize("id", [-1, 2**32, 2**63, -(2**63) - 1, 2**64, 1 << 20_000], ids=int.bit_length)
def test_an_id_outside_32_bits_is_a_value_error(id: int) -> None:
    index = FilterIndex()
    with pytest.raises(ValueError, match="an id must be within"):
        index.insert("a.*", id)
    with pytest.raises(ValueError, match="an id must be within"):
        index.remove("a.*", id)
    with pytest.raises(ValueError, match="an id must be within"):
        matchcore.NameIndex().insert("a", id)
    assert len(index) == 0


def test_the_wrong_types_are_type_errors() -> None:
    index: Any = FilterIndex()
    for bad in (None, 1, 1.0, bytearray(b"a"), memoryview(b"a"), ["a"]):
        for call in (
            lambda bad=bad: index.insert(bad, 1),
            lambda bad=bad: index.remove(bad, 1),
            lambda bad=bad: index.match(bad),
            lambda bad=bad: index.match_any(bad),
            lambda bad=bad: index.match_many([bad]),
            lambda bad=bad: explain(index, bad),
        ):
            with pytest.raises(TypeError, match="must be str or bytes"):
                call()
    id: Any
    for id in (None, "1", 1.0, b"1"):
        with pytest.raises(TypeError, match="an id must be an int"):
            index.insert("a", id)
    for bad in (None, b"amqp", 1):
        with pytest.raises(TypeError, match="syntax must be"):
            index.insert("a", 1, syntax=bad)
    for bad in ("AMQP", "native", "", "amqp\0", "mqttx"):
        with pytest.raises(ValueError, match="syntax must be"):
            index.match("a", syntax=bad)
    with pytest.raises(TypeError):
        index.insert("a", 1, "amqp")  # the syntax is a keyword
    for bad in ("a.b", b"a.b"):
        with pytest.raises(TypeError, match="several topics"):
            index.match_many(bad)
    assert len(index) == 0


def test_an_int_of_numpy_will_do_as_id() -> None:
    index = FilterIndex()
    index.insert("a", numpy.uint32(5))  # type: ignore[arg-type]
    assert index.match("a") == (5,)


class Liar(str):
    """Equal to nothing and to everything, and of no use as a key."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared in Python")

    def __hash__(self) -> int:
        raise AssertionError("hashed in Python")

    def __len__(self) -> int:
        return 3

    def encode(self, *_: object, **__: object) -> bytes:
        raise AssertionError("encoded in Python")


class LyingId(int):
    def __int__(self) -> int:
        raise AssertionError("converted in Python")

    __index__ = __int__

    def __lt__(self, other: object) -> bool:
        raise AssertionError("compared in Python")

    __gt__ = __le__ = __ge__ = __lt__


def test_subclasses_that_lie_are_read_as_what_they_hold() -> None:
    index = FilterIndex()
    syntax = Liar("mqtt")
    assert index.insert(Liar("a/+"), LyingId(3), syntax=syntax)
    assert index.match(Liar("a/b"), syntax=syntax) == (3,)
    (held,) = index.filters()
    assert held == ("a/+", "mqtt", 3)
    assert type(held[0]) is str
    with pytest.raises(InvalidFilter):
        index.insert(Liar("a/b+"), 1, syntax=syntax)
    assert index.remove(Liar("a/+"), LyingId(3), syntax=syntax)


def test_match_many_gives_rows_of_ids() -> None:
    index = FilterIndex()
    index.insert("a/+", 1, syntax="mqtt")
    index.insert("+/b", 2, syntax="mqtt")
    index.insert("#", 3**20, syntax="mqtt")
    topics: list[str | bytes] = ["a/b", "$x", b"a/c", "z"]
    for given in (topics, tuple(topics), iter(topics)):
        offsets, ids = index.match_many(given, syntax="mqtt")
        assert (offsets.dtype, ids.dtype) == (numpy.int64, numpy.uint32)
        assert offsets.tolist() == [0, 3, 3, 5, 6]
        assert ids.tolist() == [1, 2, 3**20, 1, 3**20, 3**20]
    for i, topic in enumerate(topics):
        assert tuple(ids[offsets[i] : offsets[i + 1]].tolist()) == index.match(topic, syntax="mqtt")


def test_match_many_of_nothing_and_of_no_match() -> None:
    offsets, ids = FilterIndex().match_many([])
    assert (offsets.tolist(), ids.tolist(), ids.dtype) == ([0], [], numpy.uint32)
    offsets, ids = FilterIndex().match_many(["a", "b"])
    assert (offsets.tolist(), ids.tolist()) == ([0, 0, 0], [])


def test_match_many_names_the_row_of_an_invalid_topic() -> None:
    index = FilterIndex()
    with pytest.raises(InvalidTopic, match=r"row 2: .*byte 1 ") as caught:
        index.match_many(["a", "b", "c+", ""], syntax="mqtt")
    assert (caught.value.row, caught.value.position, caught.value.text) == (2, 1, b"c+")


def test_match_many_may_be_fed_by_one_who_changes_the_index() -> None:
    index = FilterIndex()

    def topics() -> Iterator[str]:
        for i in range(100):
            index.insert(f"a.*.{i}", i)
            yield f"a.b.{i}"
        for i in range(100):
            index.remove(f"a.*.{i}", i)
        index.insert("#", 7)

    offsets, ids = index.match_many(topics())
    assert offsets.tolist() == list(range(101))
    assert ids.tolist() == [7] * 100


@pytest.mark.parametrize("change", ["insert", "insert id", "remove", "remove id", "remove all"])
def test_changing_the_index_while_its_filters_are_iterated_over_is_a_runtime_error(change: str) -> None:
    index = FilterIndex()
    for id in (1, 2):
        index.insert("a.*", id)
        index.insert("b", id)
    iterator = index.filters()
    next(iterator)
    if change == "insert":
        index.insert("c.#", 1)
    elif change == "insert id":
        index.insert("a.*", 3)
    elif change == "remove":
        index.remove("b", 1)
        index.remove("b", 2)
    elif change == "remove id":
        index.remove("a.*", 1)
    else:
        for text in ("a.*", "b"):
            for id in (1, 2):
                index.remove(text, id)
    with pytest.raises(RuntimeError, match="changed"):
        next(iterator)


def test_what_changes_nothing_does_not_disturb_an_iteration() -> None:
    index = FilterIndex()
    index.insert("a", 1)
    index.insert("b", 1)
    iterator = index.filters()
    next(iterator)
    index.insert("a", 1)
    index.remove("c", 1)
    index.match("a")
    assert len(list(iterator)) == 1


def test_an_iterator_outlives_its_index_and_an_index_its_iterator() -> None:
    index = FilterIndex()
    index.insert("a", 1)
    iterator = index.filters()
    del index
    gc.collect()
    assert list(iterator) == [("a", "amqp", 1)]


def test_an_index_can_be_referred_to_weakly_and_neither_copied_nor_pickled() -> None:
    import copy
    import pickle
    import weakref

    index = FilterIndex()
    assert weakref.ref(index)() is index
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(index)


@pytest.mark.parametrize("dtype", [numpy.int32, numpy.int64])
def test_match_many_reads_topics_end_to_end_with_offsets(dtype: Any) -> None:
    index = FilterIndex()
    index.insert("a.*", 1)
    index.insert("#", 2)
    data = b"xxa.bca.zyy"
    offsets = numpy.array([2, 5, 6, 6, 9], dtype=dtype)
    for given in (data, bytearray(data), memoryview(data), numpy.frombuffer(data, dtype=numpy.uint8)):
        ends, ids = index.match_many(given, offsets=offsets)
        assert ends.tolist() == [0, 2, 3, 4, 6]
        assert ids.tolist() == [1, 2, 2, 2, 1, 2]
    strided = numpy.repeat(offsets, 2)[::2]
    assert index.match_many(data, offsets=strided)[0].tolist() == [0, 2, 3, 4, 6]


def test_match_many_reads_what_arrow_has() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    index = FilterIndex()
    index.insert("a/+", 1, syntax="mqtt")
    column = pyarrow.array(["a/b", "b", "a/é"])
    _, offsets, data = column.buffers()
    ends, ids = index.match_many(data, offsets=numpy.frombuffer(offsets, dtype=numpy.int32)[:4], syntax="mqtt")
    assert (ends.tolist(), ids.tolist()) == ([0, 1, 1, 2], [1, 1])


def test_match_many_refuses_offsets_that_lead_out_of_the_topics() -> None:
    index = FilterIndex()
    for offsets in ([0, 4], [2, 1], [-1, 2], []):
        with pytest.raises(ValueError, match="offsets"):
            index.match_many(b"abc", offsets=numpy.array(offsets, dtype=numpy.int64))
    wrong: Any
    for wrong in (numpy.array([0.0, 1.0]), numpy.zeros((2, 2), dtype=numpy.int64), [0, "a"]):
        with pytest.raises(TypeError, match="offsets"):
            index.match_many(b"abc", offsets=wrong)
    with pytest.raises(InvalidTopic, match="row 1"):
        index.match_many(b"aa+", offsets=numpy.array([0, 1, 3]), syntax="mqtt")
