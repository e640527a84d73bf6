"""Deliveries of a channel that are dealt with together, in pieces that fit into a turn: there may be 100,000."""

from collections.abc import Iterable, Iterator
from typing import Final

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.prefetch import Delivery

GIVEN_AT_ONCE: Final = 256  # deliveries given back between two looks at the time: some 0.3 ms


def counts_of(deliveries: Iterable[Delivery]) -> dict[int, tuple[int, int]]:
    """As ChannelTags.counts_up_to."""
    found: dict[int, tuple[int, int]] = {}
    for number, tag in deliveries:
        last, count = found.get(number, (0, 0))
        found[number] = max(last, tag), count + 1
    return found


def in_pieces(deliveries: list[Delivery]) -> Iterator[list[Delivery]]:
    """The newest first."""
    for end in range(len(deliveries), 0, -GIVEN_AT_ONCE):
        yield deliveries[max(0, end - GIVEN_AT_ONCE) : end][::-1]


def newest_first(tags: ChannelTags, tag: int) -> Iterator[list[Delivery]]:
    """Those up to a tag, 0: all until now; each piece is taken when it is asked for."""
    tag = tag or tags.last
    while True:
        piece, tag = tags.take_newest(tag, GIVEN_AT_ONCE)
        if not piece:
            return
        yield piece
