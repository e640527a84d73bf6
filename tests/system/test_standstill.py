"""A standstill of the broker is nobody's fault: who was there all along is not cut off behind it, and nobody has died.

The broker's process is stopped for longer than any of its clients may be silent. Their packets wait in its sockets.
"""

import asyncio
import os
import signal
from contextlib import AsyncExitStack

from fanlight_broker.protocols.mqtt.packets import PingResp, Publish, WillFields
from fanlight_broker.protocols.mqtt.version import V3, V5
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import eventually, stats
from tests.system.wire import Peer, Type, ping

KEEP_ALIVE = 4  # seconds; silence is let pass for 1.5 times as long
STOPPED_SECONDS = 7.0
PING_SECONDS = 0.5
CLIENTS = 10


async def stand_still(broker: TestBroker) -> None:
    os.kill(broker.pid, signal.SIGSTOP)
    await asyncio.sleep(STOPPED_SECONDS)
    os.kill(broker.pid, signal.SIGCONT)


async def ping_on(peer: MqttPeer | Peer) -> None:
    """As a client library does, whether it is answered or not."""
    while True:
        await (peer.ping() if isinstance(peer, MqttPeer) else peer.send(ping(0)))
        await asyncio.sleep(PING_SECONDS)


async def test_clients_that_pinged_all_along_are_not_cut_off_behind_a_standstill(start_broker: StartBroker) -> None:
    broker = start_broker(idle_seconds_max=KEEP_ALIVE)
    async with AsyncExitStack() as stack:
        watcher = await stack.enter_async_context(await MqttPeer.connect(broker.mqtt_port, "watcher"))
        await watcher.subscribe("died/#")
        mqtt = [
            await stack.enter_async_context(await MqttPeer.connect(
                broker.mqtt_port, f"c{n}", version=V5 if n % 2 else V3, keep_alive=KEEP_ALIVE,
                will=WillFields(f"died/{n}", b"it is down"),
            ))
            for n in range(CLIENTS)
        ]  # fmt: skip
        native = [await stack.enter_async_context(await Peer.connect(broker.port)) for _ in range(CLIENTS)]
        pinging = [asyncio.create_task(ping_on(peer)) for peer in (*mqtt, *native)]
        await stand_still(broker)
        # The standstill must have been noticed, and some of the times at which the listeners look must have passed.
        await eventually(broker, lambda seen: seen["standstill_seconds"] >= STOPPED_SECONDS - 1)
        looked = (await stats(broker))["uptime_seconds"]
        await eventually(broker, lambda seen: seen["uptime_seconds"] > looked + 1)
        for task in pinging:
            task.cancel()
        # Each answers still: all PINGRESPs, then the one to a packet that is sent now.
        for peer in mqtt:
            assert await peer.subscribe("other") == (0,)
            assert isinstance(await peer.packet() if peer._packets else PingResp(), PingResp)
        for other in native:
            await other.send(ping(77))
            assert {each[0] for each in await other.until(Type.PONG, 77)} <= {Type.PONG, Type.PING}
        await mqtt[0].send(Publish("died/last", b"and nobody before"))
        assert (await watcher.message()).topic == "died/last"
