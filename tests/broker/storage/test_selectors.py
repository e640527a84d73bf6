"""Subscriptions and queues with selectors over a restart: they are as they were, and so are their groups."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.core.condition import Condition, condition_of
from fanlight_broker.core.errors import QueueInUse
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.storage.facts import GroupFact, QueueFact, SubscriptionFact, packed, read_fact, unpacked
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.storage.recovery import restored_condition
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld


def subscribe(peer: Peer, filter: str, where: str, qos: int = 1, **options: Any) -> None:
    peer.subscribe(filter, qos, condition=condition_of(where), **options)


@pytest.mark.parametrize("rounds", [False, True], ids=["log", "round"])
def test_a_subscription_is_as_it_was(tmp_path: Path, rounds: bool) -> None:
    world = StoredWorld(tmp_path)
    peer = world.connect("s", expiry=60.0)
    subscribe(peer, "a/+", "$bytes > 2")
    subscribe(peer, "a/#", "$word[2] = 'b'  AND  $bytes < 2", qos=0)
    peer.subscribe("c", 1)
    subscribe(peer, "d", "$bytes > 100")
    subscribe(peer, "d", "$bytes > 1")  # in place of the one before
    world.turn()
    if rounds:
        world.round()
    world.crash()
    assert len(world.broker.router) == 4
    assert len(world.broker.router.screens) == 3
    held = world.broker.sessions.get("s")
    assert held is not None
    assert {each.filter: str(each.condition) for each in held.subscriptions} == {
        b"a/+": "$bytes > 2", b"a/#": "$word[2] = 'b' AND $bytes < 2", b"c": "None", b"d": "$bytes > 1",
    }
    for topic, payload in (("a/b", "1"), ("a/b", "22"), ("a/b", "333"), ("c", "1"), ("d", "1"), ("d", "22")):
        world.publish(topic, payload, 1)
    world.turn()
    assert world.waiting(held.window.queue) == [b"333", b"1", b"22"]
    again = world.connect("s", expiry=60.0, clean_start=False)
    assert again.got() == ["a/b 333 1", "c 1 1", "d 22 1"]
    world.publish("a/b", "1", 1)
    world.publish("a/b", "22", 1)
    assert again.got() == ["a/b 1 0"]


def test_groups_of_one_name_and_two_selectors_keep_their_queues(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    wheres = ["$bytes = 1", "$bytes > 1", None]
    for number, where in enumerate(wheres):
        peer = world.connect(f"s{number}", expiry=60.0, receive_max=1)
        condition = None if where is None else condition_of(where)
        peer.subscribe("t", 1, group="g", condition=condition)
        peer.leave()
    for payload in ("1", "22", "3", "44"):
        world.publish("t", payload, 1)
    world.turn()
    for _ in range(2):
        world.crash()
        queues = [world.broker.router.group_queue("g", b"t", "mqtt", where) for where in wheres]
        found = [world.waiting(queue) for queue in queues if queue is not None]
        assert found == [[b"1", b"3"], [b"22", b"44"], [b"1", b"22", b"3", b"44"]]
        world.round()
    peer = world.connect("s1", expiry=60.0, clean_start=False)
    assert peer.got() == ["t 22 1", "t 44 1"]


@pytest.mark.parametrize("rounds", [False, True], ids=["log", "round"])
def test_a_named_queue_is_as_it_was(tmp_path: Path, rounds: bool) -> None:
    world = StoredWorld(tmp_path)
    condition, filters = condition_of("$bytes  >  1"), ((b"t/#", "mqtt"), (b"u.*", "amqp"))

    def declare(name: str, condition: Condition | None) -> None:
        client = world.connect("maker").client
        world.broker.queues.declare(client, name, filters, QueueOptions(), world.now, condition=condition)

    declare("some", condition)
    declare("all", None)
    expected: dict[str, list[bytes]] = {"some": [], "all": []}
    for life in range(3):
        for payload in (b"%d" % life, b"1%d" % life):
            world.publish("t/1", payload.decode(), 1)
            expected["all"].append(payload)
            expected["some"] += [payload] if len(payload) > 1 else []
        world.turn()
        if rounds:
            world.round()
        world.crash()
        for name, where in (("some", condition), ("all", None)):
            queue = world.broker.queues.find(name)
            assert (queue.filters, queue.condition) == (filters, where)
            assert world.waiting(queue.inside.queue) == expected[name]
        assert len(world.broker.router.screens) == 2  # a subscription for each filter
    declare("some", condition_of("$bytes > 1"))
    for other in (None, condition_of("$bytes > 2")):
        with pytest.raises(QueueInUse, match="another where"):
            declare("some", other)


def test_a_record_without_a_selector_is_as_it_was_before_there_were_any() -> None:
    plain = SubscriptionFact(1, 2, b"a", 1, None, 1, False, 0, b"")
    assert len(unpacked(packed(plain))) == 9
    assert read_fact(SubscriptionFact, packed(plain)) == plain
    group = GroupFact(1, "g", b"a", "mqtt")
    assert len(unpacked(packed(group))) == 4
    assert read_fact(GroupFact, packed(group)) == group
    for fact in (plain._replace(where="x = 1"), group._replace(where="x = 1")):
        assert read_fact(type(fact), packed(fact)) == fact
    with pytest.raises(BadRecord, match="fields"):
        read_fact(SubscriptionFact, packed((1, 2, b"a", 1, None, 1, False, 0)))


def test_the_record_of_a_queue_is_as_it_was_before_queues_had_selectors() -> None:
    plain = QueueFact(
        1, "q", ((b"a", "amqp"),), None, None, None, None, None, None, None, False, "", False, "", "", "", "lines",
        None, None,
    )
    assert len(unpacked(packed(plain))) == 19  # nil for no priorities, which those versions need
    assert read_fact(QueueFact, packed(plain)) == plain
    assert read_fact(QueueFact, packed(plain._replace(where="x = 1"))).where == "x = 1"
    with pytest.raises(BadRecord, match="fields"):
        read_fact(QueueFact, packed(tuple(plain)[:18]))


def test_a_selector_of_a_later_version_is_named_as_what_is_wrong() -> None:
    with pytest.raises(BadRecord, match="x LIKE"):
        restored_condition("x LIKE UPPER('a')")
