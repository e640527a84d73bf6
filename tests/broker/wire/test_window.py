"""The inflight window: identifiers, receive maximum, order, redelivery (MQTT 5, 2.2.1, 3.3.4, 4.3, 4.4, 4.6, 4.9)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt import qos2
from fanlight_broker.wire.expiry import expire
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.message import HOLDER_BYTES, Message
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire.formats import LineFormat
from tests.broker.wire.windows import World


def test_identifiers_count_from_one_and_are_the_windows_own() -> None:
    world = World()
    world.publish(times=2)
    assert world.got() == [(0, 1, 0, 1), (1, 1, 0, 2)]


def test_quality_is_the_lower_of_published_and_granted() -> None:
    """3.8.4"""
    for granted in range(3):
        world = World(qos=granted, receive_max=10)
        for published in range(3):
            world.publish(published)
        assert [qos for _, qos, _, _ in world.got()] == [min(granted, published) for published in range(3)]


def test_never_more_than_the_receive_maximum_unacknowledged() -> None:
    """3.3.4: [MQTT-3.3.4-9]"""
    world = World(receive_max=2)
    world.publish(times=5)
    assert [number for number, *_ in world.got()] == [0, 1]
    assert (world.window.sent, len(world.queue)) == (2, 3)
    assert world.window.acknowledge(1, 0.0)
    assert [number for number, *_ in world.got()] == [2]
    assert world.window.acknowledge(3, 0.0)
    assert world.window.acknowledge(2, 0.0)
    assert [number for number, *_ in world.got()] == [3, 4]


def test_identifiers_wrap_and_leave_out_those_in_flight() -> None:
    """2.2.1: [MQTT-2.2.1-4]"""
    world = World(receive_max=2)
    world.publish()
    world.got()
    given = [1]
    for _ in range(60_000):
        publish(world.route, world.ledger, None, world.message(1))
        identifier = world.window.flights()[1].tag
        given.append(identifier)
        world.window.outbox.read()
        assert world.window.acknowledge(identifier, 0.0)
    assert given.count(1) == 1
    assert 0 < min(given[1:]) < max(given) <= 65_535
    assert given[1:].count(given[1]) == 2  # once around


def test_all_identifiers_can_be_in_flight_at_once() -> None:
    world = World(receive_max=65_535, limit=1 << 30)
    world.publish(times=65_536)
    identifiers = [identifier for *_, identifier in world.got()]
    assert sorted(identifiers) == list(range(1, 65_536))
    assert len(world.queue) == 1
    assert world.window.acknowledge(777, 0.0)
    assert world.got() == [(65_535, 1, 0, 777)]


def test_what_is_not_acknowledged_is_sent_again_in_order_with_dup() -> None:
    """4.4.0: [MQTT-4.4.0-1]; 4.6.0: [MQTT-4.6.0-1]"""
    world = World(receive_max=10)
    world.publish(1, times=3)
    world.publish(2, times=2)
    world.got()
    world.window.acknowledge(2, 0.0)
    world.disconnect()
    world.publish(1)
    world.connect(10)
    assert world.got() == [(0, 1, 1, 1), (2, 1, 1, 3), (3, 2, 1, 4), (4, 2, 1, 5), (5, 1, 0, 6)]


def test_releases_are_sent_again_in_the_order_of_their_receipts() -> None:
    """4.6.0: [MQTT-4.6.0-4]"""
    world = World(receive_max=10)
    world.publish(2, times=3)
    world.got()
    for identifier in (3, 1):
        assert qos2.receive(world.window, identifier)
    world.disconnect()
    world.connect(10)
    assert world.got() == [("REL", 3), ("REL", 1), (1, 2, 1, 2)]
    assert qos2.complete(world.window, 3, 0.0)
    assert qos2.complete(world.window, 1, 0.0)
    assert (world.window.sent, world.window.in_flight) == (1, 1)


def test_redelivery_keeps_to_the_receive_maximum_of_the_new_connection() -> None:
    world = World(receive_max=5)
    world.publish(times=7)
    world.got()
    world.disconnect()
    world.connect(2)
    assert world.got() == [(0, 1, 1, 1), (1, 1, 1, 2)]
    assert world.window.acknowledge(1, 0.0)
    assert world.window.acknowledge(4, 0.0)  # of the connection before: it is not sent again
    assert world.got() == [(2, 1, 1, 3)]
    for identifier in (2, 3, 5):
        world.window.acknowledge(identifier, 0.0)
    assert world.got() == [(4, 1, 1, 5), (5, 1, 0, 6), (6, 1, 0, 7)]
    assert world.window.sent == 2


def test_a_client_that_is_away_keeps_its_acknowledged_messages_and_no_others() -> None:
    world = World(receive_max=10)
    world.disconnect()
    world.publish(0)
    world.publish(1)
    assert world.ledger.dropped_absent == 1
    world.connect(10)
    assert world.got() == [(1, 1, 0, 1)]


@pytest.mark.parametrize(("drop_oldest", "kept"), [(False, [0, 1, 2]), (True, [2, 3, 4])])
def test_a_full_queue_drops_by_its_policy_and_counts(drop_oldest: bool, kept: list[int]) -> None:
    world = World(messages_max=3, drop_oldest=drop_oldest)
    world.disconnect()
    world.publish(times=5)
    assert (world.queue.dropped, world.ledger.dropped_queue) == (2, 2)
    assert [int(message.payload) for message in world.queue.waiting()] == kept
    assert world.ledger.stored_messages == 3


@pytest.mark.parametrize("drop_oldest", [False, True])
def test_a_queue_is_bounded_in_bytes(drop_oldest: bool) -> None:
    world = World(bytes_max=1_000, drop_oldest=drop_oldest)
    world.disconnect()
    world.publish(times=50)
    assert 0 < len(world.queue) < 50
    assert world.queue.nbytes <= 1_000
    assert world.queue.dropped == 50 - len(world.queue)
    publish(world.route, world.ledger, None, Message(world.format, b"t", 0, bytes(2_000), qos=1))
    assert world.queue.dropped == 51 - len(world.queue)
    assert len(world.queue) > 0  # one that can never fit throws nothing else out


def test_all_queues_together_are_bounded() -> None:
    world = World()
    world.ledger.stored_limit = 1_000
    world.disconnect()
    world.publish(times=50)
    assert world.ledger.stored <= 1_000
    assert world.queue.dropped == 50 - len(world.queue)


def test_a_message_that_waited_too_long_is_not_sent_and_is_counted() -> None:
    """3.3.2.3.3: [MQTT-3.3.2-5]"""
    world = World(receive_max=1)
    world.publish(times=1)
    world.publish(expires_at=5.0)
    world.publish(expires_at=50.0)
    world.got()
    world.window.acknowledge(1, 10.0)
    (again,) = world.window.flights()
    assert again.message is not None
    assert b"left=40 " in world.window.outbox.read()  # what is left of it: [MQTT-3.3.2-6]
    assert (world.queue.expired, world.ledger.expired) == (1, 1)
    world.publish(expires_at=11.0)
    assert expire(world.queue, 11.0) == 1
    assert len(world.queue) == world.queue.nbytes == 0


def test_a_full_outbox_makes_messages_wait_but_never_the_only_one() -> None:
    world = World(receive_max=10, limit=100)
    world.publish(times=5)
    assert world.window.sent < 5
    assert world.window.in_flight + len(world.queue) == 5
    assert world.ledger.dropped_newest == 0
    seen = []
    while found := world.got():
        for number, _, _, identifier in found:
            seen.append(number)
            world.window.acknowledge(identifier, 0.0)
    assert seen == list(range(5))


def test_drop_oldest_never_drops_what_is_to_be_acknowledged() -> None:
    world = World(receive_max=10, policy="drop_oldest", limit=200)
    world.publish(1)
    world.publish(0, times=50)
    numbers = [number for number, *_ in world.got()]
    assert numbers[0] == 0
    assert numbers[-1] == 50
    assert len(numbers) < 51


def test_a_queue_half_full_holds_publishers_back_until_it_has_drained_to_a_quarter() -> None:
    world = World(receive_max=1, messages_max=8)
    world.publish(times=4)
    assert world.route.blocker_of(None) is None
    world.publish()
    blocker = world.route.blocker_of(None)
    assert blocker is world.window.outbox
    world.got()
    identifier = 1
    while len(world.queue) > 2:
        assert world.route.blocker_of(None) is blocker
        world.ledger.pop_dirty()
        blocker.clean()
        world.window.acknowledge(identifier, 0.0)
        world.got()
        identifier += 1
    assert blocker in world.ledger.pop_dirty()  # so its flush lets them go on
    assert world.route.blocker_of(None) is blocker or not blocker.pausing
    world.window.acknowledge(identifier, 0.0)
    world.got()
    assert world.route.blocker_of(None) is None


def test_a_message_kept_for_many_sessions_is_stored_once() -> None:
    world = World()
    worlds = [Window(world.outbox(), Queue(world.ledger, 10, 10_000)) for _ in range(5)]
    targets = [Target(window, world.variants.of(world.format, 1), 1) for window in worlds]
    message = world.message(1)
    publish(Route(b"\0t", targets, []), world.ledger, None, message)
    assert (world.ledger.stored_messages, world.ledger.stored) == (1, message.nbytes + 5 * HOLDER_BYTES)
    for window in worlds:
        assert window.end() == 1
        assert not window.queue.drop(1)
    assert (world.ledger.stored_messages, world.ledger.stored, world.ledger.dropped_session) == (0, 0, 5)


def test_a_session_that_ends_gives_everything_back() -> None:
    world = World(receive_max=2)
    world.publish(2, times=5)
    qos2.receive(world.window, 1)
    assert world.window.end() == 4
    assert (world.window.in_flight, len(world.queue)) == (0, 3)
    assert world.queue.drop(2)
    assert not world.queue.drop(2)
    assert (world.ledger.stored, len(world.queue)) == (0, 0)
    assert world.ledger.dropped_session == 4


def test_a_message_too_large_for_the_client_is_dropped_as_if_it_had_been_acknowledged() -> None:
    """3.1.2.11.4: [MQTT-3.1.2-25]"""
    world = World(receive_max=1)
    world.publish()
    publish(world.route, world.ledger, None, Message(world.format, b"t", 0, bytes(1_000), qos=1))
    world.publish()
    world.window.outbox.frame_max = 100
    world.window.acknowledge(1, 0.0)
    assert [number for number, *_ in world.got()] == [0, 1]
    assert world.ledger.dropped_too_large == 1
    publish(world.route, world.ledger, None, Message(world.format, b"t", 0, bytes(1_000), qos=1))
    world.window.acknowledge(2, 0.0)
    assert world.got() == []
    assert world.ledger.dropped_too_large == 2
    assert world.window.in_flight == 0


def test_the_session_goes_on_in_another_format_of_the_family() -> None:
    world = World(receive_max=1)
    world.publish(times=2)
    world.disconnect()
    other = LineFormat("other", "lines")
    world.window.rebind(world.variants, other)
    world.connect(5)
    assert [number for number, *_ in world.got()] == [0, 1]
    assert other.encoded == 2
    assert {flight.variant.format for flight in world.window.flights()} == {other}


def member(world: World, receive_max: int, qos: int = 1) -> tuple[Window, Target]:
    window = Window(world.outbox(), Queue(world.ledger, 100, 1 << 20))
    window.attach(world.outbox(), receive_max)
    window.resume(0.0)
    return window, Target(window, world.variants.of(world.format, qos), 1)


def shared(world: World, *members: Target) -> tuple[QueueGroup, Route]:
    group, queue = QueueGroup(), Queue(world.ledger, 100, 1 << 20)
    for target in members:
        group.add(target, queue)
    return group, Route(b"\0t", [], [group])


def numbers(window: Window) -> list[int]:
    return [int(flight.message.payload) for flight in window.flights() if flight.message is not None]


def test_what_no_member_can_take_goes_to_whichever_has_room_next() -> None:
    world = World()
    (first, a), (second, b) = member(world, 1), member(world, 1)
    group, route = shared(world, a, b)
    for _ in range(4):
        assert publish(route, world.ledger, None, world.message(1)) == 1
    assert sorted(numbers(first) + numbers(second)) == [0, 1]
    assert group.queue is not None
    assert len(group.queue) == 2
    for expected in (2, 3):
        second.acknowledge(second.flights()[0].tag, 0.0)
        assert numbers(second) == [expected]
    assert len(first.queue) == len(second.queue) == len(group.queue) == 0


def test_a_member_that_goes_leaves_its_quality_1_to_others_and_its_quality_2_to_nobody() -> None:
    """4.8.2"""
    world = World()
    (first, a), (second, b) = member(world, 10, 2), member(world, 10, 2)
    group, route = shared(world, a)
    first.leave()  # so that all of it is taken from the group's queue
    for qos in (1, 2, 1):
        publish(route, world.ledger, None, world.message(qos))
    first.attach(world.outbox(), 10)
    first.resume(0.0)
    assert numbers(first) == [0, 1, 2]
    group.add(b)
    first.leave()
    group.feed(0.0)
    assert numbers(first) == [1]
    assert numbers(second) == [0, 2]


def test_quality_0_for_a_group_goes_to_a_member_that_is_there() -> None:
    world = World()
    (first, a), (second, b) = member(world, 1), member(world, 1)
    _, route = shared(world, a, b)
    first.leave()
    first.outbox.discard()
    for _ in range(3):
        assert publish(route, world.ledger, None, world.message(0)) == 1
    assert second.outbox.messages == 3
    second.leave()
    second.outbox.discard()
    assert publish(route, world.ledger, None, world.message(0)) == 0


def test_a_groups_queue_ends_with_its_last_member_that_has_a_session() -> None:
    world = World()
    window, target = member(world, 1)
    group, route = shared(world, target)
    for _ in range(3):
        publish(route, world.ledger, None, world.message(1))
    ended = group.remove(target)
    assert ended is not None
    assert not ended.drop(100)
    assert group.queue is None
    assert window.consumers == []
    assert world.ledger.dropped_session == 2
    assert world.ledger.stored_messages == 1


@settings(max_examples=140, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50)), max_size=80), st.integers(1, 5))
def test_nothing_is_lost_repeated_or_out_of_order(actions: list[tuple[int, int]], receive_max: int) -> None:
    """Whatever the client does: QoS 2 arrives once and in order, QoS 1 at least once, and in order the first time."""
    world = World(receive_max=receive_max, messages_max=1_000)
    arrived: list[int] = []  # QoS 1, first arrivals; QoS 2, all that are new by their identifier
    pending: dict[int, int] = {}  # at the client: identifier -> QoS
    released: set[int] = set()
    online = True

    def read() -> None:
        for item in world.got():
            if item[0] == "REL":
                released.add(item[1])
                continue
            number, qos, dup, identifier = item
            if not (dup and identifier in pending and qos == 2) and number not in arrived:
                arrived.append(number)
            pending[identifier] = qos

    def act(kind: int, nth: int) -> None:
        nonlocal online
        if kind in (0, 1):
            world.publish(1 + kind)
        elif kind == 2 and online:
            world.disconnect()
            online = False
        elif kind == 3 and not online:
            world.connect(receive_max)
            online = True
        elif online:
            read()
            if pending:
                identifier = list(pending)[nth % len(pending)]
                if pending[identifier] == 1:
                    assert world.window.acknowledge(identifier, 0.0)
                    del pending[identifier]
                elif identifier not in released:
                    assert qos2.receive(world.window, identifier)
                    released.add(identifier)
                else:
                    assert qos2.complete(world.window, identifier, 0.0)
                    del pending[identifier]
                    released.discard(identifier)
        assert world.window.sent <= receive_max

    for kind, nth in actions:
        act(kind, nth)
    act(3, 0)
    for _ in range(4 * world.published + 4):
        act(6, 0)
    assert sorted(arrived) == list(range(world.published))
    assert arrived == sorted(arrived)
    assert (world.window.in_flight, len(world.queue), world.ledger.stored) == (0, 0, 0)
