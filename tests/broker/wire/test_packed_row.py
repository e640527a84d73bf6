"""A queue that packs what waits far behind is the same queue as one that keeps all of it as objects."""

from hashlib import shake_128
from math import inf
from pathlib import Path
from sys import getrefcount
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.content_frames import DeliverWriter
from fanlight_broker.protocols.amqp.fields import SYNTAX, pack_fields
from fanlight_broker.protocols.amqp.format import FORMAT, AmqpDeliveryFormat
from fanlight_broker.protocols.native.format import FORMAT as OTHER_FORMAT
from fanlight_broker.storage.page_file import UNIT, PageFile, PagePlace
from fanlight_broker.wire.allocator import blocks_in_use
from fanlight_broker.wire.expiry import expire
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Account, Ledger
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.operating import carry_off, lift, peek, put_down
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.packed_row import PackedRow
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.window import Window

HEAD = 3  # messages that stay objects
HEADS = 16  # of these while a consumer is there
CHUNK_BYTES = 2_500  # two or three of the largest that are copied
FIELDS = [pack_fields("", "q", b"\0\0"), pack_fields("e", "q", b"\x10\0\1"), b""]


class World:
    """packed: the queue packs; else all of it is objects. pages: chunks that are full go there."""

    def __init__(
        self, *, packed: bool, messages_max: int, drop_oldest: bool, in_order: bool, ttl: float,
        pages: PageFile | None = None, head: int = HEAD,
    ) -> None:
        self.ledger, self.account = Ledger(1 << 30, lambda: None, 1 << 30), Account()
        self.queue = Queue(self.ledger, messages_max, 20_000, drop_oldest, self.account)
        self.queue.in_order, self.queue.ttl = in_order, ttl
        if packed:
            self.queue.backlog = PackedRow(self.ledger, self.account, CHUNK_BYTES, pages)
            self.queue.backlog.head = head
        self.named = NamedQueue("q", self.queue)
        self.named.buries = True
        self.route = Route(b"\0t", [], [self.named])
        self.window: Window | None = None
        self.now, self.published = 1.0, 0
        self.said: list[Any] = []

    def publish(self, nth: int) -> None:
        """Of many kinds; each body begins with its number."""
        body = b"%d " % self.published + bytes(nth % 5 * (100 if nth % 11 else 400))
        self.published += 1
        expires_at = self.now + nth % 6 if nth % 4 == 0 else inf
        fields, format = FIELDS[nth % 3], OTHER_FORMAT if nth % 7 == 1 else FORMAT
        topic = b"topic/%d" % (nth % 2)
        if format is OTHER_FORMAT:
            message = Message(format, topic, 0, body, fields=b"\xc0\xc0", expires_at=expires_at)
        else:
            message = Message(format, topic, SYNTAX, body, fields=fields or FIELDS[0], qos=nth % 2,
                              expires_at=expires_at, format_data=nth % 10)  # fmt: skip
        self.ledger.now = self.now
        publish(self.route, self.ledger, None, message)

    def act(self, what: str, nth: int) -> None:
        match what:
            case "publish":
                for each in range(1 + nth % 9):
                    self.publish(nth + each)
            case "consume" if self.window is None:
                writer = DeliverWriter(1, "c", 131_072)
                format = AmqpDeliveryFormat(ChannelTags(), writer, automatic=False)
                self.window = self.named.add(
                    Outbox(self.ledger, 1 << 20, "pause"), Variant(format), 1, 1 + nth % 3, 5.0, None, None
                )
                self.named.begin(self.window, self.now)
            case "leave" if self.window is not None:
                self.named.remove(self.window, self.now)
                self.window = None
            case "acknowledge" | "refuse" | "reject" if self.window is not None and self.window.in_flight:
                flight = self.window.flights()[0]
                assert flight.message is not None
                self.said.append((flight.message.payload, flight.attempt))
                if what == "acknowledge":
                    self.window.acknowledge(flight.tag, self.now)
                elif what == "refuse":
                    self.named.refuse(self.window, flight.tag, nth % 3, self.now)
                else:
                    self.named.reject(self.window, flight.tag, self.now)
            case "wait":
                self.now += nth % 4
                while self.named.sweep(self.now, 3):
                    pass
            case "purge":
                self.said.append(self.named.purge(nth))
            case "shorten":
                self.queue.messages_max = 1 + nth
                self.queue.trim()
            case "lift" if (lifted := lift(self.named, self.now)) is not None:
                assert lifted.message is not None
                self.said.append((lifted.message.payload, lifted.attempt))
                (put_down if nth % 2 else carry_off)(self.named, lifted)

    def waiting(self) -> list[Any]:
        return [(all_of(message), attempt, since) for message, attempt, since in peek(self.queue, 1_000)]

    def alive(self) -> list[Any]:
        """What waits and has not expired."""
        return [
            each for each, (message, _, since) in zip(self.waiting(), peek(self.queue, 1_000), strict=True)
            if message.expires_at > self.now and since + self.queue.ttl > self.now
        ]

    def seen(self) -> dict[str, Any]:
        queue, named = self.queue, self.named
        return {
            "waiting": self.waiting(), "length": len(queue), "bytes": queue.nbytes, "since": named.waiting_since,
            "said": self.said, "flying": [flight.tag for flight in self.window.flights()] if self.window else None,
            "expired": queue.expired, "dropped": queue.dropped, "discards": named.discards,
            "messages": self.ledger.stored_messages,
            "dead": [(all_of(message), *rest) for message, *rest in named.exhume(1_000)],
        }

    def check_memory(self) -> None:
        row = self.queue.backlog
        assert isinstance(row, PackedRow)
        assert len(self.queue.waiting()) + row.length == len(self.queue)
        assert bool(row.held + row.paged) == bool(row.length), "a chunk is kept as long as something is in it"


