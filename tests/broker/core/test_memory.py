"""What sessions and subscriptions take is counted by who owns it, and refused at the bound: below, at and above it."""

from dataclasses import replace
from functools import partial

import pytest

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.requests import SESSION_BYTES, ConnectRequest
from fanlight_broker.core.subscription import SUBSCRIPTION_BYTES
from fanlight_broker.core.will import Will
from fanlight_broker.wire.message import Message
from tests.broker.core import parts
from tests.broker.core.sessions import SYNTAX, Peer, World
from tests.broker.wire.formats import LineFormat

WANTED = ConnectRequest(client_id="c", format=LineFormat("lines"), protocol="test", address="192.0.2.1", expiry=100.0)


def will(world: World, size: int) -> Will:
    return Will(Message(world.format, b"will", SYNTAX, b"w" * size))


def of(world: World) -> int:
    return world.broker.ledger.sessions.used


def peer(world: World, wanted: ConnectRequest) -> Peer:
    return Peer(world, wanted, "drop_newest")


def test_a_session_is_counted_with_its_names_and_its_will_until_it_ends() -> None:
    world = World()
    plain = peer(world, replace(WANTED, client_id="a"))
    base = of(world)
    assert SESSION_BYTES < base < SESSION_BYTES + 200
    peer(world, replace(WANTED, client_id="b" * 1_000, user="u" * 900, will=will(world, 50_000)))
    assert base + 51_900 < of(world) - base < base + 52_900
    found = world.broker.sessions.get("b" * 1_000)
    assert found is not None
    world.broker.sessions.leave(found.client, world.now, will=True)  # it is published, and not the session's any more
    assert 1_850 < of(world) - 2 * base < 2_500
    for session in (found, plain.session):
        world.broker.sessions.end(session, world.now)
    assert of(world) == 0


def test_a_will_that_changes_with_the_connection_is_counted_once() -> None:
    world = World()
    peer(world, replace(WANTED, clean_start=False, will=will(world, 10_000)))
    first = of(world)
    for size in (20_000, 10_000):
        peer(world, replace(WANTED, clean_start=False, will=will(world, size)))
        assert of(world) == first + size - 10_000


def test_the_session_that_would_be_above_the_bound_is_refused_and_nothing_changes() -> None:
    world = World(share_percent=100)
    wanted = replace(WANTED, will=will(world, 1_000))
    pot = world.broker.ledger.sessions
    for below in (1, 0, -1):
        name = f"session {below}"
        size = replace(wanted, client_id=name).nbytes
        pot.limit = pot.used + size + below
        if below >= 0:
            peer(world, replace(wanted, client_id=name))
        else:
            with pytest.raises(LimitExceeded, match="sessions_bytes_max"):
                peer(world, replace(wanted, client_id=name))
    assert world.broker.sessions.get("session -1") is None
    assert len(world.broker.sessions) == 2
    pot.limit = pot.used
    back = peer(world, replace(wanted, client_id="session 1", clean_start=False))  # it takes nothing more
    assert back.present


def test_the_identifiers_of_qos_2_have_the_same_bound() -> None:
    world = World(share_percent=100)
    session = peer(world, WANTED).session
    pot = world.broker.ledger.sessions
    assert session.receive(7)
    before = pot.used
    pot.limit = before
    assert session.receive(8)  # beside it
    with pytest.raises(LimitExceeded, match="sessions_bytes_max"):
        session.receive(60_000)
    assert pot.used == before
    pot.limit = before + 1_000
    assert session.receive(60_000)
    assert not session.receive(60_000)
    for identifier in (7, 8, 60_000):
        assert session.release(identifier)
    assert pot.used < before


def test_the_table_of_a_window_that_has_grown_is_counted() -> None:
    world = World()
    subscriber = peer(world, WANTED)
    subscriber.subscribe("t", qos=1)
    before = of(world)
    for _ in range(1_000):
        world.publish("t", "x", 1)
    assert of(world) >= before + 8 * 1_000
    subscriber.acknowledge()
    assert of(world) >= before + 8 * 1_000  # it keeps its size


