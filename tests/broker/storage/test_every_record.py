"""A bit that is flipped in a record of each kind: it is named by file and offset, and nothing of its entry is used."""

import shutil
from pathlib import Path

import pytest

from fanlight_broker.core.marks import Mark
from fanlight_broker.core.permissions import Origin
from fanlight_broker.storage import records
from fanlight_broker.storage.checking import check
from fanlight_broker.storage.checkpoint import Checkpoint
from fanlight_broker.storage.log import Log
from tests.broker.core.delaying import delay
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_log_damage import flip
from tests.broker.storage.test_stored_queues import acknowledge, consume, declare, publish
from tests.broker.wire.formats import LineFormat

FORMATS = {"lines": LineFormat("lines")}
SEGMENT = 64 << 10
NAMES = [name for name in records.TYPES if name]
SESSIONS = 6  # more than a record has slots for: a set


def write_every_kind(world: StoredWorld) -> None:
    """Each step in an entry of its own."""
    peers = [world.connect(f"s{number}", expiry=60.0, receive_max=3) for number in range(SESSIONS)]
    for peer in peers:
        peer.subscribe("t/1", qos=2)
    peers[0].subscribe("u", qos=1)
    peers[0].subscribe("t/2", qos=1, group="g")
    world.turn()
    work, over = declare(world, unused_seconds=600.0), declare(world, name="over")
    publish(world, *(f"n{number}" for number in range(5)))
    world.turn()
    peers[0].acknowledge()
    world.turn()
    acknowledge(world, consume(world), b"n0")
    peers[1].session.receive(7)
    world.turn()
    peers[1].session.release(7)
    world.turn()
    world.publish("kept", "x", retain=True)
    world.turn()
    world.publish("kept", "", retain=True)
    within = world.connect("s1", origin=Origin(namespace="acme"))
    within.publish("kept", "x", retain=True)
    world.turn()
    delay(world, peers[0], "t/1", "later", 60.0, 1, mark=Mark("", "p", 0, 1))
    delay(world, peers[0], "t/1", "never", 60.0, 1)
    world.turn()
    world.broker.declarations.claim("owner", lambda: iter([(b"key", b"body")]))
    world.broker.declarations.keep("owner", b"key", b"body")
    world.broker.declarations.keep("owner", b"other", b"body")
    world.turn()
    world.broker.declarations.forget("owner", b"other")
    world.broker.delayed.cancel(world.broker.delayed.last_id)
    world.broker.sessions.unsubscribe(peers[0].session, b"u", None)
    world.broker.sessions.unsubscribe(peers[0].session, b"t/2", "g")
    world.broker.sessions.end(peers[2].session, world.now)
    world.broker.queues.end(over)
    world.turn()
    assert work.unused_since is None
    world.round()
    publish(world, "last")  # what is behind the damage proves that it is no torn end
    world.turn()
    world.log.prepare()
    world.log.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its floor is where it began, so each record counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "_finish", ended)
        world = StoredWorld(tmp_path_factory.mktemp("written"), segment_bytes=SEGMENT)
        write_every_kind(world)
    return world.log.folder


def ended(self: Checkpoint) -> None:
    self._until = None
    self.rounds += 1


def record_of(folder: Path, name: str) -> tuple[Path, int, bytes]:
    """File, offset and body of the longest record of a kind; but not of what was published last."""
    log = Log(folder, lambda: None, threaded=False, segment_bytes=SEGMENT)
    bodies = [body for _, _, type, body in log.replay() if records.TYPES[type] == name]
    log.close()
    body = max(bodies[:-1] or bodies, key=len)
    size, left = b"", len(body)
    while True:
        size += bytes([left & 0x7F | (0x80 if left > 0x7F else 0)])
        left >>= 7
        if not left:
            break
    record = bytes([records.TYPES.index(name)]) + size + body
    (path,) = [path for path in folder.glob("log-*") if record in path.read_bytes()]
    return path, path.read_bytes().index(record) + 1 + len(size), body


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_in_a_record_of_each_kind_is_named_and_not_used(written: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(written, tmp_path / "0"))
    path, at, body = record_of(Path(shutil.copytree(written, tmp_path / "looked at")), name)
    path = folder / path.name
    offset = at + len(body) // 2
    flip(path, offset)
    problem = check(folder, FORMATS).problems[0]  # others are copies of messages that are lost by it
    assert problem.file == path.name
    assert problem.offset is not None
    assert problem.offset < offset < problem.offset + SEGMENT
    world = StoredWorld(tmp_path, segment_bytes=SEGMENT)
    (damage,) = world.log.damage
    assert f"{path}: damaged at byte {problem.offset}" in str(damage)
    if name == "MESSAGE":
        again = world.connect("s3", expiry=60.0, clean_start=False, receive_max=10)
        world.turn()
        assert [line.split()[1] for line in again.got()] == ["last"]
    world.log.close()
