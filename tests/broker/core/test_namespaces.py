"""Namespaces come and go: their numbers stay, their memory does not. What HTTP shows of them."""

import gc
import weakref

import pytest

from fanlight_broker.core.inspection import COUNTERS, GAUGES, BrokerInspection
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.namespace_counts import counts_of, gauges_of
from fanlight_broker.wire.hidden import show
from fanlight_permissions.namespace_entries import is_name
from tests.broker.protocols.tenants import HOMES, Tenants


def everything(world: Tenants, home: str) -> None:
    client, other = world.mqtt(home, "dev"), world.native(home, "other")
    client.subscribe("t/#")
    other.subscribe("t/#", group="g")
    other.ask(39, 5, "add", {"name": "q", "filters": [["t/#", 1]], "queue": {}})
    for retain, payload in ((False, b"x"), (True, b"x"), (True, b"")):
        client.publish("t/a", payload, retain=retain, qos=1)
    assert other.ask(39, 5, "remove", {"name": "q", "force": True}) is not None


def leave(world: Tenants) -> None:
    for peer in world.peers:
        show(*peer.protocol.things)  # as the listener does
        if not peer.gone:
            peer.vanish()
    world.peers.clear()
    for _ in range(2):
        world.pass_time(1)


def test_one_that_is_let_go_is_freed() -> None:
    world = Tenants()
    everything(world, "acme")
    found = weakref.ref(world.broker.named("acme"))
    assert isinstance(found(), Namespace)
    leave(world)
    assert len(world.broker.namespaces) == 0
    gc.collect()
    assert found() is None


def test_what_they_have_counted_stays() -> None:
    world = Tenants()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    for home in HOMES:
        everything(world, home)
    gauges = inspection.gauges()
    assert (gauges["namespaces"], gauges["connections"], gauges["subscriptions"]) == (2, 6, 6)
    before = inspection.counters()
    assert (before["subscribes"], before["queue_messages"], before["namespaces_begun"]) == (9, 9, 2)
    leave(world)
    after = inspection.counters()
    assert all(after[name] >= before[name] for name in before)
    assert after["queue_messages"] == 9
    assert {inspection.gauges()[name] for name in ("namespaces", "connections", "subscriptions", "sessions")} == {0}
    assert counts_of(world.broker).keys() <= COUNTERS.keys()
    assert gauges_of(world.broker, world.now).keys() <= GAUGES.keys()


def test_rows_say_in_which_namespace_they_are() -> None:
    world = Tenants()
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    for home in HOMES:
        world.mqtt(home, "dev").subscribe("t/#")
        operator = world.native(home, "other")
        operator.ask(39, 5, "add", {"name": "q", "filters": [["t/#", 1]], "queue": {}})
        operator.publish("t/a", delay=50, qos=1)
    views = {
        "sessions": inspection.sessions(offset=0, limit=10), "queues": inspection.queues(offset=0, limit=10),
        "delayed": inspection.delayed(offset=0, limit=10),
        "mqtt": [each for each in inspection.connections(offset=0, limit=10) if each["client"] == "dev"],
        "subscriptions": [each for each in inspection.subscriptions(offset=0, limit=10) if each["client"] == "dev"],
    }
    for name, rows in views.items():
        assert [each.get("namespace", "") for each in rows] == (
            ["acme", "beta", ""] if name == "mqtt" else ["", "acme", "beta"]
        ), name
    for offset in range(4):
        page = inspection.delayed(offset=offset, limit=1)
        assert [each.get("namespace", "") for each in page] == ["", "acme", "beta"][offset : offset + 1]
    with pytest.raises(ValueError, match="no namespace"):
        list(inspection.explain("t", syntax="amqp", client=None, limit=1, namespace="gamma"))


@pytest.mark.parametrize(("text", "valid"), [
    ("acme", True), ("a-b_C9", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a.b", False), ("a/b", False),
    ("#", False), ("+", False), ("*", False), ("$SYS", False), ("é", False), ("a b", False), ("a\n", False),
    ("a\0", False),
])  # fmt: skip
def test_names(text: str, valid: bool) -> None:
    assert is_name(text) is valid
