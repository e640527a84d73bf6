"""How far producers have got (docs/native-protocol.md, 3.8): pure."""

from hypothesis import given
from hypothesis import strategies as st

from broker.core.limits import Limits
from broker.core.marks import Mark, Marks

MARK = st.builds(Mark, st.sampled_from(["", "anna"]), st.sampled_from("pq"), st.integers(0, 2), st.integers(0, 3))


@given(st.lists(MARK, max_size=30))
def test_a_message_is_taken_if_its_mark_is_above_all_that_were(published: list[Mark]) -> None:
    marks, taken = Marks(Limits()), list[Mark]()
    for mark in published:
        known = any(mark[:2] == each[:2] and mark[2:] <= each[2:] for each in taken)
        assert marks.repeats(mark) == known
        if not known:
            marks.advance(mark)
            taken.append(mark)
    assert marks.repeated == len(published) - len(taken)


def test_a_batch_counts_for_more_than_a_sequence() -> None:
    marks = Marks(Limits())
    marks.advance(Mark("", "p", 1, 900))
    assert not marks.repeats(Mark("", "p", 2, 0))
    assert marks.repeats(Mark("", "p", 0, 2**64 - 1))


def test_the_producer_that_moved_up_longest_ago_is_forgotten_and_counted() -> None:
    marks = Marks(Limits(marks_max=2))
    for mark in (Mark("", "a", 0, 0), Mark("", "b", 0, 0), Mark("", "a", 0, 1), Mark("", "c", 0, 0)):
        marks.advance(mark)
    assert [mark.producer for mark in marks] == ["a", "c"]
    assert (len(marks), marks.forgotten) == (2, 1)
    assert not marks.repeats(Mark("", "b", 0, 0))


def test_what_was_kept_is_restored_and_never_below_what_is_known() -> None:
    marks = Marks(Limits())
    marks.advance(Mark("", "a", 5, 5))
    marks.restore([Mark("", "a", 5, 4), Mark("", "b", 0, 7)])
    assert list(marks) == [Mark("", "a", 5, 5), Mark("", "b", 0, 7)]
