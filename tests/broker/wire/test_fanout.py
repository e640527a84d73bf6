"""Who gets a copy: no-echo, credit, endings, queue groups, and the counters."""

import pytest

from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.target import UNLIMITED, Target
from tests.broker.wire.publisher import Publisher, message, native_target


class Floor:
    """A ledger, a publisher and outboxes."""

    def __init__(self) -> None:
        self.ledger = Ledger(1 << 30, lambda: None)
        self.publisher = Publisher(self.ledger)

    def outbox(self, limit: int = 1 << 20, policy: str = "drop_newest") -> Outbox:
        return Outbox(self.ledger, limit, policy)


def test_each_target_gets_its_own_number_in_the_same_bytes() -> None:
    floor = Floor()
    outboxes = [floor.outbox() for _ in range(3)]
    numbers = [0, 0x0102_0304, 0xFFFF_FFFF]
    targets = [native_target(outbox, number) for outbox, number in zip(outboxes, numbers, strict=True)]
    floor.publisher.route(b"t", targets)
    for payload in (b"small", bytes(100_000)):
        assert floor.publisher.routed(b"t", payload) == 3
        for outbox, number in zip(outboxes, numbers, strict=True):
            assert outbox.read() == message(number, b"t", payload)


def test_no_echo_leaves_the_publisher_out_and_nobody_else() -> None:
    floor = Floor()
    mine = native_target(floor.publisher.outbox, 1, no_echo=True)
    other = native_target(floor.outbox(), 2, no_echo=True)
    floor.publisher.route(b"t", [mine, other])
    assert floor.publisher.routed(b"t") == 1
    assert (mine.delivered, other.delivered) == (0, 1)


def test_a_message_for_nobody_is_counted() -> None:
    floor = Floor()
    route = floor.publisher.route(b"t", [])
    assert floor.publisher.routed(b"t") == 0
    assert (floor.ledger.messages_in, floor.ledger.unroutable, floor.ledger.receipts) == (1, 1, 1)
    assert route.hits == 1


def test_a_closed_outbox_gets_nothing_and_does_not_count() -> None:
    floor = Floor()
    outbox = floor.outbox()
    floor.publisher.route(b"t", [native_target(outbox, 1)])
    outbox.close()
    assert floor.publisher.routed(b"t") == 0
    assert outbox.size == 0


def test_without_credit_messages_wait_within_the_bounds() -> None:
    floor = Floor()
    outbox = floor.outbox(limit=1_000)
    target = native_target(outbox, 1, credit=2, waiting_max=3)
    floor.publisher.route(b"t", [target])
    for n in range(7):
        assert floor.publisher.routed(b"t", b"%d" % n) == 1
    assert (target.delivered, target.waiting_messages, target.dropped) == (2, 3, 2)
    assert floor.ledger.dropped_credit == outbox.dropped == 2
    assert outbox.awaiting_credit == sum(56 + len(message(1, b"t", b"%d" % n)) for n in (2, 3, 4))
    assert floor.ledger.used == outbox.size + outbox.awaiting_credit
    target.grant(2)
    assert (target.credit, target.waiting_messages) == (0, 1)
    target.grant(5)
    assert (target.credit, target.waiting_messages, outbox.awaiting_credit) == (4, 0, 0)
    assert outbox.read() == b"".join(message(1, b"t", b"%d" % n) for n in range(5))
    assert floor.ledger.used == 0


def test_what_waits_counts_towards_the_outbox_limit() -> None:
    floor = Floor()
    outbox = floor.outbox(limit=300)
    poor, rich = native_target(outbox, 1, credit=0, waiting_max=100), native_target(outbox, 2)
    floor.publisher.route(b"p", [poor])
    floor.publisher.route(b"r", [rich])
    while not poor.dropped:
        floor.publisher.publish(b"p", bytes(30))
        half_full = 2 * outbox.awaiting_credit > outbox.limit
        assert floor.ledger.attention == [outbox] * half_full, "reported once"
    assert outbox.awaiting_credit <= 300
    floor.publisher.publish(b"r", bytes(300 - outbox.awaiting_credit))
    assert (rich.delivered, rich.dropped) == (0, 1)
    poor.cancel()
    assert outbox.awaiting_credit == floor.ledger.used == 0
    floor.publisher.publish(b"r", bytes(30))
    assert rich.delivered == 1


@pytest.mark.parametrize(("credit", "more"), [(UNLIMITED, 1), (5, 2**32 - 5), (0, -1)])
def test_a_grant_that_the_protocol_forbids_changes_nothing(credit: int, more: int) -> None:
    target = native_target(Floor().outbox(), 1, credit=credit)
    with pytest.raises(ValueError, match="credit"):
        target.grant(more)
    assert target.credit == credit


