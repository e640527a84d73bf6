"""What waits for an absent session is on the disk, and comes back in order when its client does."""

from pathlib import Path

import pytest

from fanlight_broker.storage.stored_backlog import StoredBacklog
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld
from tests.captured_logs import capture_logs


def absent(world: StoredWorld, name: str, *, group: str | None = None) -> Peer:
    peer = world.connect(name, expiry=60.0, clean_start=False)
    peer.subscribe("t", qos=1, group=group)
    peer.leave()
    return peer


def received(world: StoredWorld, peer: Peer, count: int) -> list[str]:
    found: list[str] = []
    for _ in range(2 * count):
        found += [line.split()[1] for line in peer.got()]
        peer.acknowledge()
        world.turn()
    return found


def test_messages_of_absent_sessions_are_not_in_memory(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    peers = [absent(world, f"c{n}") for n in range(3)]
    for n in range(500):
        world.publish("t", f"{n}", 1)
        if n % 10 == 0:
            world.turn()
    assert world.broker.ledger.stored_messages == 0
    assert [len(peer.session.window.queue) for peer in peers] == [500, 500, 500]
    again = world.connect("c1", expiry=60.0, clean_start=False, receive_max=7)
    world.turn()
    assert received(world, again, 500) == [str(n) for n in range(500)]
    assert world.broker.ledger.stored_messages == 0
    world.crash()
    assert [len(session.window.queue) for session in world.broker.sessions] == [500, 0, 500]
    again = world.connect("c2", expiry=60.0, clean_start=False)
    assert received(world, again, 500) == [str(n) for n in range(500)]


def test_messages_that_are_not_synced_yet_are_read_later(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c")
    world.turn()
    world.publish("t", "x", 1)
    world.turn(synced=False)
    again = world.connect("c", expiry=60.0, clean_start=False)
    assert again.got() == []
    world.turn()
    assert again.got() == ["t x 1"]


def test_a_group_s_queue_is_on_the_disk_beyond_its_head(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c", group="g")
    for n in range(600):
        world.publish("t", f"{n}", 1)
    world.turn()
    assert world.broker.ledger.stored_messages < 300
    again = world.connect("c", expiry=60.0, clean_start=False)
    assert received(world, again, 600) == [str(n) for n in range(600)]


def test_an_expired_message_is_not_delivered_after_it_was_read(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c")
    world.publish("t", "old", 1, expires_at=world.now + 5.0)
    world.publish("t", "new", 1)
    world.turn()
    world.now += 6.0
    again = world.connect("c", expiry=60.0, clean_start=False)
    assert received(world, again, 2) == ["new"]
    assert world.broker.ledger.expired == 1


def test_a_message_dropped_while_it_is_read_is_not_delivered(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path, queue_messages_max=2, queue_policy="drop_oldest")
    absent(world, "c")
    for payload in ("1", "2"):
        world.publish("t", payload, 1)
    world.turn()
    again = world.connect("c", expiry=60.0, clean_start=False)
    world.reads.popleft()()  # the pager begins to read
    world.publish("t", "3", 1)
    assert received(world, again, 3) == ["2", "3"]


def test_a_damaged_message_is_named_and_the_others_are_delivered(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c")
    for n in range(3):
        world.publish("t", f"payload{n}", 1)
        world.turn()
    (path,) = [each for each in (tmp_path / "0").iterdir() if b"payload1" in each.read_bytes()]
    octets = path.read_bytes()
    path.write_bytes(octets.replace(b"payload1", b"payloadX"))
    with capture_logs() as logs:
        again = world.connect("c", expiry=60.0, clean_start=False)
        got = received(world, again, 3)
    assert got == ["payload0", "payload2"]
    (line,) = [each for each in logs if each["event"] == "message_unreadable"]
    assert f"{path.name}: damaged at byte" in line["reason"]
    assert world.store.pager is not None
    assert world.store.pager.unreadable == 1


def test_a_queue_that_ends_while_it_is_read(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c")
    world.publish("t", "x", 1)
    world.turn()
    again = world.connect("c", expiry=60.0, clean_start=False)
    assert isinstance(again.session.window.queue.backlog, StoredBacklog)
    world.broker.sessions.end(again.session, world.now)
    world.settle()
    assert again.session.window.queue.backlog is None
    assert world.broker.ledger.stored_messages == 0


@pytest.mark.parametrize("size", [300, 70_000])
def test_no_more_is_read_for_a_queue_than_its_share(tmp_path: Path, size: int) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c")
    for n in range(400):
        world.publish("t", str(n % 10) * size, 1)
    world.turn()
    world.connect("c", expiry=60.0, clean_start=False, receive_max=1)
    world.settle()
    assert 0 < world.broker.ledger.stored < 700_000


def test_what_waits_on_the_disk_can_be_looked_at_and_stays_there(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "c")
    for n in range(5):
        world.publish("t", f"x{n}", 1)
    world.turn()
    session = world.broker.sessions.get("c")
    assert session is not None
    found: list[list[bytes]] = []
    world.store.read_waiting(session.window.queue, 3, lambda some: found.append([each.payload for each in some]))
    assert found == []
    world.settle()
    assert found == [[b"x0", b"x1", b"x2"]]
    assert (len(session.window.queue), world.broker.ledger.stored_messages) == (5, 0)
    again = world.connect("c", expiry=60.0, clean_start=False)
    assert len(received(world, again, 5)) == 5
    world.store.read_waiting(session.window.queue, 3, lambda some: found.append([each.payload for each in some]))
    assert found[1:] == [[]], "at once, when nothing is on the disk"


def test_one_that_is_not_synced_does_not_hold_up_those_that_ask_later(tmp_path: Path) -> None:
    """While the disk fails, for example: what is there is served."""
    world = StoredWorld(tmp_path)
    absent(world, "c")
    world.publish("t", "x", 1)
    world.turn()
    world.publish("t", "y", 1)
    session, pager = world.broker.sessions.get("c"), world.store.pager
    assert session is not None
    assert pager is not None
    found: list[int] = []
    unsynced = world.store.records.last_number
    pager.read([unsynced], lambda messages: found.append(unsynced))
    world.settle()
    again = world.connect("c", expiry=60.0, clean_start=False)
    world.settle()
    assert again.got() == ["t x 1"]
    assert found == []
    world.turn()
    assert found == [unsynced]
