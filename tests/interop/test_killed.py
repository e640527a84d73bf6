"""Clients that are stopped or killed, and a broker that is: what was promised is kept, and who is back is told."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fanlight_bench.launch import Server
from tests.conftest import StartBroker, TestBroker
from tests.interop.mqttjs_peer import MqttjsPeer, Node
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import Endpoint, Message, Wanted, numbered, numbers, soon

COUNT = 2_000
READER = Path(__file__).with_name("killed_reader.py")


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    MqttjsPeer.node = node
    yield node
    node.process.send_signal(signal.SIGCONT)
    node.close()


class Reader(Server):
    """A subscriber in a process of its own, which has subscribed when it is made."""

    def __init__(self, broker: TestBroker) -> None:
        arguments = [str(READER), str(broker.mqtt_port), "killed", "numbers"]
        super().__init__([sys.executable, *arguments], listeners=())
        self.wait_for_line("subscribed", 60)

    @property
    def numbers(self) -> list[int]:
        return [int(line.split()[1]) for line in list(self.lines) if line.startswith("message ")]


async def test_a_reader_that_is_killed_at_work_misses_nothing(broker: TestBroker) -> None:  # 4.3.2, 4.4
    # With QoS 1: of a message of QoS 2 the killed client has said, by PUBREC, that it has it.
    writer = PahoPeer(Endpoint(broker.mqtt_port), 5)
    await writer.connect(Wanted("writer"))
    with Reader(broker) as first:
        assert first.lines[0] == "new"
        writing = asyncio.create_task(writer.publish(*numbered("numbers", COUNT, 1)))
        await asyncio.to_thread(first.wait_for, lambda: len(first.numbers) > COUNT // 10, 20)
        first.kill()
        before = first.numbers
    await soon(writing)
    assert len(before) < COUNT, "it was to be killed in the middle"
    with Reader(broker) as second:
        assert second.lines[0] == "present"
        await asyncio.to_thread(second.wait_for, lambda: COUNT - 1 in second.numbers, 20)
        after = second.numbers
    assert before == list(range(len(before)))
    # What was printed and not acknowledged comes again, in its place; nothing is left out.
    assert after == list(range(after[0], COUNT))
    assert after[0] <= len(before)
    await writer.disconnect()


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("side", ["reader", "writer"])
async def test_qos_2_is_exactly_once_over_connections_that_break(  # 4.3.3, 4.4
    broker: TestBroker, version: int, side: str
) -> None:
    class Returning(PahoPeer):
        returns = True

    peers = {name: Returning(Endpoint(broker.mqtt_port), version) for name in ("reader", "writer")}
    for name, peer in peers.items():
        await peer.connect(Wanted(name, clean=False, expiry=86_400))
        assert await soon(peer.connections.get()) is False
    reader, writer = peers.values()
    await reader.subscribe("numbers", 2)
    writing = asyncio.create_task(writer.publish(*numbered("numbers", COUNT, 2), Message("numbers", b"-1", 2)))
    came = await reader.messages(COUNT // 20)
    for _ in range(3):
        assert not writing.done(), "it was to break in the middle"
        peers[side].shut()
        assert await soon(peers[side].connections.get()) is True
        came += await reader.messages(COUNT // 20)
    while came[-1].payload != b"-1":
        came.append(await reader.message())
    await soon(writing)
    assert numbers(came) == [*range(COUNT), -1]
    for peer in peers.values():
        await peer.disconnect()


async def test_who_is_stopped_is_taken_for_gone_and_who_pings_is_not(  # 3.1.2.10
    start_broker: StartBroker, node: Node
) -> None:
    broker = start_broker(linger_seconds_max=60)  # which a will does not wait for
    endpoint = Endpoint(broker.mqtt_port)
    steady, stopped = PahoPeer(endpoint, 5), MqttjsPeer(endpoint, 5)
    await steady.connect(Wanted("steady", keep_alive=1))
    await steady.subscribe("will", 1)
    await stopped.connect(Wanted("stopped", keep_alive=1, will=Message("will", b"gone", 1)))
    os.kill(node.process.pid, signal.SIGSTOP)
    assert (await steady.message()).payload == b"gone"
    assert not steady.closed.done()
    os.kill(node.process.pid, signal.SIGCONT)
    assert await soon(stopped.closed) in (0x8D, None)  # Keep Alive timeout, or its own clock was first
    await steady.publish(Message("will", b"there", 1))
    assert (await steady.message()).payload == b"there"
    await steady.disconnect()


@pytest.mark.parametrize("version", [3, 5])
async def test_a_broker_that_was_killed_has_no_session_and_says_so(  # 3.2.2.1
    start_broker: StartBroker, node: Node, version: int
) -> None:
    before = start_broker()
    endpoint = Endpoint(before.mqtt_port)
    there = MqttjsPeer(endpoint, version)
    wanted = Wanted("there", clean=False, expiry=86_400)
    assert not (await there.connect_with(wanted, reconnectPeriod=100))["present"]
    assert await soon(there.connections.get()) is False
    await there.subscribe("kept/+", 1)
    before.kill()
    await soon(there.closed)

    waiting = asyncio.create_task(there.publish(*(Message(f"kept/{each}", b"x", 1, True) for each in range(10))))
    after = start_broker(mqtt_port=endpoint.port)
    assert await soon(there.connections.get()) is False
    await soon(waiting)  # what was never acknowledged the client sends again, and the broker has it then
    reader = PahoPeer(endpoint, version)
    await reader.connect(Wanted("reader"))
    await reader.subscribe("kept/#", 1)
    assert {message.topic for message in await reader.messages(10)} == {f"kept/{each}" for each in range(10)}
    await reader.disconnect()
    await there.disconnect()
    assert after.terminate() == 0


async def test_a_broker_that_stops_says_so(start_broker: StartBroker) -> None:  # 4.13
    broker = start_broker()
    five, three = PahoPeer(Endpoint(broker.mqtt_port), 5), PahoPeer(Endpoint(broker.mqtt_port), 3)
    await five.connect(Wanted("five"))
    await three.connect(Wanted("three"))
    assert await asyncio.to_thread(broker.terminate) == 0
    assert await soon(five.closed) == 0x8B  # Server shutting down
    assert await soon(three.closed) is None
    await five.disconnect()
    await three.disconnect()
