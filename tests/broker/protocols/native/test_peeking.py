"""QUEUE peek of what waits for an MQTT session or a shared subscription: it is shown, and stays (section 3.10)."""

import pytest

from fanlight_broker.core.requests import ConnectRequest, SessionOptions
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.message import Message
from tests.broker.core.parts import Listener
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.native.test_queue_requests import done, refused
from tests.broker.protocols.native.world import Peer, World
from tests.broker.wire.formats import LineFormat

FORMAT, SYNTAX = LineFormat("lines"), SYNTAXES.index("mqtt")


@pytest.fixture
def world() -> World:
    return World()


def absent(world: World, name: str, group: str | None = None) -> Session:
    """A session whose client is away, with a subscription to orders."""
    broker = world.broker
    request = ConnectRequest(name, FORMAT, "lines", "192.0.2.9", expiry=60.0)
    client, session, _ = broker.sessions.connect(broker.new_outbox(), Listener(), world.now, request)
    broker.sessions.subscribe(session, b"orders/#", "mqtt", SessionOptions(qos=1, group=group))
    broker.sessions.leave(client, world.now, will=True)
    broker.clients.disconnect(client, "test", world.now)
    return session


def filled(world: World) -> Peer:
    broker = world.broker
    for number in range(15):
        message = Message(FORMAT, b"orders/eu", SYNTAX, b"%d" % number, qos=1)
        assert publish(broker.router.route(b"orders/eu", "mqtt"), broker.ledger, None, message) == 1
    return world.connect()


def test_what_waits_for_a_session_is_shown_and_stays(world: World) -> None:
    session = absent(world, "sensor-7")
    operator = filled(world)
    found = done(operator, "peek", session="sensor-7", count=3)
    assert ([each["payload"] for each in found["messages"]], found["waiting"]) == ([b"0", b"1", b"2"], 15)
    assert {key: found["messages"][0][key] for key in ("topic", "attempt", "seconds", "size")} == {
        "topic": "orders/eu", "attempt": 0, "seconds": None, "size": 1,
    }  # fmt: skip
    assert len(done(operator, "peek", session="sensor-7", count=100)["messages"]) == 15
    assert len(session.window.queue) == 15


def test_what_waits_for_a_shared_subscription_is_shown(world: World) -> None:
    absent(world, "one", "workers")
    operator = filled(world)
    waiting = done(operator, "peek", group="workers", filter=["orders/#", 1], count=2)
    assert ([each["payload"] for each in waiting["messages"]], waiting["waiting"]) == ([b"0", b"1"], 15)
    assert refused(operator, "peek", group="others", filter=["orders/#", 1])[0] == "no_such_consumer"
    assert refused(operator, "peek", group="workers", filter=["orders/#"])[0] == "no_such_consumer"


def test_a_session_that_is_not_there_has_no_queue(world: World) -> None:
    assert refused(world.connect(), "peek", session="nobody")[0] == "no_such_consumer"


def test_another_clients_messages_are_for_those_who_may_subscribe_to_all(world: World) -> None:
    absent(world, "sensor-7")
    operator = filled(world)
    world.broker.use_permissions(Reference(allow("connect"), allow("subscribe queue", "orders/#")))
    assert refused(operator, "peek", session="sensor-7")[0] == "not_permitted"
    assert refused(operator, "peek", session="nobody")[0] == "not_permitted", "nor whether it is there"
