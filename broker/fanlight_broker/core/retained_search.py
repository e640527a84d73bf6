"""Retained messages for an operator: found by a filter, and cleared by one, in steps of a part of the index each.

A step ends with a `yield`; between two the broker goes on. Ids are looked at in ascending order, so what is there from
the beginning to the end is found once.
"""

from collections.abc import Generator, Iterator

from fanlight_broker.core.retained import Retained, shown_to
from fanlight_broker.wire.retained import TOPICS_IN_PART, RetainedEntry

EVERYTHING = b"#"
CLEARED_PER_LOOK = 8  # some 10 µs each


def found(
    retained: Retained, filter: bytes | None, syntax: str, now: float, after: int = -1
) -> Iterator[RetainedEntry | None]:
    """The entries whose topics a filter matches, by ascending id, from behind one on; None: a look at the clock is due.

    filter  None: all, the broker's own below $SYS included. Raises InvalidFilter
    """
    for part in range(max(0, (after + 1) // TOPICS_IN_PART), retained.parts):
        if filter is not None and not retained.may_match(filter, syntax, part):
            yield None
            continue
        for id in retained.ids(EVERYTHING if filter is None else filter, syntax, part):
            entry = retained.entry(id) if id > after else None
            if entry is None or entry.message.expired(now):
                yield None
            elif filter is None or shown_to(filter, syntax, entry.message, now):
                yield entry
            else:
                yield None


def clear(retained: Retained, filter: bytes, syntax: str, now: float) -> Generator[None, None, int]:
    """Clear what a filter matches, but for the broker's own. Returns how many. Raises InvalidFilter."""
    cleared = 0
    for number, entry in enumerate(found(retained, filter, syntax, now)):
        if entry is not None and not entry.own:
            cleared += retained.clear(entry)
        if number % CLEARED_PER_LOOK == 0:
            yield
    return cleared