def test_every_copy_of_a_message_that_waits_is_counted_not_only_the_message() -> None:
    """One message in the queues of many sessions is one message, and as many places in queues."""
    world = World()
    for number in range(50):
        subscriber = peer(world, replace(WANTED, client_id=f"c{number}"))
        subscriber.subscribe("t", qos=1)
        subscriber.leave()
    ledger = world.broker.ledger
    before = ledger.stored
    world.publish("t", "x", 1)
    assert ledger.stored_messages == 1
    assert 50 * 64 < ledger.stored - before < 50 * 128 + 1_000
    for session in list(world.broker.sessions):
        world.broker.sessions.end(session, world.now)
    assert (ledger.stored, ledger.stored_messages) == (0, 0)


@pytest.mark.parametrize("what", ["client identifier", "user name"])
def test_a_name_is_as_long_as_the_limit_and_no_longer(what: str) -> None:
    world = World(name_bytes_max=40)
    for text in ("n" * 39, "é" * 20):
        peer(world, replace(WANTED, client_id=text) if what == "client identifier" else replace(WANTED, user=text,
                                                                                                client_id=text[:30]))
    with pytest.raises(LimitExceeded, match=rf"a {what} of 41 bytes.*name_bytes_max"):
        peer(world, replace(WANTED, client_id="é" * 20 + "n") if what == "client identifier" else replace(
            WANTED, user="é" * 20 + "n"))


def filled(broker: Broker, size: int, **options: object) -> int:
    """What a subscription with a filter of `size` bytes takes."""
    client, _ = parts.connect(broker)
    before = broker.ledger.subscriptions.used
    parts.subscribe(broker, client, 1, b"f" * size, **options)
    return broker.ledger.subscriptions.used - before


def index(broker: Broker) -> int:
    """What the index of filters takes when it is empty."""
    client, _ = parts.connect(broker)
    parts.subscribe(broker, client, 1, b"x")
    broker.clients.disconnect(client, "test", 0.0)
    return broker.ledger.subscriptions.used


def test_a_subscription_is_counted_with_its_filter_and_group_until_it_ends() -> None:
    broker = parts.broker_with()
    empty = index(broker)
    small, large = filled(broker, 10), filled(broker, 60_000)
    assert 100 < small < 1_000
    assert large >= 2 * 60_000
    assert filled(broker, 10, group="g" * 5_000) > small + 5_000
    for client in list(broker.clients):
        broker.clients.disconnect(client, "test", 0.0)
    assert (len(broker.router), broker.ledger.subscriptions.used) == (0, empty)


@pytest.mark.parametrize("over", [0, 1])
def test_the_subscription_that_would_be_above_the_bound_is_refused(over: int) -> None:
    broker = parts.broker_with(share_percent=100)
    filled(broker, 1_000)
    pot = broker.ledger.subscriptions
    pot.limit = pot.used + SUBSCRIPTION_BYTES + 1_000 - over
    before = pot.used
    if over:
        with pytest.raises(LimitExceeded, match="subscriptions_bytes_max"):
            filled(broker, 1_000)
        assert (len(broker.router), pot.used) == (1, before)
    else:
        filled(broker, 1_000)


def test_filters_of_64_kb_have_a_bound() -> None:
    """A client may have 250,000 of them: 16 GB."""
    broker = parts.broker_with(subscriptions_bytes_max=2 * 1024 * 1024, share_percent=100)
    client, _ = parts.connect(broker)
    subscribe = partial(parts.subscribe, broker, client)
    with pytest.raises(LimitExceeded, match="subscriptions_bytes_max"):
        any(subscribe(number, b"%d" % number + b"f" * 60_000) is None for number in range(250_000))
    assert 10 < len(broker.router) < 40
    assert broker.ledger.subscriptions.used < 2.2 * 1024 * 1024
    broker.clients.disconnect(client, "test", 0.0)
    other, _ = parts.connect(broker)
    parts.subscribe(broker, other, 1, b"small")


def test_subscription_identifiers_of_ones_own_are_counted_also_when_they_change() -> None:
    world = World()
    empty = index(world.broker)
    subscriber = peer(world, WANTED)
    pot = world.broker.ledger.subscriptions
    subscriber.subscribe("t")
    plain = pot.used
    subscriber.subscribe("t", identifier=b"\x0b\x01")
    assert pot.used > plain + 1_000
    subscriber.subscribe("t")
    assert pot.used == plain
    subscriber.subscribe("t", identifier=b"\x0b\x02")
    world.broker.sessions.end(subscriber.session, world.now)
    assert pot.used == empty
