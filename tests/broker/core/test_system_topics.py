"""$SYS: what the broker says of itself, and that it takes nothing from its clients."""

from math import exp
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest

from fanlight_broker.core.errors import LimitExceeded, NotPermitted
from fanlight_broker.core.hot_topics import hottest
from fanlight_broker.core.inspection import COUNTERS, BrokerInspection
from fanlight_broker.core.system_topics import DROPPED, LOADS, ROOT, SystemTopics
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.message import Message
from tests.broker.core import parts
from tests.broker.core.reference import Reference, allow
from tests.broker.core.sessions import Peer, World

START = 1_000.0

# The names of mosquitto 2's that a dashboard may ask for, but for those of its heap and its bridges.
NAMES = [
    "version", "uptime", "clients/connected", "clients/active", "clients/disconnected", "clients/inactive",
    "clients/total", "clients/maximum", "clients/expired", "messages/received", "messages/sent", "messages/stored",
    "store/messages/count", "store/messages/bytes", "publish/messages/received", "publish/messages/sent",
    "publish/messages/dropped", "publish/bytes/received", "publish/bytes/sent", "bytes/received", "bytes/sent",
    "subscriptions/count", "shared_subscriptions/count", "retained messages/count",
    *(
        f"load/{what}/{window}"
        for what in (
            "messages/received", "messages/sent", "publish/received", "publish/sent", "publish/dropped",
            "bytes/received", "bytes/sent", "sockets", "connections",
        )
        for window in ("1min", "5min", "15min")
    ),
]  # fmt: skip


class System:
    """A broker that publishes them every 10 s; `net` are the listeners' counters."""

    def __init__(self, **limits: Any) -> None:
        self.world = World(**limits)
        self.net: dict[str, int] = {}
        inspection = BrokerInspection(self.world.broker, lambda: self.world.now, lambda: self.net, lambda: True)
        broker = self.world.broker
        broker.system_topics = SystemTopics(
            broker.limits, broker.publishing, broker.everybody, lambda: broker.sessions.away, inspection.counters,
            START, version="1.2.3",
        )

    def later(self, seconds: float) -> "System":
        self.world.later(seconds)
        return self

    def value(self, name: str) -> str | None:
        found = self.message(name)
        return None if found is None else found.payload.decode()

    def message(self, name: str) -> Message | None:
        return self.world.broker.retained.get((ROOT + name).encode(), "mqtt", self.world.now)

    def values(self, prefix: str, *names: str) -> dict[str, str | None]:
        return {name: self.value(f"{prefix}/{name}") for name in names}


def texts(peer: Peer) -> set[bytes]:
    """The topics that a client of another family reads; its format writes those it gets in `<>`."""
    return {part.split(b">")[0] for part in peer.outbox.read(1 << 20).split(b"<")[1:]}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_that_people_look_for_has_a_retained_value(name: str) -> None:
    message = System().later(1).message(name)
    assert message is not None
    assert message.retain
    assert message.payload


def test_values_read_as_those_of_mosquitto() -> None:
    system = System().later(12)
    assert (system.value("version"), system.value("uptime")) == ("fanlight version 1.2.3", "12 seconds")
    assert system.value("clients/total") == "0"
    assert system.value("load/connections/1min") == "0.00"


def test_clients_are_counted_while_connected_and_while_their_session_waits() -> None:
    system, world = System(), None
    world = system.world
    kept = world.connect("kept", expiry=5)
    world.connect("there")
    world.connect("gone").leave()
    kept.leave()
    system.later(1)
    assert system.values("clients", "connected", "disconnected", "total", "maximum", "expired") == {
        "connected": "1", "disconnected": "1", "total": "2", "maximum": "3", "expired": "0",
    }  # fmt: skip
    system.later(10)
    assert system.values("clients", "disconnected", "total", "maximum", "expired") == {
        "disconnected": "0", "total": "1", "maximum": "3", "expired": "1",
    }  # fmt: skip


def test_refusals_by_permissions_and_by_quotas_are_counted() -> None:
    system = System(subscriptions_max=2, share_percent=50)
    peer = system.world.connect("a")
    peer.subscribe("t")
    with pytest.raises(LimitExceeded):
        peer.subscribe("u")
    system.later(1)
    assert system.values("refused", "permissions", "quotas") == {"permissions": "0", "quotas": "1"}
    system.world.broker.use_permissions(Reference(allow("connect")))
    for _ in range(2):
        with pytest.raises(NotPermitted):
            peer.publish("t", "x")
    system.later(10)
    assert int(system.value("refused/permissions") or 0) == 3, "two messages, and the subscription that has ended"


