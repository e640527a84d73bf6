"""Delayed messages: routed when they are due, in the order of their times, to whoever is subscribed then."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.delayed import RETRIES_AT_ONCE
from fanlight_broker.core.errors import InvalidTopic, LimitExceeded, NotPermitted
from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import REPEATED, Accepted, Direct, Refused
from fanlight_broker.core.queues import QueueOptions
from fanlight_broker.core.subscription import SubscriptionOptions
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import peek
from tests.broker.core.delaying import delay
from tests.broker.core.parts import Listener
from tests.broker.core.reference import Reference, allow
from tests.broker.core.sessions import World

DELAYED = Accepted(0, delayed=True)


class Delaying(World):
    def __init__(self, **limits: Any) -> None:
        super().__init__(**limits)
        self.publisher = self.connect("publisher")
        self.reader = self.connect("reader")

    def delay(self, topic: str, payload: str, seconds: float, **options: Any) -> Any:
        return delay(self, self.publisher, topic, payload, seconds, **options)


def test_a_delayed_message_is_routed_when_it_is_due_to_whoever_is_subscribed_then() -> None:
    world = Delaying()
    early = world.connect("early")
    early.subscribe("t")
    assert world.delay("t", "a", 5) == DELAYED
    assert early.got() == []
    early.leave()
    world.later(4.9)
    world.reader.subscribe("t")
    assert world.reader.got() == []
    world.later(0.2)
    assert world.reader.got() == ["t a 0"]
    world.later(100)
    assert world.reader.got() == []
    assert world.broker.delayed.counters()["delayed_delivered"] == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("delay"), st.sampled_from([0.25, 0.5, 1, 1, 2, 3]), st.sampled_from(["t", "u"])),
        st.tuples(st.just("pass"), st.sampled_from([0.25, 0.5, 1, 4]), st.just("")),
        st.tuples(st.just("subscribe"), st.just(0), st.sampled_from(["t", "u"])),
        st.tuples(st.just("unsubscribe"), st.just(0), st.sampled_from(["t", "u"])),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_any_delays_come_as_a_plain_list_says(steps: list[tuple[str, float, str]]) -> None:
    world = Delaying()
    waiting: list[tuple[float, int, str]] = []
    subscribed: set[str] = set()
    for number, (step, seconds, topic) in enumerate(steps):
        if step == "delay":
            assert world.delay(topic, f"n{number}", seconds) == DELAYED
            waiting.append((world.now + seconds, number, topic))
        elif step == "subscribe":
            world.reader.subscribe(topic)
            subscribed.add(topic)
        elif step == "unsubscribe" and topic in subscribed:
            world.broker.sessions.unsubscribe(world.reader.session, topic.encode(), None)
            subscribed.discard(topic)
        elif step == "pass":
            world.later(seconds)
            due = sorted(each for each in waiting if each[0] <= world.now)
            waiting = [each for each in waiting if each[0] > world.now]
            assert world.reader.got() == [f"{topic} n{number} 0" for _, number, topic in due if topic in subscribed]
        assert len(world.broker.delayed) == len(waiting)
    world.later(10)
    assert_empty(world)


def assert_empty(world: World) -> None:
    """Nothing is counted any more."""
    broker = world.broker
    assert (len(broker.delayed), broker.delayed.nbytes, broker.ledger.stored, broker.ledger.stored_messages) == (
        0, 0, 0, 0,
    )  # fmt: skip
    for share in broker.shares:
        assert share.account.stored == 0
        assert not any(count for pot, count in share.held.items() if pot.startswith("delayed"))


def test_messages_for_the_same_wall_clock_time_keep_their_order() -> None:
    world = Delaying()
    world.reader.subscribe("t")
    drift = iter([0.0, 0.0004, -0.0007, 0.0002, 0.0])
    plain = world.now
    clock: Callable[[], float] = lambda: 1e9 + world.now + next(drift, 0.0)  # noqa: E731
    world.broker.delayed._wall = clock
    for number in range(4):
        due = world.broker.delayed.due_at(1e9 + plain + 60, world.now)
        assert world.delay("t", f"n{number}", due - world.now) == DELAYED
        world.now += 0.125
    world.later(60)
    assert world.reader.got() == [f"t n{number} 0" for number in range(4)]


def test_a_clock_that_was_set_counts_from_the_next_message_on() -> None:
    world = Delaying()
    world.broker.delayed._wall = lambda: 500.0 + world.now
    assert world.broker.delayed.due_at(1_600.0, world.now) == 1_100.0
    world.broker.delayed._wall = lambda: 560.0 + world.now
    assert world.broker.delayed.due_at(1_600.0, world.now) == 1_040.0


def test_it_is_retained_when_it_is_routed() -> None:
    world = Delaying()
    world.delay("t", "a", 5, retain=True)
    assert len(world.broker.retained) == 0
    world.later(5)
    world.reader.subscribe("t", retained=True)
    assert world.reader.got() == ["t a 0 retain"]
    assert world.broker.retained.entry(0).origin == "publisher"  # type: ignore[union-attr]


def test_it_can_be_looked_at() -> None:
    world = Delaying()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    world.delay("t", "a", 50, qos=1)
    world.delay("$inbox/secret/x", "b", 5, retain=True)
    second, first = inspection.delayed(offset=0, limit=10)
    size, id = first.pop("bytes"), first.pop("id")
    assert second["id"] == id + 1
    assert first == {
        "topic": "t", "syntax": "mqtt", "client": "publisher", "protocol": "lines", "due_seconds": 50.0, "qos": 1,
        "retain": False,
    }  # fmt: skip
    assert "secret" not in second["topic"]
    assert inspection.delayed(offset=0, limit=1) == [second]
    gauges = inspection.gauges()
    assert (gauges["delayed_messages"], gauges["delayed_in_memory"], gauges["delayed_next_seconds"]) == (2, 2, 5.0)
    assert inspection.gauges()["delayed_bytes"] == size + second["bytes"]
    world.later(5)
    assert inspection.counters()["delayed_accepted"] == 2
    assert inspection.counters()["delayed_delivered"] == 1
    assert inspection.counters()["messages_in"] == 1


def test_its_time_to_live_begins_when_it_is_due() -> None:
    world = Delaying()
    away = world.connect("away", expiry=1_000.0)
    away.subscribe("t", 1)
    away.leave()
    world.delay("t", "a", 50, qos=1, expires_at=world.now + 10)
    world.later(50)
    world.later(9)
    again = world.connect("away", expiry=1_000.0, clean_start=False)
    assert again.got() == ["t a 1"]


def test_one_whose_time_was_over_before_it_could_be_routed_is_counted_as_expired() -> None:
    world = Delaying()
    world.reader.subscribe("t")
    world.delay("t", "a", 50, expires_at=world.now + 10)
    world.later(61)
    assert world.reader.got() == []
    assert (world.broker.delayed.expired, len(world.broker.delayed)) == (1, 0)


def test_what_the_publisher_does_not_want_back_it_does_not_get() -> None:
    world = Delaying()
    world.publisher.subscribe("t", 1, no_local=True)
    world.reader.subscribe("t", 1)
    world.delay("t", "a", 1, qos=1)
    world.later(1)
    assert (world.publisher.got(), world.reader.got()) == ([], ["t a 1"])
    mine = world.connect("mine", expiry=60.0)
    mine.subscribe("t", 1, no_local=True)
    delay(world, mine, "t", "b", 1, 1)
    mine.leave()
    world.later(1)
    assert world.reader.got() == ["t b 1"]
    assert world.connect("mine", expiry=60.0, clean_start=False).got() == []


def test_a_delayed_message_is_not_by_another_user_who_has_the_name_of_the_session_now() -> None:
    world = Delaying()
    mallory = world.connect("pump7", user="mallory", verified=True, expiry=60.0)
    delay(world, mallory, "t", "a", 5)
    mallory.leave(expiry=0.0)
    alice = world.connect("pump7", user="alice", verified=True)
    alice.subscribe("t", no_local=True)
    world.reader.subscribe("t", condition=condition_of("$user = 'alice'"))
    world.later(5)
    assert (alice.got(), world.reader.got()) == (["t a 0"], [])


def test_a_mark_is_checked_when_the_message_is_accepted() -> None:
    world = Delaying()
    world.reader.subscribe("t")
    assert world.delay("t", "a", 5, mark=Mark("", "p", 1, 1)) == DELAYED
    assert world.delay("t", "a", 5, mark=Mark("", "p", 1, 1)) is REPEATED
    world.later(5)
    assert world.reader.got() == ["t a 0"]


def test_permission_is_asked_for_when_the_message_is_accepted_and_not_when_it_is_due() -> None:
    world = Delaying()
    world.broker.use_permissions(Reference(allow("all")))
    world.reader.subscribe("t")
    assert world.delay("t", "a", 5) == DELAYED
    world.broker.use_permissions(Reference(allow("connect subscribe")))
    refused = world.delay("t", "b", 5)
    assert isinstance(refused.error, NotPermitted)
    world.later(5)
    assert world.reader.got() == ["t a 0"]
    assert isinstance(Delaying().delay("a/+", "b", 5).error, InvalidTopic)


LIMITS: dict[str, tuple[dict[str, float], float, str]] = {
    "too far": ({"delay_seconds_max": 10}, 10.5, "delay_seconds_max"),
    "too many": ({"delayed_messages_max": 4, "share_percent": 100}, 1, "delayed_share_percent"),
    "too much": ({"delayed_bytes_max": 2_500, "share_percent": 100}, 1, "delayed_share_percent"),
    "none allowed": ({"delayed_messages_max": 0}, 1, "delayed_share_percent"),
    "a share": ({"delayed_messages_max": 8, "delayed_share_percent": 50}, 1, "delayed_share_percent"),
}


@pytest.mark.parametrize("what", LIMITS)
def test_one_above_a_limit_is_refused_and_counted(what: str) -> None:
    limits, seconds, limit = LIMITS[what]
    world = Delaying(**limits)
    accepted = 0
    while not isinstance(outcome := world.delay("t", "a", seconds), Refused):
        accepted += 1
        assert accepted < 10
    assert isinstance(outcome.error, LimitExceeded)
    assert outcome.error.details["limit"] == limit
    assert accepted == {"too many": 4, "a share": 4, "too much": 4}.get(what, 0)
    assert world.broker.delayed.counters()["delayed_refused"] == 1
    world.later(1)
    assert_empty(world)
    assert isinstance(world.delay("t", "a", 1), Accepted) == (limits.get("delayed_messages_max") != 0)


def test_one_that_a_full_queue_refuses_waits_on() -> None:
    world = Delaying()
    broker = world.broker
    queue = broker.queues.declare(
        world.reader.client, "q", ((b"t", "mqtt"),), QueueOptions(messages_max=1), world.now
    )
    world.delay("t", "a", 1)
    world.delay("t", "b", 1)
    world.later(1)
    assert (len(queue.inside.queue), len(broker.delayed), broker.delayed.put_off) == (1, 1, 1)
    world.later(5)
    assert (len(queue.inside.queue), len(broker.delayed), broker.delayed.put_off) == (1, 1, 2)
    broker.queues.end(queue)
    world.later(5)
    assert_empty(world)


def test_of_many_that_are_refused_a_slice_is_tried_again_each_second_in_order() -> None:
    world = Delaying()
    broker, count = world.broker, 2 * RETRIES_AT_ONCE + 10
    queue = broker.queues.declare(
        world.reader.client, "q", ((b"t", "mqtt"),), QueueOptions(messages_max=count), world.now
    )
    for number in range(count):
        assert world.delay("t", f"n{number}", 1) == DELAYED
    queue.inside.queue.messages_max = 0
    world.later(1)
    assert (broker.delayed.put_off, broker.delayed.gauges(world.now)["delayed_overdue"]) == (count, count)
    tried = []
    for _ in range(7):
        before = broker.delayed.put_off
        world.later(1)
        tried.append(broker.delayed.put_off - before)
    assert tried == 7 * [RETRIES_AT_ONCE]
    queue.inside.queue.messages_max = count
    kept = []
    for _ in range(3):
        world.later(1)
        kept.append(len(queue.inside.queue))
    assert kept == [RETRIES_AT_ONCE, 2 * RETRIES_AT_ONCE, count]
    order = [int(message.payload[1:]) for message, *_ in peek(queue.inside.queue, count)]
    assert sorted(order) == list(range(count))
    for before, after in pairwise([0, *kept]):
        assert order[before:after] == sorted(order[before:after])
    broker.queues.end(queue)
    assert_empty(world)
    assert broker.delayed.gauges(world.now)["delayed_overdue"] == 0


def test_a_topic_that_is_not_valid_any_more_is_lost_and_said() -> None:
    world = Delaying()
    world.delay("a/b/c", "a", 1)
    world.broker.use(Limits(topic_words_max=2, burst_seconds_max=0))
    for route in world.broker.routes.routes():
        world.broker.routes.discard(route)
    world.later(1)
    assert world.broker.delayed.lost == 1
    assert_empty(world)


# -- turns and timers -------------------------------------------------------------------------------------------------


class Clocked:
    """A broker whose turns take so many messages, and whose timers are in the test's hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.soon: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[float], None]]] = []
        self.broker = Broker(
            Limits(burst_seconds_max=0), schedule=lambda: None, next_turn=self.soon.append,
            later=lambda seconds, then: self.timers.append((self.now + seconds, then)), clock=self.tick,
        )
        self.client = self.broker.clients.connect(
            self.broker.new_outbox(), Listener(), 0.0, name="c", user="", agent="", address="192.0.2.1",
            protocol="test", format=FORMAT,
        )  # fmt: skip

    def tick(self) -> float:
        self.now += 0.0001
        return self.now

    def delay(self, payload: bytes, due: float) -> None:
        fields = b"\xa1t\xc4" + bytes((len(payload),)) + payload
        message = Message(FORMAT, b"t", 0, payload, fields=fields, format_data=4)
        outcome = self.broker.publishing.accept(
            Publication(message, self.client.subscriber, due=due), Direct(self.broker.ledger, message, None), self.now
        )
        assert outcome == DELAYED