def close(paged: World) -> None:
    """All was taken: the file is as small as it was."""
    row = paged.queue.backlog
    assert isinstance(row, PackedRow)
    assert isinstance(row.pages, PageFile)
    assert (row.paged, row.pages.nbytes) == (0, 0)
    row.pages.close()


def all_of(message: Message) -> tuple[Any, ...]:
    return (
        message.payload, message.topic, message.fields, message.format, message.syntax, message.qos, message.retain,
        message.expires_at, message.expiry_hole, message.format_data,
    )


ACTIONS = [
    *5 * ["publish"], *2 * ["acknowledge"], "consume", "leave", "refuse", "reject", "wait", "purge", "shorten", "lift",
]  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 40)), max_size=40)


def all_three(folder: Path, **options: Any) -> tuple[World, World, World]:
    """Objects, packed, and packed on a disk."""
    pages = PageFile(folder, 1 << 30, 0)
    return World(packed=False, **options), World(packed=True, **options), World(packed=True, pages=pages, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@settings(max_examples=140, deadline=None)
@given(STEPS, st.integers(1, 60), st.booleans(), st.sampled_from([inf, 0.0, 3.0]), st.sampled_from([1, HEAD]))
def test_a_queue_that_packs_does_what_one_of_objects_does(
    folder: Path, steps: list[tuple[str, int]], messages_max: int, drop_oldest: bool, ttl: float, head: int
) -> None:
    worlds = all_three(folder, messages_max=messages_max, drop_oldest=drop_oldest, in_order=True, ttl=ttl, head=head)
    plain, packed, paged = worlds
    for step in steps:
        for each in worlds:
            each.act(*step)
        seen = plain.seen()
        for each in (packed, paged):
            assert each.seen() == seen
            each.check_memory()
    for each in worlds:
        each.named.close()
        while each.named.drop(7):
            pass
        assert (each.ledger.stored, each.ledger.stored_messages, each.account.stored) == (0, 0, 0)
    assert packed.queue.backlog is not None
    assert packed.queue.backlog.length == 0
    close(paged)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.booleans(), st.sampled_from([inf, 3.0]), st.sampled_from([1, HEAD]))
