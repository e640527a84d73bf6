"""Random steps, ended by crashes: after each the broker is what it was when the last turn was synced."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.subscription import group_name_of
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.protocols.mqtt import qos2
from fanlight_broker.protocols.native.format import DELIVERY_FORMAT
from fanlight_broker.wire.flight import STATES
from fanlight_broker.wire.window import Window
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld

ACTIONS = [
    "connect", "connect", "clean", "brief", "leave", "leave", "subscribe", "group", "group", "unsubscribe", "publish",
    "publish", "publish", "shared", "shared", "retain", "fetch", "clear", "receive", "release", "acknowledge", "arrive",
    "refuse", "wait", "round", "slice", "slice", "put", "put", "take", "done", "again", "reject",
]  # fmt: skip
STEP = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 8), st.integers(0, 6))
STEPS = st.lists(STEP, max_size=60)

QUEUE = "work"  # a durable one, for what is published on `jobs`

Picture = dict[str, Any]


def flights_of(window: Window) -> list[tuple[int, bytes | None, str]]:
    return [
        (each.tag, each.message.payload if each.message is not None else None, STATES[each.state])
        for each in window.flights()
    ]


def picture(world: StoredWorld) -> Picture:
    """What is to survive."""
    kept = [each for each in world.broker.sessions if each.expiry > 0]
    found: Picture = {"groups": {}, "retained": {}}
    for session in kept:
        found[session.name] = {
            "expiry": session.expiry, "will": session.will is not None,
            "unreleased": [id for id in range(10) if id in session.unreleased],
            "waiting": world.waiting(session.window.queue),
            "flights": flights_of(session.window),
            "subscriptions": sorted(
                (one.filter, group_name_of(one) or "", one.variant.qos, one.number) for one in session.subscriptions
            ),
        }
        for one in session.subscriptions:
            if one.group is not None:
                assert one.group.queue is not None
                found["groups"][one.filter] = world.waiting(one.group.queue)
    # What was on its way to a session that is not kept returns to its group.
    for session in world.broker.sessions:
        if session.expiry <= 0:
            for group, message in lent(world, session.window):
                if group in found["groups"]:
                    found["groups"][group].append(message)
    found["groups"] = {filter: sorted(waiting) for filter, waiting in found["groups"].items()}
    if world.broker.queues.get(QUEUE) is not None:
        inside = world.broker.queues.find(QUEUE).inside
        taken = [flight.message for window in inside.windows for flight in window.flights()]
        payloads = [message.payload for message in taken if message is not None]
        found["queue"] = sorted([*world.waiting(inside.queue), *payloads])
    for topic in (b"t/0", b"t/1", b"t/2"):
        message = world.broker.retained.get(topic, "mqtt", world.now)
        if message is not None:
            found["retained"][topic] = message.payload
    return found


def lent(world: StoredWorld, window: Window) -> list[tuple[bytes, bytes]]:
    """(filter of the group, payload) of what a session has of groups' queues with QoS 1."""
    return [
        (b"s", flight.message.payload) for flight in window.flights()
        if flight.message is not None and flight.number and STATES[flight.state] == "sent"
    ]


