"""Many filters at once, without the GIL: the index is what it is after one insertion after the other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore.bulk import insert_many
from matchcore.errors import InvalidFilter
from matchcore.filters import FilterIndex

words = st.sampled_from([b"a", b"bb", b"", b"*", b"#", b"$x", b"c" * 20])
filters = st.lists(words, min_size=1, max_size=5).map(b".".join).filter(lambda filter: filter != b"")


@settings(max_examples=100)
@given(st.lists(st.tuples(filters, st.integers(0, 5)), max_size=60), st.integers(1, 10))
def test_it_is_as_if_they_were_inserted_one_by_one(given: list[tuple[bytes, int]], together: int) -> None:
    one, many = FilterIndex(), FilterIndex()
    for filter, id in given:
        one.insert(filter, id)
    for at in range(0, len(given), together):
        part = given[at : at + together]
        insert_many(many, [filter for filter, _ in part], [id for _, id in part], "amqp")
    assert sorted(many.filters()) == sorted(one.filters())
    assert (len(many), many.version, many.nbytes) == (len(one), one.version, one.nbytes)
    for topic in (b"a", b"a.bb", b"a..a", b"$x.a"):
        assert many.match(topic) == one.match(topic)


def test_tables_grow_meanwhile() -> None:
    index = FilterIndex()
    insert_many(index, [b"a/%d/+/b" % number for number in range(20_000)], list(range(20_000)), "mqtt")
    assert len(index) == 20_000
    assert index.match(b"a/19999/x/b", syntax="mqtt") == (19_999,)


def test_those_before_a_wrong_one_are_inserted() -> None:
    index = FilterIndex(4)
    with pytest.raises(InvalidFilter, match="words"):
        insert_many(index, [b"a.b", b"a.b.c.d.e", b"c"], [1, 2, 3], "amqp")
    assert list(index.filters()) == [(b"a.b", "amqp", 1)]


def test_without_memory_it_is_as_it_was() -> None:
    index = FilterIndex()
    index.insert(b"a.*", 1)
    before = sorted(index.filters())
    index._fail_after(0)
    with pytest.raises(MemoryError):
        insert_many(index, [b"x.%d.*" % number for number in range(5_000)], list(range(5_000)), "amqp")
    index._fail_after(-1)
    assert set(before) <= set(index.filters())
    insert_many(index, [b"x.y"], [2], "amqp")
    assert index.match(b"x.y") == (2,)


def test_what_it_does_not_take() -> None:
    index = FilterIndex()
    with pytest.raises(ValueError, match="each filter has an id"):
        insert_many(index, [b"a"], [], "amqp")
    with pytest.raises(TypeError, match="filters are bytes"):
        insert_many(index, ["a"], [1], "amqp")  # type: ignore[list-item]
    with pytest.raises(ValueError, match="id"):
        insert_many(index, [b"a"], [-1], "amqp")
    index.insert("b", 1, where="x > 1")
    with pytest.raises(ValueError, match="selectors"):
        insert_many(index, [b"a"], [1], "amqp")
    assert len(index) == 1
