"""Whose a quota is: of each user, of each client of one, of a group together, of an address; all that apply hold."""

from typing import Any

import pytest

from fanlight_broker.core import paces
from fanlight_broker.core.identity import Identity
from fanlight_broker.permitting.quota_file import parse_quotas
from fanlight_broker.protocols.mqtt.packets import ConnAck
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native
from tests.broker.protocols.native.world import messages
from tests.broker.protocols.sinks import NativePeer


class KnownPeer(NativePeer):
    identity = Identity()

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        return self.identity


def world_of(text: str) -> native.World:
    world = native.World(idle_seconds_max=0)
    world.broker.clients.quotas = parse_quotas(text, "q")
    return world


def connect(
    world: native.World, user: str = "", client: str | None = None, address: str = "192.0.2.1", groups: str = ""
) -> Any:
    """The connection of a verified user, or of an anonymous one; or the error that it gets."""
    peer = KnownPeer(world, address)
    if user:
        peer.identity = Identity(user, verified=True, groups=frozenset(groups.split()))
    peer.send(native.frame(1, 1, {"client": client} if client else {}))
    answer = peer.frames()[0]
    return peer if answer[0] == 2 else answer


def watcher(world: native.World) -> native.Peer:
    peer: native.Peer = connect(world, "watcher", address="198.51.100.1")
    peer.send(native.frame(6, 1, 1, "#"))
    peer.frames()
    return peer


def got(peer: native.Peer) -> int:
    return len(messages(peer.frames()))


def flood(peer: native.Peer) -> None:
    peer.send(native.publish("a", b"x") * 100)


def test_of_each_user_all_clients_share_one_and_other_users_have_their_own() -> None:
    world = world_of("[[quota]]\npublish_messages = 5")
    seen = watcher(world)
    for name in ("x", "y"):
        flood(connect(world, "ann", name))
    assert got(seen) == 5
    flood(connect(world, "bob"))
    assert got(seen) == 5


def test_of_each_client_within_that_of_its_user() -> None:
    world = world_of(
        '[[quota]]\nper = "client"\npublish_messages = 4\n[[quota]]\npublish_messages = 10\nconnections = 5\n'
    )
    seen = watcher(world)
    for name, passes in (("x", 4), ("y", 4), ("z", 2)):
        flood(connect(world, "ann", name))
        assert got(seen) == passes
    flood(connect(world, "bob", "x"))  # another client, though it says the same
    assert got(seen) == 4


def test_who_invents_names_of_clients_gains_nothing() -> None:
    world = world_of('[[quota]]\nper = "client"\npublish_messages = 4\n[[quota]]\npublish_messages = 10\n')
    seen = watcher(world)
    for number in range(100):
        peer = connect(world, "ann", f"invented-{number}")
        flood(peer)
        peer.vanish()
    assert got(seen) == 10
    flood(connect(world, "ann", "again"))
    assert got(seen) == 0


def test_of_a_group_all_its_users_together() -> None:
    world = world_of('[[quota]]\ngroup = "sensors"\nper = "group"\npublish_messages = 6\nconnections = 3\n')
    seen = watcher(world)
    for user in ("a", "b", "c"):
        flood(connect(world, user, groups="sensors"))
    assert got(seen) == 6
    refused = connect(world, "d", groups="sensors")
    assert refused[:3] == [13, None, "limit_exceeded"] or refused[2] == "limit_exceeded"
    assert "group sensors has 3 connections" in str(refused)
    assert world.broker.shares.connections_refused == 1
    flood(connect(world, "e", groups="other"))
    assert got(seen) == 100


def test_groups_by_their_beginning_have_a_quota_each() -> None:
    world = world_of('[[quota]]\ngroup = "team-*"\nper = "group"\npublish_messages = 6\n')
    seen = watcher(world)
    for user, group, passes in (("a", "team-1", 6), ("b", "team-2", 6), ("c", "team-1", 0), ("d", "team", 100)):
        flood(connect(world, user, groups=group))
        assert got(seen) == passes


def test_of_an_address_whoever_comes_from_there() -> None:
    world = world_of('[[quota]]\naddress = "10.0.0.0/8"\nper = "address"\npublish_messages = 6\nconnections = 2\n')
    seen = watcher(world)
    flood(connect(world, "a", address="10.0.0.1"))
    flood(connect(world, "b", address="10.0.0.1"))
    assert got(seen) == 6
    assert connect(world, "c", address="10.0.0.1")[0] == 13
    flood(connect(world, "c", address="10.0.0.2"))
    assert got(seen) == 6


