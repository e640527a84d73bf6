"""A broker that is killed again and again under load, and what its clients were promised.

    publishers   QoS 1 and 2, retained values, 3.1.1 and 5.0; a few messages unacknowledged
    subscribers  persistent sessions with QoS 1 and 2, one of them for everything; members of shared subscriptions, one
                 of which has no session
    prober       reads the retained values after each start
    shops        native publishers with receipts, half of them with marks
    choosers     sessions, members of a shared subscription and queues that have selectors
    readers      consumers of durable queues that acknowledge, refuse, reject, or let the time of a delivery pass

The clients are those of tests/simulation on real sockets, and remember what MQTT says that they must (4.1). After each
SIGKILL the broker is started on the same folder and port. At the end the publishers stop, everything comes to rest, and
the history is checked. The seed decides what clients do and when the broker is killed; what the machine adds is not
repeated by it.
"""

import asyncio
import sys
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
from tests.simulation.native_clients import NativeClient, QueuePublisher, QueueReader
from tests.simulation.selecting import NEVER

TOPICS = ("a/0", "a/1", "b/2")
# And where their dead letters are.
QUEUES = {"work": None, "impatient": None, "dying": "graves", "chosen": None, "nothing": None}
FANLIGHTD = sys.executable, "-m", "tests.crash.broker"  # with small files: kills meet rounds and compactions
LIFE = (0.02, 0.6)  # seconds of load before a kill
STUCK = 60.0  # seconds without any delivery or acknowledgement, though some are due
STEP = 0.02


class CrashRun:
    """One folder, one set of clients, `kills` lives of a broker and a last one."""

    def __init__(self, folder: Path, kills: int, seed: int, report: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self.kills, self.random, self.report = folder, kills, Random(seed), report
        self.history = CrashHistory()
        self.complaints: list[str] = []
        self.rounds = 0  # that brokers have written

    async def run(self) -> CrashHistory:
        """Raises Violation, or what a client met with. The history has what happened."""
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        broker = await self._start(0, 0)
        try:
            schedule = LiveSchedule(self.random, self.failed)
            self.network = LiveNetwork(schedule, self.history, broker.mqtt_port, broker.port)
            self._add_clients()
            await self._until(lambda: all(each.subscribed for each in (*self.subscribers, *self.readers)))
            for publisher in self.publishers:
                publisher.left = 1
                schedule.soon(publisher.publish)
            for life in range(self.kills):
                await self._until(lambda at=life: len(self.history.sent) > at)
                await self._sleep(self.random.uniform(*LIFE))
                await asyncio.to_thread(broker.kill)
                self._note(broker)
                self.history.killed()
                broker = await self._start(broker.mqtt_port, broker.port)
                await self._probe(life)
                if (life + 1) % 50 == 0:
                    self.report(f"{life + 1} kills, {dict(self.history.summary)}")
            await self._rest()
        finally:
            await self.network.close()
            await asyncio.to_thread(broker.terminate)
            self._note(broker)
            if self.failed.done():
                self.failed.exception()
        return self.history

    async def _start(self, port: int, native_port: int) -> Broker:
        return await asyncio.to_thread(
            lambda: Broker(command=FANLIGHTD, data=self.folder, mqtt_port=port, native_port=native_port)
        )

    def _note(self, broker: Broker) -> None:
        self.rounds += sum("store_checkpoint" in line for line in broker.lines)
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
        for publisher in self.publishers[::2]:
            publisher.kept_qos = 1
        self.subscribers = [
            CrashSubscriber(network, "all", V5, "#", 1),  # so that each message is in a durable queue
            CrashSubscriber(network, "twice", version(), "a/+", 2),
            CrashSubscriber(network, "everything", version(), "#", 2),
            CrashSubscriber(network, "once", version(), "a/1", 1),
            *(CrashSubscriber(network, f"member-{n}", V5, "b/#", 1, group="g") for n in range(2)),
            *(
                CrashSubscriber(network, f"chooser-{n}", V5, filter, qos, where=where)
                for n, (filter, qos, where) in enumerate(
                    (("#", 1, "kind = 'red'"), ("a/+", 2, "n > 50 OR kind IS NULL"), ("#", 2, NEVER))
                )
            ),
            *(
                CrashSubscriber(network, f"choosing-member-{n}", V5, "b/#", 1, group="h", where="NOT (kind = 'blue')")
                for n in range(2)
            ),
            CrashSubscriber(network, "passer-by", V5, "b/#", 1, group="g", brief=True),
        ]
        self.shops = [QueuePublisher(network, f"shop-{n}", 1 << 30, (1, 10)[n % 2], marked=n < 2) for n in range(3)]
        self.readers = [
            *(QueueReader(network, f"worker-{n}", "work") for n in range(2)),
            QueueReader(network, "impatient", "impatient", steady=False),
            QueueReader(network, "dying", "dying", options={"deliveries_max": 3, "dead_letter": "dead.orders"}),
            QueueReader(network, "graves", "graves", "dead.#"),
            *(QueueReader(network, f"chosen-{n}", "chosen", where="kind = 'red' AND n > 3") for n in range(2)),
            QueueReader(network, "nothing", "nothing", where=NEVER),
        ]
        for shop in self.shops:
            shop.every = 0.05
        for reader in self.readers:
            reader.ack_wait, reader.delays = 0.5, (0.05, 0.2)
        self.clients: list[Client | NativeClient] = [
            *self.publishers, *self.subscribers, *self.shops, *self.readers
        ]
        for each in self.clients:
            each.patience = 0.1

    async def _probe(self, life: int) -> None:
        prober = Prober(self.network, f"prober-{life}")
        await self._until(lambda: prober.done)

    async def _rest(self) -> None:
        for publisher in self.publishers:
            publisher.stop()
        for shop in self.shops:
            shop.left = 0
        await self._until(lambda: all(each.idle for each in self.clients))
        missing = self.history.missing()
        due = self.history.followed
        try:
            await self._until(lambda: all(payload in due[name].got for name, payload in missing))
        except TimeoutError:
            left = [pair for pair in missing if pair[1] not in due[pair[0]].got]
            raise Violation(f"{len(left)} messages never came: {left[:10]}") from None
        queues = self.network.queues
        try:
            await self._until(lambda: not queues.missing(QUEUES))
        except TimeoutError:
            raise Violation(f"messages of queues never came: {queues.missing(QUEUES)[:10]}") from None
        await self._until(lambda: all(each.idle for each in self.clients))
        await self._probe(self.kills)
        self.history.check()
        queues.check(QUEUES)

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
            queues = self.network.queues
            happened = self.history.clock + self.history.deliveries + queues.clock + queues.deliveries
            if happened != seen:
                seen, since = happened, loop.time()
            if loop.time() - since > STUCK:
                busy = [each.name for each in self.clients if not each.idle]
                raise TimeoutError(f"nothing happened for {STUCK:g} s; not idle: {busy}")
