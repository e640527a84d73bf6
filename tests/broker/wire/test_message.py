"""Messages, formats and variants: one encoding for each variant and message, whoever published it."""

import gc

import pytest

from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import (
    HOLDER_BYTES,
    NEVER,
    RETAIN_AS_PUBLISHED,
    RETAIN_SET,
    Format,
    Message,
    Variant,
    Variants,
)
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.publication import frame_of
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.target import Target
from tests.broker.wire.formats import LineFormat
from tests.broker.wire.publisher import Publisher, message


class Floor:
    def __init__(self) -> None:
        self.ledger = Ledger(1 << 30, lambda: None)
        self.variants = Variants()
        self.lines = LineFormat("lines")

    def outbox(self, limit: int = 1 << 20) -> Outbox:
        return Outbox(self.ledger, limit, "drop_newest")

    def target(self, variant: Variant, number: int = 1) -> Target:
        return Target(self.outbox(), variant, number)

    def publish(self, targets: list[Target], message: Message) -> int:
        return publish(Route(b"\0t", targets, []), self.ledger, None, message)


def test_a_message_is_encoded_once_for_all_who_want_the_same_bytes() -> None:
    floor = Floor()
    targets = [floor.target(floor.variants.of(floor.lines)) for _ in range(5)]
    assert floor.publish(targets, Message(floor.lines, b"t", 0, b"hello")) == 5
    assert floor.lines.encoded == 1
    assert {target.outbox.read() for target in targets} == {b"PUB qos=0 retain=0 dup=0 ids= t hello"}
    floor.publish(targets, Message(floor.lines, b"t", 0, b"again"))
    assert floor.lines.encoded == 2
    assert targets[4].outbox.read().endswith(b" t again")


def test_the_same_message_published_twice_is_encoded_twice() -> None:
    floor = Floor()
    target, hello = floor.target(floor.variants.of(floor.lines)), Message(floor.lines, b"t", 0, b"hello")
    floor.publish([target], hello)
    floor.publish([target], hello)
    assert floor.lines.encoded == 2
    assert target.delivered == 2


def test_each_variant_has_its_own_bytes() -> None:
    floor, of = Floor(), Floor().variants.of
    wanted = [
        (of(floor.lines), b"retain=0 dup=0 ids= t x"),
        (of(floor.lines, 0, RETAIN_AS_PUBLISHED), b"retain=1 dup=0 ids= t x"),
        (of(floor.lines, 0, RETAIN_AS_PUBLISHED, b"7,8"), b"retain=1 dup=0 ids=7,8 t x"),
    ]
    targets = [floor.target(variant) for variant, _ in wanted]
    floor.publish(targets, Message(floor.lines, b"t", 0, b"x", retain=True))
    assert [target.outbox.read() for target in targets] == [b"PUB qos=0 " + bytes for _, bytes in wanted]
    assert frame_of(floor.variants.of(floor.lines, 0, RETAIN_SET), Message(floor.lines, b"t", 0, b"x")) == (
        b"PUB qos=0 retain=1 dup=0 ids= t x"
    )


def test_variants_are_shared_and_forgotten_with_their_last_subscriber() -> None:
    floor = Floor()
    first = floor.variants.of(floor.lines, 1, identifiers=b"1")
    assert floor.variants.of(floor.lines, 1, identifiers=b"1") is first
    assert floor.variants.of(floor.lines, 2, identifiers=b"1") is not first
    other = LineFormat("other", "lines")
    assert floor.variants.like(first, other) is floor.variants.of(other, 1, identifiers=b"1")
    assert len(floor.variants) == 1
    del first
    gc.collect()
    assert len(floor.variants) == 0


def test_a_family_reads_its_own_messages_without_a_detour() -> None:
    floor = Floor()
    other = LineFormat("other", "lines")
    target = floor.target(Variant(other))
    floor.publish([target], Message(floor.lines, b"t", 0, b"x"))
    assert (floor.lines.crossed, other.crossed, other.encoded) == (0, 0, 1)


def test_between_families_a_message_crosses_once_for_all_variants() -> None:
    floor = Floor()
    native = Publisher(floor.ledger)
    targets = [floor.target(Variant(floor.lines, 0, 0, b"%d" % n)) for n in range(3)]
    native.route(b"a.b", targets)
    for payload in (b"x", b"y", bytes(100_000)):
        assert native.routed(b"a.b", payload) == 3
        for n, target in enumerate(targets):
            assert target.outbox.read() == b"PUB qos=0 retain=0 dup=0 ids=%d <a.b> %b" % (n, payload)
    assert floor.lines.crossed == 3


def test_native_subscribers_get_messages_of_another_family_as_message_frames() -> None:
    floor = Floor()
    target = floor.target(Variant(FORMAT), 0x01020304)
    for payload in (b"x", bytes(100_000)):
        floor.publish([target], Message(floor.lines, b"a.b", 0, payload))
        expected = message(0x01020304, b"a.b", payload).replace(b"\xc4\x03a.b", b"\xa3a.b")
        got = target.outbox.read()
        assert got[4:] == expected[4:]
        assert int.from_bytes(got[:4], "big") == len(got) - 4