def test_many_that_are_due_at_once_take_several_turns() -> None:
    world = Clocked()
    world.broker.subscribing.subscribe(world.client, 1, b"t", "amqp", SubscriptionOptions())
    for number in range(1_000):
        world.delay(b"%03d" % number, 5.0)
    world.now = 6.0
    world.broker.turns.begin()
    world.broker.sweep(world.now)
    left = [len(world.broker.delayed)]
    assert 900 < left[0] < 1_000
    world.broker.sweep(world.now)  # does not begin a second time
    while world.soon:
        world.soon.pop(0)()
        left.append(len(world.broker.delayed))
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) < 50
    octets = world.client.outbox.read(1 << 20)
    assert [octets[at : at + 3] for at in range(15, len(octets), 18)] == [b"%03d" % n for n in range(1_000)]


def test_the_time_goes_on_while_they_are_routed() -> None:
    world = Clocked()
    for number in range(100):
        world.delay(b"%03d" % number, 5.0)
    world.now = 6.0
    world.broker.turns.begin()
    world.broker.sweep(6.0)
    times = [world.broker.ledger.now]
    while world.soon:
        world.now += 10.0
        world.soon.pop(0)()
        times.append(world.broker.ledger.now)
    assert len(world.broker.delayed) == 0
    assert times == sorted(times)
    assert times[-1] > 16.0


