"""What the chapters' tests share: both versions, sessions that last, and how a connection ends."""

from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, Packet, Publish
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World, connect

versions = pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])
qualities = pytest.mark.parametrize("qos", [0, 1, 2])


def lasting(version: Version, seconds: int = 600) -> dict[str, Any]:
    """Fields of a CONNECT whose session outlives its connection, and resumes the one there is."""
    return {"clean_start": False} | ({"session_expiry_interval": seconds} if version is V5 else {})


def back(world: World, client_id: str, version: Version, **fields: Any) -> tuple[Peer, list[Packet]]:
    """A client that connects anew to its session, and what it gets behind its CONNACK."""
    peer = world.open(version)
    peer.say(connect(client_id, version, **(lasting(version) | fields)))
    connack, *rest = peer.packets()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == 0
    peer.connack = connack
    return peer, rest


def present(peer: Peer) -> bool:
    """Did its CONNACK say that there was a session?"""
    assert peer.connack is not None
    return peer.connack.session_present


def publishes(packets: list[Packet]) -> list[Publish]:
    """The packets, all of which are PUBLISHes."""
    assert all(isinstance(packet, Publish) for packet in packets), packets
    return [packet for packet in packets if isinstance(packet, Publish)]


def payloads(packets: list[Packet]) -> list[bytes]:
    return [packet.payload for packet in publishes(packets)]


def assert_closed(peer: Peer, reason: ReasonCode) -> None:
    """The broker has closed the connection: in 5.0 with a DISCONNECT that says why, in 3.1.1 without a word."""
    assert peer.gone
    packets = peer.packets()
    if peer.version is V3:
        assert packets == []
        return
    (goodbye,) = packets
    assert isinstance(goodbye, Disconnect), goodbye
    assert goodbye.reason_code == reason, goodbye