def test_what_expires_leaves_both_at_any_place(
    folder: Path, steps: list[tuple[str, int]], drop_oldest: bool, ttl: float, head: int
) -> None:
    worlds = all_three(folder, messages_max=10_000, drop_oldest=drop_oldest, in_order=False, ttl=ttl, head=head)
    plain, packed, paged = worlds
    for each in worlds:
        each.queue.bytes_max = 1 << 30  # what has expired, and nobody has looked at, is there in one and not in another
    dead: dict[World, list[bytes]] = {each: [] for each in worlds}
    for what, nth in steps:
        if what in ("purge", "shorten"):
            continue
        for each in worlds:
            each.act(what, nth)
            dead[each] += [message.payload for message, *_ in each.named.exhume(1_000)]
        alive = plain.alive() if nth % 3 else None  # a look reads what is on the disk
        for each in (packed, paged):
            assert each.said == plain.said
            assert alive is None or each.alive() == alive
            each.check_memory()
    for each in worlds:
        if each.window is not None:
            each.named.remove(each.window, each.now)
        expire(each.queue, each.now)
        for nth in range(2_000):
            each.act("lift", 2 * nth)  # all that is left is taken
        dead[each] += [message.payload for message, *_ in each.named.exhume(1_000)]
    for each in (packed, paged):
        assert each.said == plain.said
        assert sorted(dead[each]) == sorted(dead[plain])
        assert len(each.queue) == 0
    close(paged)


def test_a_sweep_ends_when_all_that_could_expire_has() -> None:
    """It stops after three, and is to go on where it was: but of those that are left none ever expires."""
    world = World(packed=False, messages_max=10, drop_oldest=False, in_order=False, ttl=inf)
    for nth in [1, 1, 0, 0, 0, 1]:  # 0: expires at once
        world.publish(nth)
    assert world.named.sweep(world.now, 3)
    assert not world.named.sweep(world.now, 3)
    assert (len(world.queue), world.queue.expired) == (3, 3)


def packed_behind(world: World, messages: int) -> int:
    """Of so many that are published, none of which a consumer acknowledges."""
    for _ in range(messages):
        world.publish(5)
    assert world.queue.backlog is not None
    return world.queue.backlog.length


def test_what_a_consumer_that_is_there_may_take_soon_is_not_packed() -> None:
    world = World(packed=True, messages_max=10_000, drop_oldest=False, in_order=True, ttl=inf)
    world.act("consume", 0)
    assert packed_behind(world, 1 + HEADS * HEAD) == 0  # one is in flight
    assert packed_behind(world, 2) == 2
    world.act("leave", 0)
    assert packed_behind(world, 1) == 3


def test_where_memory_is_short_all_beyond_a_head_is_packed() -> None:
    world = World(packed=True, messages_max=10_000, drop_oldest=False, in_order=True, ttl=inf)
    world.act("consume", 0)
    world.publish(5)  # is in flight
    world.ledger.stored_limit = 4 * world.ledger.stored
    assert packed_behind(world, HEAD) == 0
    world.ledger.stored_limit = 4 * world.ledger.stored
    assert packed_behind(world, 2) == 2


def waiting_row(bodies: list[bytes]) -> PackedRow:
    """These behind each other in a queue."""
    world = World(packed=True, messages_max=10_000, drop_oldest=False, in_order=True, ttl=inf)
    world.queue.bytes_max = 1 << 30
    for body in bodies:
        publish(world.route, world.ledger, None, Message(FORMAT, b"t", SYNTAX, body, fields=FIELDS[0]))
    row = world.queue.backlog
    assert isinstance(row, PackedRow)
    assert row.length == len(bodies) - HEAD
    assert world.account.stored == world.ledger.stored < row.held + HEAD * 700
    assert [message.payload for message, *_ in peek(world.queue, len(bodies))] == bodies
    return row


def test_a_message_of_100_bytes_takes_little_more_while_it_waits() -> None:
    row = waiting_row([unlike(number) for number in range(2_000)])
    assert 100 < row.held / row.length < 120


