"""Delayed messages over a restart: what was accepted and synced is routed once to a durable queue, when it is due."""

import tempfile
from math import inf
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.core.delayed_message import DelayedPublisher
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import REPEATED, Direct
from fanlight_broker.storage import records
from fanlight_broker.storage.image import Image
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.wire.archive_tap import ArchiveTap, Columns
from tests.broker.core.delaying import delay
from tests.broker.core.parts import Listener
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld


class Delaying(StoredWorld):
    """A world with a publisher, and a session `c` that is away and subscribes to everything."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        reader = self.connect("c", expiry=1e6)
        reader.subscribe("#", qos=1)
        reader.leave()
        self.publisher = self.connect("p", expiry=1e6)
        self.turn()

    def back(self) -> Peer:
        return self.connect("c", expiry=1e6, clean_start=False)

    def crash(self, *, stopped: float = 0.0) -> None:
        super().crash(stopped=stopped)
        self.publisher = self.connect("p", expiry=1e6, clean_start=False)
        self.turn()


def test_a_delayed_message_is_due_by_the_wall_clock_after_a_restart(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    delay(world, world.publisher, "t", "a", 60, 1)
    delay(world, world.publisher, "t", "b", 20, 1)
    world.turn()
    world.crash(stopped=30)
    assert world.recovered.delayed == 2
    reader = world.back()
    assert reader.got() == []
    world.later(1)
    assert reader.got() == ["t b 1"]
    world.later(28.5)
    assert reader.got() == []
    world.later(1)
    assert reader.got() == ["t a 1"]
    assert len(world.broker.delayed) == 0


def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    delay(world, world.publisher, "t", "a", 60, 1, expires_at=world.now + 10, retain=True)
    (before,) = world.broker.delayed.page(0, 10)
    now, nbytes = world.now, world.broker.delayed.nbytes
    world.turn()
    world.crash(stopped=5)
    delayed = world.broker.delayed
    (found,) = delayed.page(0, 10)
    assert (found.id, delayed.last_id, found.nbytes, delayed.nbytes) == (before.id, before.id, nbytes, nbytes)
    assert found.due - world.now == pytest.approx(before.due - now - 5, abs=1e-5)
    delayed.read(inf)
    world.settle()
    message = delayed.message(found.id)
    assert message is not None
    assert message.expires_at - found.due == pytest.approx(10, abs=0.002)
    assert (message.qos, message.retain, message.payload) == (1, True, b"a")
    assert found.publisher == DelayedPublisher(world.publisher.session.share, "p", "lines", True, None)
    world.later(60)
    assert world.broker.retained.entry(0).origin == "p"  # type: ignore[union-attr]


def test_its_mark_is_kept_with_it(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    delay(world, world.publisher, "t", "a", 60, mark=Mark("", "p", 0, 1))
    world.turn()
    world.crash()
    assert delay(world, world.publisher, "t", "a", 60, mark=Mark("", "p", 0, 1)) is REPEATED
    assert len(world.broker.delayed) == 1


def test_what_the_publisher_does_not_want_back_it_does_not_get_after_a_restart(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    world.publisher.subscribe("t", 1, no_local=True)
    delay(world, world.publisher, "t", "a", 60, 1)
    world.turn()
    world.crash()
    world.later(60)
    world.turn()
    world.turn()
    assert (world.publisher.got(), world.back().got()) == ([], ["t a 1"])


def test_the_archive_says_who_published_it(tmp_path: Path) -> None:
    """Also when it is the publisher of a connection that is gone."""
    world = Delaying(tmp_path)
    batches: list[Columns] = []
    tap = ArchiveTap(rows_max=9, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None, full=batches.append)
    client = world.broker.clients.connect(
        world.broker.new_outbox(), Listener(), world.now, name="p", user="", agent="", address="192.0.2.1",
        protocol="lines", format=world.format,
    )  # fmt: skip
    publication = Publication(world.message("t", "a"), client.subscriber, due=world.now + 60)
    world.broker.publishing.accept(publication, Direct(world.broker.ledger, publication.message, None), world.now)
    world.broker.clients.disconnect(client, "test", world.now)
    world.turn()
    world.broker.router.route(b"t", "mqtt").tap = tap
    world.later(60)
    world.settle()
    tap.flush()
    ((owner,),) = [batch.owners for batch in batches]
    assert (owner.subscriber.name, owner.subscriber.protocol) == ("p", "lines")


def test_a_kill_between_routing_and_its_sync_routes_it_again(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    live = world.connect("live")
    live.subscribe("t")
    delay(world, world.publisher, "t", "a", 5, 1)
    world.turn()
    world.later(5)
    assert live.got() == ["t a 0"]
    world.turn(synced=False)
    world.crash()
    live = world.connect("live")
    live.subscribe("t")
    world.later(1)
    assert live.got() == ["t a 0"], "at least once"
    world.turn()
    world.crash()
    world.later(1)
    assert world.back().got() == ["t a 1"], "once, where it is stored"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("delay"), st.sampled_from([0.5, 1, 1, 2, 5])),
        st.tuples(st.just("turn"), st.sampled_from([0.0, 1.0])),
        st.tuples(st.just("pass"), st.sampled_from([0.5, 1, 3])),
        st.tuples(st.just("crash"), st.sampled_from([0, 0.25, 2, 100])),
        st.tuples(st.just("round"), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=15, deadline=None)
@given(STEPS)
@example([("delay", 1), ("turn", 1.0), ("pass", 1), ("turn", 0.0), ("crash", 0), ("pass", 1)])
def test_what_was_synced_is_routed_exactly_once_whenever_the_broker_is_killed(steps: list[tuple[str, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = Delaying(Path(folder))
        accepted: dict[str, float] = {}  # payload -> wall-clock time when it is due
        safe: set[str] = set()
        for number, (step, value) in enumerate(steps):
            if step == "delay":
                accepted[f"n{number}"] = world.wall + value
                delay(world, world.publisher, "t", f"n{number}", value, 1)
            elif step == "turn":
                world.turn(synced=bool(value))
                if value:
                    safe |= set(accepted)
            elif step == "pass":
                world.later(value)
            elif step == "round":
                world.round()
                safe |= set(accepted)
            else:
                world.crash(stopped=value)
                accepted = {payload: due for payload, due in accepted.items() if payload in safe}
        world.later(10)
        world.turn()  # what is due is read
        world.turn()
        world.crash()
        got = [line.split()[1] for line in world.back().got()]
        assert sorted(got) == sorted(accepted)
        assert len(world.broker.delayed) == 0
        assert world.recovered.delayed == 0


def test_those_with_the_same_time_keep_their_order(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    for number in range(5):
        at = world.broker.delayed.due_at(world.wall + 7, world.now) - world.now
        delay(world, world.publisher, "t", f"n{number}", at, 1)
    world.turn()
    world.crash(stopped=3)
    world.crash(stopped=30)
    world.later(1)
    world.turn()
    world.turn()
    assert world.back().got() == [f"t n{number} 1" for number in range(5)]


def test_a_round_does_not_change_when_they_are_due(tmp_path: Path) -> None:
    """The store looks at the wall clock each turn; a time that is restated is the time from before."""
    world = Delaying(tmp_path)
    due = world.wall + 60
    first = world.broker.delayed.due_at(due, world.now) - world.now
    delay(world, world.publisher, "t", "n0", first, 1)
    world._ahead += 0.03
    world.turn()
    world.round()
    delay(world, world.publisher, "t", "n1", world.broker.delayed.due_at(due, world.now) - world.now, 1)
    world.turn()
    world.crash()
    delayed = world.broker.delayed
    assert [delayed.wall_of(found.due) for found in delayed.page(0, 9)] == [due, due]
    world.later(61)
    world.turn()
    world.turn()
    assert world.back().got() == ["t n0 1", "t n1 1"]


def test_a_record_that_is_cut_short_is_a_bad_one() -> None:
    image = Image()
    with pytest.raises(BadRecord):
        image.apply(records.DELAYED, b"x" * 10)
    image.apply(records.DELAYED_DONE, bytes(12))  # of one that is not known: its record was in a file that is gone
    assert len(image.delayed) == 0
