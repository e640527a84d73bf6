"""A native connection fed with any bytes at all, and what must hold whatever they are.

The protocol has no socket, so a whole broker with two clients fits into one call: an honest one that listens to
everything, and one that sends the octets under test, in pieces of any size. Used by hypothesis in every test run
(test_fuzz.py) and by atheris for as long as one likes (`make fuzz`).
"""

from collections.abc import Callable, Iterator

from fanlight_broker import event_log
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.identity import ANONYMOUS
from fanlight_broker.core.limits import Limits
from fanlight_broker.protocols.native import frames
from fanlight_broker.protocols.native.codec import decode
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from tests.captured_logs import Silence

HELLO = bytes.fromhex("0000000493010180")
SUBSCRIBE_TO_ALL = bytes.fromhex("000000069406c001a123")  # subscription 1, "#"
LIMITS = Limits(
    frame_bytes_max=4096, subscriptions_per_client_max=8, pending_messages_max=8, outbox_bytes_max=65_536
)

# A refusal is logged; a million of them would be all that fuzzing does.
event_log.use(Silence())


class Wire:
    """The transport side: there is no socket, everybody may log in, and the other side reads at once."""

    def __init__(self, broker: Broker, shared: ReceiveBuffer) -> None:
        self.address, self.port, self.certified, self.listener = "fuzz", 0, "", ""
        self.closed = False
        self.said = b""
        self._reading = True
        self._login = False
        self._go_on: Callable[[], None] | None = None
        self.protocol = NativeConnection(broker, self, shared, now=0.0)

    def wrong_protocol(self, first: bytes) -> bytes | None:
        return None

    def now(self) -> float:
        return 0.0

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> None:
        self._login = True

    def close(self, reason: str = "") -> None:
        self.closed = True

    def abort(self, reason: str) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True

    def next_turn(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on

    def send(self, octets: bytes) -> None:
        """What the peer sends, as one read."""
        if self.closed:
            return
        self.protocol.inbox.feed(octets)
        self.protocol.receive(0.0)
        if self._login:
            self._login = False
            self.protocol.authenticated(ANONYMOUS, 0.0)
        while self._go_on is not None:
            go_on, self._go_on = self._go_on, None
            go_on()

    def read(self) -> None:
        """The peer reads all there is for it."""
        while octets := self.protocol.outbox.read():
            self.said += octets

    def heard(self) -> Iterator[list[object]]:
        """What the peer was told, frame by frame. Raises whatever a frame that is none makes it raise."""
        at = 0
        while at < len(self.said):
            size = int.from_bytes(self.said[at : at + 4], "big")
            assert 0 < size <= len(self.said) - at - 4, "half a frame, or an empty one"
            yield decode(self.said[at + 4 : at + 4 + size])
            at += 4 + size


def try_octets(octets: bytes, *, piece: int, greet: bool) -> None:
    """Let a stranger send `octets` in pieces of `piece` bytes, behind a proper HELLO if `greet`.

    Raises AssertionError if anything that must hold does not.
    """
    broker = Broker(LIMITS, schedule=lambda: None, next_turn=lambda work: work())
    shared = ReceiveBuffer()
    honest = Wire(broker, shared)
    honest.send(HELLO + SUBSCRIBE_TO_ALL)
    stranger = Wire(broker, shared)
    if greet:
        stranger.send(HELLO)
    for at in range(0, len(octets), piece):
        stranger.send(octets[at : at + piece])
        stranger.read()
        honest.read()

    # Whatever was sent: everybody is told in whole frames, and the honest client is still there.
    for wire in (honest, stranger):
        kinds = [frame[0] for frame in wire.heard()]
        assert all(isinstance(kind, int) for kind in kinds)
    assert not honest.closed
    told = [frame[0] for frame in stranger.heard()]
    assert told.count(frames.Type.GOODBYE) <= 1
    if frames.Type.GOODBYE in told:
        assert told[-1] == frames.Type.GOODBYE
        assert stranger.closed

    # It leaves nothing behind, and the broker still works.
    stranger.protocol.lost("closed")
    before = len(honest.said)
    honest.send(bytes.fromhex("0000000794" + "0301a161c400"))  # PUBLISH with request 1, topic a
    honest.read()
    assert len(honest.said) > before
    honest.protocol.lost("closed")
    assert not broker.clients
    for queue in list(broker.queues):  # durable ones outlive the client that made them
        broker.queues.end(queue)
    assert not len(broker.router)
    assert broker.ledger.used == 0
