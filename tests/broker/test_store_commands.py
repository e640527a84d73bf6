"""fanlightd check, repair and backup as processes, with a real broker's store."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench.launch import Broker, fanlightd
from fanlight_broker.cli import main
from fanlight_broker.config import Exit
from fanlight_broker.protocols.mqtt.packets import Disconnect, PubAck, Publish
from fanlight_broker.protocols.mqtt.version import V3
from tests.broker.protocols.mqtt.world import connect
from tests.broker.storage.test_log_damage import flip
from tests.system.mqtt_peer import Closed, MqttPeer

Done = subprocess.CompletedProcess[str]


def process(*words: object) -> Done:
    return subprocess.run([fanlightd(), *map(str, words)], input="", capture_output=True, text=True, timeout=60)


def run(*words: object) -> Done:
    """The same within this process."""
    command = [*map(str, words)]
    with redirect_stdout(StringIO()) as stdout, redirect_stderr(StringIO()) as stderr:
        try:
            code = main(command)
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, stdout.getvalue(), stderr.getvalue())


async def away(broker: Broker, filter: str) -> None:
    """A session that waits for messages."""
    async with MqttPeer(*await asyncio.open_connection("127.0.0.1", broker.mqtt_port), V3) as peer:
        await peer.send(connect("away", V3, clean_start=False))
        await peer.packet()
        await peer.subscribe(filter, qos=1)
        await peer.send(Disconnect())
        with pytest.raises(Closed):  # then it is away
            await peer.packet()


async def published(peer: MqttPeer, topic: str, number: int, *, retain: bool = False) -> int:
    """Publish with QoS 1; 1 when it is acknowledged."""
    payload = b"%d " % number + bytes(2_000)
    await peer.send(Publish(topic, payload, 1, retain, packet_id=number % 60_000 + 1))
    answer = await peer.packet()
    assert isinstance(answer, PubAck)
    assert answer.reason_code < 0x80
    return 1


async def received(broker: Broker, count: int) -> set[str]:
    """What the session that was away gets: topic and number."""
    found: set[str] = set()
    async with MqttPeer(*await asyncio.open_connection("127.0.0.1", broker.mqtt_port), V3) as peer:
        await peer.send(connect("away", V3, clean_start=False))
        await peer.packet()
        while len(found) < count:
            packet = await peer.packet()
            assert isinstance(packet, Publish)
            assert packet.packet_id is not None
            found.add(f"{packet.topic} {int(packet.payload.split()[0])}")
            await peer.send(PubAck(packet.packet_id))
    return found


async def fill(broker: Broker) -> None:
    await away(broker, "#")
    async with await MqttPeer.connect(broker.mqtt_port, "p") as peer:
        for number in range(1, 21):
            await published(peer, f"kept/{number}", number, retain=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that a broker has left: 20 messages, retained and waiting."""
    folder = tmp_path_factory.mktemp("broker") / "data"
    with Broker(data=folder) as broker:
        asyncio.run(fill(broker))
        assert broker.terminate() == Exit.OK
    return folder


@pytest.fixture
def copy(store: Path, tmp_path: Path) -> Path:
    done = run("backup", store, tmp_path / "data")
    assert done.returncode == Exit.OK, done.stderr
    return tmp_path / "data"


def test_check_says_what_there_is(store: Path) -> None:
    done = run("check", store)
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    assert done.stdout.startswith(f"{store}: sound\n")
    assert "waiting 20, in flight 0, delayed 0, retained 20" in done.stdout
    done = process("check", "--json", store)
    found = json.loads(done.stdout)
    assert (done.returncode, found["sound"], found["retained"]) == (Exit.OK, True, 20)


def test_check_of_damage_exits_with_1_and_of_nothing_with_2(copy: Path, tmp_path: Path) -> None:
    (file,) = copy.glob("log-*")
    flip(file, 4096 + 40)
    done = run("check", copy)
    assert done.returncode == Exit.FAILED
    assert f"{copy}: DAMAGED" in done.stdout
    assert f"{file.name}, byte 4096: entries 1 to 1 are damaged or missing; lost: " in done.stdout
    found = json.loads(run("check", "--json", copy).stdout)
    assert found["problems"][0]["file"] == file.name
    done = run("check", tmp_path / "none")
    assert (done.returncode, done.stderr) == (2, f"fanlightd: not checked: {tmp_path / 'none'} is no folder\n")
    done = run("check", "--json", tmp_path / "none")
    assert (done.returncode, json.loads(done.stdout)["error"]) == (2, f"{tmp_path / 'none'} is no folder")


def test_repair_asks_first_and_makes_it_sound(copy: Path) -> None:
    (file,) = copy.glob("log-*")
    flip(file, 4096 + 40)
    before = file.read_bytes()
    done = run("repair", copy)
    assert done.returncode == Exit.FAILED
    assert "1 entry is given up, beginning with 1" in done.stdout
    assert "nobody to ask; --yes agrees" in done.stderr
    assert file.read_bytes() == before
    done = process("repair", "--yes", copy)
    assert done.returncode == Exit.OK, done.stderr
    assert f"{copy}: sound" in done.stdout
    assert (copy / "damaged" / f"{file.name}-1").read_bytes() == before
    assert run("check", copy).returncode == Exit.OK
    assert run("repair", copy).stdout == f"{copy}: sound; nothing to repair\n"
    with Broker(data=copy) as broker:
        assert broker.terminate() == Exit.OK
        assert broker.complaints() == []


def test_a_store_in_use_is_neither_checked_nor_repaired(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    broker = start_broker(data=tmp_path / "data")
    for command in ("check", "repair"):
        done = run(command, tmp_path / "data")
        assert done.returncode == 2
        assert f"in use by another broker (process {broker.pid}): stop it" in done.stderr


def test_a_backup_under_load_has_all_that_was_acknowledged_before(
    start_broker: Callable[..., Any], tmp_path: Path
) -> None:
    broker = start_broker(data=tmp_path / "data")

    async def load() -> int:
        stop, enough = asyncio.Event(), asyncio.Event()
        acknowledged = [0, 0, 0]

        async def publish(publisher: int) -> None:
            async with await MqttPeer.connect(broker.mqtt_port, f"p{publisher}") as peer:
                while not stop.is_set() and acknowledged[publisher] < 1_000:  # a queue has room for so many
                    acknowledged[publisher] += await published(peer, f"t/{publisher}", acknowledged[publisher] + 1)
                    if min(acknowledged) >= 50:
                        enough.set()

        await away(broker, "t/#")
        tasks = [asyncio.create_task(publish(publisher)) for publisher in range(3)]
        await enough.wait()
        before = sum(acknowledged)
        done = await asyncio.to_thread(process, "backup", tmp_path / "data", tmp_path / "copy")
        stop.set()
        await asyncio.gather(*tasks)
        assert done.returncode == Exit.OK, done.stderr
        return before

    before = asyncio.run(load())
    found = json.loads(run("check", "--json", tmp_path / "copy").stdout)
    assert found["sound"]
    assert found["waiting"] >= before >= 150
    restored = start_broker(data=tmp_path / "copy")
    assert asyncio.run(received(restored, found["waiting"])) >= {f"t/{each} {n}" for each in range(3) for n in (1, 50)}


def test_the_help_of_each_command_teaches() -> None:
    for command, said in (("check", "exit codes:"), ("repair", "--yes"), ("backup", "To restore")):
        done = run(command, "--help")
        assert done.returncode == Exit.OK
        assert said in done.stdout
        assert f"fanlightd {command} " in done.stdout
