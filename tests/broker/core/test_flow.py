"""Flow: who is slow is told of once, who is held back goes on once, who blocks too long is cut off."""

from broker.core.broker import Broker
from broker.core.client import Client
from broker.wire.outbox import Outbox
from tests.broker.core.parts import Listener, broker_with, connect, subscribe
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
    broker.unsubscribe(client, 99)


def test_a_slow_consumer_is_attended_to_once() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    client, speaker = connect(broker)
    fill(broker, client.outbox, "drop_newest")
    broker.finish()
    client.outbox.take()
    fill(broker, client.outbox, "drop_newest")
    broker.finish()
    assert broker.flow.slow_consumers == 1
    assert speaker.told == []


def test_a_slow_consumer_under_disconnect_is_cut_off() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    client, speaker = connect(broker)
    fill(broker, client.outbox, "disconnect")
    broker.finish()
    assert speaker.told == [("cut off", "slow_consumer")]
    assert broker.flow.slow_consumers_disconnected == 1


def waiting(broker: Broker, blocker: Outbox, since: float, count: int = 2) -> list[tuple[Client, Listener]]:
    publishers = [connect(broker) for _ in range(count)]
    for n, (publisher, _) in enumerate(publishers):
        broker.flow.hold(publisher, blocker, since + n)
    return publishers


def test_publishers_go_on_in_the_order_they_came() -> None:
    broker = broker_with()
    slow, _ = connect(broker)
    publishers = waiting(broker, slow.outbox, 0.0, 3)
    assert broker.flow.drained(slow.outbox) == [publisher for publisher, _ in publishers]
    assert broker.flow.drained(slow.outbox) == []
    assert broker.flow.publishers_paused == 3


def test_the_time_counts_from_the_first_that_waits_and_starts_anew_after_draining() -> None:
    broker = broker_with(pause_seconds_max=10)
    slow, speaker = connect(broker)
    waiting(broker, slow.outbox, 0.0)
    broker.sweep(9.9)
    assert speaker.told == []
    broker.flow.drained(slow.outbox)
    waiting(broker, slow.outbox, 9.0)
    broker.sweep(18.9)
    assert speaker.told == []
    broker.sweep(19.0)
    broker.sweep(30.0)
    assert speaker.told == [("cut off", "slow_consumer")]


def test_who_leaves_does_not_wait_and_is_not_waited_for() -> None:
    broker = broker_with(pause_seconds_max=10)
    slow, speaker = connect(broker)
    (first, _), (second, _) = waiting(broker, slow.outbox, 0.0)
    assert broker.disconnect(first, "gone") == []
    assert broker.disconnect(slow, "gone") == [second]
    broker.sweep(100.0)
    assert speaker.told == []


def test_nobody_is_cut_off_for_publishers_that_have_left() -> None:
    broker = broker_with(pause_seconds_max=10)
    slow, speaker = connect(broker)
    for publisher, _ in waiting(broker, slow.outbox, 0.0):
        broker.disconnect(publisher, "gone")
    broker.sweep(100.0)
    assert speaker.told == []


def test_a_blocking_outbox_that_goes_is_not_counted_as_blocking_any_more() -> None:
    broker = broker_with(outbox_bytes_max=64 * 1024)
    slow, _ = connect(broker)
    fill(broker, slow.outbox, "pause")
    assert broker.ledger.pausing == 1
    assert slow.outbox.hold_back()
    broker.disconnect(slow, "gone")
    assert broker.ledger.pausing == 0
    assert broker.ledger.used == 0
    assert not slow.outbox.hold_back()
