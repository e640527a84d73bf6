"""What the broker says that its clients want, and what a bridge makes of it."""

import json

import pytest

from fanlight_broker.bridging.interest import Interest
from fanlight_broker.core.interest import EVERYTHING, OCTETS_MAX, PLACES_MAX
from fanlight_broker.protocols.mqtt.packets import Subscription, Unsubscribe
from tests.broker.protocols.mqtt.world import World


def world() -> World:
    made = World()
    made.broker.interest.told = True
    return made


def said(made: World, now: float) -> object:
    text = made.broker.interest.changed(now)
    return None if text is None else json.loads(text)


def test_it_has_the_filters_of_all_and_those_without_echo_apart() -> None:
    made = world()
    one, other = made.connect("one"), made.connect("other")
    one.subscribe("a/#")
    other.subscribe("a/#", "$SYS/#", "b/+")
    other.subscribe(Subscription("c", no_local=True))
    assert said(made, 1.0) == {
        "everything": False, "filters": ["mqtt:a/#", "mqtt:b/+"], "no_local": {"other": ["mqtt:c"]},
    }
    assert said(made, 2.0) is None  # nothing has changed
    other.subscribe("c")
    assert said(made, 2.1) is None  # it is not due
    assert said(made, 3.0) == {"everything": False, "filters": ["mqtt:a/#", "mqtt:b/+", "mqtt:c"], "no_local": {}}
    one.say(Unsubscribe(9, ("a/#",)))
    assert said(made, 4.0) is None  # the other still has it
    other.say(Unsubscribe(9, ("a/#",)))
    assert said(made, 5.0) == {"everything": False, "filters": ["mqtt:b/+", "mqtt:c"], "no_local": {}}


def test_too_many_and_what_no_filter_says_is_everything() -> None:
    made = world()
    peer = made.connect("one")
    peer.subscribe("a")
    assert said(made, 1.0) is not None
    for number in range(PLACES_MAX // 100 + 1):
        peer.subscribe(*(f"x/{number}/{each}" for each in range(100)))
    assert said(made, 2.0) == json.loads(EVERYTHING)
    few = world()
    few.connect("one").subscribe("a")
    assert said(few, 1.0) is not None
    few.broker.router.rule_topics(lambda topic, syntax: True)
    assert said(few, 2.0) == json.loads(EVERYTHING)


def test_who_listens_hears_everything_when_it_is_turned_off() -> None:
    made = world()
    made.connect("one").subscribe("a")
    assert said(made, 1.0) is not None
    made.broker.interest.told = False
    assert said(made, 2.0) == json.loads(EVERYTHING)
    assert said(made, 3.0) is None
    assert made.broker.interest.values() == {}


def test_a_bridge_asks_it_about_each_topic() -> None:
    known = Interest("plant")
    assert known.wants("x")  # it is not known
    known.update(json.dumps({
        "everything": False, "filters": ["mqtt:a/#", "amqp:b.*"],
        "no_local": {"plant": ["mqtt:#"], "other": ["mqtt:c"]},
    }).encode())
    assert (known.known, len(known)) == (True, 3)
    assert [each for each in ("a/1", "b/1", "c", "d", "b/1/2") if known.wants(each)] == ["a/1", "b/1", "c"]
    known.update(EVERYTHING.encode())
    assert not known.known
    assert known.wants("d")


@pytest.mark.parametrize(
    "payload", [b"", b"[", b"1", b"{}", b'{"everything": false, "filters": 3, "no_local": {}}',
                b'{"everything": false, "filters": ["mqtt:a/#/b"], "no_local": {}}',
                b'{"everything": false, "filters": ["x:a"], "no_local": {}}',
                b'{"everything": false, "filters": [], "no_local": []}'],
)  # fmt: skip
def test_what_cannot_be_read_means_everything(payload: bytes) -> None:
    known = Interest("plant")
    known.update(b'{"everything": false, "filters": [], "no_local": {}}')
    assert not known.wants("a")
    known.update(payload)
    assert known.wants("a")


@pytest.mark.parametrize("payload", [b"[" * 100_000, b" " * (OCTETS_MAX + 1) + b'{"everything": false}', b"{}", b"1"])
def test_what_cannot_be_read_or_is_too_long_means_that_everything_is_wanted(payload: bytes) -> None:
    known = Interest("plant")
    known.update(payload)
    assert not known.known
    assert known.wants("a/b")
