"""Producers that publish again what may have been taken, and a real broker that is killed meanwhile: each message is
archived once (docs/native-protocol.md, 3.8)."""

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import fanlight
from fanlight_archive import Archive
from fanlight_bench.launch import Broker
from tests.system.test_archive import get

MESSAGES = 600  # of a producer
BATCH = 150
WINDOW = 64  # published and without a receipt
PRODUCERS = ("query.0", "query.1")


async def produce(client: fanlight.Client, producer: str, heard: Callable[[], None]) -> tuple[int, int]:
    """Publish all from the start, in order. Returns how many receipts came, and how many told of a repetition.

    heard  called with each receipt
    """
    taken = repeated = 0
    window: asyncio.Queue[asyncio.Task[fanlight.Routed] | None] = asyncio.Queue(WINDOW)

    async def receipts() -> None:
        nonlocal taken, repeated
        while (waiting := await window.get()) is not None:
            try:
                routed = await waiting
            except fanlight.FanlightError:
                continue  # the broker was killed
            heard()
            taken += 1
            repeated += routed.repeated

    reader = asyncio.create_task(receipts())
    for number in range(MESSAGES):
        topic = f"stock.{number % 7}" if number % 3 else f"stock.new.{producer}.{number}"  # of both lanes
        mark = fanlight.Mark(producer, *divmod(number, BATCH))
        payload = f"{producer} {number}".encode()
        publishing = asyncio.create_task(client.publish(topic, payload, receipt=True, mark=mark))
        await asyncio.sleep(0)  # so that they are sent in this order
        await window.put(publishing)
    await window.put(None)
    await reader
    return taken, repeated


def found(folder: Path) -> Counter[str]:
    with Archive(folder) as archive:
        return Counter(value.decode() for batch in archive.read() for value in batch.column("value").to_pylist())


@pytest.mark.parametrize("durability", ["none", "interval", "batch"])
async def test_what_is_published_from_the_start_after_each_kill_is_archived_once(
    tmp_path: Path, durability: str
) -> None:
    for life in range(4):
        broker = Broker(
            archive=tmp_path, archive_receipts=True, archive_durability=durability, archive_sync_seconds=0.05,
            archive_segment_bytes_max=64 * 1024, archive_batch_messages_max=50,
        )  # fmt: skip
        try:
            client = await fanlight.connect(broker.url, reconnect=False)

            receipts = count(1)

            def heard(life: int = life, broker: Broker = broker, receipts: Iterator[int] = receipts) -> None:
                if next(receipts) == 250 + 350 * life and life < 3:
                    broker.process.send_signal(signal.SIGKILL)

            outcomes = await asyncio.gather(*(produce(client, producer, heard) for producer in PRODUCERS))
            if life == 3:
                await client.close()
                marks = get(broker, "/marks")["marks"]
                assert {(mark["producer"], mark["batch"], mark["sequence"]) for mark in marks} == {
                    (producer, *divmod(MESSAGES - 1, BATCH)) for producer in PRODUCERS
                }
                assert get(broker, "/stats")["publishes_repeated"] == sum(repeated for _, repeated in outcomes)
                assert broker.terminate() == 0
            else:
                assert broker.process.wait(10) == -signal.SIGKILL
        finally:
            broker.kill()
    assert [taken for taken, _ in outcomes] == [MESSAGES] * 2
    assert all(repeated > 0 for _, repeated in outcomes)
    assert found(tmp_path) == Counter(f"{producer} {number}" for producer in PRODUCERS for number in range(MESSAGES))
