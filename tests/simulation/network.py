"""The simulated network: bytes between a client and the broker, delayed, split at any byte, and cut off."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fanlight_broker.core.connection import ProtocolConnection
from tests.broker.protocols.world import Peer
from tests.simulation.schedule import Schedule

if TYPE_CHECKING:
    from tests.simulation.process import BrokerProcess

DELAY = 0.02  # seconds at most, one way
SPLIT = 48  # bytes: more than that is split at a few places only


class Receiver(Protocol):
    """A client, as its connection sees it."""

    def receive(self, link: Any, octets: bytes) -> None: ...
    def closed(self, link: Any) -> None: ...


class Link(Peer):
    """One connection, with the broker's end and the client's. Bytes keep their order; a cut loses those on the way.

    protocol  makes the broker's end
    """

    world: "BrokerProcess"

    def __init__(
        self, process: "BrokerProcess", schedule: Schedule, client: Receiver,
        protocol: Callable[["Link"], ProtocolConnection],
    ) -> None:
        super().__init__(process)
        self.world = process
        self.protocol = protocol(self)
        self._schedule, self._random, self._client = schedule, schedule.random, client
        self._up_at = self._down_at = schedule.now  # when what was sent last arrives, at either end
        self.cut_off = False

    def write(self, octets: bytes) -> None:
        """The client sends."""
        for piece in self._pieces(octets):
            self._up_at = max(self._up_at, self._schedule.now) + self._random.uniform(0, DELAY)
            self._schedule.after(self._up_at - self._schedule.now, self._arrive, piece)

    def _arrive(self, piece: bytes) -> None:
        if not (self.cut_off or self.gone):
            self._sent.append(piece)

    def flush(self) -> bool:
        moved = super().flush()
        octets, self.received = self.received, b""
        if octets:
            for piece in self._pieces(octets):
                self._down_at = max(self._down_at, self._schedule.now) + self._random.uniform(0, DELAY)
                self._schedule.after(self._down_at - self._schedule.now, self._deliver_to_client, piece)
        return moved

    def _deliver_to_client(self, piece: bytes) -> None:
        if not self.cut_off:
            self._client.receive(self, piece)

    def _lose(self, reason: str) -> None:
        if not self.world.running:
            return
        before = self.gone
        super()._lose(reason)
        if not before:
            self._schedule.after(max(self._down_at - self._schedule.now, 0.0) + DELAY, self._client.closed, self)

    def cut(self) -> None:
        """Both ends notice, each in its own time. What is on the way is lost."""
        if not (self.cut_off or self.gone):
            self.cut_off = True
            if self.world.running:
                self._schedule.soon(self._lose, "cut", most=1.0)
            self._schedule.soon(self._client.closed, self, most=1.0)

    def _pieces(self, octets: bytes) -> list[bytes]:
        """What was written at once arrives in pieces: one, a few, or byte by byte."""
        kind = self._random.random()
        if kind < 0.5 or len(octets) < 2:
            return [octets]
        if kind < 0.6 and len(octets) <= SPLIT:
            return [octets[at : at + 1] for at in range(len(octets))]
        ends = sorted(self._random.sample(range(1, len(octets)), min(3, len(octets) - 1)))
        return [octets[start:end] for start, end in zip([0, *ends], [*ends, len(octets)], strict=True)]
