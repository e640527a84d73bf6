"""Delivery tags of a channel against a dict in order: what is kept, and what acknowledgements take."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DeliverWriter
from fanlight_broker.protocols.amqp.fields import SYNTAX, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT, AmqpDeliveryFormat
from fanlight_broker.protocols.amqp.options import GETTERS
from fanlight_broker.protocols.amqp.prefetch import Delivery
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue

NUMBERS = (1, 2, GETTERS + 1)  # the first and the last are counted at the same place


def counts_of(deliveries: Iterable[Delivery]) -> dict[int, tuple[int, int]]:
    """What `counts_up_to` is to find."""
    found: dict[int, tuple[int, int]] = {}
    for number, tag in deliveries:
        last, count = found.get(number, (0, 0))
        found[number] = max(last, tag), count + 1
    return found


class Deliveries:
    """One queue, a consumer for each number, and what is in flight to them by tag of the channel."""

    def __init__(self) -> None:
        self.tags, self.oracle = ChannelTags(), dict[int, Delivery]()
        ledger = Ledger(1 << 30, lambda: None)
        self.queue = NamedQueue("q", Queue(ledger, 10_000, 1 << 30))
        self.message = Message(FORMAT, b"t", SYNTAX, b"body", fields=pack_fields("", "q", b"\0\0"))
        outbox = Outbox(ledger, 1 << 30, "pause")
        self.windows = {}
        for number in NUMBERS:
            variant = Variant(AmqpDeliveryFormat(self.tags, DeliverWriter(1, "c", 131_072)))
            self.windows[number] = self.queue.add(outbox, variant, number, 10_000, 1e9, None, None)

    def deliver(self, number: int) -> None:
        window = self.windows[number]
        self.queue.fill(self.message, 0.0)
        self.queue.begin(window, 0.0)
        self.queue.pause(window)
        self.oracle[self.tags.last] = (number, window.flights()[-1].tag)

    def agree(self) -> None:
        assert len(self.tags) == len(self.oracle)
        assert self.tags.up_to(0) == list(self.oracle)
        assert self.tags.oldest == next(iter(self.oracle), None)
        assert self.tags.of_consumers == sum(number < GETTERS for number, _ in self.oracle.values())
        assert [tag for tag in range(self.tags.last + 2) if tag in self.tags] == list(self.oracle)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([
            *["deliver"] * 4, "take", "take apart", "take newest", "take counted", "take all but", "put back", "clear",
        ]),
        st.integers(0, 40),
    ),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_deliveries_are_those_of_a_dict(steps: list[tuple[str, int]]) -> None:
    world = Deliveries()
    tags, oracle = world.tags, world.oracle
    for what, count in steps:
        wanted = [tag for tag in oracle if tag <= count]
        if what == "deliver":
            for at in range(count % 8):
                world.deliver(NUMBERS[(count + at * at) % len(NUMBERS)])
        elif what == "take" and oracle:
            tag = list(oracle)[count % len(oracle)]
            assert tags.take(tag) == oracle.pop(tag)
        elif what == "take apart":
            apart = tags.take_apart(count, multiple=True)
            wanted = wanted if count else list(oracle)
            assert apart.up_to(0) == wanted
            assert apart.counts_up_to(0) == counts_of(oracle[tag] for tag in wanted)
            assert apart.take_newest(apart.last, 50)[0] == [oracle.pop(tag) for tag in wanted[::-1]]
        elif what == "take newest":
            newest = wanted[::-1][: count % 5 + 1]
            assert tags.counts_up_to(count) == counts_of(oracle[tag] for tag in (wanted if count else oracle))
            taken, last = tags.take_newest(count, count % 5 + 1)
            assert (taken, last) == ([oracle.pop(tag) for tag in newest], newest[-1] if newest else count)
        elif what == "take counted" and wanted and count:
            assert tags.counts_up_to(count, take=True) == counts_of([oracle.pop(tag) for tag in wanted])
        elif what == "take all but":
            number = NUMBERS[count % len(NUMBERS)]
            lost = [tag for tag, (of, _) in oracle.items() if of != number]
            assert tags.take_all_but({number: None}) == counts_of([oracle.pop(tag) for tag in lost])
        elif what == "put back" and oracle:
            parts = [tags.take_apart(tag, multiple=False) for tag in list(oracle)[:: (-1, 1, 2)[count % 3]]]
            parts.append(tags.take_apart(count, multiple=True))
            assert len(tags) + sum(map(len, parts)) == len(oracle)
            tags.put_back(parts)
            for at, tag in enumerate(list(oracle), 1):
                assert tags.counts_up_to(tag) == counts_of(list(oracle.values())[:at])
        elif what == "clear" and count < 2:
            tags.clear()
            oracle.clear()
        world.agree()
