"""Deliveries of a channel that are dealt with together, in pieces that fit into a turn: there may be 100,000."""

from collections.abc import Iterator
from typing import Final

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.prefetch import Delivery

GIVEN_AT_ONCE: Final = 256  # deliveries given back between two looks at the time: some 0.3 ms


def newest_first(tags: ChannelTags, tag: int) -> Iterator[list[Delivery]]:
    """Those up to a tag, 0: all until now; each piece is taken when it is asked for."""
    tag = tag or tags.last
    while True:
        piece, tag = tags.take_newest(tag, GIVEN_AT_ONCE)
        if not piece:
            return
        yield piece
