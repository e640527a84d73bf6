"""An identity that outlives connections: sessions that are made without one, as from a disk."""

from typing import Any

import pytest

from fanlight_broker.core.inspection import session_view, subscription_view
from fanlight_broker.core.requests import SessionOptions
from fanlight_broker.core.subscriber import Session, Subscriber
from fanlight_broker.core.subscription import number_of
from fanlight_broker.protocols.mqtt import qos2
from fanlight_broker.wire.restoring import restore_to_window
from fanlight_broker.wire.subscriptions import Subscriptions
from tests.broker.core.sessions import World


def restored(world: World, name: str = "c", **options: Any) -> Session:
    """A session that nobody has ever been connected to."""
    share = world.broker.shares.of("address 192.0.2.1")
    return world.broker.sessions.begin(
        Subscriber(name, "", "lines", world.format, share, "$inbox.1", subscriptions=Subscriptions(by_filter=True)),
        **options,
    )


def test_a_session_is_whole_before_anybody_connects_and_then_one_does() -> None:
    world = World()
    session = restored(world, expiry=60.0, now=world.now)
    subscription, new = world.broker.sessions.subscribe(session, b"a/+", "mqtt", SessionOptions(qos=2))
    assert new
    variant = subscription.variant
    restore_to_window(session.window, world.message("a/1", "acked", 2), variant, tag=7, tag_only=True)
    restore_to_window(session.window, world.message("a/1", "sent", 1), variant, tag=300)
    restore_to_window(session.window, world.message("a/1", "queued", 1), variant)
    assert (session.client, session.window.outbox, subscription.outbox) == (None, None, None)
    assert number_of(subscription) is None
    assert (world.broker.sessions.away, session.window.in_flight, len(session.window.queue)) == (1, 2, 1)
    assert session_view(session)["connection"] is None
    assert subscription_view(subscription)["client"] == "c"

    assert world.publish("a/2", "live", 1) == 1
    assert world.publish("a/2", "of QoS 0", 0) == 1
    assert world.broker.ledger.dropped_absent == 1

    peer = world.connect("c", clean_start=False, expiry=60)
    assert (peer.present, peer.session, peer.client.subscriber.inbox) == (True, session, "$inbox.1")
    assert subscription.owner.client is peer.client
    assert peer.got() == ["REL 7", "a/1 sent 1 dup", "a/1 queued 1", "a/2 live 1"]
    assert qos2.complete(session.window, 7, world.now)
    peer.acknowledge()
    assert session.window.in_flight == 0
    assert world.broker.ledger.stored_messages == 0


def test_a_session_that_nobody_comes_back_to_ends_and_gives_back_all_that_it_took() -> None:
    world = World()
    session = restored(world, expiry=60.0, now=world.now)
    subscription, _ = world.broker.sessions.subscribe(session, b"#", "mqtt", SessionOptions(qos=1))
    for identifier in range(1, 100):
        restore_to_window(session.window, world.message("a", str(identifier), 1), subscription.variant, tag=identifier)
    world.publish("b", "x", 1)
    world.later(61)
    ledger = world.broker.ledger
    assert (len(world.broker.sessions), len(world.broker.router)) == (0, 0)
    assert (ledger.stored_messages, ledger.stored, ledger.sessions.used, len(world.broker.shares)) == (0, 0, 0, 0)


def test_its_will_is_its_own_message() -> None:
    """The publisher of a delayed will has no connection: no-local is about who it is."""
    world = World()
    other = restored(world, "other", expiry=60.0, now=world.now)
    world.broker.sessions.subscribe(other, b"a", "mqtt", SessionOptions(qos=1, no_local=True))
    session = restored(world, expiry=60.0, now=world.now)
    session.will = world.will("a", qos=1)
    subscription, _ = world.broker.sessions.subscribe(session, b"a", "mqtt", SessionOptions(qos=1, no_local=True))
    world.broker.sessions.end(session, world.now)
    assert (subscription.delivered, session.window.outbox) == (0, None)
    assert world.connect("other", clean_start=False).got() == ["a will 1"]


@pytest.mark.parametrize("identifier", [7, 65_536])
def test_an_identifier_is_restored_once(identifier: int) -> None:
    world = World()
    window = restored(world, expiry=60.0, now=world.now).window
    variant = world.broker.variants.of(world.format, 1)
    restore_to_window(window, world.message("a", "1", 1), variant, tag=7)
    with pytest.raises(ValueError, match=str(identifier)):
        restore_to_window(window, world.message("a", "2", 1), variant, tag=identifier)
    assert world.broker.ledger.stored_messages == 1


def test_away_sessions_share_no_fault() -> None:
    """All that are away have one outbox for nobody: what fails for one does not reach the others."""
    world = World()
    sessions = [restored(world, name, expiry=60.0, now=world.now) for name in ("one", "two")]
    for session in sessions:
        world.broker.sessions.subscribe(session, b"a", "mqtt", SessionOptions(qos=1, group="g"))
    assert world.publish("a", "1", 1) == 1
    world.broker.finish()
    assert world.connect("two", clean_start=False).got() == ["a 1 1"]
