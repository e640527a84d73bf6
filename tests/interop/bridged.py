"""What the tests of bridges stand on: a mosquitto with a port of its own, files of bridges, many messages.

    with MosquittoBroker(folder, port) as mosquitto: ...    killed, it may be started again with what it has saved
    write_bridges(file, [bridge("far", mosquitto.port, route("a/#", "both"))])
"""

import asyncio
import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from fanlight_bench.launch import Server
from fanlight_bench.peers.peer import which
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from tests.conftest import TestBroker
from tests.require import command
from tests.system.mqtt_peer import MqttPeer
from tests.system.wire import WAIT_SECONDS, Closed

AT_ONCE = 500  # messages of QoS 1 that a test has on their way


def free_port() -> int:
    """A port that is free now. Who listens there again after a restart needs one that is known before."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class MosquittoBroker(Server):
    """more: lines of mosquitto.conf; saves: it has all on the disk at once, so that it may be killed (slow)."""

    def __init__(
        self, folder: Path, port: int, more: str = "allow_anonymous true", *, saves: bool = False
    ) -> None:
        self.port = port
        folder.mkdir(exist_ok=True)
        (folder / "mosquitto.conf").write_text(
            f"per_listener_settings false\npersistence true\npersistence_location {folder}/\n"
            + ("autosave_interval 1\nautosave_on_changes true\n" if saves else "") +
            "max_queued_messages 0\nmax_queued_bytes 0\nlog_dest stderr\n"
            "log_type error\nlog_type warning\nlog_type notice\nlog_type information\n"
            f"listener {port} 127.0.0.1\n"
            f"{more}\n" + ("user root\n" if os.geteuid() == 0 else "")
        )
        program = which("mosquitto") or command("mosquitto", package="mosquitto")
        super().__init__([program, "-c", str(folder / "mosquitto.conf")], listeners=())
        self.wait_for_line(" running", WAIT_SECONDS)


def route(filter: str, direction: str = "out", **more: object) -> dict[str, object]:
    return {"filter": filter, "direction": direction, **more}


def bridge(name: str, port: int, *routes: dict[str, object], **more: object) -> dict[str, object]:
    """One that does not wait long between its attempts."""
    return {
        "name": name, "address": f"127.0.0.1:{port}", "backoff_seconds_min": 0.05, "backoff_seconds_max": 0.2, **more,
        "route": list(routes),
    }


def write_bridges(file: Path, bridges: list[dict[str, object]], broker: str = "") -> Path:
    lines = [f"broker = {json.dumps(broker)}"]
    for each in bridges:
        lines.append("[[bridge]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in each.items() if key != "route"]
        routes: Any = each["route"]
        for one in routes:
            lines += ["[[bridge.route]]", *(f"{key} = {json.dumps(value)}" for key, value in one.items())]
    file.write_text("\n".join(lines) + "\n")
    return file


def up(broker: TestBroker, name: str, times: int = 1) -> None:
    """Return when the link has come up so many times."""
    broker.wait_for(
        lambda: sum('"bridge_up"' in line and f'"{name}"' in line for line in broker.lines) >= times, WAIT_SECONDS
    )


async def publish_many(port: int, topics: list[str], count: int, *, first: int = 0, version: Any = None) -> None:
    """Numbered messages of QoS 1, on the topics in turn, all acknowledged."""
    peer = await MqttPeer.connect(port, "", **({} if version is None else {"version": version}))
    async with peer:
        sent = acknowledged = 0
        while acknowledged < count:
            burst = []
            while sent < count and sent - acknowledged < AT_ONCE:
                number = first + sent
                packet = Publish(topics[number % len(topics)], b"%d" % number, 1, packet_id=sent % 65_535 + 1)
                burst.append(encode(packet, peer.version))
                sent += 1
            if burst:
                await peer.pour(b"".join(burst))
            if isinstance(answer := await peer.packet(), PubAck):
                assert answer.reason_code < 0x80, answer
                acknowledged += 1


async def gather_until(
    peer: MqttPeer, wanted: set[bytes], *, until_closed: bool = False, seconds: float = 240.0
) -> list[tuple[str, bytes]]:
    """What comes, until all that is wanted has come, or the connection ends; each message is acknowledged."""
    found: list[tuple[str, bytes]] = []
    missing = set(wanted)
    async with asyncio.timeout(seconds):
        while missing:
            try:
                packet = await peer.message()
            except Closed:
                if not until_closed:
                    raise
                break
            if packet.packet_id is not None:
                with suppress(ConnectionError):  # killed meanwhile: what it has sent is still read
                    await peer.send(PubAck(packet.packet_id))
            found.append((packet.topic, packet.payload))
            missing.discard(packet.payload)
    return found


def in_order(found: list[tuple[str, bytes]]) -> bool:
    """Per topic: each message first comes behind all that were published before it there."""
    highest: dict[str, int] = {}
    seen: set[tuple[str, bytes]] = set()
    for topic, payload in found:
        if (topic, payload) in seen:
            continue  # a duplicate
        seen.add((topic, payload))
        if int(payload) < highest.get(topic, -1):
            return False
        highest[topic] = int(payload)
    return True
