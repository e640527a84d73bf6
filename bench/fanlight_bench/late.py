"""Many subscribers that read nothing, and one that reads: what the others cost it, by slow policy.

    python -m fanlight_bench.late [--policy drop_oldest] [--subscribers 200] [--rate 2000] [--payload-bytes 1000]
                                  [--seconds 10]

One line for each policy: the worst latency of the one that reads, what it missed, and the broker's memory beside what
the broker counts. It lasts until every outbox has overflowed: 8 MiB (`outbox_bytes_max`) take 4.2 s at the rates above.
"""

import argparse
import asyncio
import json
import socket
import struct
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import fanlight
from fanlight_bench.launch import Broker
from fanlight_bench.procfs import resident_bytes

POLICIES = ("drop_newest", "drop_oldest", "disconnect")
RECEIVE_BUFFER = 4_096  # bytes: the kernel is soon full, too
STAMP = struct.Struct(">d")


@asynccontextmanager
async def sleeper(port: int, policy: str) -> AsyncIterator[None]:
    """A subscriber that reads nothing behind its OK."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    plain.connect(("127.0.0.1", port))
    try:
        hello = fanlight.codec.Encoder(1 << 20)
        plain.sendall(hello.hello({"slow_policy": policy}) + hello.subscribe(1, 1, "late", {}))
        plain.recv(RECEIVE_BUFFER)
        yield
    finally:
        plain.close()


def views(broker: Broker) -> dict[str, int]:
    with urllib.request.urlopen(f"{broker.http_url}/stats", timeout=30) as answer:
        found: dict[str, int] = json.load(answer)
        return found


async def run(options: argparse.Namespace, policy: str) -> str:
    broker = Broker(outboxes_bytes_max=options.memory)
    with broker:
        async with AsyncExitStack() as stack:
            for _ in range(options.subscribers):
                await stack.enter_async_context(sleeper(broker.port, policy))
            reader = await stack.enter_async_context(fanlight.connect(broker.url))
            publisher = await stack.enter_async_context(fanlight.connect(broker.url))
            got = await reader.subscribe("late", pending_messages=1_000_000)
            worst = received = 0

            async def read() -> None:
                nonlocal worst, received
                async for message in got:
                    worst = max(worst, time.monotonic() - STAMP.unpack_from(message.payload)[0])
                    received += 1

            reading = asyncio.create_task(read())
            begin, sent, rest = time.monotonic(), 0, bytes(options.payload_bytes - STAMP.size)
            while (now := time.monotonic()) - begin < options.seconds:
                while sent < (now - begin) * options.rate:
                    await publisher.publish("late", STAMP.pack(time.monotonic()) + rest)
                    sent += 1
                await asyncio.sleep(0.005)
            await publisher.flush()
            counted, resident = await asyncio.to_thread(views, broker), resident_bytes(broker.pid) or 0
            reading.cancel()
        return (
            f"{policy:12} worst latency {1000 * worst:7.0f} ms, missed {sent - received:6,} of {sent:,};"
            f" RSS {resident / 1e6:6.0f} MB, counted {counted['outbox_bytes'] / 1e6:6.0f} MB,"
            f" dropped {counted['dropped_newest'] + counted['dropped_oldest']:,}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--policy", choices=POLICIES, action="append", help="default: all")
    parser.add_argument("--subscribers", type=int, default=200)
    parser.add_argument("--rate", type=float, default=2_000, help="messages a second")
    parser.add_argument("--payload-bytes", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--memory", default="1GiB", help="outboxes_bytes_max of the broker")
    options = parser.parse_args()
    for policy in options.policy or POLICIES:
        print(asyncio.run(run(options, policy)), flush=True)


if __name__ == "__main__":
    main()
