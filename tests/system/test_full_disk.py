"""A broker on a file system of a few MiB that fills: publishers are refused in the words of their protocols, QoS 0 goes
on, consumers drain, a kill in between loses nothing, and publishers go on without help.

Where no file system may be mounted, the same happens in one process, on a disk that says that it is full.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fanlight import sync
from fanlight.errors import LimitExceeded
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from tests.broker.storage.full_disk import consumers_drain_a_full_disk
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer

FILLING = bytes(8 << 10)
MOST, LEAST = 10_000, 700  # messages: that do not fit in any case, and that do
CONFIG = """
data_segment_bytes = "1MiB"
data_free_bytes_min = 0
queue_messages_max = 100_000
queue_bytes_max = "1GiB"
"""


def mount(folder: Path, options: str) -> bool:
    """Returns whether this process may do that."""
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True, check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0


@contextmanager
def small_file_system(folder: Path) -> Iterator[bool]:
    """False: there is none, for this process may not mount it."""
    folder.mkdir()
    mounted = mount(folder, "size=12m")
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def reader_of(broker: TestBroker) -> MqttPeer:
    return await MqttPeer.connect(
        broker.mqtt_port, "reader", clean_start=False, session_expiry_interval=3_600, receive_maximum=100
    )


async def publish(peer: MqttPeer, payload: bytes) -> ReasonCode:
    await peer.send(Publish("t", payload, 1, packet_id=1))
    answer = await peer.packet()
    assert isinstance(answer, PubAck)
    return answer.reason_code


def recovered(broker: TestBroker) -> bool:
    return times(broker, "store_well") == times(broker, "store_unwell")


async def fill(broker: TestBroker, least: int = 0) -> list[bytes]:
    """Publish until it is refused. Returns what was accepted.

    least  before that a refusal is no full disk: a file could not be made while another was; then it is made later
    """
    accepted: list[bytes] = []
    async with await MqttPeer.connect(broker.mqtt_port, "publisher") as peer:
        while len(accepted) < MOST:
            payload = b"%06d" % len(accepted) + FILLING
            code = await publish(peer, payload)
            if code == ReasonCode.SUCCESS:
                accepted.append(payload)
                continue
            assert code == ReasonCode.QUOTA_EXCEEDED
            if len(accepted) >= least:
                return accepted
            broker.wait_for(lambda: recovered(broker), 60.0)
    raise AssertionError("the disk was never full")


def order(broker: TestBroker) -> bool:
    """Publish an order for a durable queue. Returns whether it is accepted."""
    with sync.connect(broker.url) as shop:
        try:
            return shop.publish("orders", b"an order", receipt=True) == 1
        except LimitExceeded:
            return False


async def check_what_goes_on(broker: TestBroker) -> None:
    async with await MqttPeer.connect(broker.mqtt_port, "live") as live:
        await live.subscribe("news")
        await live.send(Publish("news", b"QoS 0", 0))
        assert (await live.message()).payload == b"QoS 0"


async def drain(broker: TestBroker, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with await reader_of(broker) as reader:
        while len(found) < count:
            message = await reader.message()
            found.append(message.payload)
            await reader.send(PubAck(message.packet_id or 0))
        await reader.ping()
        await reader.packet()
    return found


def times(broker: TestBroker, text: str) -> int:
    return sum(text in line for line in broker.lines)


async def test_a_full_disk_refuses_publishers_and_consumers_drain_it(start_broker: StartBroker, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small") as mounted:
        if not mounted:
            consumers_drain_a_full_disk(tmp_path)
            return
        config = tmp_path / "fanlight.toml"
        config.write_text(CONFIG)
        broker = start_broker(data=tmp_path / "small" / "data", config=config)
        broker.may_complain = True  # it logs that the store is not well
        async with await reader_of(broker) as reader:
            await reader.subscribe("t", qos=1)
        with sync.connect(broker.url) as worker, worker.subscribe("orders", durable="billing", ack=True):
            pass
        assert order(broker)
        orders = 1
        accepted = await fill(broker, LEAST)
        while order(broker):  # one more file could be made
            orders += 1
            accepted += await fill(broker)
        await check_what_goes_on(broker)
        broker.kill()
        broker = start_broker(data=tmp_path / "small" / "data", config=config)
        broker.may_complain = True
        assert await drain(broker, len(accepted)) == accepted
        again = await fill(broker, LEAST)
        assert mount(tmp_path / "small", "remount,size=24m")
        broker.wait_for(lambda: recovered(broker), 60.0)
        async with await MqttPeer.connect(broker.mqtt_port, "publisher") as peer:
            while (code := await publish(peer, b"there is room")) != ReasonCode.SUCCESS:
                assert code == ReasonCode.QUOTA_EXCEEDED  # until the next file is made, which is tried again
                await asyncio.sleep(0.05)
        with sync.connect(broker.url) as worker, worker.subscribe("orders", durable="billing", ack=True) as queued:
            assert order(broker)
            assert all(queued.next(timeout=60).ack() for _ in range(orders + 1))
        assert await drain(broker, len(again) + 1) == [*again, b"there is room"]
        assert broker.terminate() == 0