def test_the_smallest_of_all_maxima_holds() -> None:
    world = world_of(
        '[[quota]]\nmessage_bytes = 100\n[[quota]]\ngroup = "g"\nper = "group"\nmessage_bytes = 50\n'
        '[[quota]]\nper = "client"\nmessage_bytes = 70\n'
    )
    for groups, most in (("", 70), ("g", 50)):
        peer = connect(world, "a", groups=groups)
        peer.send(native.publish("a", bytes(most), request=1))
        assert peer.next()[4] == {"limit": "quota message_bytes", "value": most}


def test_deliveries_of_a_group_are_taken_together_and_a_debt_is_remembered_for_each_holder() -> None:
    world = world_of(
        '[[quota]]\ngroup = "g"\nper = "group"\ndeliver_messages = 4\n[[quota]]\nper = "client"\ndeliver_messages = 3\n'
    )
    subscribers = [connect(world, user, groups="g") for user in ("a", "b")]
    for peer in subscribers:
        peer.send(native.frame(6, 1, 1, "#"))
        peer.frames()
    connect(world, "p").send(native.publish("a", b"x") * 10)
    assert [got(peer) for peer in subscribers] == [3, 1]
    holders = {str(holder.per) for holder, _ in world.broker.paces}
    assert holders == {"client", "group"}
    subscribers[0].vanish()
    again = connect(world, "c", groups="g")
    again.send(native.frame(6, 1, 1, "#"))
    again.frames()
    connect(world, "p").send(native.publish("a", b"x"))
    assert got(again) == 0


def test_other_entries_reach_who_is_connected() -> None:
    world = world_of('[[quota]]\ngroup = "g"\nper = "group"\npublish_messages = 1\n')
    seen, publisher = watcher(world), connect(world, "a", groups="g")
    flood(publisher)
    assert got(seen) == 1
    world.broker.use_quotas(parse_quotas('[[quota]]\nper = "client"\npublish_messages = 3\n', "q"))
    world.turn()
    assert got(seen) == 3
    assert publisher.protocol.outbox.pace is not None
    world.broker.use_quotas(parse_quotas("", "q"))
    world.turn()
    assert got(seen) == 96
    assert publisher.protocol.outbox.pace is None
    assert len(world.broker.clients.pools) == 0


def test_nothing_is_left_of_those_who_have_gone_and_owe_nothing() -> None:
    world = world_of(
        '[[quota]]\nper = "client"\npublish_messages = 4\nconnections = 2\n'
        "[[quota]]\npublish_messages = 10\nreplays = 1\n"
    )
    peers = [connect(world, "ann", f"c{number}") for number in range(20)]
    assert (len(world.broker.paces), len(world.broker.clients.pools)) == (21, 21)
    for peer in peers:
        peer.vanish()
    assert len(world.broker.clients.pools) == 0
    world.pass_time(1.0)
    assert len(world.broker.paces) == 0


class KnownMqttPeer(mqtt.Peer):
    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        return Identity(user or "", verified=True, groups=frozenset({"g"}))


@pytest.mark.parametrize("version", list(mqtt.Version))
def test_a_client_that_connects_again_takes_its_own_place_in_the_group(version: mqtt.Version) -> None:
    world = mqtt.World()
    world.broker.clients.quotas = parse_quotas('[[quota]]\ngroup = "g"\nper = "group"\nconnections = 2\n', "q")
    codes = []
    for name in ("a", "b", "c", "b", "a"):
        peer = KnownMqttPeer(world, version)
        peer.say(mqtt.connect(name, version, user_name=name))
        connack = peer.packets()[0]
        assert isinstance(connack, ConnAck)
        codes.append(connack.reason_code)
    assert codes == [0, 0, R.QUOTA_EXCEEDED if version is mqtt.Version.MQTT_5_0 else R.SERVER_UNAVAILABLE, 0, 0]


def test_invented_clients_do_not_make_it_forget_what_users_owe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paces, "GONE_MAX", 3)
    world = world_of('[[quota]]\nper = "client"\npublish_messages = 1\n[[quota]]\npublish_messages = 10\n')
    seen, debtor = watcher(world), connect(world, "bob", "x")
    flood(debtor)
    debtor.vanish()
    for number in range(20):
        peer = connect(world, "ann", f"invented-{number}")
        flood(peer)
        peer.vanish()
    holders = [holder.name for holder, _ in world.broker.paces]
    assert len([name for name in holders if name.startswith("client invented")]) <= 3
    assert {"user ann", "user bob"} <= set(holders)
    assert got(seen) == 1 + 10
