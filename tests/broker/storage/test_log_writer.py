"""The writer's thread and the loop: how they wait for each other, and what is done before a turn is over."""

import select
from pathlib import Path

from fanlight_broker.storage.log import Log
from fanlight_broker.storage.log_writer import SPIN_SECONDS, processors
from fanlight_broker.storage.store import Store
from tests.broker.core.sessions import World
from tests.broker.storage.logs import OpenLog, opened

LONG = 60.0  # seconds: no gap between two groups of a test is longer
TURNS_MAX = 100_000
SPINS_AFTER = 9  # short gaps
BODY = "x" * 1000
GROUP, FEW = 512, 16  # messages: more bytes than a turn keeps to itself, and less
MORE_MAX = 4 * GROUP  # messages of a turn that goes on: four such turns do not fill a session, however slow the disk


def turns(one: OpenLog, count: int) -> None:
    """So many groups, each of which waits for the one before."""
    for _ in range(count):
        one.wait(one.entry(b"x"))


def test_a_writer_spins_where_groups_follow_each_other_quickly(tmp_path: Path) -> None:
    one = opened(tmp_path, threaded=True)
    one.log.spin_seconds = LONG
    for _ in range(TURNS_MAX):
        turns(one, 1)
        if one.log.spins:
            break
    assert one.log.spins
    assert one.log.spins_in_vain == 0
    one.log.close()  # it does not wait until the writer has spun to the end


def test_a_writer_sleeps_where_spinning_would_be_in_vain(tmp_path: Path) -> None:
    one = opened(tmp_path, threaded=True)
    one.log.spin_seconds = 0.0
    turns(one, 100)
    assert (one.log.spins, one.log.spins_in_vain) == (0, 0)
    one.log.close()


def test_a_writer_that_spins_in_vain_stops_it(tmp_path: Path) -> None:
    one = opened(tmp_path, threaded=True)
    one.log.spin_seconds = LONG
    for _ in range(TURNS_MAX):
        one.log.spin_seconds = LONG
        turns(one, SPINS_AFTER)
        one.log.spin_seconds = 0.0  # from now on each gap is too long
        turns(one, 1)  # it may come so soon that the writer has not looked at the clock
        if one.log.spins_in_vain:
            break
    turns(one, 50)
    assert 1 <= one.log.spins_in_vain <= 3
    one.log.close()


def test_no_writer_spins_on_one_processor(tmp_path: Path) -> None:
    one = opened(tmp_path)
    assert one.log.spin_seconds == (SPIN_SECONDS if processors() > 1 else 0.0)
    one.log.close()


class Busy:
    """A broker with an absent session, in the middle of a turn."""

    def __init__(self, folder: Path) -> None:
        self.world = World()
        broker = self.world.broker
        self.log = Log(folder, lambda: self.store.progress(), segment_bytes=8 << 20)
        assert list(self.log.replay()) == []
        self.store = Store(
            self.log, broker.ledger, now=lambda: self.world.now, wall=lambda: 1e9, schedule=lambda seconds: None,
            changed=lambda: broker.position_changed(self.world.now),
        )
        broker.journal_to(self.store)
        peer = self.world.connect("absent", expiry=60.0, clean_start=False)
        peer.subscribe("t", qos=1)
        peer.leave()

    def publish(self, messages: int) -> int:
        """Returns what an acknowledgement of the last waits for."""
        for _ in range(messages):
            self.world.publish("t", BODY, 1)
        return self.store.position.appended

    def works_on(self, position: int) -> None:
        """The turn goes on, with more messages, until the store has come so far."""
        poll = select.poll()
        poll.register(self.log.fileno(), select.POLLIN)
        more = MORE_MAX
        for _ in range(TURNS_MAX):
            self.store.records.between_frames()
            if self.store.position.synced >= position:
                return
            if more:
                self.publish(FEW)
                more -= FEW
            poll.poll(1)
        raise AssertionError(f"{self.store.position.synced} is synced, not {position}")


def test_a_sync_begins_before_a_long_turn_is_over(tmp_path: Path) -> None:
    busy = Busy(tmp_path)
    busy.works_on(busy.publish(GROUP))
    busy.works_on(busy.publish(GROUP))
    busy.log.close()


def test_what_is_synced_is_acknowledged_before_a_long_turn_is_over(tmp_path: Path) -> None:
    busy = Busy(tmp_path)
    acknowledged: list[str] = []
    position = busy.publish(1)
    busy.world.broker.acknowledgements.commit(lambda: acknowledged.append("one"))
    busy.store.seal()
    busy.works_on(position)
    assert acknowledged == ["one"]
    busy.log.close()
