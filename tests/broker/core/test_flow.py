"""Flow: who is slow is told of once, who is held back goes on once, who blocks too long is cut off."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.budget import HoldTime
from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.core.subscriber import Client
from fanlight_broker.wire.outbox import Outbox
from tests.broker.core.parts import Listener, at_once, broker_with, connect, subscribe
from tests.broker.wire.publisher import Publisher


def fill(broker: Broker, outbox: Outbox, policy: str) -> None:
    """Let an outbox run over."""
    outbox.policy = policy
    client = outbox.owner
    publisher = Publisher(broker.ledger)
    target = subscribe(broker, client, 99, b"fill")
    publisher.route(b"fill", [target])
    while not outbox.overflows:
        publisher.publish(b"fill", bytes(10_000))
    broker.subscribing.unsubscribe(client, 99)


def test_a_slow_consumer_is_attended_to_once() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    client, connection = connect(broker)
    fill(broker, client.outbox, "drop_newest")
    broker.finish()
    client.outbox.read()
    fill(broker, client.outbox, "drop_newest")
    broker.finish()
    assert broker.flow.slow_consumers == 1
    assert connection.told == []


def test_a_slow_consumer_under_disconnect_is_cut_off() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    client, connection = connect(broker)
    fill(broker, client.outbox, "disconnect")
    broker.finish()
    assert connection.told == [("cut off", "slow_consumer")]
    assert broker.flow.slow_consumers_disconnected == 1


def waiting(broker: Broker, blocker: Outbox, since: float, count: int = 2) -> list[tuple[Client, Listener]]:
    publishers = [connect(broker) for _ in range(count)]
    for n, (publisher, _) in enumerate(publishers):
        broker.flow.hold_back(publisher, blocker, since + n)
    return publishers


def test_publishers_go_on_in_the_order_they_came() -> None:
    broker = broker_with()
    slow, _ = connect(broker)
    publishers = waiting(broker, slow.outbox, 0.0, 3)
    assert broker.flow.drained(slow.outbox, 9.0) == [publisher for publisher, _ in publishers]
    assert broker.flow.drained(slow.outbox, 9.0) == []
    assert broker.flow.publishers_paused == 3


def test_the_time_counts_from_the_first_that_waits_and_goes_on_counting_after_draining() -> None:
    broker = broker_with(pause_seconds_max=10, pause_window_seconds=60)
    slow, connection = connect(broker, "pause")
    waiting(broker, slow.outbox, 0.0)
    broker.sweep(9.9)
    assert connection.told == []
    broker.flow.drained(slow.outbox, 9.9)
    publishers = waiting(broker, slow.outbox, 30.0)
    broker.sweep(30.05)
    assert connection.told == []
    broker.sweep(30.1)
    broker.sweep(40.0)
    assert connection.told == [("cut off", "slow_consumer")]
    assert all(("unblocked",) in listener.told for _, listener in publishers)


def test_the_time_is_whole_again_after_a_window_without_a_hold() -> None:
    broker = broker_with(pause_seconds_max=10, pause_window_seconds=60)
    slow, connection = connect(broker, "pause")
    for start in (0.0, 70.0, 140.0):
        waiting(broker, slow.outbox, start, 1)
        broker.sweep(start + 9.9)
        broker.flow.drained(slow.outbox, start + 9.9)
    assert connection.told == []
    assert broker.flow.held_seconds(200.0) == pytest.approx(29.7)


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "disconnect"])
def test_a_burst_holds_publishers_for_its_budget_and_nobody_is_cut_off(policy: str) -> None:
    broker = broker_with(burst_seconds_max=0.1, burst_window_seconds=10)
    slow, connection = connect(broker, policy)
    assert slow.outbox.patient
    ((publisher, listener),) = waiting(broker, slow.outbox, 0.0, 1)
    broker.sweep(0.05)
    assert listener.told == [("held",)]
    assert broker.flow.is_held_back(publisher)
    broker.sweep(0.1)
    assert listener.told == [("held",), ("goes on", 0.1), ("unblocked",)]
    assert (connection.told, slow.outbox.patient, slow.outbox.hold_back()) == ([], False, False)


def test_who_has_caught_up_may_hold_again_after_the_window_and_not_before() -> None:
    broker = broker_with(burst_seconds_max=0.1, burst_window_seconds=10)
    slow, _ = connect(broker, "drop_newest")
    waiting(broker, slow.outbox, 0.0, 1)
    broker.sweep(0.1)
    broker.sweep(10.0)
    assert not slow.outbox.patient
    broker.sweep(10.1)
    assert slow.outbox.patient


def test_who_has_not_caught_up_gets_no_new_time() -> None:
    broker = broker_with(burst_seconds_max=0.1, burst_window_seconds=10, outbox_bytes_max=64 * 1024)
    slow, _ = connect(broker, "drop_newest")
    fill(broker, slow.outbox, "drop_newest")
    slow.outbox.patient = True
    waiting(broker, slow.outbox, 0.0, 1)
    broker.sweep(0.1)
    broker.sweep(1_000.0)
    assert not slow.outbox.patient
    slow.outbox.read()
    broker.sweep(1_000.25)
    assert slow.outbox.patient


def test_a_publisher_is_held_no_longer_for_many_slow_consumers_than_for_one() -> None:
    """Nor for one that connects again and again."""
    broker = broker_with(burst_seconds_max=0.1, burst_window_seconds=10)
    publisher, _ = connect(broker)
    now = 0.0
    for _ in range(3):
        slow, _ = connect(broker)
        slow.outbox.hold_publishers()
        if slow.outbox.hold_back(publisher.outbox):
            broker.flow.hold_back(publisher, slow.outbox, now)
            now += 0.06
            broker.sweep(now)
            if broker.flow.is_held_back(publisher):
                broker.clients.disconnect(slow, "gone", now)
    assert broker.flow.held_seconds(now) == pytest.approx(0.12)  # the sweep came that late: see the next test
    assert publisher.outbox.exempt
    other, _ = connect(broker)
    assert slow.outbox.hold_back(other.outbox)
    broker.sweep(now + 9.9)
    assert publisher.outbox.exempt
    broker.sweep(now + 10.1)
    assert not publisher.outbox.exempt


def test_time_is_up_when_it_is_up_and_not_at_the_next_sweep() -> None:
    calls: list[tuple[float, Callable[[float], None]]] = []
    limits = Limits(burst_seconds_max=0.1, burst_window_seconds=10)
    broker = Broker(limits, lambda: None, at_once, lambda seconds, then: calls.append((seconds, then)))
    (slow, _), (first, told), (second, _) = connect(broker), connect(broker), connect(broker)
    broker.flow.hold_back(first, slow.outbox, 5.0)
    broker.flow.hold_back(second, slow.outbox, 5.02)
    ((seconds, ring),) = calls  # one for both
    assert seconds == pytest.approx(0.1)
    ring(5.1)
    assert told.told == [("held",), ("goes on", 0.1), ("unblocked",)]
    assert len(calls) == 1
    assert broker.flow.publishers_held == 0


def test_a_call_back_that_comes_after_the_hold_is_over_does_nothing_and_asks_for_no_other() -> None:
    calls: list[Callable[[float], None]] = []
    broker = Broker(Limits(), lambda: None, at_once, lambda seconds, then: calls.append(then))
    (slow, _), (publisher, told) = connect(broker), connect(broker)
    broker.flow.hold_back(publisher, slow.outbox, 5.0)
    assert broker.flow.drained(slow.outbox, 5.01) == [publisher]
    calls.pop()(5.1)
    assert (calls, told.told) == ([], [("held",), ("goes on", 0.01)])


@pytest.mark.parametrize(
    ("operator", "allowed", "wanted", "granted"),
    [
        ("drop_newest", False, "pause", "drop_newest"),
        ("drop_oldest", False, "pause", "drop_oldest"),
        ("drop_newest", True, "pause", "pause"),
        ("pause", False, "pause", "pause"),
        ("drop_newest", False, "drop_oldest", "drop_oldest"),
        ("drop_newest", False, "disconnect", "disconnect"),
        ("pause", False, None, "pause"),
    ],
)
def test_a_client_gets_the_policy_pause_only_where_the_operator_allows_it(
    operator: str, allowed: bool, wanted: str | None, granted: str
) -> None:
    broker = broker_with(slow_policy=SlowPolicy(operator), pause_allowed=allowed)
    assert broker.new_outbox(wanted).policy == granted


def shown_slow(inspection: BrokerInspection, limit: int = 10) -> Sequence[dict[str, Any]]:
    steps = inspection.slow_consumers(limit=limit)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Sequence[dict[str, Any]] = end.value
            return found


def test_who_was_full_is_shown_until_it_leaves_and_nobody_else_is_looked_at() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    inspection = BrokerInspection(broker, lambda: 1.0, dict, lambda: True)
    clients = [connect(broker)[0] for _ in range(5)]
    assert broker.flow.behind == []
    for slow in clients[1:4]:
        fill(broker, slow.outbox, "drop_newest")
    clients[2].outbox.read(1 << 20)
    assert {view["connection"] for view in shown_slow(inspection)} == {each.number for each in clients[1:4]}
    assert {each.owner for each in broker.flow.behind} == set(clients[1:4])
    (worst,) = shown_slow(inspection, 1)
    assert worst["dropped"] == max(each.outbox.dropped for each in clients)
    assert (worst["reason"], worst["policy"]) == ("messages were dropped", "drop_newest")
    for slow in clients[1:4]:
        broker.clients.disconnect(slow, "gone", 0.0)
    assert (shown_slow(inspection), broker.flow.behind) == ([], [])


def test_who_is_half_full_is_shown_until_it_has_caught_up() -> None:
    """The sockets report it: see net.flush, and test_flush."""
    broker = broker_with(outbox_bytes_max=64 * 1024)
    inspection = BrokerInspection(broker, lambda: 1.0, dict, lambda: True)
    client, _ = connect(broker)
    for _ in range(40):
        client.outbox.write(bytes(1_000))
    broker.ledger.attention.append(client.outbox)
    assert [view["reason"] for view in shown_slow(inspection)] == ["outbox more than half full"]
    broker.flow.handle_overflows()
    assert (client.slow, broker.flow.slow_consumers) == (False, 0)
    assert [view["slow_seconds"] for view in shown_slow(inspection)] == [None]
    client.outbox.read(1 << 20)
    assert shown_slow(inspection) == []
    assert broker.flow.behind == []


def test_who_holds_is_shown_with_its_time_and_who_is_held_too() -> None:
    broker = broker_with(burst_seconds_max=0.1)
    (slow, _), (publisher, _) = connect(broker), connect(broker)
    slow.outbox.hold_publishers()
    broker.flow.hold_back(publisher, slow.outbox, 1.0)
    inspection = BrokerInspection(broker, lambda: 1.05, dict, lambda: True)
    (entry,) = shown_slow(inspection)
    assert (entry["connection"], entry["reason"]) == (slow.number, "holds publishers back")
    assert entry["held_publishers_seconds"] == pytest.approx(0.05)
    assert entry["slow_seconds"] is None  # nothing was full yet
    by_number = {view["connection"]: view for view in inspection.connections(offset=0, limit=10)}
    assert by_number[publisher.number]["held"]
    assert by_number[publisher.number]["held_seconds"] == pytest.approx(0.05)
    assert not by_number[slow.number]["held"]
    assert inspection.gauges()["publishers_held"] == 1
    assert inspection.counters()["publishers_held_ms"] == 50


def test_who_leaves_does_not_wait_and_is_not_waited_for() -> None:
    broker = broker_with(pause_seconds_max=10)
    slow, connection = connect(broker, "pause")
    (first, _), (second, _) = waiting(broker, slow.outbox, 0.0)
    assert broker.clients.disconnect(first, "gone", 0.0) == []
    assert broker.clients.disconnect(slow, "gone", 0.0) == [second]
    broker.sweep(100.0)
    assert connection.told == []


def test_nobody_is_cut_off_for_publishers_that_have_left() -> None:
    broker = broker_with(pause_seconds_max=10)
    slow, connection = connect(broker, "pause")
    for publisher, _ in waiting(broker, slow.outbox, 0.0):
        broker.clients.disconnect(publisher, "gone", 0.0)
    broker.sweep(100.0)
    assert connection.told == []


def test_a_blocking_outbox_that_goes_is_not_counted_as_blocking_any_more() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    slow, _ = connect(broker)
    fill(broker, slow.outbox, "pause")
    assert broker.ledger.pausing == 1
    assert slow.outbox.hold_back()
    broker.clients.disconnect(slow, "gone", 0.0)
    assert broker.ledger.pausing == 0
    assert broker.ledger.used == 0
    assert not slow.outbox.hold_back()


@pytest.mark.parametrize(("policy", "budget"), [("pause", 10.0), ("drop_newest", 0.1)])
def test_a_standstill_of_the_broker_takes_nothing_of_a_budget(policy: str, budget: float) -> None:
    """As with SIGSTOP: nobody could read, and nobody could be let go."""
    broker = broker_with(pause_seconds_max=10, burst_seconds_max=0.1)
    slow, connection = connect(broker, policy)
    broker.standstills.note(100.0, 0.25)
    ((publisher, _),) = waiting(broker, slow.outbox, 100.0, 1)
    broker.standstills.note(120.25, 0.25)
    broker.sweep(120.0 + 0.9 * budget)
    assert broker.flow.is_held_back(publisher)
    assert connection.told == []
    assert broker.flow.held_seconds(120.0 + 0.9 * budget) == pytest.approx(0.9 * budget)
    broker.sweep(120.0 + budget)
    assert not broker.flow.is_held_back(publisher)
    assert connection.told == ([("cut off", "slow_consumer")] if policy == "pause" else [])


def test_a_call_back_that_comes_behind_a_standstill_lets_nobody_go_too_early_and_asks_for_another() -> None:
    calls: list[tuple[float, Callable[[float], None]]] = []
    limits = Limits(burst_seconds_max=0.1, burst_window_seconds=10)
    broker = Broker(limits, lambda: None, at_once, lambda seconds, then: calls.append((seconds, then)))
    (slow, _), (publisher, _) = connect(broker), connect(broker)
    broker.standstills.note(5.0, 0.25)
    broker.flow.hold_back(publisher, slow.outbox, 5.0)
    broker.standstills.note(12.29, 0.25)  # it stood still for 7.04 s
    calls.pop()[1](12.1)
    assert broker.flow.is_held_back(publisher)
    ((seconds, ring),) = calls
    assert seconds == pytest.approx(0.04)
    ring(12.14)
    assert not broker.flow.is_held_back(publisher)


class Counting(dict[int, HoldTime]):
    """The hold times of one client: it counts who looks at them."""

    looks = 0

    def get(self, *of: Any) -> Any:
        Counting.looks += 1
        return super().get(*of)


def test_the_clock_s_look_at_the_holds_costs_nothing_for_those_that_are_not_due() -> None:
    broker = broker_with(burst_seconds_max=10, burst_window_seconds=60)
    slow, _ = connect(broker, "drop_newest")
    publishers = [connect(broker)[0] for _ in range(100)]
    for n, publisher in enumerate(publishers):
        publisher.hold_times = Counting()
        blocker = connect(broker, "drop_newest")[0].outbox if n % 2 else slow.outbox
        broker.flow.hold_back(publisher, blocker, 1.0 + n / 10)
    Counting.looks = 0
    broker.flow.sweep(10.9)
    assert (Counting.looks, broker.flow.publishers_held) == (0, 100)
    broker.flow.sweep(11.0)  # the time of the slow one is used up
    assert broker.flow.publishers_held == 50
    Counting.looks = 0
    broker.flow.sweep(11.2)  # that of one more publisher
    assert broker.flow.publishers_held == 49
    assert Counting.looks < 10


@pytest.mark.parametrize("how", ["drained", "gone", "used up"])
def test_very_many_publishers_of_one_consumer_go_on_some_in_each_turn(how: str) -> None:
    soon: list[Callable[[], None]] = []
    times = iter(n / 4_000 for n in range(1_000_000))  # a clock that a look moves on by 0.25 ms: 8 looks are a turn
    broker = Broker(Limits(burst_seconds_max=5, share_percent=100), lambda: None, soon.append, clock=times.__next__)
    slow, _ = connect(broker, "drop_newest")
    publishers = [connect(broker)[0] for _ in range(1_000)]
    for publisher in publishers:
        broker.flow.hold_back(publisher, slow.outbox, 1.0)
    broker.turns.begin()
    if how == "drained":
        released = broker.flow.drained(slow.outbox, 2.0)
    elif how == "gone":
        released = broker.clients.disconnect(slow, "test", 2.0)
    else:
        broker.flow.sweep(6.0)
        released = []
    told = [publisher.connection for publisher in publishers]
    held, turns = [broker.flow.publishers_held], 0
    while soon:
        now, soon[:] = list(soon), []
        turns += 1
        for work in now:
            work()
        held.append(broker.flow.publishers_held)
    steps = [before - after for before, after in itertools.pairwise([1_000, *held])]
    assert max(steps) <= 10 * 16
    assert held[-1] == 0
    gone_on = sum(("unblocked",) in connection.told for connection in told if isinstance(connection, Listener))
    assert gone_on + len(released) == 1_000
    assert not set(released) & {publisher for publisher in publishers if ("unblocked",) in told_of(publisher)}


def told_of(client: Client) -> list[tuple[Any, ...]]:
    assert isinstance(client.connection, Listener)
    return client.connection.told


def test_many_that_overflow_together_take_nothing_more_and_are_disconnected_some_in_each_turn() -> None:
    soon: list[Callable[[], None]] = []
    times = iter(n / 4_000 for n in range(1_000_000))  # a clock that a look moves on by 0.25 ms: 8 looks are a turn
    limits = Limits(outbox_bytes_max=64 * 1024, burst_seconds_max=0, share_percent=100)
    broker = Broker(limits, lambda: None, soon.append, clock=times.__next__)
    slow = [connect(broker, "disconnect")[0] for _ in range(100)]
    told = [told_of(client) for client in slow]
    publisher = Publisher(broker.ledger)
    publisher.route(b"fill", [subscribe(broker, client, 1, b"fill") for client in slow])
    while not all(client.outbox.overflows for client in slow):
        publisher.publish(b"fill", bytes(10_000))
    soon.clear()  # of the set-up
    broker.turns.begin()
    broker.finish()
    assert all(client.outbox.closed for client in slow)
    broker.clients.disconnect(slow[-1], "gone", 0.0)
    cut_off = [sum(map(len, told))]
    while soon:
        now, soon[:] = list(soon), []
        for work in now:
            work()
        cut_off.append(sum(map(len, told)))
    assert max(after - before for before, after in itertools.pairwise([0, *cut_off])) <= 10
    assert told == [[("cut off", "slow_consumer")]] * 99 + [[]]
    assert broker.flow.slow_consumers_disconnected == 99


def test_one_that_was_full_before_it_is_disconnected_is_disconnected_once() -> None:
    soon: list[Callable[[], None]] = []
    times = iter(range(1_000_000))  # each look ends the turn
    limits = Limits(outbox_bytes_max=64 * 1024, burst_seconds_max=5, share_percent=100)
    broker = Broker(limits, lambda: None, soon.append, clock=lambda: float(next(times)))
    slow = [connect(broker, "disconnect")[0] for _ in range(3)]
    told = [told_of(client) for client in slow]
    publisher = Publisher(broker.ledger)
    publisher.route(b"fill", [subscribe(broker, client, 1, b"fill") for client in slow])
    broker.turns.begin()
    while not all(client.outbox.noticed for client in slow):
        publisher.publish(b"fill", bytes(10_000))
    broker.finish()  # full, and patient for a while: the first is reported, the others wait for a turn
    for client in slow:
        client.outbox.lose_patience()
    while not all(client.outbox.doomed for client in slow):
        publisher.publish(b"fill", bytes(10_000))
    broker.finish()
    while soon:
        soon.pop(0)()
    assert told == [[("cut off", "slow_consumer")]] * 3
    assert broker.flow.slow_consumers == 3
