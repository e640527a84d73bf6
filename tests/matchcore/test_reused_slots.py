"""A slot that is used again never sees the rows of the filter before it.

The published implementation of the inverted bitmap has that bug: subscribe `a`, unsubscribe it,
subscribe `a.b.c`; a message on `a` then reaches the subscriber of `a.b.c`.
"""

import itertools

import pytest

import matchcore
from matchcore import reference


def test_published_bug_a_reused_slot_sees_the_rows_of_the_filter_before_it() -> None:
    index = matchcore.FilterIndex()
    index.insert("a", 1)
    index.remove("a", 1)
    index.insert("a.b.c", 1)
    assert index.match("a") == ()
    assert index.match("a.b.c") == (1,)


SHAPES = ["a", "a.b.c", "a.*", "*.a", "a.#", "#.a", "#.a.#", "a.#.b", "*", "#", "*.*.c", "#.b.#.c", "a.*.c", "$x.*"]


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(SHAPES, 2)))
def test_published_bug_with_wildcards(before: str, after: str) -> None:
    index = matchcore.FilterIndex()
    index.insert("keep.*", 0)  # so that the index is never empty and starts anew
    index.insert(before, 1)
    index.remove(before, 1)
    index.insert(after, 1)
    for topic in ("", "a", "b", "a.a", "a.b", "b.a", "a.b.c", "x.b.x.c", "x.a.x", "$x.a"):
        assert index.match(topic) == ((1,) if reference.matches(after, "amqp", topic, "amqp") else ()), topic


@pytest.mark.parametrize("before", ["+", "#", "+/b"])
def test_published_bug_with_the_dollar_row(before: str) -> None:
    """A column that refused `$` does not hand that on to the next one."""
    index = matchcore.FilterIndex()
    index.insert("keep.*", 0)
    index.insert(before, 1, syntax="mqtt")
    index.remove(before, 1, syntax="mqtt")
    index.insert("#", 1, syntax="amqp")
    assert index.match("$SYS.b") == (1,)


def test_published_bug_across_a_block_of_columns() -> None:
    """Many slots freed and used again, in another order, for filters of other shapes."""
    index = matchcore.FilterIndex()
    for i in range(2000):
        index.insert(f"a.{i}.*", i)
    for i in range(0, 2000, 2):
        index.remove(f"a.{i}.*", i)
    for i in range(0, 2000, 2):
        index.insert(f"#.{i + 1}.b", i)
    for i in range(1, 2000, 2):
        assert index.match(f"a.{i}.c") == (i,)
        assert index.match(f"a.{i}.b") == (i - 1, i)
        assert index.match(f"a.{i - 1}.b") == ()


def test_a_word_id_that_is_given_again_does_not_bring_its_old_rows() -> None:
    index = matchcore.FilterIndex()
    index.insert("keep.*", 0)
    for round in range(50):
        index.insert(f"word{round}.*", 1)
        assert index.match(f"word{round}.x") == (1,)
        if round:
            assert index.match(f"word{round - 1}.x") == ()
        index.remove(f"word{round}.*", 1)


def test_a_removed_filter_takes_only_its_own_id_with_it() -> None:
    index = matchcore.FilterIndex()
    index.insert("a.*", 1)
    index.insert("a.*", 2)
    index.insert("*.b", 2)
    index.remove("a.*", 2)
    assert index.match("a.b") == (1, 2)
    index.remove("*.b", 2)
    assert index.match("a.b") == (1,)