def test_what_bodies_have_in_common_at_both_ends_is_kept_once() -> None:
    """Records of the bodies that say otherwise stand between: the next ones are like those."""
    bodies = [b'{"site": "north", "reading": %d, "unit": "kWh"}' % number for number in range(2_000)]
    assert waiting_row(bodies).held < 15 * len(bodies)
    bodies[700:703] = [b"", b"x", bytes(300)]
    bodies[1_300:1_303] = [b'{"site": ', b'"kWh"}', bodies[3] + bodies[3]]
    assert waiting_row(bodies).held < 20 * len(bodies)


def test_a_row_that_ends_with_messages_in_it_lets_go_of_them() -> None:
    world = World(packed=True, messages_max=100, drop_oldest=False, in_order=True, ttl=inf)
    for _ in range(HEAD):
        world.publish(0)
    blocks = blocks_in_use()
    large = Message(FORMAT, b"t", SYNTAX, bytes(4_000), fields=FIELDS[0])
    references = getrefcount(large)
    for nth in range(9):
        publish(world.route, world.ledger, None, large if nth % 3 == 0 else Message(FORMAT, b"t", SYNTAX, b"x"))
    assert getrefcount(large) == references + 3
    assert lift(world.named, 1.0) is not None
    world.queue.backlog = None
    assert (getrefcount(large), blocks_in_use()) == (references, blocks)


def unlike(number: int) -> bytes:
    """100 bytes of a body that is like no other, with its number at the end."""
    return shake_128(b"%d" % number).digest(80) + b"%020d" % number


def filled(pages: PageFile, count: int) -> World:
    world = World(packed=True, pages=pages, messages_max=100_000, drop_oldest=False, in_order=True, ttl=inf)
    world.queue.bytes_max = 1 << 30
    for number in range(count):
        publish(world.route, world.ledger, None, Message(FORMAT, b"t", SYNTAX, unlike(number), fields=FIELDS[0]))
    return world


def taken(world: World) -> list[int]:
    found = []
    while (lifted := lift(world.named, 1.0)) is not None:
        assert lifted.message is not None
        found.append(int(lifted.message.payload[80:]))
        carry_off(world.named, lifted)
    return found


def test_a_long_queue_is_on_the_disk_and_comes_back_in_order(tmp_path: Path) -> None:
    pages = PageFile(tmp_path, 1 << 30, 0)
    world = filled(pages, 2_000)
    row = world.queue.backlog
    assert isinstance(row, PackedRow)
    assert row.paged > 200_000
    assert world.ledger.stored == world.account.stored < 20_000
    assert list(tmp_path.iterdir()) == [], "the file has no name"
    assert taken(world) == list(range(2_000))
    assert (world.ledger.stored, world.ledger.stored_messages, pages.nbytes) == (0, 0, 0)


def test_what_a_disk_has_no_room_for_stays_in_memory(tmp_path: Path) -> None:
    pages = PageFile(tmp_path, 3 * UNIT, 0)
    world = filled(pages, 500)
    assert pages.nbytes == 3 * UNIT
    assert world.ledger.stored > 30_000
    assert taken(world) == list(range(500))
    full = PageFile(tmp_path, 1 << 30, 1 << 62)  # nothing is free
    assert taken(filled(full, 100)) == list(range(100))
    assert full.nbytes == 0


def test_a_chunk_that_cannot_be_read_is_lost_and_counted_and_the_others_come(tmp_path: Path) -> None:
    pages = PageFile(tmp_path, 1 << 30, 0)
    world = filled(pages, 300)
    read, broken = pages.read, set[PagePlace]()

    def read_some(place: PagePlace, size: int) -> bytes | None:
        if not broken:
            broken.add(place)
        return read(place._replace(checksum=place.checksum ^ (place in broken)), size)

    pages.read = read_some  # type: ignore[method-assign]
    found = taken(world)
    lost = 300 - len(found)
    assert 10 < lost < 30
    assert found == sorted(found)
    assert (world.queue.dropped, world.named.discards, pages.unreadable) == (lost, lost, 1)
    assert (len(world.queue), world.queue.nbytes, world.ledger.stored) == (0, 0, 0)
