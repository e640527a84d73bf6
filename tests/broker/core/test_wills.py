"""Wills: published when a connection ends without a goodbye, and exactly once (MQTT 5, 3.1.2.5, 3.1.3.2.2)."""

from collections.abc import Callable

import pytest

from tests.broker.core.held_journal import HeldJournal
from tests.broker.core.sessions import Peer, World


class Watched(World):
    """A world with somebody who subscribes to the will's topic."""

    def __init__(self) -> None:
        super().__init__()
        self.watcher = self.connect("watcher")
        self.watcher.subscribe("w", 1)

    def mortal(self, *, delay: float = 0.0, expiry: float = 60.0, **options: object) -> Peer:
        return self.connect("mortal", will=self.will("w", qos=1, delay=delay), expiry=expiry, **options)


def test_a_will_is_published_when_the_connection_is_lost() -> None:
    """3.1.2.5: [MQTT-3.1.2-8]"""
    world = Watched()
    world.mortal().leave()
    assert world.watcher.got() == ["w will 1"]
    world.later(1_000)
    assert world.watcher.got() == []
    assert world.broker.sessions.wills_published == 1


def test_a_goodbye_forgets_the_will() -> None:
    """3.1.2.5: [MQTT-3.1.2-10]"""
    world = Watched()
    world.mortal(delay=5).leave(will=False)
    world.later(1_000)
    assert world.watcher.got() == []


def test_a_delayed_will_waits() -> None:
    """3.1.3.2.2"""
    world = Watched()
    world.mortal(delay=5).leave()
    world.later(4.9)
    assert world.watcher.got() == []
    world.later(0.2)
    assert world.watcher.got() == ["w will 1"]
    assert len(world.broker.sessions) == 2


def test_who_is_back_in_time_is_not_mourned() -> None:
    """3.1.3.2.2: [MQTT-3.1.3-9]"""
    world = Watched()
    world.mortal(delay=5).leave()
    world.later(4)
    world.mortal(delay=5, clean_start=False)
    world.later(1_000)
    assert world.watcher.got() == []


END: dict[str, tuple[float, Callable[[Watched], object]]] = {
    "its time is over before the delay": (3.0, lambda world: world.later(3.1)),
    "a clean start": (60.0, lambda world: world.mortal(clean_start=True)),
}


@pytest.mark.parametrize("how", END)
def test_the_end_of_the_session_publishes_a_will_that_waits(how: str) -> None:
    expiry, end = END[how]
    world = Watched()
    world.mortal(delay=30, expiry=expiry).leave()
    assert world.watcher.got() == []
    end(world)
    assert world.watcher.got() == ["w will 1"]


def test_a_session_that_ends_with_its_connection_does_not_wait_for_the_delay() -> None:
    world = Watched()
    world.mortal(delay=30, expiry=0).leave()
    assert world.watcher.got() == ["w will 1"]


@pytest.mark.parametrize(
    ("delay", "clean_start", "published"), [(0, False, 1), (0, True, 1), (30, False, 0), (30, True, 1)]
)
def test_a_takeover_publishes_the_will_unless_the_session_goes_on_within_its_delay(
    delay: float, clean_start: bool, published: int
) -> None:
    world = Watched()
    first = world.mortal(delay=delay)
    world.mortal(delay=delay, clean_start=clean_start)
    first.leave()
    assert len(world.watcher.got()) == published


def test_a_will_is_retained_if_it_asks_for_it() -> None:
    """3.1.2.7"""
    world = World()
    will = world.will("w")
    message = world.message("w", "late", retain=True)
    world.connect("c", will=type(will)(message)).leave()
    peer = world.connect("d")
    peer.subscribe("w", retained=True)
    assert peer.got() == ["w late 0 retain"]


def test_a_wills_own_session_gets_it_when_it_is_back_unless_it_is_no_local() -> None:
    for no_local, expected in ((False, ["w will 1"]), (True, [])):
        world = World()
        peer = world.connect("c", will=world.will("w", qos=1), expiry=60)
        peer.subscribe("w", 1, no_local=no_local)
        peer.leave()
        assert world.connect("c", clean_start=False).got() == expected


def test_a_wills_time_runs_from_its_publication() -> None:
    """3.1.3.2.4"""
    world = Watched()
    world.watcher.leave(expiry=1_000.0)
    world.connect("c", will=world.will("w", qos=1, delay=20, lifetime=10), expiry=60).leave()
    world.later(25)
    assert world.connect("watcher", clean_start=False).got() == ["w will 1"]
    world = Watched()
    world.watcher.leave(expiry=1_000.0)
    world.connect("c", will=world.will("w", qos=1, lifetime=10), expiry=60).leave()
    world.later(11)
    assert world.connect("watcher", clean_start=False).got() == []


@pytest.mark.parametrize("topic", ["$SYS/x", "$stream/q/0/x"])
def test_a_will_to_a_topic_of_the_brokers_own_is_refused_and_harms_nobody(topic: str) -> None:
    world = World()
    world.connect("c", will=world.will(topic)).leave()
    assert world.broker.sessions.wills_published == 0
    assert len(world.broker.sessions) == 0


def test_a_will_is_published_however_full_the_store_is() -> None:
    """Nobody could wait for room in its place."""
    world = Watched()
    journal = HeldJournal(world.broker)
    kept = world.connect("kept", expiry=60.0, clean_start=False)
    kept.subscribe("w", 1)
    mortal = world.mortal()
    journal.position.full = True
    mortal.leave()
    assert world.watcher.got() == kept.got() == ["w will 1"]
    assert world.broker.sessions.wills_published == 1
