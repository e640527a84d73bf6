"""A real broker with an archive: killed while it writes, with a full disk, and stopped (docs/archive.md)."""

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import fanlight
from fanlight_archive import Archive
from fanlight_bench.launch import LaunchError
from tests.conftest import TestBroker

needs_prlimit = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit(2) is Linux's")


def get(broker: TestBroker, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(broker.http_url + path, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def values(folder: Path) -> list[int]:
    with Archive(folder) as archive:
        return [int(value) for batch in archive.read() for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize("durability", ["none", "interval", "batch"])
async def test_a_killed_broker_has_every_message_whose_receipt_it_gave(tmp_path: Path, durability: str) -> None:
    """Killed twice in the middle of it; each time it goes on where it was."""
    acknowledged: list[int] = []
    number = 0
    for _ in range(2):
        broker = TestBroker(
            archive=tmp_path, archive_receipts=True, archive_durability=durability, archive_sync_seconds=0.05,
            archive_segment_bytes_max=64 * 1024,
        )  # fmt: skip
        try:
            client = await fanlight.connect(broker.url, reconnect=False)
            killed = asyncio.Event()

            async def publish(
                first: int, client: fanlight.Client = client, killed: asyncio.Event = killed,
                broker: TestBroker = broker,
            ) -> None:  # fmt: skip
                for number in range(first, first + 100_000, 50):
                    try:
                        await client.publish("stock.AAPL", b"%d" % number, receipt=True)
                    except fanlight.FanlightError:
                        return
                    acknowledged.append(number)
                    if len(acknowledged) % 300 == 0 and not killed.is_set():
                        killed.set()
                        broker.process.send_signal(signal.SIGKILL)

            await asyncio.gather(*(publish(number + each) for each in range(50)))
            assert killed.is_set()
            number += 1_000_000
        finally:
            broker.kill()
        found = values(tmp_path)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found))
    with TestBroker(archive=tmp_path) as broker:
        assert get(broker, "/archive")["archive_epoch"] == 1  # a process was killed, and no machine went down
        broker.terminate()
    assert set(acknowledged) <= set(values(tmp_path))


@needs_prlimit
async def test_with_a_full_disk_the_broker_goes_on_and_the_archive_says_that_it_is_unwell(tmp_path: Path) -> None:
    """A limit on the size of its files is as good as a full disk, and can be lifted again."""
    with TestBroker(archive=tmp_path, archive_batch_seconds_max=0.01) as broker:
        async with await fanlight.connect(broker.url) as client:
            subscription = await client.subscribe("stock.#")
            await client.publish("stock.A", b"1", receipt=True)
            limits = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
            await settled(broker, 1)
            resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (1024, limits[1]))
            await client.publish("stock.A", b"2", receipt=True)
            broker.wait_for_line("archive_unwell")
            assert get(broker, "/healthz") == {"status": "degraded", "unwell": ["archive"]}
            assert "File too large" in get(broker, "/archive")["trouble"]
            await client.publish("stock.A", b"3", receipt=True)
            assert [(await anext(subscription)).payload for _ in range(3)] == [b"1", b"2", b"3"]
            resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, limits)
            broker.wait_for_line("archive_well")
            await settled(broker, 3)
            assert get(broker, "/healthz") == {"status": "ok"}
        assert broker.terminate() == 0
    assert values(tmp_path) == [1, 2, 3]


async def settled(broker: TestBroker, end: int) -> None:
    """Until so many messages are in the archive."""
    async with asyncio.timeout(60):
        while (await asyncio.to_thread(get, broker, "/archive"))["archive_end"] < end:
            pass  # the listener sets the pace: http_requests_per_second_max


async def test_an_archive_whose_folder_is_removed_is_made_again_and_keeps_what_comes(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    broker = TestBroker(archive=folder, archive_receipts=True, archive_durability="batch")
    try:
        async with await fanlight.connect(broker.url) as client:
            for number in range(10):
                await client.publish("a", b"%d" % number, receipt=True)
            shutil.rmtree(folder)
            for number in range(10, 20):  # a receipt says that it is in the archive
                await client.publish("a", b"%d" % number, receipt=True)
        assert values(folder) == list(range(10, 20))
        await settled(broker, 20)
        told = get(broker, "/archive")
        assert (told["archive_epoch"], told["archive_start"], told["trouble"]) == (2, 10, None)
        assert any("archive_recovered" in line and "was removed and is made again" in line for line in broker.lines)
    finally:
        assert broker.terminate() == 0


async def test_a_stop_with_messages_that_cannot_be_written_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    """A file stands where the folder was, so it cannot be made again."""
    folder = tmp_path / "archive"
    broker = TestBroker(archive=folder)
    try:
        async with await fanlight.connect(broker.url) as client:
            await client.publish("a", b"0", receipt=True)
            await settled(broker, 1)
            folder.rename(tmp_path / "elsewhere")
            folder.touch()
            for number in range(1, 6):
                await client.publish("a", b"%d" % number, receipt=True)
    finally:
        code = broker.terminate()
    assert code == 74
    (told,) = [json.loads(line) for line in broker.lines if '"archive_unwritten"' in line]
    assert 5 <= told["messages"] <= 6
    assert told["bytes"] > 0
    assert "archive" in told["reason"]


def test_a_second_broker_is_refused_the_archive_of_the_first(tmp_path: Path) -> None:
    with TestBroker(archive=tmp_path), pytest.raises(LaunchError, match="being written by another process"):
        TestBroker(archive=tmp_path)


def test_a_filter_that_is_none_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="archive_topics"):
        TestBroker(archive=tmp_path, archive_topics="stock.#, mqtt:a/#/b")


