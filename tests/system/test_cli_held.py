"""`fanlight pub` on a terminal says that it is held; anywhere else standard error is for errors alone."""

import asyncio
import os
import pty
import subprocess
from pathlib import Path

from tests.conftest import StartBroker
from tests.system.shell import FANLIGHT, SECONDS
from tests.system.views import KIB, eventually
from tests.system.wire import SMALL_BUFFER, Peer

LINES = 5_000
SAID = b"fanlight pub: held by the broker: a subscriber of this topic is behind"


def pub(url: str, source: Path, errors: int) -> "subprocess.Popen[bytes]":
    with source.open("rb") as lines:
        return subprocess.Popen([*FANLIGHT, "pub", "--url", url, "flood"], stdin=lines, stderr=errors)


async def test_pub_says_on_a_terminal_that_it_is_held(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(
        outbox_bytes_max=256 * KIB, frame_bytes_max=64 * KIB, slow_policy="pause", pause_seconds_max=3600
    )
    source = tmp_path / "lines"
    source.write_bytes((b"x" * 999 + b"\n") * LINES)
    ours, theirs = pty.openpty()
    async with await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER) as slow:
        await slow.subscribe(1, "flood")
        quiet, told = pub(broker.url, source, subprocess.PIPE), pub(broker.url, source, theirs)
        os.close(theirs)
        await eventually(broker, lambda now: now["publishers_held"] == 2)
        said = b""
        while b"\n" not in said:
            said += await asyncio.to_thread(os.read, ours, 4_096)
        assert said.strip() == SAID
        assert len(await slow.payloads(2 * LINES)) == 2 * LINES
        assert await asyncio.to_thread(told.wait, SECONDS) == 0
        _, errors = await asyncio.to_thread(quiet.communicate, None, SECONDS)
        assert (quiet.returncode, errors) == (0, b"")
    os.close(ours)
