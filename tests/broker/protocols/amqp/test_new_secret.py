"""connection.update-secret: what a new token brings holds at once. tests/system/test_amqp_logins.py has wrong ones."""

from collections.abc import Mapping

import pytest

from fanlight_broker.core.identity import Identity
from fanlight_broker.permitting.quota_file import parse_quotas
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import PLAIN, Peer, World

GROUPS = """
[[quota]]
name = "small"
group = "small"
subscriptions = 1

[[quota]]
name = "large"
group = "large"
subscriptions = 3
"""


class TokenPeer(Peer):
    """alice, whose secret says what her token does: a group, and quotas of her own."""

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        group, _, limits = str(password).partition(" ")
        own: Mapping[str, int] = {
            name: int(value) for name, _, value in (each.partition("=") for each in limits.split())
        }
        identity = Identity("alice", verified=True, credential="x", groups=frozenset({group}), limits=own)
        self.world.soon.append(lambda: self.protocol.authenticated(identity, self.world.now))
        return None


def logged_in(world: World, secret: str) -> Peer:
    peer = TokenPeer(world)
    peer.shake_hands(PLAIN._replace(response=f"\0alice\0{secret}".encode()))
    assert peer.ask(first.ChannelOpen()) == first.ChannelOpenOk()
    peer.declare("q")
    return peer


def renew(peer: Peer, secret: str) -> None:
    peer.say(first.ConnectionUpdateSecret(secret.encode(), ""), 0)
    peer.method(first.ConnectionUpdateSecretOk)


def bound(peer: Peer, count: int) -> int:
    """How many bindings to topics there are when one is refused, or this many."""
    for number in range(count):
        answer = peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key=f"k.{number}"))
        if not isinstance(answer, entity.QueueBindOk):
            return number
    return count


@pytest.mark.parametrize(
    ("before", "after"),
    [("any subscriptions=1", "any subscriptions=3"), ("small", "large"), ("any subscriptions=1", "any")],
)
@pytest.mark.parametrize("renewed", [True, False])
def test_more_is_allowed_at_once(before: str, after: str, renewed: bool) -> None:
    world = World()
    world.broker.use_quotas(parse_quotas(GROUPS, "quotas.toml"))
    peer = logged_in(world, before)
    if renewed:
        renew(peer, after)
    assert bound(peer, 3) == (3 if renewed else 1)


@pytest.mark.parametrize(
    ("before", "after"), [("any subscriptions=3", "any subscriptions=1"), ("large", "small"), ("any", "small")],
)
def test_less_is_allowed_at_once_and_nothing_is_taken(before: str, after: str) -> None:
    world = World()
    world.broker.use_quotas(parse_quotas(GROUPS, "quotas.toml"))
    peer = logged_in(world, before)
    assert bound(peer, 2) == 2
    renew(peer, after)
    assert peer.counts("q") == (0, 0)
    answer = peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="more"))
    assert not isinstance(answer, entity.QueueBindOk), answer


def test_a_message_larger_than_the_new_token_allows_is_refused() -> None:
    world = World()
    peer = logged_in(world, "any message_bytes=1000")
    peer.publish("q", bytes(500))
    assert peer.counts("q") == (1, 0)
    renew(peer, "any message_bytes=100")
    peer.publish("q", bytes(500))
    assert peer.error() == (False, 406, (60, 40))
    assert len(world.broker.queues.find("q").inside) == 1
