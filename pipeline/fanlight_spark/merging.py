"""What subscriptions could be instead: proposals that another set of filters gets the same, or a little more, for less.

    without_redundant(snapshot)     the subscriptions that another one of their own client makes unnecessary
    merges(snapshot, least)         filters of one client that differ in one word: one filter with a wildcard there
    keyed(snapshot)                 selectors that ask one field for one value each: it could be a word of the topic

Nothing is estimated here: the job `subscriptions` asks the archive what each proposal would have delivered.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fanlight_spark.coverage import coverage
from fanlight_spark.snapshot import Snapshot, Subscription
from fanlight_spark.topics import RESERVED, SEPARATORS
from matchcore.selector import And, Compare, In, Selector
from matchcore.where import parse_where

ANY_WORD: Final = {"amqp": "*", "mqtt": "+"}
LEAST: Final = 4  # filters that one with a wildcard takes the place of


@dataclass(frozen=True, slots=True)
class Merge:
    """One filter for several: their places in the snapshot, and the subscription that takes theirs."""

    places: tuple[int, ...]
    made: Subscription


@dataclass(frozen=True, slots=True)
class Keyed:
    """Subscriptions with one filter, each with a selector that asks the same field for a value."""

    filter: str
    syntax: str
    field: str
    places: tuple[int, ...]
    values: int  # different ones


def without_redundant(snapshot: Snapshot) -> list[int]:
    """The places of subscriptions that may go: another one of the same client, not in this list, covers each."""
    own, _ = coverage(snapshot)
    first: dict[tuple[Any, ...], int] = {}
    found = []
    for place, (each, by) in enumerate(zip(snapshot.subscriptions, own, strict=True)):
        same = (each.client, each.filter, each.syntax, each.group, each.no_echo, each.where)
        twice = bool(each.client) and first.setdefault(same, place) != place
        if by is not None or twice:
            found.append(place)
    return found


def merges(snapshot: Snapshot, least: int = LEAST, leave: Sequence[int] = ()) -> list[Merge]:
    """Disjoint proposals, the largest first. leave: places that are not looked at.

    Of one client, user, QoS and kind; filters in a group or with a selector are left as they are, as are reserved
    topics, and `#`, of which nobody could say how much more it lets through.
    """
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    left = set(leave)
    for place, each in enumerate(snapshot.subscriptions):
        if place in left or each.group is not None or each.where is not None or not each.client:
            continue
        words = each.filter.split(SEPARATORS[each.syntax])
        if words[0] in RESERVED:
            continue
        who = (each.client, each.user, each.syntax, each.qos, each.no_echo, each.session)
        for at, word in enumerate(words):
            if word not in ("#", ANY_WORD[each.syntax]):
                groups[who, at, *words[:at], None, *words[at + 1 :]].append(place)
    found: list[Merge] = []
    taken: set[int] = set()
    # By size, then by the key, so that the same file gives the same proposals.
    candidates = [(key, places) for key, places in groups.items() if len(places) >= least]
    for key, of_key in sorted(candidates, key=lambda item: (-len(item[1]), str(item[0]))):
        places = [place for place in of_key if place not in taken]
        if len(places) < least:
            continue
        taken.update(places)
        first = snapshot.subscriptions[places[0]]
        words = [ANY_WORD[first.syntax] if word is None else word for word in key[2:]]
        found.append(Merge(tuple(places), replace(first, filter=SEPARATORS[first.syntax].join(words))))
    return sorted(found, key=lambda each: (-len(each.places), each.made.client, each.made.filter))


def keyed(snapshot: Snapshot, least: int = LEAST) -> list[Keyed]:
    """Selectors that could be topics, the most first."""
    groups: dict[tuple[str, str, str], tuple[list[int], set[Any]]] = {}
    for place, each in enumerate(snapshot.subscriptions):
        if each.where is None:
            continue
        for field, values in _asked(parse_where(each.where)):
            places, known = groups.setdefault((each.shown, each.syntax, field), ([], set()))
            places.append(place)
            known.update(values)
    found = [
        Keyed(filter, syntax, field, tuple(places), len(values))
        for (filter, syntax, field), (places, values) in groups.items()
        if len(places) >= least
    ]
    return sorted(found, key=lambda each: (-len(each.places), each.filter, each.field))


def with_merges(snapshot: Snapshot, redundant: Sequence[int], proposed: Sequence[Merge]) -> Snapshot:
    """The subscriptions that there would be."""
    gone = {*redundant, *(place for each in proposed for place in each.places)}
    kept = [each for place, each in enumerate(snapshot.subscriptions) if place not in gone]
    return replace(snapshot, subscriptions=(*kept, *(each.made for each in proposed)))


def _asked(selector: Selector) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The fields that must have one of a few values for a selector to be true."""
    if isinstance(selector, And):
        for part in selector.parts:
            yield from _asked(part)
    elif isinstance(selector, Compare) and selector.operator == "=":
        yield str(selector.attribute), (selector.value,)
    elif isinstance(selector, In):
        yield str(selector.attribute), tuple(selector.values)
