"""What replays and restored sessions may have: permissions are asked for each topic, and again when they change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_permissions.own_rules import own_rules
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from tests.broker.core.reference import Reference, Rule, allow, deny
from tests.broker.protocols.permitted import NativeClient, World
from tests.broker.storage.archived import Archived
from tests.broker.storage.stored_world import StoredWorld

ALL = allow("all")
Build = Callable[..., Archived]


@pytest.fixture
def archived(build: Build) -> Archived:
    made = build(world=World)
    publisher = made.world.client("native")
    for topic in ("secret/a", "open/a", "secret/b", "open/b"):
        publisher.publish(topic)
    made.settled()
    return made


def replayed(archived: Archived, client: NativeClient, filter: str = "#") -> list[str] | None:
    """Topics of the archive, up to its end; None if it was refused."""
    client.peer.say(48, 1, 7, filter, {"syntax": 1, "past_only": True})
    frames = []

    def over() -> bool:
        archived.world.turn()
        frames.extend(client.peer.frames())
        return any(frame[0] in (9, 13) for frame in frames)

    archived.loop.run_until(over)
    last = frames[-1]
    if last[0] == 13 or last[2] != "end":
        client.refusal = last[2]
        return None
    return [frame[2].replace(".", "/") for frame in frames if frame[0] == 4]


@pytest.mark.parametrize("action", ["replay", "subscribe"])
def test_a_replay_leaves_out_what_is_denied(archived: Archived, action: str) -> None:
    world = archived.world
    world.broker.use_permissions(Reference(deny(action, "secret/#", user="s"), ALL))
    reader, other = world.client("native", "s"), world.client("native", "o")
    assert replayed(archived, reader) == ["open/a", "open/b"]
    assert replayed(archived, reader, "secret/#") is None
    assert reader.refusal == "not_permitted"
    assert replayed(archived, other) == ["secret/a", "open/a", "secret/b", "open/b"]


def test_a_replay_leaves_out_what_own_rules_deny_where_there_is_no_file(archived: Archived) -> None:
    archived.world.own["s"] = own_rules([{"effect": "deny", "replay": "secret/a"}, {"everything": "#"}])
    reader, other = archived.world.client("native", "s"), archived.world.client("native", "o")
    assert replayed(archived, reader) == ["open/a", "secret/b", "open/b"]
    assert replayed(archived, reader, "secret/a") is None
    assert replayed(archived, other) == ["secret/a", "open/a", "secret/b", "open/b"]


def test_a_replay_that_is_going_on_is_asked_about_again(archived: Archived) -> None:
    world = archived.world
    world.broker.use_permissions(Reference(ALL))
    reader = world.client("native", "s")
    reader.peer.say(48, 1, 7, "#", {"syntax": 1, "past_only": True})
    world.broker.use_permissions(Reference(deny("replay", user="s"), ALL))
    frames = []

    def over() -> bool:
        world.turn()
        frames.extend(reader.peer.frames())
        return any(frame[0] in (9, 13) for frame in frames)

    archived.loop.run_until(over)
    assert frames[-1][:3] == [13, 1, "not_permitted"]
    assert not [frame for frame in frames if frame[0] == 4]


def test_a_replay_that_goes_live_is_partly_allowed_from_then_on(archived: Archived) -> None:
    world = archived.world
    world.broker.use_permissions(Reference(deny("subscribe", "secret/#", user="s"), ALL))
    reader, publisher = world.client("native", "s"), world.client("native", "p")
    reader.peer.say(48, 1, 7, "#", {"syntax": 1})
    seen: list[object] = []

    def live() -> bool:
        world.turn()
        frames = reader.peer.frames()
        seen.extend(frame[2] for frame in frames if frame[0] == 4)
        return any(frame[0] == 49 for frame in frames)

    archived.loop.run_until(live)
    publisher.publish("secret/c")
    publisher.publish("open/c")
    assert [*(str(each).replace(".", "/") for each in seen), *reader.topics()] == ["open/a", "open/b", "open/c"]


def test_a_queue_is_not_filled_from_what_may_not_be_replayed(archived: Archived) -> None:
    world = archived.world
    world.broker.use_permissions(Reference(deny("replay", "secret/#", user="s"), ALL))
    client = world.client("native", "s")
    assert not client.subscribe("#", consumer="q", durable=False, ack=True, deliver={"offset": 0})
    assert client.refusal == "not_permitted"


# -- after a restart ---------------------------------------------------------------------------------------------------

STAFF = Origin(frozenset({"staff"}), "CN=s", "192.0.2.7", "mqtt_tls")


@pytest.mark.parametrize(("rule", "permitted"), [
    (allow("subscribe", "a/#", group="staff"), True),
    (allow("subscribe", "a/#", certificate="CN=s", address="192.0.2.7", listener="mqtt_tls"), True),
    (allow("subscribe", "a/#", user="s"), True),
    (allow("subscribe", "a/#", group="others"), False),
])  # fmt: skip
def test_a_restored_session_is_asked_about_as_its_client_was(tmp_path: Path, rule: Rule, permitted: bool) -> None:
    world = StoredWorld(tmp_path)
    world.connect("s", user="s", verified=True, origin=STAFF, expiry=1_000.0).subscribe("a/b", qos=1)
    world.turn()
    world.crash()
    session = world.broker.sessions.get("s")
    assert session is not None
    assert session.subscriber.origin == STAFF
    world.broker.use_permissions(Reference(allow("connect"), rule))
    world.turn()
    assert len(session.subscriptions) == permitted


OWN = own_rules([{"effect": "deny", "subscribe": "a/x"}, {"subscribe": ["a/#", "b"]}])


def test_a_restored_session_keeps_the_rules_that_its_client_has_brought_along(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    client = world.connect("s", user="s", verified=True, origin=STAFF._replace(own=OWN), expiry=1_000.0)
    client.subscribe("a/#", qos=1)
    world.turn()
    for _ in range(2):  # the first restart writes what it has found once more
        world.crash()
        session = world.broker.sessions.get("s")
        assert session is not None
        assert session.subscriber.origin == STAFF._replace(own=OWN)
        world.turn()
    (subscription,) = session.subscriptions
    assert subscription.partly
    publisher = world.connect("p")
    for topic in ("a/x", "a/y"):
        publisher.publish(topic, qos=1)
    assert len(session.window.queue) == 1
    world.broker.use_permissions(compile_permissions(
        parse_permissions('[[deny]]\nsubscribe = "a/#"', "p", Limits()), "p", Limits()
    ))
    world.turn()
    assert len(session.subscriptions) == 0


def test_a_restored_queue_keeps_the_rules_that_its_maker_has_brought_along(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    own = own_rules([{"everything": "t/#"}])
    maker = world.connect("maker", user="m", verified=True, origin=STAFF._replace(own=own)).client
    world.broker.queues.declare(maker, "jobs", ((b"t/#", "mqtt"),), QueueOptions(), world.now)
    world.turn()
    world.crash()
    queue: Subscriber = world.broker.queues.find("jobs").subscriber
    assert queue.asker == maker.subscriber.asker
    assert queue.asker.own == own


def test_a_restored_queue_has_the_rights_of_whoever_made_it(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    maker = world.connect("maker", user="m", verified=True, origin=STAFF).client
    world.broker.queues.declare(maker, "admin", ((b"t/#", "mqtt"),), QueueOptions(), world.now)
    world.turn()
    world.crash()
    queue: Subscriber = world.broker.queues.find("admin").subscriber
    assert queue.asker == maker.subscriber.asker
    assert queue.asker.client == "maker"
