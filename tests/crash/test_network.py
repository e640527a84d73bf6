"""The clients of the crash test leave nothing behind in the loop, which may run on after them."""

import asyncio
import socket
from random import Random

from tests.crash.clients import Prober
from tests.crash.history import CrashHistory
from tests.crash.network import LiveNetwork, LiveSchedule


async def test_no_attempt_begins_and_none_is_left_after_the_end() -> None:
    with socket.socket() as unused:  # bound, but nobody listens: each attempt is refused, and the next one follows
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        schedule = LiveSchedule(Random(1), asyncio.get_running_loop().create_future())
        network = LiveNetwork(schedule, CrashHistory(), port, port)
        before = asyncio.all_tasks()
        prober = Prober(network, "prober")
        prober.patience = 0.0
        prober.connect()
        await asyncio.wait([network.links[-1].opening])
        # It was refused, and tries again or is about to.
        await network.close()
        attempts = len(network.links)
        turned = asyncio.Event()
        asyncio.get_running_loop().call_later(0.02, turned.set)  # later than all that was due
        await turned.wait()
        assert asyncio.all_tasks() <= before
        assert len(network.links) == attempts
