"""Batches against the plain way: two brokers get the same frames, one with batches, one without; no difference shows.

What is compared after every step: the bytes that each subscriber got, what is still in its outbox, all that is counted
there, in its targets and in the ledger, and whether the publisher is held back.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.net.flush import SocketSink
from fanlight_broker.protocols.mqtt.aliases import AliasFormat
from fanlight_broker.protocols.mqtt.lane import MqttLane
from fanlight_broker.protocols.mqtt.version import V3, V5
from fanlight_broker.protocols.native.lane import NativeLane
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.lane import BLOCKED, NEED_MORE
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import POLICIES, Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.target import Target
from tests.broker.protocols.mqtt.laned import VARIANTS, Client
from tests.broker.wire.publisher import Publisher, message, native_target, publish

TOPICS = (b"a/b/c", b"a/b/d")
SIZES = (0, 1, 60, 400, 3_000, 16 * 1024)
COUNTERS = [name for name in dir(Ledger) if not name.startswith(("_", "pop", "count", "keep")) and name not in (
    "dirty", "attention", "ended", "faults", "limit", "stored_limit", "awake", "clock", "turn_over", "turn_ends",
    "pots", "inboxes", "secured", "handshakes", "sessions", "subscriptions",
    "meter", "messages_by_recipients",
)]  # fmt: skip
METERED = ("messages_in", "messages_out", "bytes_in", "bytes_out")


class Socket:
    """A transport that takes `credit` bytes, and waits with the rest of what it was given."""

    def __init__(self, outbox: Outbox, credit: int) -> None:
        self.credit = credit
        self.got = b""
        self.waiting = b""
        self.sink = outbox.sink = SocketSink(outbox, self, lambda outbox: outbox.drained())  # type: ignore[arg-type]

    def write(self, octets: bytes) -> None:
        taken = octets[: self.credit]
        self.credit -= len(taken)
        self.got += taken
        self.waiting = octets[len(taken) :]

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def is_closing(self) -> bool:
        return False

    def more(self, credit: int) -> None:
        self.credit += credit
        if self.waiting:
            octets, self.waiting = self.waiting, b""
            self.write(octets)
            if not self.waiting:
                self.sink.resumed()
        self.sink.flush_now()


@dataclass(frozen=True)
class Wish:
    """One subscription: of which subscriber, to which topics, and how."""

    who: int
    topics: int  # bits
    qos: int
    number: int
    special: str


@dataclass(frozen=True)
class Setting:
    kinds: list[str]
    policies: list[str]
    limits: list[int]
    frame_max: list[int]
    wishes: list[Wish]
    common: int
    room_least: int
    reference_bytes: int
    credits: list[int]


class World:
    def __init__(self, setting: Setting, batches: bool) -> None:
        self.ledger = ledger = Ledger(setting.common, lambda: None)
        self.publisher = Publisher(ledger)
        routes = self.publisher.routes
        routes.batcher.off = not batches
        routes.batcher.room_least = setting.room_least
        routes.batcher.reference_bytes = setting.reference_bytes
        self.clients: list[Client] = []
        for i, kind in enumerate(setting.kinds):
            version = V3 if kind == "3.1.1" else V5
            client = Client(version, ledger=ledger, routes=routes, policy=setting.policies[i], limit=setting.limits[i],
                            receive_max=3, packet_max=1 << 20)  # fmt: skip
            client.outbox.frame_max = setting.frame_max[i]
            self.clients.append(client)
        # One topic has an alias, the other none: first come.
        self.formats = [AliasFormat(1) if kind == "aliases" else None for kind in setting.kinds]
        self.mqtt = Client(V3, ledger=ledger, routes=routes, packet_max=1 << 20)
        self.sockets = [
            Socket(client.outbox, credit) for client, credit in zip(self.clients, setting.credits, strict=True)
        ]
        self.targets: list[Target] = []
        group = QueueGroup()
        everybody = [*self.clients, self.mqtt]
        chosen: list[list[Target]] = [[] for _ in TOPICS]
        for wish in setting.wishes:
            target = self.target(everybody[wish.who % len(everybody)], wish, setting)
            self.targets.append(target)
            if wish.special == "group":
                group.add(target, Queue(ledger, 10, 1 << 20))
                continue
            for i in range(len(TOPICS)):
                if wish.topics >> i & 1:
                    chosen[i].append(target)
        self.group = group
        self.routes = []
        if chosen[0] == chosen[1]:
            chosen[1] = chosen[0]  # routes with the same targets share their list: their messages are joined
        for i, topic in enumerate(TOPICS):
            self.routes.append(self.publisher.route(topic, chosen[i], [group] if len(group) else []))
            slashed = Route(RouteCache.key_of(1, topic), chosen[i], [])
            routes.add(slashed)
            self.routes.append(slashed)

    def target(self, client: Client, wish: Wish, setting: Setting) -> Target:
        index = self.clients.index(client) if client in self.clients else -1
        kind = setting.kinds[index] if index >= 0 else "3.1.1"
        options: dict[str, Any] = {}
        if wish.special == "no echo":
            options["no_echo"] = True
        if kind == "native":
            if wish.special == "credit":
                options.update(credit=3, waiting_max=2)
            elif wish.special == "after":
                options["after"] = 5
            return native_target(client.outbox, wish.number, **options)
        identifiers = b"\x0b\x07" if wish.special == "identifiers" else b""
        format = (self.formats[index] if index >= 0 else None) or client.format
        return Target(client.window, VARIANTS.of(format, wish.qos, 0, identifiers), wish.number, **options)

    def publish(self, native: bool, octets: bytes, piece: int) -> list[int]:
        lane: NativeLane | MqttLane = self.publisher.lane if native else self.mqtt.lane
        inbox = lane.inbox
        events = []
        for at in range(0, len(octets), piece):
            inbox.feed(octets[at : at + piece])
            event = lane.advance()
            events.append(event)
            if event == BLOCKED:
                inbox.clear()
                break
            assert event == NEED_MORE
        return events

    def seen(self) -> dict[str, Any]:
        return {
            "got": [socket.got for socket in self.sockets],
            "left": [len(socket.waiting) for socket in self.sockets],
            "outboxes": [
                (one.size, one.messages, one.control_size, one.dropped, one.overflows, one.sent, one.pausing,
                 one.awaiting_credit, dict(one.evicted), one.dirty)
                for one in self.everybody()
            ],
            "targets": [
                (one.delivered, one.dropped, one.credit, one.ended, one.waiting_messages) for one in self.targets
            ],
            "windows": [(one.window.in_flight, len(one.window.queue)) for one in self.clients],
            "group": self.group.turn,
            "hits": [route.hits for route in self.routes],
            "ledger": {name: getattr(self.ledger, name) for name in COUNTERS if name != "used"},
            # What is dead differs: the place of one batch, or of each of its messages.
            "used": self.ledger.used - sum(one.dead for one in self.everybody()),
            "meter": [getattr(self.ledger.meter, name) for name in METERED],
            "recipients": self.ledger.messages_by_recipients(),
            "attention": [self.everybody().index(outbox) for outbox in self.ledger.attention],
            "ended": [self.targets.index(target) for target in self.ledger.ended],
            "is dirty": sorted(self.everybody().index(outbox) for outbox in self.ledger.dirty),
        }  # fmt: skip

    def everybody(self) -> list[Outbox]:
        return [client.outbox for client in self.clients] + [self.mqtt.outbox, self.publisher.outbox]


def mqtt_publish(topic: bytes, payload: bytes, qos: int) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + (b"\0\x09" if qos else b"") + payload
    octets, rest = bytes((0x30 | qos << 1,)), len(body)
    while rest >= 0x80:
        octets, rest = octets + bytes((rest & 0x7F | 0x80,)), rest >> 7
    return octets + bytes((rest,)) + body


@st.composite
def settings_of_a_world(draw: st.DrawFn) -> Setting:
    subscribers = draw(st.integers(1, 6))

    def each(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.lists(values, min_size=subscribers, max_size=subscribers))

    wishes = draw(st.lists(st.builds(
        Wish,
        who=st.integers(0, subscribers),
        topics=st.sampled_from([1, 2, 3, 3]),
        qos=st.sampled_from([0, 0, 0, 1]),
        number=st.sampled_from([1, 1, 1, 2, 0xFFFF_FFFF]),
        special=st.sampled_from(["", "", "", "", "", "credit", "after", "group", "no echo", "identifiers"]),
    ), min_size=1, max_size=14))  # fmt: skip
    return Setting(
        kinds=each(st.sampled_from(["native", "native", "3.1.1", "3.1.1", "5.0", "aliases", "aliases"])),
        policies=each(st.sampled_from(POLICIES)),
        limits=each(st.sampled_from([300, 2_000, 30_000, 200_000, 1 << 20])),
        frame_max=each(st.sampled_from([200, 1 << 20, 1 << 20, 1 << 20])),
        wishes=wishes,
        common=draw(st.sampled_from([70_000, 400_000, 1 << 30, 1 << 30])),
        room_least=draw(st.sampled_from([0, 500, 64 * 1024])),
        reference_bytes=draw(st.sampled_from([1, 300])),
        credits=each(st.sampled_from([0, 1_000, 1 << 30])),
    )


bursts = st.tuples(
    st.booleans(),
    st.lists(
        st.tuples(
            st.sampled_from([1, 5, 12, 30, 50]), st.sampled_from([0, 0, 0, 1]), st.sampled_from([2, 2, 1, 3, 0, 4, 5]),
            st.integers(0, 3),
        ),
        min_size=1, max_size=6,
    ),
    st.sampled_from([1 << 30, 1 << 30, 1_500, 77]),
)  # fmt: skip
steps = st.one_of(
    bursts,
    bursts,
    st.tuples(st.just("more"), st.integers(0, 5), st.sampled_from([1, 90, 5_000, 1 << 30])),
    st.tuples(st.just("take"), st.integers(0, 5), st.sampled_from([1, 300, 1 << 20])),
    st.tuples(st.just("pin"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("close"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("discard"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("answer"), st.integers(0, 5), st.integers(1, 600)),
)


def burst(native: bool, groups: list[tuple[int, int, int, int]]) -> bytes:
    octets, count = b"", 0
    for times, topic, size, extra in groups:
        for _ in range(times):
            count += 1
            payload = bytes([count % 251]) * SIZES[size]
            if native:
                octets += publish(TOPICS[topic], payload, count if extra == 1 else None)
            else:
                octets += mqtt_publish(TOPICS[topic], payload, extra == 1)
    return octets


def act(world: World, step: Any) -> Any:
    what, which, amount = step
    if not isinstance(what, str):
        return world.publish(what, burst(what, which), amount)
    client = world.clients[which % len(world.clients)]
    outbox = client.outbox
    if what == "more":
        world.sockets[which % len(world.clients)].more(amount)
    elif what == "take":
        if not world.sockets[which % len(world.clients)].waiting:
            return outbox.read(amount)
    elif what == "pin":
        outbox.pin()
    elif what == "close":
        outbox.close()
    elif what == "discard":
        outbox.discard()
    else:
        outbox.write(b"!" * amount)
    return None


@settings(max_examples=180, deadline=None)
@given(setting=settings_of_a_world(), todo=st.lists(steps, min_size=1, max_size=12))
def test_with_runs_and_without_everybody_gets_the_same(setting: Setting, todo: list[Any]) -> None:
    worlds = [World(setting, batches) for batches in (False, True)]
    for step in todo:
        plain, joined = [act(world, step) for world in worlds]
        assert joined == plain, step
        plain, joined = [world.seen() for world in worlds]
        for name in plain:
            assert joined[name] == plain[name], (step, name)
        for world in worlds:
            assert all(0 <= one.dead <= one.passed_bytes for one in world.everybody())  # more is taken out at once
    plain, joined = [[client.outbox.read(1 << 30) for client in world.clients] for world in worlds]
    assert joined == plain
    assert worlds[0].publisher.routes.batcher.batches == 0


def quick(ledger: Ledger, publisher: Publisher, subscribers: int, numbers: int = 1) -> list[Outbox]:
    outboxes = [Outbox(ledger, 1 << 20, "drop_newest") for _ in range(subscribers)]
    publisher.route(b"t", [native_target(outbox, i % numbers) for i, outbox in enumerate(outboxes)])
    return outboxes


def pour(publisher: Publisher, messages: int, payload: bytes = b"p" * 60) -> None:
    assert publisher.send(publish(b"t", payload) * messages)


def test_what_follows_each_other_is_kept_once_for_all_subscribers() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Publisher(ledger)
    outboxes = quick(ledger, publisher, 5)

    pour(publisher, 100)

    batcher = publisher.routes.batcher
    assert batcher.batches == 1
    assert batcher.joined > 90
    assert [outbox.messages for outbox in outboxes] == [100] * 5
    assert ledger.used == 5 * 100 * len(message(0, b"t", b"p" * 60))
    for outbox in outboxes:
        assert outbox.read(1 << 20) == message(0, b"t", b"p" * 60) * 100
    assert ledger.used == 0


@pytest.mark.parametrize("numbers", [1, 3, 8, 20])
def test_subscribers_with_other_numbers_have_runs_of_their_own_up_to_eight(numbers: int) -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Publisher(ledger)
    outboxes = quick(ledger, publisher, 40, numbers)

    pour(publisher, 50)

    assert publisher.routes.batcher.batches == min(numbers, 8)
    for i, outbox in enumerate(outboxes):
        assert outbox.read(1 << 20) == message(i % numbers, b"t", b"p" * 60) * 50


def test_those_who_know_a_topic_by_the_same_alias_have_a_run_together() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Client(V3, ledger=ledger)
    subscribers = [Client(V5, ledger=ledger) for _ in range(6)]
    publisher.route(b"topic", *(client.target(format=AliasFormat(5)) for client in subscribers))

    publisher.send(mqtt_publish(b"topic", b"1" * 20, 0) * 50)

    assert publisher.routes.batcher.batches == 1
    told = b"\x30\x1f\0\x05topic\x03\x23\0\x01" + b"1" * 20
    by_alias = b"\x30\x1a\0\0\x03\x23\0\x01" + b"1" * 20
    for client in subscribers:
        assert client.got() == told + by_alias * 49


def test_a_slow_subscriber_takes_no_part_and_the_others_still_do() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Publisher(ledger)
    outboxes = [Outbox(ledger, 1_000 if i == 3 else 1 << 20, "drop_newest") for i in range(10)]
    publisher.route(b"t", [native_target(outbox, 1) for outbox in outboxes])

    for _ in range(10):
        pour(publisher, 100)

    assert [outbox.messages for outbox in outboxes] == [1_000] * 3 + [outboxes[3].messages] + [1_000] * 6
    assert outboxes[3].messages + outboxes[3].dropped == 1_000
    assert publisher.routes.batcher.joined > 900


@pytest.mark.parametrize("at_most", [1, 6, 7, 1_500])
def test_behind_a_larger_frame_a_run_that_has_lost_messages_waits_its_turn(at_most: int) -> None:
    """A transport without a socket takes whole frames, and the first whatever its size."""
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Publisher(ledger)
    outbox = Outbox(ledger, 128 * 1024, "drop_oldest")
    publisher.route(b"t", [native_target(outbox, 1)])
    outbox.write(b"answer")
    sent = [bytes((n,)) * 1_000 for n in range(150)]
    assert publisher.send(b"".join(publish(b"t", payload) for payload in sent[:60]))
    for payload in sent[60:]:
        assert publisher.publish(b"t", payload)
    assert publisher.routes.batcher.batches == 1
    assert 2 < outbox.dropped < 60  # those before the batch, and some of it
    taken = []
    while outbox.size:
        taken.append(outbox.read(at_most))

    left = sent[outbox.dropped :]
    assert taken[0] == b"answer" + (message(1, b"t", left[0]) if at_most > 1_000 else b"")
    assert b"".join(taken) == b"answer" + b"".join(message(1, b"t", payload) for payload in left)


def test_single_messages_and_short_rows_are_copied() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Publisher(ledger)
    quick(ledger, publisher, 5)
    for _ in range(50):
        pour(publisher, 3)
    assert publisher.routes.batcher.batches == 0


def test_a_run_is_over_before_python_sees_a_frame() -> None:
    """Also if the frame is half a one, and if it is one that the lane refuses."""
    ledger = Ledger(1 << 30, lambda: None)
    publisher = Publisher(ledger)
    outboxes = quick(ledger, publisher, 2)
    for behind in (b"\0\0\0\x02\x91\x0a", b"\0\0\0\x02\x91", b"\0\0\0\0"):
        before = outboxes[0].messages
        publisher.inbox.feed(publish(b"t", b"p" * 60) * 40 + behind)
        publisher.lane.advance()
        assert outboxes[0].messages == before + 40
        publisher.inbox.clear()