def act(world: StoredWorld, peers: dict[int, Peer], what: str, who: int, nth: int, count: int) -> None:
    peer, topic, now = peers[who], f"t/{nth % 3}", world.now
    session = peer.session
    connected = session.client is peer.client
    flights = session.window.flights()
    match what:
        case "connect" | "clean" | "brief":
            expiry = 0.0 if what == "brief" or who == 3 else 500.0
            peers[who] = world.connect(
                f"c{who}", expiry=expiry, clean_start=what == "clean", receive_max=1 + nth,
                will=world.will("w", delay=100.0) if nth & 1 else None,
            )
        case "leave" if connected:
            peer.leave(will=bool(nth & 1))
        case "subscribe" if connected:
            peer.subscribe(topic, qos=nth % 3)
        case "group" if connected:
            peer.subscribe("s", qos=1 + nth % 2, group="g")
        case "unsubscribe" if connected and len(session.subscriptions):
            one = list(session.subscriptions)[nth % len(session.subscriptions)]
            world.broker.sessions.unsubscribe(session, one.filter, group_name_of(one))
        case "publish" | "shared":
            world.publish("s" if what == "shared" else topic, f"x{count}", 1 + nth % 2)
        case "retain":
            world.publish(topic, f"r{count}", 1, retain=True)
        case "fetch" if connected:
            peer.subscribe("t/#", qos=1, retained=True)
        case "clear":
            world.publish(topic, "", retain=True)
        case "receive" if not session.ended:
            session.receive(1 + nth)
        case "release" if not session.ended:
            session.release(1 + nth)
        case "acknowledge" | "arrive" | "refuse" if connected and flights:
            qos2_step(what, session.window, flights[nth % len(flights)].tag, now)
        case "round" if not world.checkpoint.running:
            world.checkpoint.begin()
        case "slice":
            world.checkpoint.step(nth + 1)
        case "wait":
            world.later(10.0 * nth)
        case "put":
            world.publish("jobs", f"j{count}", 1)
        case "take" | "done" | "again" | "reject":
            consume(world, what, nth)


def consume(world: StoredWorld, what: str, nth: int) -> None:
    """A consumer of the named queue comes or leaves, or answers a delivery."""
    broker = world.broker
    queue = broker.queues.find(QUEUE)
    consumer = next(iter(queue.consumers.values()), None)
    if what == "take":
        if consumer is not None:
            broker.queues.leave(consumer, world.now)
        else:
            client, variant = world.connect("worker").client, broker.variants.of(DELIVERY_FORMAT)
            broker.queues.start(
                broker.queues.consume(client, 1, queue, variant, 1 + nth, 60.0, lambda reason: None), world.now
            )
        return
    flights = consumer.window.flights() if consumer is not None else []
    if consumer is None or not flights:
        return
    tag = flights[nth % len(flights)].tag
    match what:
        case "done":
            assert consumer.window.acknowledge(tag, world.now)
        case "again":
            assert queue.inside.refuse(consumer.window, tag, 0.0, world.now)
        case "reject":
            assert queue.inside.reject(consumer.window, tag, world.now)


def qos2_step(what: str, window: Window, tag: int, now: float) -> None:
    match what:
        case "acknowledge":
            if not qos2.acknowledge(window, tag, now):
                qos2.complete(window, tag, now)
        case "arrive":
            qos2.receive(window, tag)
        case "refuse":
            qos2.refuse(window, tag, now)


@settings(max_examples=140, deadline=None)
@given(STEPS)
def test_after_a_crash_the_broker_is_what_it_was_when_it_was_synced(steps: list[tuple[str, int, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        run(StoredWorld(Path(folder), queue_messages_max=6), steps)


def connected(world: StoredWorld) -> dict[int, Peer]:
    peers = {n: world.connect(f"c{n}", expiry=500.0 if n < 3 else 0.0, clean_start=False) for n in range(4)}
    if world.broker.queues.get(QUEUE) is None:
        world.broker.queues.declare(peers[0].client, QUEUE, ((b"jobs", "mqtt"),), QueueOptions(), world.now)
    consume(world, "take", 2)
    synced_turn(world)
    return peers


def synced_turn(world: StoredWorld) -> None:
    """All is synced, with what was read from the disk and delivered at the end of the turn."""
    world.turn()
    world.turn()


def run(world: StoredWorld, steps: list[tuple[str, int, int, int]]) -> None:
    peers = connected(world)
    synced = picture(world)
    for count, (what, who, nth, turn) in enumerate(steps):
        act(world, peers, what, who, nth, count)
        if turn == 1:
            world.turn(synced=False)
        if turn > 1:
            synced_turn(world)
            synced = picture(world)
        if turn > 5:
            world.crash()
            assert picture(world) == synced
            peers = connected(world)
            synced = picture(world)
    world.crash()
    assert picture(world) == synced
    world.round()
    world.crash()  # and read what the round has written, nothing else
    assert picture(world) == synced
    world.log.close()
