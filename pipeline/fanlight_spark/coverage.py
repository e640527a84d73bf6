"""Which subscriptions others make redundant: their filter matches nothing that another's does not.

matchcore decides (`covers`, `subsumed`). What the broker adds is here: no wildcard sees the topics below $SYS,
$inbox and $stream, so filters that begin with these words are compared among themselves only; and a member of a queue
group is no substitute for a subscription of its own, nor the other way, so of one client only those without a group are
compared; and a subscription without echo does not cover one that gets its own client's messages.

Usually 5 µs a filter: some seconds for 100,000 subscriptions. docs/matchcore.md has what it can come to.
"""

from collections import defaultdict
from collections.abc import Iterable

import matchcore
from fanlight_spark.snapshot import Snapshot
from fanlight_spark.topics import RESERVED, SEPARATORS, WORDS_MAX

Spelled = tuple[bytes, str]  # filter, syntax


def covered(filters: Iterable[Spelled]) -> dict[Spelled, Spelled]:
    """Each filter that another one covers, with one that does and is itself not covered. Raises InvalidFilter.

    Of filters that match the same topics one is left out.
    """
    indexes: dict[bytes, matchcore.FilterIndex] = {}
    for text, syntax in dict.fromkeys(filters):
        first = text.split(SEPARATORS[syntax].encode(), 1)[0]
        kind = first if first in _RESERVED else b""
        if kind not in indexes:
            indexes[kind] = matchcore.FilterIndex(max_words=WORDS_MAX)
        indexes[kind].insert(text, 0, syntax=syntax)
    return {
        (_bytes(each.filter), each.syntax): (_bytes(each.by), each.by_syntax)
        for index in indexes.values() if len(index) > 1
        for each in matchcore.subsumed(index)
    }  # fmt: skip


def coverage(snapshot: Snapshot) -> tuple[list[Spelled | None], list[Spelled | None]]:
    """For each subscription a filter that covers its own: one of the same client's, and anybody's; or None.

    One with a selector covers no other, and is not looked at.
    """
    spelled = [(text, syntax) for text, _, syntax, _ in snapshot.filters()]
    whole = [at for at, each in enumerate(snapshot.subscriptions) if each.where is None]
    by_anybody = covered(spelled[at] for at in whole)
    clients: dict[str, list[int]] = defaultdict(list)
    for at in whole:
        each = snapshot.subscriptions[at]
        if each.group is None and each.client:
            clients[each.client].append(at)
    own: list[Spelled | None] = [None] * len(spelled)
    for places in clients.values():
        if len(places) == 1:
            continue
        by_own = covered(spelled[at] for at in places)
        echoing = [at for at in places if not snapshot.subscriptions[at].no_echo]
        by_echoing = by_own if len(echoing) == len(places) else covered(spelled[at] for at in echoing)
        for at in places:
            own[at] = (by_own if snapshot.subscriptions[at].no_echo else by_echoing).get(spelled[at])
    anybody: list[Spelled | None] = [None] * len(spelled)
    for at in whole:
        anybody[at] = by_anybody.get(spelled[at])
    return own, anybody


_RESERVED = frozenset(name.encode() for name in RESERVED)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