def test_without_an_archive_pyarrow_is_not_loaded() -> None:
    program = "import sys, fanlight_broker.app; print('pyarrow' in sys.modules or 'archive' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


async def test_a_replay_and_what_is_published_meanwhile_come_without_a_gap_or_a_duplicate(tmp_path: Path) -> None:
    """Replays begin while a publisher goes on; each gets everything, once, in order."""
    with TestBroker(archive=tmp_path, archive_batch_messages_max=100) as broker:
        async with await fanlight.connect(broker.url) as publisher, await fanlight.connect(broker.url) as reader:
            last = 6_000

            async def publish() -> None:
                for number in range(last):
                    await publisher.publish("stock.A", b"%d" % number)
                    if number % 200 == 199:
                        await publisher.flush()

            async def replay() -> list[int]:
                found: list[int] = []
                async with reader.replay("stock.#") as messages:
                    async for message in messages:
                        assert message.offset in (None, len(found))
                        found.append(int(message.payload))
                        if found[-1] == last - 1:
                            assert messages.live or message.offset is not None
                            return found
                return found

            publishing = asyncio.create_task(publish())
            await publisher.flush()
            every = await asyncio.gather(replay(), replay(), replay())
            await publishing
            assert [numbers == list(range(last)) for numbers in every] == [True] * 3


def test_sub_since_prints_what_was_archived(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("fanlight"))]
    with TestBroker(archive=tmp_path) as broker:
        for payload in ("one", "two"):
            subprocess.run([*command, "pub", "--url", broker.url, "stock.A", payload], check=True, timeout=60)
        done = subprocess.run(
            [*command, "sub", "--url", broker.url, "stock.#", "--since", "1h", "--count", "2", "--json"],
            check=True, timeout=60, capture_output=True, text=True,
        )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["payload"], line["offset"]) for line in lines] == [("one", 0), ("two", 1)]
    assert lines[0]["timestamp"].startswith("20")


async def test_a_replay_where_there_is_no_archive_says_so() -> None:
    with TestBroker() as broker:
        async with await fanlight.connect(broker.url) as client:
            with pytest.raises(fanlight.Unsupported, match="no archive"):
                await client.replay("stock.#")


async def test_a_replay_of_the_past_ends_and_knows_where_it_stood(tmp_path: Path) -> None:
    with TestBroker(archive=tmp_path) as broker:
        async with await fanlight.connect(broker.url) as client:
            for number in range(10):
                await client.publish("stock.A", b"%d" % number, receipt=True)
            past = await client.replay("stock.#", past_only=True)
            assert [int(message.payload) async for message in past] == list(range(10))
            assert (past.next_offset, past.epoch) == (10, 1)
            rest = await client.replay("stock.#", offset=7, epoch=1, past_only=True)
            assert [message.offset async for message in rest] == [7, 8, 9]
            with pytest.raises(fanlight.MessagesGone):
                await client.replay("stock.#", offset=11, epoch=1)


async def test_a_replay_gives_the_same_from_a_broker_with_indexes_and_one_without(tmp_path: Path) -> None:
    """Killed once, so that segments have an index from their writer, from the next one, and none."""
    options = {
        "archive": tmp_path, "archive_receipts": True, "archive_segment_bytes_max": 64 * 1024,
        "archive_sync_seconds": 0.01, "archive_compression": "none",
    }  # fmt: skip
    for life in range(2):
        broker = TestBroker(**options, archive_index_fields="n, payload.price")
        try:
            async with await fanlight.connect(broker.url) as client:
                for number in range(1_000 * life, 1_000 * (life + 1), 100):
                    await asyncio.gather(
                        *(
                            client.publish(
                                f"stock.{each % 7}", b'{"price": %d, "of": "%0200d"}' % (each, each), receipt=True,
                                headers={"n": each % 50, "content-type": "application/json"},
                            )
                            for each in range(number, number + 100)
                        )
                    )  # fmt: skip
        finally:
            broker.kill()
    found = []
    questions = (("stock.3", None), ("stock.*", "n = 7"), ("#", "payload.price BETWEEN 90 AND 120"))
    for index in (True, False):
        with TestBroker(**options, **({} if index else {"no_archive_index": True})) as broker:
            async with await fanlight.connect(broker.url) as client:
                for filter, where in questions:
                    async with client.replay(filter, where=where, past_only=True) as messages:
                        found.append([message.offset async for message in messages])
            broker.terminate()
    assert [len(each) for each in found] == [286, 40, 31] * 2
    assert found[:3] == found[3:]
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".arrows.index")]) >= 4
