"""Proposals for fewer subscriptions: each client gets, by them, all that it got before."""

from hypothesis import given, settings
from hypothesis import strategies as st

import matchcore
from fanlight_spark import merging
from fanlight_spark.snapshot import Snapshot, Subscription
from fanlight_spark.topics import SEPARATORS

WORDS = ["a", "b", "c", "d", "e", ""]
TOPICS = [f"{x}.{y}.{z}" for x in WORDS for y in WORDS for z in ("a", "b")] + ["a", "a.b", "$SYS.a.b"]


def matches(filter: str, syntax: str, topic: str) -> bool:
    index = matchcore.FilterIndex()
    index.insert(filter.encode(), 0, syntax=syntax)
    return bool(index.match(topic.replace(".", SEPARATORS[syntax]), syntax=syntax))


def of(client: str, *filters: str, syntax: str = "amqp", **more: object) -> list[Subscription]:
    return [Subscription(filter, syntax, client=client, **more) for filter in filters]  # type: ignore[arg-type]


def test_filters_that_differ_in_one_word_become_one() -> None:
    snapshot = Snapshot((*of("c", "a.1.t", "a.2.t", "a.3.t", "a.4.t", "b.1.t"), *of("d", "a.5.t", "a.6.t")))
    (merge,) = merging.merges(snapshot)
    assert (merge.places, merge.made.filter, merge.made.client) == ((0, 1, 2, 3), "a.*.t", "c")
    after = merging.with_merges(snapshot, [], [merge])
    assert [each.filter for each in after.subscriptions] == ["b.1.t", "a.5.t", "a.6.t", "a.*.t"]
    assert merging.merges(snapshot, least=5) == []


def test_in_mqtt_the_wildcard_is_its_own() -> None:
    (merge,) = merging.merges(Snapshot(tuple(of("c", *(f"s/{n}/t" for n in range(9)), syntax="mqtt"))))
    assert merge.made.filter == "s/+/t"


def test_what_is_different_in_kind_is_not_merged() -> None:
    many = [f"a.{n}" for n in range(4)]
    alike = Snapshot((
        *of("c", *many[:2]), *of("c", *many[2:], qos=1),  # QoS
        *of("g", *many, group="g"), *of("w", *many, where="x = 1"), *of("", *many),
        *of("s", *(f"$SYS.{n}" for n in range(4)), "$SYS.a.b"),
    ))  # fmt: skip
    assert merging.merges(alike) == []


def test_what_another_of_the_client_covers_is_redundant() -> None:
    snapshot = Snapshot((*of("c", "a.#", "a.b", "a.b", "x"), *of("d", "a.b"), *of("e", "y", "y")))
    assert merging.without_redundant(snapshot) == [1, 2, 6]


def test_selectors_with_one_value_are_found() -> None:
    regions = [Subscription("s.#", where=f"region = '{name}' AND price > 3") for name in ("eu", "us", "jp", "eu")]
    others = [Subscription("s.#", where="region <> 'eu'"), Subscription("s.#", where="NOT region = 'eu'")]
    (found,) = merging.keyed(Snapshot((*regions, *others)))
    assert (found.field, found.places, found.values) == ("region", (0, 1, 2, 3), 3)


FILTERS = st.lists(st.sampled_from([*WORDS, "*"]), min_size=1, max_size=3).map(".".join)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("xy"), FILTERS), max_size=30))
def test_no_client_loses_a_topic(subscribed: list[tuple[str, str]]) -> None:
    before = Snapshot(tuple(Subscription(filter, client=client) for client, filter in subscribed))
    redundant = merging.without_redundant(before)
    after = merging.with_merges(before, redundant, merging.merges(before, 2, leave=redundant))
    assert len(after.subscriptions) <= len(before.subscriptions)
    for client in "xy":
        own = [[each for each in snapshot.subscriptions if each.client == client] for snapshot in (before, after)]
        for topic in TOPICS:
            was, now = (any(matches(each.filter, "amqp", topic) for each in each_own) for each_own in own)
            assert now or not was
