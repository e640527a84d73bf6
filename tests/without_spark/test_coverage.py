"""Filters that others make redundant, compared with what an enumeration of topics says."""

import re
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_archive.arrow import pa
from fanlight_spark.coverage import Spelled, coverage, covered
from fanlight_spark.snapshot import Snapshot, Subscription
from fanlight_spark.topics import index_of, match_column

WORDS = ("a", "b", "$SYS", "$x")


def topics() -> list[str]:
    return [".".join(words) for length in (1, 2, 3, 4) for words in product(WORDS, repeat=length)]


TOPICS = topics()


def matched(text: str, syntax: str) -> frozenset[str]:
    """By the rules of a broker, of topics in the spelling of the filter."""
    separator = "." if syntax == "amqp" else "/"
    offsets, _ = match_column(
        index_of([(text, 0, syntax)]), pa.array([each.replace(".", separator) for each in TOPICS]), syntax
    )
    return frozenset(each for each, low, high in zip(TOPICS, offsets, offsets[1:], strict=False) if high > low)


amqp = st.lists(st.sampled_from(["a", "b", "$SYS", "*", "#"]), min_size=1, max_size=3).map(".".join)
mqtt = st.builds(
    lambda words, end: "/".join([*words, *end]),
    st.lists(st.sampled_from(["a", "b", "$SYS", "+"]), min_size=1, max_size=3),
    st.sampled_from([[], ["#"]]),
)
filters = st.lists(amqp.map(lambda text: (text, "amqp")) | mqtt.map(lambda text: (text, "mqtt")), max_size=6)


@settings(deadline=None)
@given(filters)
def test_what_is_covered_matches_no_topic_that_its_cover_does_not(given: list[tuple[str, str]]) -> None:
    found = covered((text.encode(), syntax) for text, syntax in given)
    reach = {(text.encode(), syntax): matched(text, syntax) for text, syntax in given}
    for each, by in found.items():
        assert reach[each] <= reach[by], (each, by)
        assert by not in found


# Topics below $SYS are seen by no wildcard at their beginning, so the # of `#.$SYS` never stands for no word. Filters
# are compared word by word, without that knowledge: a cover that is missed is a redundancy that is not reported.
compared = amqp.filter(lambda text: re.match(r"(#\.)+\$SYS", text) is None)


@settings(deadline=None)
@given(st.lists(compared, max_size=6, unique=True))
def test_what_is_not_covered_matches_a_topic_that_each_other_does_not(given: list[str]) -> None:
    """With four words of topics for three of filters, which is enough to tell any two apart."""
    found = covered((text.encode(), "amqp") for text in given)
    reach = {text: matched(text, "amqp") for text in given}
    left = [text for text in given if (text.encode(), "amqp") not in found]
    for one, other in product(left, left):
        assert one == other or not reach[one] < reach[other], (one, other)


def test_reserved_topics_are_seen_by_no_wildcard_so_none_covers_their_filters() -> None:
    spelled: list[Spelled] = [(b"#", "amqp"), (b"$SYS.a", "amqp"), (b"$SYS.#", "amqp"), (b"a.b", "amqp")]
    assert covered(spelled) == {
        (b"$SYS.a", "amqp"): (b"$SYS.#", "amqp"), (b"a.b", "amqp"): (b"#", "amqp"),
    }  # fmt: skip


def test_only_filters_of_the_same_client_and_without_a_group_stand_in_for_each_other() -> None:
    snapshot = Snapshot(
        (
            Subscription("stock.#", client="a"),
            Subscription("stock.*.AAPL", client="a"),
            Subscription("stock.*.AAPL", client="a", group="g"),
            Subscription("stock.*.AAPL", client="b"),
            Subscription("stock/#", "mqtt", client="b"),
            Subscription("gate.1"),
            Subscription("gate.*"),  # nobody knows whether by the same client
        )
    )
    own, anybody = coverage(snapshot)
    assert own == [None, (b"stock.#", "amqp"), None, (b"stock/#", "mqtt"), None, None, None]
    # Of the two that match the same, one stays.
    (kept,) = {by for by in anybody if by is not None and by[0].startswith(b"stock")}
    assert kept in {(b"stock.#", "amqp"), (b"stock/#", "mqtt")}
    assert anybody[1] == anybody[2] == anybody[3] == kept
    assert anybody[5:] == [(b"gate.*", "amqp"), None]


def test_one_with_no_echo_stands_in_for_such_only() -> None:
    wide = Subscription("stock.#", client="a", no_echo=True)
    narrow = [Subscription("stock.x", client="a", no_echo=no_echo) for no_echo in (True, False)]
    assert coverage(Snapshot((wide, *narrow)))[0] == [None, (b"stock.#", "amqp"), None]