@pytest.mark.parametrize("topic", [b"foreign", b"unwritable"])
def test_what_cannot_be_said_is_not_delivered_and_is_counted(topic: bytes) -> None:
    floor = Floor()
    native = Publisher(floor.ledger)
    target, other = floor.target(Variant(floor.lines)), floor.target(Variant(FORMAT))
    native.route(topic, [target, other])
    own = Message(floor.lines, topic, 0, b"")
    if topic == b"foreign":
        native.routed(topic)
    else:
        floor.publish([target, other], own)
    assert (target.dropped, target.outbox.size, floor.ledger.dropped_unspellable) == (1, 0, 1)
    assert other.delivered == 1


def test_a_message_larger_than_the_client_takes_is_dropped_and_counted() -> None:
    floor = Floor()
    target = floor.target(Variant(floor.lines))
    frame = b"PUB qos=0 retain=0 dup=0 ids= t 12345"
    target.outbox.frame_max = len(frame)
    floor.publish([target], Message(floor.lines, b"t", 0, b"12345"))
    floor.publish([target], Message(floor.lines, b"t", 0, b"123456"))
    assert target.outbox.read() == frame
    assert (target.delivered, target.dropped, floor.ledger.dropped_too_large) == (1, 1, 1)


def test_large_bodies_are_shared_by_all_variants_of_a_family() -> None:
    floor = Floor()
    payload = bytes(100_000)
    targets = [floor.target(Variant(floor.lines, 0, 0, b"%d" % n)) for n in range(4)]
    floor.publish(targets, Message(floor.lines, b"t", 0, payload))
    holders = [holder for holder in gc.get_referrers(payload) if type(holder).__name__ == "deque"]
    assert len(holders) == 4
    for target in targets:
        assert target.outbox.read().endswith(payload)


def test_the_ledger_counts_what_is_kept_once_however_many_keep_it() -> None:
    floor = Floor()
    kept = Message(floor.lines, b"topic", 0, b"payload", fields=b"fields")
    assert kept.keep() is kept
    for _ in range(3):
        kept.add_holder(floor.ledger, None)
    assert (floor.ledger.stored, floor.ledger.stored_messages) == (kept.nbytes + 3 * HOLDER_BYTES, 1)
    for _ in range(3):
        kept.drop_holder(floor.ledger, None)
    assert (floor.ledger.stored, floor.ledger.stored_messages) == (0, 0)


def test_a_message_has_a_deadline_or_none() -> None:
    forever = Message(FORMAT, b"t", 0, b"")
    assert forever.expires_at == NEVER
    assert not forever.expired(1e300)
    mortal = Message(FORMAT, b"t", 0, b"", expires_at=5.0)
    assert [mortal.expired(now) for now in (4.9, 5.0)] == [False, True]


def test_a_format_that_cannot_write_says_so() -> None:
    with pytest.raises(NotImplementedError, match="bare"):
        frame_of(Variant(Format("bare")), Message(Format("bare"), b"t", 0, b""))


def test_a_hole_lies_within_the_head() -> None:
    class Wrong(Format):
        def template(
            self, message: Message, variant: Variant, again: bool, now: float
        ) -> tuple[bytes, int, int, bytes]:
            return b"abc", 2, 2, b""

    format = Wrong("wrong")
    with pytest.raises(ValueError, match="hole"):
        frame_of(Variant(format), Message(format, b"t", 0, b""))


class Numbering(LineFormat):
    """Remembers which topics it has sent, and abbreviates them from then on."""

    def __init__(self) -> None:
        super().__init__("numbering", "lines", stateful=True)
        self.known: set[bytes] = set()
        self.topic = b""

    def template(self, message: Message, variant: Variant, again: bool, now: float) -> tuple[bytes, int, int, bytes]:
        self.topic = message.topic
        variant.firm = message.topic not in self.known
        return (b"%b!" if variant.firm else b"*%.1b!") % message.topic, 0, 0, message.payload

    def went(self, variant: Variant) -> None:
        self.known.add(self.topic)


def test_a_stateful_format_hears_what_went_and_only_that() -> None:
    floor = Floor()
    format = Numbering()
    target = floor.target(Variant(format))
    target.outbox.frame_max = 20
    floor.publish([target], Message(format, b"topic", 0, bytes(30)))
    assert format.known == set()
    for _ in range(2):
        floor.publish([target], Message(format, b"topic", 0, b"x"))
    assert target.outbox.read() == b"topic!x*t!x"


def test_a_copy_that_others_build_upon_is_not_dropped_from_the_outbox() -> None:
    floor = Floor()
    format = Numbering()
    target = Target(Outbox(floor.ledger, 100, "drop_oldest"), Variant(format), 1)
    for _ in range(100):
        floor.publish([target], Message(format, b"topic", 0, b"x"))
    taken = target.outbox.read()
    assert taken.startswith(b"topic!x*t!x")
    assert len(taken) <= 100
    assert floor.ledger.dropped_oldest > 0
