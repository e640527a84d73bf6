"""Every octet of AMQP frames changed, and every prefix of them: its own connection alone ends, with a reply code."""

from collections.abc import Iterator

import pytest

from fanlight_broker.protocols.amqp import connection_methods as first
from tests.broker.protocols.amqp.world import Peer, World
from tests.captured_logs import silence
from tests.fuzz.amqp_frames import FRAMES, HANDSHAKE

LOOKED_AT = 40  # octets of a long frame: behind them it goes on as it began


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Every refusal is logged, and here is nothing but refusals."""
    with silence():
        yield


def changed(octets: bytes) -> Iterator[bytes]:
    for at in range(min(len(octets), LOOKED_AT)):
        for new in {octets[at] ^ 1, octets[at] ^ 0x80, 0xFF} - {octets[at]}:
            yield octets[:at] + bytes((new,)) + octets[at + 1 :]


def connected(world: World) -> Peer:
    peer = world.open()
    peer.at_once = True
    peer.send(HANDSHAKE)
    assert peer.got()[-1].method == first.ChannelOpenOk()
    return peer


@pytest.mark.parametrize("number", range(len(FRAMES)))
def test_changed_frames_close_their_own_connection_at_most(number: int) -> None:
    world = World(message_bytes_max=64 << 10)
    other = connected(world)
    for octets in (*changed(FRAMES[number]), *(FRAMES[number][:at] for at in range(1, LOOKED_AT))):
        peer = connected(world)
        peer.send(octets)
        got = peer.got()  # in whole frames
        if peer.close_reason is not None:
            assert isinstance(got[-1].method, first.ConnectionClose | first.ConnectionCloseOk)
        peer.vanish()
        world.peers.remove(peer)
        assert other.ask(first.ChannelFlow(True)) == first.ChannelFlowOk(True)
    assert world.counts.channels == 1
    assert world.broker.ledger.inboxes.used == 0