def test_a_target_ends_after_so_many_and_says_so_once() -> None:
    floor = Floor()
    target = native_target(floor.outbox(), 1, after=2)
    floor.publisher.route(b"t", [target])
    assert [floor.publisher.routed(b"t") for _ in range(4)] == [1, 1, 0, 0]
    assert target.ended
    target.end()
    assert floor.ledger.pop_ended() == [target]
    assert floor.ledger.pop_ended() == []


def test_an_end_within_a_grant_drops_what_still_waits() -> None:
    floor = Floor()
    outbox = floor.outbox()
    target = native_target(outbox, 1, credit=0, after=2, waiting_max=10)
    floor.publisher.route(b"t", [target])
    for _ in range(5):
        floor.publisher.publish(b"t", b"x")
    target.grant(10)
    assert (target.delivered, target.dropped, target.waiting_messages) == (2, 3, 0)
    assert floor.ledger.pop_ended() == [target]
    assert outbox.awaiting_credit == 0


def test_end_after_counts_what_was_delivered_already() -> None:
    floor = Floor()
    target = native_target(floor.outbox(), 1)
    floor.publisher.route(b"t", [target])
    for _ in range(3):
        floor.publisher.publish(b"t", b"")
    assert target.end_after(3) is True
    assert target.end_after(5) is False
    assert target.remaining == 2
    assert target.end_after(2**64 - 1) is False
    assert target.remaining == 2**63 - 1


def group_of(*targets: Target) -> QueueGroup:
    group = QueueGroup()
    for target in targets:
        group.add(target)
    return group


def test_members_take_turns_when_they_have_the_same_pending() -> None:
    floor = Floor()
    members = [native_target(floor.outbox(), number) for number in range(3)]
    floor.publisher.route(b"t", [], [group_of(*members)])
    for _ in range(9):
        assert floor.publisher.routed(b"t") == 1
        for member in members:
            member.outbox.read()
    assert [member.delivered for member in members] == [3, 3, 3]


def test_the_member_with_the_least_pending_is_chosen() -> None:
    floor = Floor()
    busy, idle = native_target(floor.outbox(), 1), native_target(floor.outbox(), 2)
    busy.outbox.write(bytes(500))
    floor.publisher.route(b"t", [], [group_of(busy, idle)])
    for _ in range(20):
        floor.publisher.publish(b"t", bytes(20))
    sizes = (busy.outbox.size, idle.outbox.size)
    assert abs(sizes[0] - sizes[1]) < 60
    assert idle.delivered > busy.delivered > 0


def test_stalled_members_are_passed_over_while_another_is_not() -> None:
    floor = Floor()
    full = native_target(floor.outbox(limit=100), 1)
    full.outbox.write(bytes(150))
    poor = native_target(floor.outbox(), 2, credit=0, waiting_max=5)
    good = native_target(floor.outbox(), 3)
    good.outbox.write(bytes(5_000))  # pending, but able to take
    group = group_of(full, poor, good)
    floor.publisher.route(b"t", [], [group])
    for _ in range(4):
        floor.publisher.publish(b"t", b"x")
    assert good.delivered == 4
    group.remove(good)
    assert len(group) == 2
    floor.publisher.publish(b"t", b"x")
    assert poor.waiting_messages == 1
    with pytest.raises(ValueError, match="not a member"):
        group.remove(good)


def test_a_group_holds_a_publisher_back_only_when_all_members_do() -> None:
    floor = Floor()
    members = [native_target(floor.outbox(limit=500, policy="pause"), number) for number in range(2)]
    floor.publisher.route(b"t", [], [group_of(*members)])
    sent = 0
    while floor.publisher.publish(b"t", bytes(100)):
        sent += 1
        assert sent < 100
    assert all(member.outbox.hold_back() for member in members)
    assert floor.publisher.lane.blocker in [member.outbox for member in members]
    assert sum(member.delivered for member in members) == sent
    members[1].outbox.read()
    assert members[1].outbox.drained()
    assert floor.publisher.publish(b"t", b"")


def test_a_group_and_its_targets_each_get_a_copy() -> None:
    floor = Floor()
    single, member = native_target(floor.outbox(), 1), native_target(floor.outbox(), 2)
    route = floor.publisher.route(b"t", [single], [group_of(member), QueueGroup()])
    assert len(route) == 3
    assert floor.publisher.routed(b"t", bytes(50_000)) == 2  # the empty group is nobody
    assert single.outbox.size == member.outbox.size