def test_messages_and_their_payloads_are_counted_as_they_come_and_go() -> None:
    system = System(queue_messages_max=1)
    world = system.world
    a, b = world.connect("a"), world.connect("b", receive_max=1)
    a.subscribe("t")
    b.subscribe("t", 1)
    for payload in ("12345", "678", "90"):  # for b: in flight, queued, dropped
        world.publish("t", payload, 1, retain=True)
    for peer in (a, b):
        peer.outbox.read(1 << 20)
    system.later(1)
    assert system.values("publish/messages", "received", "sent", "dropped") == {
        "received": "3", "sent": "4", "dropped": "1",
    }  # fmt: skip
    assert system.values("publish/bytes", "received", "sent") == {"received": "10", "sent": "15"}
    assert system.value("store/messages/count") == system.value("messages/stored") == "3"
    assert system.value("retained messages/count") == "1"


def test_what_a_native_subscription_is_sent_is_counted_by_its_payload_too() -> None:
    system = System()
    broker = system.world.broker
    client, _ = parts.connect(broker)
    parts.subscribe(broker, client, 1, b"t")
    parts.subscribe(broker, client, 2, b"t", credit=1)
    for _ in range(2):  # the second one waits for credit, once
        system.world.publish("t", "12345")
    system.later(1)
    assert system.values("publish/bytes", "received", "sent") == {"received": "10", "sent": "20"}


def test_subscriptions_are_shared_ones_or_others() -> None:
    system = System()
    for name in "ab":
        peer = system.world.connect(name)
        peer.subscribe("x")
        peer.subscribe("x", group="g")
    system.world.broker.sessions.unsubscribe(peer.session, b"x", "g")
    system.later(1)
    assert (system.value("subscriptions/count"), system.value("shared_subscriptions/count")) == ("2", "1")


def test_only_what_has_changed_is_published_again() -> None:
    system = System()
    watcher = system.world.connect("watcher")
    watcher.subscribe("$SYS/#")
    system.later(1)
    first = texts(watcher)
    assert {(ROOT + name).encode() for name in NAMES} <= first
    system.later(0.5)
    assert texts(watcher) == set()  # it is not time yet
    system.later(9.5)
    again = texts(watcher)
    assert {(ROOT + "uptime").encode(), (ROOT + "publish/messages/sent").encode()} <= again
    assert (ROOT + "version").encode() not in again
    assert (ROOT + "clients/connected").encode() not in again


def test_loads_are_exponentially_weighted_means_of_what_passes_in_a_minute() -> None:
    system = System()
    system.net = {"connections_accepted": 5}
    system.later(10)
    rate = 5 * 60 / 10
    expected = {window: rate * (1 - exp(-10 / seconds)) for window, seconds in WINDOWS.items()}
    assert system.values("load/sockets", *WINDOWS) == {window: f"{load:.2f}" for window, load in expected.items()}
    system.later(20)  # and no more sockets: it fades
    assert system.values("load/sockets", *WINDOWS) == {
        window: f"{load * exp(-20 / WINDOWS[window]):.2f}" for window, load in expected.items()
    }


WINDOWS = {"1min": 60, "5min": 300, "15min": 900}


def test_each_load_is_that_of_its_own_total() -> None:
    system = System()
    world = system.world
    peer = world.connect("c")
    world.connect("d")
    peer.subscribe("t")
    for _ in range(3):
        world.publish("t", "x")
    peer.outbox.read(1 << 20)
    world.broker.ledger.count_in(100)
    world.broker.ledger.count_out(200)
    system.later(60)
    loads = {name: float(system.value(f"{name}/1min") or 0) / (1 - exp(-1)) for name in LOADS}
    assert loads == pytest.approx(
        {
            "load/messages/received": 3, "load/messages/sent": 3, "load/publish/received": 3, "load/publish/sent": 3,
            "load/publish/dropped": 0, "load/bytes/received": 100, "load/bytes/sent": 200, "load/sockets": 0,
            "load/connections": 2,
        },
        abs=0.01,
    )  # fmt: skip


def test_the_broker_counts_nothing_that_it_says_of_itself_as_published() -> None:
    system = System().later(1)
    ledger = system.world.broker.ledger
    assert (ledger.messages_in, ledger.unroutable, ledger.payload_in) == (0, 0, 0)