def test_the_timer_is_set_for_the_first_and_timers_do_not_pile_up() -> None:
    world = Clocked()
    world.delay(b"far", 100.0)
    assert world.timers == []
    world.delay(b"near", 0.5)
    ((at, fired),) = world.timers
    assert 0.5 <= at <= 0.51
    for number in range(100):
        world.delay(b"nearer", 0.5 - number * 0.001)
    assert len(world.timers) < 25
    world.now = at
    fired(world.now)
    assert len(world.broker.delayed) == 1
    world.now = 99.5
    world.timers.clear()
    world.broker.sweep(world.now)
    ((at, fired),) = world.timers
    world.now = at
    fired(world.now)
    assert len(world.broker.delayed) == 0
    assert world.broker.delayed.counters()["delayed_delivered"] == 102


def test_a_publisher_without_a_session_is_its_connection_while_that_exists() -> None:
    world = Clocked()
    broker = world.broker
    for number, no_echo in ((1, True), (2, False)):
        broker.subscribing.subscribe(world.client, number, b"t", "amqp", SubscriptionOptions(no_echo=no_echo))
    world.delay(b"x", 1.0)
    broker.sweep(1.0)
    assert len(world.client.outbox.read(1 << 20)) == 16
    world.delay(b"x", 3.0)
    broker.clients.disconnect(world.client, "test", 2.0)
    broker.sweep(3.0)
    assert broker.delayed.delivered == 2
