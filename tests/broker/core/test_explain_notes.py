"""Why a client has not got a message that its subscription gets: what `explain` says of the client."""

from typing import Any

from fanlight_broker.core.ports import View
from fanlight_broker.protocols.mqtt.packets import Subscription
from tests.broker.core import sessions
from tests.broker.core.parts import explained
from tests.broker.protocols.mqtt.world import World


def about(world: World, client: str, topic: str = "a/b") -> View:
    found: Any = explained(world.broker, topic.encode(), "mqtt", client, 100)["client"]
    view: View = found
    return view


def test_a_client_that_is_not_there_is_said_and_those_with_a_name_alike() -> None:
    world = World()
    for name in ("Plant/7/feed", "plant/8/feed", "other"):
        world.connect(name)
    found = about(world, "PLANT")
    assert (found["known"], found["alike"]) == (False, ["Plant/7/feed", "plant/8/feed"])
    assert about(world, "other")["alike"] == []


def test_who_asks_by_the_name_of_a_user_is_shown_its_clients() -> None:
    world = sessions.World()
    world.connect("wall", user="screen")
    world.connect("door", user="guard")
    found: Any = explained(world.broker, b"a/b", "mqtt", "screen", 100)["client"]
    assert (found["known"], found["alike"]) == (False, ["wall"])


def test_a_client_that_is_away_has_what_waits_for_it_and_why_its_other_filters_do_not_match() -> None:
    world = World()
    away = world.connect("away", session_expiry_interval=100)
    away.subscribe("a/#", "c", qos=1)
    away.vanish()
    world.connect("publisher").publish("a/b", b"1", qos=1)
    found = about(world, "away")
    assert (found["known"], found["connected"], found["matching"]) == (True, 0, 1)
    assert found["notes"] == ["it is not connected; its session is kept, waiting for it: 1 message"]
    (other,) = found["why_not"]
    assert (other["filter"], "length" in str(other["bits"])) == ("c", True)


def test_a_client_that_acknowledges_nothing_gets_nothing_more_and_that_is_said() -> None:
    world = World()
    idle = world.connect("idle", receive_maximum=2)
    idle.subscribe("a/#", qos=1)
    publisher = world.connect("publisher")
    for _ in range(5):
        publisher.publish("a/b", b"1", qos=1)
    assert about(world, "idle")["notes"] == [
        "it has not acknowledged 2 messages, and gets no others with QoS 1 and 2 before; "
        "waiting in its queue: 3 messages"
    ]
    assert len(idle.messages()) == 5
    assert about(world, "idle")["notes"] == []


def test_a_group_and_no_local_are_said_of_the_filters_that_have_them() -> None:
    world = World()
    world.connect("member").subscribe("$share/crew/a/+", Subscription("a/b", no_local=True))
    assert sorted(about(world, "member")["notes"]) == [
        "a/+ is in the group crew: one of its members gets each message, which may be another one",
        "a/b does not get what this client publishes itself",
    ]
