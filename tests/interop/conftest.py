"""`meet` makes clients of the library that a test class names, and ends them: see conversation.py."""

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conftest import StartBroker, TestBroker
from tests.interop.peer import Endpoint, Message, Peer, Wanted, soon

pytest.register_assert_rewrite("tests.interop.conversation")

_numbers = itertools.count(1)


class Meeting:
    """Clients of one test. Their identifiers and topics are no other test's."""

    def __init__(self, kind: type[Peer], version: int, endpoint: Endpoint) -> None:
        self.kind = kind
        self.version = version
        self.endpoint = endpoint
        self.name = f"t{next(_numbers)}"
        self.peers: list[Peer] = []

    def wanted(self, name: str, **asked: object) -> Wanted:
        return Wanted(f"{self.name}-{name}", **asked)  # type: ignore[arg-type]

    def stranger(self, endpoint: Endpoint | None = None) -> Peer:
        """A client that is not yet connected."""
        peer = self.kind(endpoint or self.endpoint, self.version)
        self.peers.append(peer)
        return peer

    async def __call__(self, name: str, *, present: bool = False, **asked: object) -> Peer:
        """A client that has connected as `name`, and found a session if `present`."""
        peer = self.stranger()
        assert await peer.connect(self.wanted(name, **asked)) in (present, None)
        return peer

    async def publish(self, *messages: Message) -> None:
        """By a client of its own, which goes when all has been acknowledged."""
        peer = await self("publisher")
        await peer.publish(*messages)
        await peer.disconnect()

    async def close(self) -> None:
        for peer in self.peers:
            if not peer.closed.done():
                await peer.disconnect()


def endpoint_of(broker: TestBroker, *, websocket: bool = False) -> Endpoint:
    """The plain endpoint of a broker."""
    if not websocket:
        return Endpoint(broker.mqtt_port)
    broker.wait_for(lambda: "mqtt_websocket" in broker.addresses, 60)
    return Endpoint(broker.addresses["mqtt_websocket"][1], websocket=True)


@pytest.fixture(scope="module")
def guarded_broker(start_module_broker: StartBroker) -> TestBroker:
    """One for all tests of a file, with the password "sesame"."""
    return start_module_broker(environment={"FANLIGHT_PASSWORD": "sesame"})


@pytest_asyncio.fixture
async def meet(request: pytest.FixtureRequest, module_broker: TestBroker) -> AsyncIterator[Meeting]:
    asks = request.cls
    meeting = Meeting(asks.kind, asks.version, endpoint_of(module_broker, websocket=asks.websocket))
    yield meeting
    await soon(meeting.close())
