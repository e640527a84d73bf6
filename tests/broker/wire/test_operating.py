"""What an operator sees of a queue while consumers take from it."""

from fanlight_broker.wire.operating import in_memory, lift, peek, put_down
from tests.broker.wire.test_handover import Hub


def bodies(hub: Hub, most: int) -> list[tuple[bytes, int]]:
    return [(message.payload, attempt) for message, attempt, _ in peek(hub.queue.queue, most)]


def test_a_look_shows_the_next_ones_in_order_and_not_what_is_in_flight() -> None:
    hub = Hub()
    window = hub.consumer(automatic=False, prefetch=5)
    for number in range(12):
        hub.publish(b"%d" % number)
    assert bodies(hub, 3) == [(b"5", 0), (b"6", 0), (b"7", 0)]
    window.acknowledge_up_to(3, 0.0)
    for number in range(12, 20):  # the row has been taken from and added to: it begins in the middle of its places
        hub.publish(b"%d" % number)
    assert bodies(hub, 99) == [(b"%d" % number, 0) for number in range(8, 20)]
    hub.queue.remove(window, 0.0)
    assert bodies(hub, 7) == [*((b"%d" % number, 1) for number in range(3, 8)), (b"8", 0), (b"9", 0)]
    assert in_memory(hub.queue.queue) == 17


def test_a_look_changes_nothing_and_what_is_put_down_is_seen_again() -> None:
    hub = Hub()
    for number in range(4):
        hub.publish(b"%d" % number)
    flight = lift(hub.queue, 0.0)
    assert flight is not None
    assert bodies(hub, 9) == [(b"1", 0), (b"2", 0), (b"3", 0)]
    put_down(hub.queue, flight)
    for _ in range(2):
        assert bodies(hub, 2) == [(b"0", 0), (b"1", 0)]
    assert bodies(hub, 0) == []
