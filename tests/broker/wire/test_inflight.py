"""Tags against a plain oracle: 16 bits and reused, or counting upwards with acknowledgements for all up to a tag."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.inflight import TAGS_MAX, CountingTags, Inflight, ReusedTags
from fanlight_broker.wire.ledger import Ledger, Pot
from fanlight_broker.wire.message import Message, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.target import Target
from fanlight_broker.wire.window import Window
from tests.broker.wire.formats import LineFormat


class Oracle:
    """Tags in a dict. reused: the next one that is free, around at `TAGS_MAX`; else each is given once."""

    def __init__(self, *, reused: bool) -> None:
        self.reused = reused
        self.flights: dict[int, Flight] = {}
        self.last = 0

    def in_use(self, tag: int) -> bool:
        return tag in self.flights


def agree(table: Inflight, oracle: Oracle) -> None:
    assert len(table) == len(oracle.flights)
    assert {flight.tag: flight for flight in table.in_order()} == oracle.flights
    for tag in range(20):
        assert table.get(tag) is oracle.flights.get(tag)


STEPS = st.lists(st.tuples(st.sampled_from(["give", "give", "discard", "up to"]), st.integers(0, 40)), max_size=120)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_tags_that_count_are_the_oracles(steps: list[tuple[str, int]]) -> None:
    pot = Pot("p")
    table, oracle = CountingTags(pot), Oracle(reused=False)
    for what, nth in steps:
        if what == "give":
            flight = Flight()
            oracle.last += 1
            assert table.give(flight) == flight.tag == oracle.last
            oracle.flights[oracle.last] = flight
        elif what == "discard" and oracle.flights:
            table.discard(oracle.flights.pop(list(oracle.flights)[nth % len(oracle.flights)]))
        elif what == "up to":
            tag = max(oracle.last - nth, 0)
            found = table.all_up_to(tag)
            assert found == [flight for each, flight in oracle.flights.items() if each <= tag]
            for flight in found:
                table.discard(flight)
                del oracle.flights[flight.tag]
        agree(table, oracle)
        assert table.in_order() == list(oracle.flights.values())  # oldest first
        assert pot.used == table.nbytes
    for flight in table.in_order():
        table.discard(flight)
    assert len(table) == 0
    assert pot.used == table.nbytes <= 1_024
    del table
    assert pot.used == 0


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_tags_that_are_reused_are_free_when_they_are_given(steps: list[tuple[str, int]]) -> None:
    pot = Pot("p")
    table, oracle = ReusedTags(pot), Oracle(reused=True)
    for what, nth in steps:
        if what == "give":
            flight = Flight()
            tag = table.give(flight)
            assert 1 <= tag <= TAGS_MAX
            assert not oracle.in_use(tag)
            assert tag > oracle.last  # 120 steps do not come around
            oracle.last = tag
            oracle.flights[tag] = flight
        elif oracle.flights:
            table.discard(oracle.flights.pop(list(oracle.flights)[nth % len(oracle.flights)]))
        agree(table, oracle)
        assert pot.used == table.nbytes
    del table
    assert pot.used == 0


def test_reused_tags_come_around_and_leave_out_those_in_use() -> None:
    table = ReusedTags(Pot("p"))
    first = Flight()
    assert table.give(first) == 1
    given = []
    for _ in range(2 * TAGS_MAX):
        flight = Flight()
        given.append(table.give(flight))
        table.discard(flight)
    assert 1 not in given
    assert max(given) == TAGS_MAX
    assert given.count(given[0]) >= 2
    assert table.get(1) is first


def test_all_tags_of_16_bits_can_be_in_use() -> None:
    table = ReusedTags(Pot("p"))
    assert sorted(table.give(Flight()) for _ in range(TAGS_MAX)) == list(range(1, TAGS_MAX + 1))
    assert table.count == table.most


def counting_window(inflight_max: int) -> tuple[Ledger, Window, Route]:
    ledger, format = Ledger(1 << 30, lambda: None), LineFormat("lines")
    window = Window(None, Queue(ledger, 1_000, 1 << 20), counting=True)
    window.attach(Outbox(ledger, 1 << 20, "pause"), inflight_max)
    window.resume(0.0)
    target = Target(window, Variants().of(format, 1), 1)
    for n in range(10):
        publish(route := Route(b"\0t", [target], []), ledger, None, Message(format, b"t", 0, b"%d" % n, qos=1))
    return ledger, window, route


def test_one_acknowledgement_ends_all_up_to_its_tag_and_makes_room_for_as_many() -> None:
    ledger, window, _ = counting_window(4)
    assert [flight.tag for flight in window.flights()] == [1, 2, 3, 4]
    assert window.acknowledge(2, 0.0)
    assert window.acknowledge_up_to(3, 0.0) == 2
    assert [flight.tag for flight in window.flights()] == [4, 5, 6, 7]
    assert window.acknowledge_up_to(3, 0.0) == 0
    while window.flights():
        window.acknowledge_up_to(1 << 40, 0.0)
    assert (ledger.acknowledged, ledger.stored, len(window.queue), ledger.sessions.used) == (10, 0, 0, 0)


def test_only_tags_that_count_have_an_order_to_acknowledge_up_to() -> None:
    window = Window(None, Queue(Ledger(1 << 30, lambda: None), 10, 1 << 20))
    with pytest.raises(TypeError):
        window.acknowledge_up_to(3, 0.0)
