"""Every prefix of the vectors' frames, and every octet of them changed: it waits, works on, or closes with its reason.

Systematic where test_fuzz.py is random. The broker is one for all cases of a test, as a real one is, and must hold no
more at the end than at the start.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.protocols.native.frames import Type
from tests.broker.protocols.native.world import KIB, Peer, World, frame
from tests.captured_logs import silence

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
VECTORS: dict[str, Any] = json.loads((DOCS / "native-protocol-vectors.json").read_text(encoding="utf-8"))
FRAMES = {
    vector["name"]: bytes.fromhex(vector["bytes"])
    for section in ("frames", "invalid", "invalid_first_frames")
    for vector in VECTORS[section]
}
LOOKED_AT = 48  # octets of a long frame: behind them payload and keys go on as they began
FRAME_MAX = 4 * KIB
# Those that are not refused by their length alone, and are one frame.
ACCEPTED_LENGTHS = [
    name for name, octets in FRAMES.items() if 4 < len(octets) == 4 + int.from_bytes(octets[:4], "big") <= 4 + FRAME_MAX
]
PING = frame(11, 4711)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Every refusal is logged, and here is nothing but refusals."""
    with silence():
        yield


def changed(octets: bytes) -> Iterator[bytes]:
    """Each octet changed in the ways that matter: a bit at either end, the extremes, and kinds of msgpack."""
    for at in range(min(len(octets), LOOKED_AT)):
        old = octets[at]
        news = {old ^ 1, old ^ 0x80, (old + 1) & 0xFF, (old - 1) & 0xFF, 0x00, 0xC0, 0xC1, 0xD9, 0xDF, 0xFF}
        for new in sorted(news - {old}):
            yield octets[:at] + bytes((new,)) + octets[at + 1 :]


def ends_well(peer: Peer) -> None:
    """What was sent was answered, refused with a reason, or waits for the rest of a frame."""
    protocol = peer.protocol
    answers = peer.frames()
    if peer.gone:
        if protocol.failed is not None:
            error, goodbye = answers[-2:]
            assert (error[0], error[2]) == (Type.ERROR, protocol.failed)
            assert goodbye[:2] == [Type.GOODBYE, protocol.failed]
        assert protocol.inbox.size == 0
    elif answers[-1:] != [[Type.PONG, 4711]]:
        assert protocol.inbox.size > 0
        assert protocol.inbox.size <= 4 + FRAME_MAX
    peer.vanish()


@pytest.mark.parametrize("greeted", [True, False], ids=["in session", "as the first frame"])
@pytest.mark.parametrize("name", FRAMES)
def test_every_octet_of_a_frame_may_be_wrong(name: str, greeted: bool) -> None:
    world = World(frame_bytes_max=FRAME_MAX, handshake_frame_bytes_max=FRAME_MAX)
    witness = world.connect()
    witness.say(6, None, 1, "#")
    for octets in changed(FRAMES[name]):
        peer = world.connect() if greeted else world.open()
        peer.send(octets, PING, PING)
        ends_well(peer)
        world.peers.remove(peer)
    witness.frames()
    witness.send(PING)
    assert witness.frames() == [[Type.PONG, 4711]]
    assert world.broker.ledger.used == 0
    for queue in list(world.broker.queues):  # durable ones outlive the client that made them
        world.broker.queues.end(queue)
    assert len(world.broker.clients) == len(world.broker.router) == 1


@pytest.mark.parametrize("name", ACCEPTED_LENGTHS)
def test_every_prefix_of_a_frame_waits_for_the_rest(name: str) -> None:
    octets = FRAMES[name]
    world = World(frame_bytes_max=FRAME_MAX)
    for end in range(len(octets)):
        peer = world.connect()
        peer.send(octets[:end])
        assert peer.frames() == []
        assert not peer.gone
        assert peer.protocol.inbox.size == end
        assert world.broker.ledger.inboxes.used + world.broker.ledger.handshakes.used <= 2 * end + 64
        peer.vanish()
        world.peers.remove(peer)
        assert world.broker.ledger.used == 0
