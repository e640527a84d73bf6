"""A broker that is killed again and again under load, and what its clients were promised.

    publishers   QoS 1 and 2, retained values, 3.1.1 and 5.0; a few messages unacknowledged
    subscribers  persistent sessions with QoS 1 and 2, one of them for everything; members of shared subscriptions
    prober       reads the retained values after each start

The clients are those of tests/simulation on real sockets, and remember what MQTT says that they must (4.1). After each
SIGKILL the broker is started on the same folder and port. At the end the publishers stop, everything comes to rest, and
the history is checked. The seed decides what clients do and when the broker is killed; what the machine adds is not
repeated by it.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

from fanlight_bench.launch import Broker
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.crash.clients import CrashPublisher, CrashSubscriber, Prober
from tests.crash.history import CrashHistory
from tests.crash.network import LiveNetwork, LiveSchedule
from tests.simulation.clients import Client
from tests.simulation.history import Violation

TOPICS = ("a/0", "a/1", "b/2")
LIFE = (0.02, 0.6)  # seconds of load before a kill
STUCK = 60.0  # seconds without any delivery or acknowledgement, though some are due
STEP = 0.02


class CrashRun:
    """One folder, one set of clients, `kills` lives of a broker and a last one."""

    def __init__(self, folder: Path, kills: int, seed: int, report: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self.kills, self.random, self.report = folder, kills, Random(seed), report
        self.history = CrashHistory()
        self.complaints: list[str] = []

    async def run(self) -> CrashHistory:
        """Raises Violation, or what a client met with. The history has what happened."""
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        broker = await self._start(0)
        try:
            schedule = LiveSchedule(self.random, self.failed)
            self.network = LiveNetwork(schedule, self.history, broker.mqtt_port)
            self._add_clients()
            await self._until(lambda: all(each.subscribed for each in self.subscribers))
            for publisher in self.publishers:
                publisher.left = 1
                schedule.soon(publisher.publish)
            for life in range(self.kills):
                await self._until(lambda at=life: len(self.history.sent) > at)
                await self._sleep(self.random.uniform(*LIFE))
                await asyncio.to_thread(broker.kill)
                self._note(broker)
                self.history.killed()
                broker = await self._start(broker.mqtt_port)
                await self._probe(life)
                if (life + 1) % 50 == 0:
                    self.report(f"{life + 1} kills, {dict(self.history.summary)}")
            await self._rest()
        finally:
            self.network.close()
            await asyncio.to_thread(broker.terminate)
            self._note(broker)
            if self.failed.done():
                self.failed.exception()
        return self.history

    async def _start(self, port: int) -> Broker:
        return await asyncio.to_thread(lambda: Broker(data=self.folder, mqtt_port=port))

    def _note(self, broker: Broker) -> None:
        if found := broker.complaints():
            self.complaints += found
            with self.folder.with_suffix(".log").open("a", encoding="utf-8") as log:
                log.write("\n".join([*broker.lines, ""]))

    def _add_clients(self) -> None:
        def version() -> Version:
            return self.random.choice((V3, V5))

        network, random = self.network, self.random
        self.publishers = [
            CrashPublisher(network, f"publisher-{n}", version(), TOPICS, 0, random.choice((1, 3, 10))) for n in range(4)
        ]
        self.subscribers = [
            CrashSubscriber(network, "all", V5, "#", 1),  # so that each message is in a durable queue
            CrashSubscriber(network, "twice", version(), "a/+", 2),
            CrashSubscriber(network, "everything", version(), "#", 2),
            CrashSubscriber(network, "once", version(), "a/1", 1),
            *(CrashSubscriber(network, f"member-{n}", V5, "b/#", 1, group="g") for n in range(2)),
        ]
        self.clients: list[Client] = [*self.publishers, *self.subscribers]
        for each in self.clients:
            each.patience = 0.1

    async def _probe(self, life: int) -> None:
        prober = Prober(self.network, f"prober-{life}")
        await self._until(lambda: prober.done)

    async def _rest(self) -> None:
        for publisher in self.publishers:
            publisher.stop()
        await self._until(lambda: all(each.idle for each in self.clients))
        missing = self.history.missing()
        due = self.history.followed
        try:
            await self._until(lambda: all(payload in due[name].got for name, payload in missing))
        except TimeoutError:
            left = [pair for pair in missing if pair[1] not in due[pair[0]].got]
            raise Violation(f"{len(left)} messages never came: {left[:10]}") from None
        await self._until(lambda: all(each.idle for each in self.clients))
        await self._probe(self.kills)
        self.history.check()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.wait([self.failed], timeout=seconds)
        if self.failed.done():
            self.failed.result()

    async def _until(self, condition: Callable[[], bool]) -> None:
        """TimeoutError: nothing has happened for a long time."""
        loop = asyncio.get_running_loop()
        seen, since = -1, loop.time()
        while not condition():
            await self._sleep(STEP)
            if self.history.clock + self.history.deliveries != seen:
                seen, since = self.history.clock + self.history.deliveries, loop.time()
            if loop.time() - since > STUCK:
                busy = [each.name for each in self.clients if not each.idle]
                raise TimeoutError(f"nothing happened for {STUCK:g} s; not idle: {busy}")
