"""QUEUE about delayed messages, in bytes: those that wait are listed, and one is cancelled (section 3.11)."""

from typing import Any

import pytest

from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.native.test_delayed import FIRST, later, receipt
from tests.broker.protocols.native.test_queue_requests import QUEUE, done, refused
from tests.broker.protocols.native.test_synced import Durable
from tests.broker.protocols.native.world import Peer, World, publish


@pytest.fixture
def world() -> World:
    return World()


def delay(peer: Peer, *delayed: tuple[str, bytes, float]) -> list[int]:
    """Returns the ids."""
    peer.send(*(later(topic, payload, 9, delay=seconds) for topic, payload, seconds in delayed))
    return [fields[6] for fields in peer.frames()]


def listed(peer: Peer, **arguments: Any) -> list[bytes]:
    return [each["payload"] for each in done(peer, "delayed", **arguments)["messages"]]


def test_a_message_is_cancelled_by_the_id_of_its_receipt_and_not_routed(world: World) -> None:
    subscriber, publisher = world.connect(), world.connect()
    assert "cancel" in publisher.info["features"]
    subscriber.say(6, None, 1, "a")
    first, second = delay(publisher, ("a", b"1", 5), ("a", b"2", 5))
    assert (first, second) == (FIRST, FIRST + 1)
    assert done(publisher, "cancel", id=first) == {"cancelled": True}
    assert done(publisher, "cancel", id=first) == {"cancelled": False}
    world.pass_time(5)
    assert [fields[3] for fields in subscriber.frames()] == [b"2"]
    assert done(publisher, "cancel", id=second) == {"cancelled": False}
    assert (len(world.broker.delayed), world.broker.ledger.stored) == (0, 0)


def test_the_list_has_those_that_are_due_first(world: World) -> None:
    peer = world.connect(client="shop")
    assert done(peer, "delayed") == {"count": 0, "next_seconds": None, "messages": []}
    ids = delay(peer, ("a", b"late", 50), ("b.c", b"x" * 200, 5), ("a", b"middle", 20))
    world.pass_time(1)
    found = done(peer, "delayed")
    assert (found["count"], found["next_seconds"]) == (3, 4.0)
    assert [each["id"] for each in found["messages"]] == [ids[1], ids[2], ids[0]]
    assert found["messages"][0] == {
        "id": ids[1], "seconds": 4.0, "client": "shop", "topic": "b.c", "syntax": 0, "payload": b"x" * 128,
        "headers": None, "reply": None, "size": 200, "cut": True,
    }  # fmt: skip
    assert listed(peer, limit=2, payload_bytes=3) == [b"xxx", b"mid"]


def test_a_client_sees_and_cancels_its_own_users_messages_and_an_operator_all(world: World) -> None:
    one, other, operator = (world.open() for _ in range(3))
    for number, (peer, name) in enumerate(((one, "one"), (other, "other"), (operator, "operator"))):
        peer.address = f"192.0.2.{number}"
        peer.say(1, 1, {"client": name})
        peer.frames()
    world.broker.use_permissions(Reference(allow("connect publish"), allow("subscribe queue", client="operator")))
    (mine,) = delay(one, ("a", b"one", 50))
    (theirs,) = delay(other, ("a", b"other", 5))
    assert listed(one) == [b"one"]
    assert {key: done(one, "delayed")[key] for key in ("count", "next_seconds")} == {"count": 1, "next_seconds": 50.0}
    assert refused(one, "cancel", id=theirs)[0] == "not_permitted"
    assert listed(operator) == [b"other", b"one"]
    assert done(operator, "delayed")["count"] == 2
    assert done(operator, "cancel", id=theirs) == done(one, "cancel", id=mine) == {"cancelled": True}


@pytest.mark.parametrize("arguments", [{}, {"id": -1}, {"id": "1"}, {"id": 0}])
def test_a_wrong_id_is_an_error_of_the_protocol(world: World, arguments: dict[str, Any]) -> None:
    peer = world.connect()
    peer.say(QUEUE, 5, "cancel", arguments)
    assert peer.frames()[0][:3] == [13, 5, "protocol_error"]


def test_an_answer_is_one_frame_of_bounded_size(world: World) -> None:
    peer = world.connect()
    delay(peer, *(("a", bytes(2_000), 5) for _ in range(100)))
    found = done(peer, "delayed", limit=1_000, payload_bytes=2_000)
    assert 20 < len(found["messages"]) < 40
    assert found["count"] == 100


def test_the_answer_to_a_cancel_waits_until_it_is_synced() -> None:
    world = Durable()
    peer = world.connect()
    (id,) = delay_synced(world, peer)
    peer.say(QUEUE, 5, "cancel", {"id": id})
    assert peer.frames() == []
    world.journal.sync(now=world.now)
    world.turn()
    assert peer.next() == [7, 5, {"cancelled": True}]


def delay_synced(world: Durable, peer: Peer) -> list[int]:
    peer.send(later("a", b"x", 1, delay=5))
    world.journal.sync(now=world.now)
    world.turn()
    answer = peer.next()
    assert answer == receipt(1, FIRST)
    return [answer[6]]


def test_a_store_that_refuses_cancels_nothing() -> None:
    world = Durable()
    peer = world.connect()
    (id,) = delay_synced(world, peer)
    world.journal.position.refusing = True
    assert refused(peer, "cancel", id=id)[0] == "limit_exceeded"
    assert len(world.broker.delayed) == 1
    peer.send(publish("other", b"x"))
    assert peer.frames() == []
