"""What a restart, a round of the log and the archive keep apart: the same names and topics in two namespaces and in the
root.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.core.marks import Mark, mark_user, owner_of
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.replay import ReplayRequest
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.mqtt.packets import Publish
from tests.broker.core.delaying import delay
from tests.broker.core.sessions import Peer
from tests.broker.protocols.tenants import HOMES, Tenants
from tests.broker.storage.archived import Archived
from tests.broker.storage.stored_world import StoredWorld

WAYS = ["crash", "round", "two rounds"]


def join(world: StoredWorld, home: str, name: str, **wanted: Any) -> Peer:
    return world.connect(name, origin=Origin(namespace=home), expiry=1_000.0, **wanted)


def said(home: str) -> str:
    return home or "root"


def again(world: StoredWorld, way: str) -> None:
    world.turn()
    for _ in range(WAYS.index(way)):
        world.round()
    world.crash(stopped=1.0)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_sessions_and_what_waits_for_them(tmp_path: Path, way: str) -> None:
    world = StoredWorld(tmp_path)
    for home in HOMES:
        peer = join(world, home, "dev")
        peer.subscribe("t/#", qos=1)
        peer.leave()
    for home in HOMES:
        join(world, home, "publisher").publish("t/a", said(home), 1)
    again(world, way)
    assert world.recovered.sessions == 2 * len(HOMES)
    assert sorted(home.name for home in world.broker.everywhere()) == sorted(HOMES)
    for home in HOMES:
        peer = join(world, home, "dev", clean_start=False)
        world.turn()
        assert peer.present
        assert peer.got() == [f"t/a {said(home)} 1"]
        peer.acknowledge()
        peer.publish("t/b", said(home), 1)
        assert peer.got() == [f"t/b {said(home)} 1"]


def test_groups(tmp_path: Path, way: str) -> None:
    world = StoredWorld(tmp_path)
    for home in HOMES:
        peer = join(world, home, "dev")
        peer.subscribe("t/#", qos=1, group="g")
        peer.leave()
    for home in HOMES:
        join(world, home, "publisher").publish("t/a", said(home), 1)
    again(world, way)
    for home in HOMES:
        peer = join(world, home, "dev", clean_start=False)
        world.turn()
        assert peer.got() == [f"t/a {said(home)} 1"]


def test_wills(tmp_path: Path, way: str) -> None:
    world = StoredWorld(tmp_path)
    for home in HOMES:
        join(world, home, "dev", will=world.will("t/last", said(home), qos=1, delay=50.0)).leave()
    again(world, way)
    readers = {home: join(world, home, "reader") for home in HOMES}
    for reader in readers.values():
        reader.subscribe("#", qos=1)
    world.later(100.0)
    world.turn()
    for home, reader in readers.items():
        assert reader.got() == [f"t/last {said(home)} 1"]


def test_retained_messages(tmp_path: Path, way: str) -> None:
    world = StoredWorld(tmp_path)
    for home in HOMES:
        publisher = join(world, home, "publisher")
        publisher.publish("t/a", said(home), 1, retain=True)
        publisher.publish("t/b", "gone", 1, retain=True)
        if home != "beta":
            publisher.publish("t/b", "", 1, retain=True)
    again(world, way)
    assert world.recovered.retained == len(HOMES) + 1
    for home in HOMES:
        reader = join(world, home, "reader")
        reader.subscribe("t/#", retained=True)
        more = ["t/b gone 0 retain"] if home == "beta" else []
        assert sorted(reader.got()) == [f"t/a {said(home)} 0 retain", *more]


def test_delayed_messages_and_marks(tmp_path: Path, way: str) -> None:
    world = StoredWorld(tmp_path)
    for home in HOMES:
        publisher = join(world, home, "publisher")
        delay(world, publisher, "t/a", said(home), 50.0, 1, mark=Mark(mark_user(home, "u"), "p", 1, 1))
    again(world, way)
    assert sorted(owner_of(mark) for mark in world.broker.marks) == sorted((home, "u") for home in HOMES)
    principals = {share.principal for share in world.broker.shares if share.producers}
    assert principals == {"namespace acme", "namespace beta", "user u"}
    readers = {home: join(world, home, "reader") for home in HOMES}
    for reader in readers.values():
        reader.subscribe("#", qos=1)
    world.later(100.0)
    world.settle()
    world.turn()
    for home, reader in readers.items():
        assert reader.got() == [f"t/a {said(home)} 1"]


def test_named_queues(tmp_path: Path, way: str) -> None:
    world = StoredWorld(tmp_path)
    for home in HOMES:
        peer = join(world, home, "publisher")
        peer.home.queues.declare(peer.client, "q", ((b"t/#", "mqtt"),), QueueOptions(durable=True), world.now)
        peer.publish("t/a", said(home), 1)
    again(world, way)
    assert world.recovered.queues == len(HOMES)
    for home in HOMES:
        queue = world.broker.named(home).queues.find("q")
        assert world.waiting(queue.inside.queue) == [said(home).encode()]
        assert queue.subscriber.namespace == home


def test_what_was_before_there_were_namespaces_is_in_the_root(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    peer = world.connect("dev", expiry=100.0, origin=Origin(frozenset({"g"}), address="192.0.2.1"))
    peer.subscribe("t/#", qos=1, group="g")
    peer.publish("t/a", "x", 1, retain=True)
    again(world, "round")
    assert len(world.broker.namespaces) == 0
    found = world.broker.sessions.get("dev")
    assert found is not None
    assert found.subscriber.origin == Origin(frozenset({"g"}), address="192.0.2.1")
    assert len(world.broker.retained) == 1


# -- the archive ------------------------------------------------------------------------------------------------------

Build = Callable[..., Archived]


@pytest.fixture
def archived(build: Build) -> Archived:
    made = build(world=Tenants, filters=((b"#", "amqp"), (b"$inbox.#", "amqp"), (b"$SYS.#", "amqp")))
    for home in HOMES:
        publisher = made.world.at(home, "native", "p")
        publisher.publish("t/a", said(home).encode(), headers={"n": 2})
        publisher.publish("u/a", said(home).encode())
        publisher.publish("$inbox/x/1", said(home).encode())
        made.world.at(home, "mqtt5", "m").publish("t/b", said(home).encode(), qos=1)
    made.settled()
    return made


def replayed(archived: Archived, client: Any, filter: str, syntax: int = 1, **options: Any) -> list[tuple[str, bytes]]:
    client.peer.say(48, 1, 7, filter, {"syntax": syntax, "past_only": True, **options})
    frames: list[Any] = []

    def over() -> bool:
        archived.world.turn()
        frames.extend(client.peer.frames())
        return any(frame[0] in (9, 13) for frame in frames)

    archived.loop.run_until(over)
    assert frames[-1][0] == 9, frames[-1]
    return [(frame[2], frame[3]) for frame in frames if frame[0] == 4]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(("filter", "syntax", "topics"), [
    ("#", 1, ["t/a", "u/a", "t/b"]), ("#", 0, ["t/a", "u/a", "t/b"]), ("t/+", 1, ["t/a", "t/b"]),
    ("t.*", 0, ["t/a", "t/b"]), ("t/a", 1, ["t/a"]), ("+/b", 1, ["t/b"]),
    ("$namespace/#", 1, []), ("$namespace/beta/t/a", 1, []), ("$namespace.beta.#", 0, []), ("$SYS/#", 1, []),
])  # fmt: skip
def test_a_replay_has_what_was_published_in_its_namespace(
    archived: Archived, home: str, filter: str, syntax: int, topics: list[str]
) -> None:
    client = archived.world.native(home, "reader")
    assert replayed(archived, client, filter, syntax) == [(topic, said(home).encode()) for topic in topics]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(("where", "topics"), [
    ("n > 1", ["t/a"]), ("$word[1] = 'u'", ["u/a"]), ("$words = 2", ["t/a", "u/a", "t/b"]),
    ("$word[1] = '$namespace'", []),
])  # fmt: skip
def test_selectors_see_the_topics_of_the_namespace(
    archived: Archived, home: str, where: str, topics: list[str]
) -> None:
    client = archived.world.native(home, "reader")
    assert [topic for topic, _ in replayed(archived, client, "#", where=where)] == topics


@pytest.mark.parametrize("home", HOMES)
def test_a_replay_that_goes_live_stays_in_its_namespace(archived: Archived, home: str) -> None:
    world = archived.world
    reader = world.native(home, "reader")
    reader.peer.say(48, 1, 7, "t/a", {"syntax": 1})
    frames: list[Any] = []

    def over() -> bool:
        world.turn()
        frames.extend(reader.peer.frames())
        return any(frame[0] == 49 for frame in frames)

    archived.loop.run_until(over)
    for other in HOMES:
        world.at(other, "native", "later").publish("t/a", b"live " + said(other).encode())
    frames += reader.peer.frames()
    assert [frame[3] for frame in frames if frame[0] == 4] == [said(home).encode(), b"live " + said(home).encode()]


@pytest.mark.parametrize("home", HOMES)
def test_a_queue_begins_with_archived_messages_of_its_namespace(archived: Archived, home: str) -> None:
    client = archived.world.native(home, "reader")
    client.peer.say(6, 1, 7, "t/#", {"syntax": 1, "consumer": "q", "ack": True, "deliver": {}})
    frames: list[Any] = []

    def over() -> bool:
        archived.world.turn()
        frames.extend(client.peer.frames())
        return len([frame for frame in frames if frame[0] == 32]) >= 2

    archived.loop.run_until(over)
    assert [frame[5] for frame in frames if frame[0] == 32] == [said(home).encode()] * 2


def test_the_archive_has_the_namespace_before_the_topic(archived: Archived) -> None:
    topics = [row["topic"] for row in archived.rows()]
    assert [topic for topic in topics if "acme" in topic] == [
        "$namespace/acme/t/a", "$namespace/acme/u/a", "$namespace/acme/$inbox/x/1", "$namespace/acme/t/b",
    ]  # fmt: skip
    assert ReplayRequest(b"#", "amqp").namespace == ""


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
def test_an_acknowledgement_waits_for_the_archive(build: Build, home: str, dialect: str) -> None:
    made = build(world=Tenants, receipts=True)
    for _ in range(2):  # by the lane, too
        client = made.world.at(home, dialect, "p")
        for number in (1, 2):
            if dialect == "native":
                client.peer.say(3, number, "t.a", b"x", None, 0)
            else:
                client.peer.say(Publish("t/a", b"x", 1, False, packet_id=number))
        waiting = client.peer.frames() if dialect == "native" else client.peer.packets()
        assert waiting == []
        made.settled()
        answers = client.peer.frames() if dialect == "native" else client.peer.packets()
        assert len(answers) == 2