def test_they_take_no_place_in_the_route_cache_and_are_not_hot_topics() -> None:
    system = System().later(1)
    system.world.connect("watcher").subscribe("$SYS/#")
    system.later(10)
    assert len(system.world.broker.routes) == 0
    assert hottest([system.world.broker], 10, {}) == []


def test_they_do_not_count_against_the_limits_of_retained_messages() -> None:
    system = System(retained_messages_max=1, retained_bytes_max=1_000)
    system.later(1)
    retained, ledger = system.world.broker.retained, system.world.broker.ledger
    assert (len(retained), retained.nbytes, retained.refused, ledger.stored_messages) == (0, 0, 0, 0)
    assert system.value("clients/connected") == "0"
    system.world.publish("a", "1", retain=True)
    system.world.publish("b", "1", retain=True)
    assert (len(retained), retained.refused) == (1, 1)
    system.world.publish("a", "", retain=True)
    system.later(10)
    assert (len(retained), retained.nbytes, ledger.stored) == (0, 0, 0)


@pytest.mark.parametrize("limits", [{"topic_words_max": 5}, {"topic_words_max": 2}, {"topic_bytes_max": 8}], ids=str)
def test_the_limits_of_topics_are_for_clients_and_not_for_them(limits: dict[str, int]) -> None:
    system = System(**limits)
    watcher = system.world.connect("watcher")
    watcher.subscribe("$SYS/#")
    system.later(1)
    assert {(ROOT + name).encode() for name in NAMES} <= texts(watcher)
    assert system.value("load/publish/received/15min") == "0.00"


@pytest.mark.parametrize("filter", ["#", "+/broker/uptime", "+/#"])
def test_wildcards_in_first_place_do_not_see_them(filter: str) -> None:
    """[MQTT-4.7.2-1]"""
    system = System().later(1)
    watcher = system.world.connect("watcher")
    watcher.subscribe(filter, retained=True)
    system.later(10)
    assert texts(watcher) == set()


def test_who_subscribes_gets_the_retained_ones_at_once() -> None:
    system = System().later(1)
    watcher = system.world.connect("watcher")
    watcher.subscribe("$SYS/broker/clients/+", retained=True)
    prefix = ROOT.encode() + b"clients/"
    assert texts(watcher) == {
        prefix + name.encode()
        for name in ("connected", "active", "disconnected", "inactive", "total", "maximum", "expired")
    }


@pytest.mark.parametrize(("filter", "syntax"), [(b"$SYS.broker.uptime", "amqp"), (b"$SYS/broker/uptime", "mqtt")])
def test_native_subscribers_get_them_too_spelled_as_they_were_published(filter: bytes, syntax: str) -> None:
    system = System()
    broker = system.world.broker
    client, _ = parts.connect(broker)
    parts.subscribe(broker, client, 7, filter, syntax)
    parts.subscribe(broker, client, 8, b"#", "amqp")
    system.later(3)
    fields = msgpack.unpackb(client.outbox.read()[4:], raw=False)
    assert fields == [4, 7, "$SYS/broker/uptime", b"3 seconds", None, SYNTAXES.index("mqtt")]


def test_no_client_publishes_under_their_names() -> None:
    system = System().later(1)
    client = system.world.connect("client")
    with pytest.raises(NotPermitted):
        client.publish("$SYS/broker/uptime", "0", retain=True)
    assert system.value("uptime") == "1 seconds"


def test_turned_off_there_are_none_and_those_there_were_are_gone() -> None:
    system = System(sys_interval_seconds=0).later(1)
    assert system.value("version") is None
    system = System().later(1)
    system.world.broker.use(System(sys_interval_seconds=0).world.broker.limits)
    watcher = system.world.connect("watcher")
    watcher.subscribe("$SYS/#", retained=True)
    texts(watcher)
    system.later(1)
    assert (system.value("version"), texts(watcher)) == (None, set())
    system.world.broker.use(System(sys_interval_seconds=1).world.broker.limits)
    system.later(1)
    assert system.value("version") == "fanlight version 1.2.3"


def test_every_kind_of_drop_that_is_counted_has_been_thought_of() -> None:
    left_out = {"dropped_absent"}
    assert set(DROPPED) | left_out == {name for name in COUNTERS if name.startswith("dropped_")}
