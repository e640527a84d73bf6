"""A group that has used up one of its pots: what its clients get, in each protocol, by its lane and after a reload."""

import pytest

from fanlight_broker.permitting.quota_file import parse_quotas
from fanlight_broker.protocols.mqtt.packets import ConnAck, PubAck, Publish, SubAck, Subscribe
from fanlight_broker.protocols.mqtt.packets import Subscription as Wanted
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native


def quotas(world: native.World | mqtt.World, **pots: int) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in pots.items())
    world.broker.use_quotas(parse_quotas(f'[[quota]]\nname = "all"\ngroup = "anonymous"\nper = "group"\n{lines}', "q"))


def joined(world: mqtt.World, name: str, host: int, version: Version = V5) -> mqtt.Peer:
    """Each from another address, so another principal."""
    peer = world.open(version)
    peer.address = f"192.0.2.{host}"
    peer.say(mqtt.connect(name, version, clean_start=version is V5))
    return peer


@pytest.mark.parametrize(("version", "code"), [(V3, R.SERVER_UNAVAILABLE), (V5, R.QUOTA_EXCEEDED)])
def test_a_session_more_is_refused_by_connack(version: Version, code: int) -> None:
    world = mqtt.World()
    quotas(world, sessions=2)
    answers = [joined(world, f"c{host}", host, version).next() for host in (1, 2, 3)]
    assert [answer.reason_code for answer in answers if isinstance(answer, ConnAck)] == [0, 0, code]


@pytest.mark.parametrize(("version", "code"), [(V3, 0x80), (V5, R.QUOTA_EXCEEDED)])
def test_a_subscription_more_is_refused_by_suback(version: Version, code: int) -> None:
    world = mqtt.World()
    quotas(world, subscriptions=3)
    codes = []
    for host in (1, 2):
        peer = joined(world, f"c{host}", host, version)
        peer.next()
        peer.say(Subscribe(1, (Wanted(f"t/{host}", 1), Wanted(f"u/{host}", 1))))
        answer = peer.next()
        assert isinstance(answer, SubAck)
        codes += answer.reason_codes
    assert codes == [1, 1, 1, code]


def test_a_retained_message_more_is_not_retained_also_of_a_client_that_was_there_before_the_quota() -> None:
    world = mqtt.World()
    first, second = (joined(world, f"c{host}", host) for host in (1, 2))
    for number, peer in enumerate((first, second)):
        peer.next()
        peer.say(Publish(f"a/{number}", b"x", qos=1, retain=True, packet_id=1))
        assert isinstance(peer.next(), PubAck)
    quotas(world, retained_messages=1)
    for number, peer in enumerate((first, second)):  # what was there before counts for their users alone
        peer.say(Publish(f"b/{number}", b"x", qos=1, retain=True, packet_id=2))
        assert isinstance(peer.next(), PubAck)
    assert len(world.broker.retained) == 3


def test_native_clients_get_limit_exceeded_with_the_quota() -> None:
    world = native.World()
    quotas(world, subscriptions=1)
    for host, kind in ((1, "OK"), (2, "ERROR")):
        peer = world.open()
        peer.address = f"192.0.2.{host}"
        peer.send(native.frame(1, 1, {}))
        peer.next()
        peer.send(native.frame(6, 2, 1, "a"))
        answer = peer.next()
        assert ("limit_exceeded" in answer) == (kind == "ERROR")
        if kind == "ERROR":
            assert answer[-1] == {"limit": "quota subscriptions", "value": 1}
