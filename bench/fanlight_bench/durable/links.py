"""The connections of a durable load: opened, prepared, handed to the compiled half, closed.

A consumer that comes back finds its messages waiting: they may stand behind the first answer in the same read, and
belong to the load. So reading for answers ends at the first delivery.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from fanlight_bench.durable.couriers import Courier
from fanlight_bench.durable.stored_load import StoredLoad
from fanlight_bench.launch import on_cpu
from fanlight_bench.load import connect
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.protocol import DELIVERY, PING, Damaged, Dialect
from fanlight_bench.load.speaker import Refused
from fanlight_bench.peers.compare import processors

PAYLOAD_BYTES = 256
BEHIND_MAX = 10_000  # messages that a broker may have and not have delivered, where its consumer is there


class Link(Connection):
    """A connection whose `rest` begins with the first delivery."""

    def receive(self, speaker: connect.Talker) -> None:
        data = self.socket.recv(connect.READ_BYTES)
        if not data:
            raise Refused(f"the broker closed the connection of {self.name}")
        self.rest += data
        try:
            frames, _ = speaker.dialect.frames(self.rest)
        except Damaged as error:
            raise Refused(str(error)) from None
        for kind, frame in frames:
            if kind == DELIVERY:
                return
            del self.rest[: len(frame)]
            if kind == PING:
                self._unsent += speaker.dialect.reply(frame)
            elif speaker.is_answer(kind, frame):
                self._wanted -= 1


class Handshake:
    """A courier, as opening a connection needs it: of a session that is kept, or of one that is not."""

    def __init__(self, courier: Courier, *, kept: bool) -> None:
        self.dialect: Dialect = courier.dialect
        self._courier = courier
        self._kept = kept

    def hello(self, client: str) -> bytes:
        return self._courier.hello(client, kept=self._kept)

    def is_answer(self, kind: int, frame: bytes) -> bool:
        return self._courier.is_answer(kind, frame)


class Crew:
    """Publishers and consumers of one broker, and what they must see; connections come and go, the books stay.

    Raises Refused, OSError or TimeoutError, as connect.talk does.
    """

    def __init__(
        self, courier: Courier, port: int, prefix: str, *, publishers: int, window: int,
        consumers: Sequence[int] = (0,), topics: int = 1, behind: int = BEHIND_MAX,
        payload_bytes: int = PAYLOAD_BYTES, retain: bool = False,
    ) -> None:  # fmt: skip
        self.courier = courier
        self.prefix = prefix
        self.consumers = list(consumers)
        self.topics = topics
        self._retain = retain
        self.moved(port)
        self._links: list[Link] = []
        self._publishers = [f"{prefix}-p{number}" for number in range(publishers)]
        publishes = [self._publish(name, payload_bytes) for name in self._publishers]
        self.load = StoredLoad(
            courier.dialect, publishes, self.consumers, payload_bytes=payload_bytes, topics=topics, window=window,
            behind=behind,
        )  # fmt: skip

    def moved(self, port: int) -> None:
        """The broker listens on this port from now on."""
        self._address = ("127.0.0.1", port)

    def prepare(self) -> None:
        """Make what keeps messages, with all consumers known to the broker and away."""
        with opened(self.courier, self._address, ["prepare"], kept=False) as links:
            for step in self.courier.prepare(self.prefix, self.consumers):
                converse(self.courier, links, [step])
        everyone = range(len(self.consumers))
        with opened(self.courier, self._address, self._names(everyone), kept=True) as links:
            converse(self.courier, links, [self._consumer(number, again=False) for number in everyone])

    @contextlib.contextmanager
    def there(
        self, *, publishers: bool, consumers: Sequence[int], pinned: bool = True
    ) -> Iterator[StoredLoad]:
        """The publishers, and these consumers by number, connected; they leave at the end. pinned: the load stays on
        one processor meanwhile; the broker may use all."""
        names = self._publishers if publishers else []
        with contextlib.ExitStack() as stack:
            stack.enter_context(on_cpu(processors()[1] if pinned else None))
            come = stack.enter_context(opened(self.courier, self._address, names, kept=False))
            back = stack.enter_context(opened(self.courier, self._address, self._names(consumers), kept=True))
            converse(self.courier, come, [self.courier.publisher(name) for name in names])
            converse(self.courier, back, [self._consumer(number, again=True) for number in consumers])
            stack.callback(self.load.detach)
            for number, link in enumerate(come):
                self.load.attach_publisher(number, link.socket.fileno(), bytes(link.rest))
            for number, link in zip(consumers, back, strict=True):
                self.load.attach_consumer(number, link.socket.fileno(), bytes(link.rest))
            self.load.start()
            yield self.load

    def faults(self) -> dict[str, int]:
        """What went wrong so far, by name; empty if nothing did."""
        names = ("missing", "repeated", "misrouted", "damaged", "wrong_acknowledgements", "refused", "closed")
        return {name: count for name in names if (count := int(getattr(self.load, name)))}

    def _publish(self, client: str, payload_bytes: int) -> tuple[bytes, int, int, int]:
        frame, topic_at = self.courier.publish(client, self.prefix, payload_bytes, retain=self._retain)
        return frame.octets, frame.payload_at, frame.number_at, topic_at

    def _consumer(self, number: int, *, again: bool) -> Iterator[tuple[bytes, int]]:
        return self.courier.consumer(number, self.prefix, self.consumers[number], again=again)

    def _names(self, consumers: Sequence[int]) -> list[str]:
        return [f"{self.prefix}-c{number}" for number in consumers]


@contextlib.contextmanager
def opened(courier: Courier, address: tuple[str, int], names: Iterable[str], *, kept: bool) -> Iterator[list[Link]]:
    """Connections by these names, with the handshake done; closed at the end."""
    links = [Link(name) for name in names]
    try:
        connect.talk(links, Handshake(courier, kept=kept), address)
        yield links
    finally:
        for link in links:
            link.close(courier.goodbye())


def converse(courier: Courier, links: Sequence[Link], scripts: Sequence[Iterable[tuple[bytes, int]]]) -> None:
    """Have each of these scripts said on its connection, and answered."""
    for link, script in zip(links, scripts, strict=True):
        link.say(script)
    connect.talk(links, Handshake(courier, kept=False))
