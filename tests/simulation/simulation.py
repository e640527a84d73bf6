"""A broker, its clients and what happens to them, from one seed.

    Simulation(seed, folder).run()    raises Violation, or an assertion of the broker's state: each time for a seed

The codecs, protocol, core, wire and store are the real ones; time, network and syncs are simulated. Clients connect,
publish and subscribe, or take from durable queues, which begin with what is published then, or with what is archived
or retained, and acknowledge one message or many; delayed messages are cancelled and listed; connections are cut,
clients leave, time stands still, the broker is killed and started again. Then everything comes to rest, and the history
is checked: nothing that was acknowledged is missing, in order, with QoS 2 once, and what a consumer knows to be
acknowledged never comes again. Some subscriptions and queues have selectors: they get all that these accept, and
nothing that they deny.
"""

from pathlib import Path
from random import Random
from typing import Any

from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.simulation.archive import Row
from tests.simulation.clients import Client, Publisher, Reader, Subscriber
from tests.simulation.filled_queues import FilledReader, LastReader
from tests.simulation.history import History, Violation
from tests.simulation.native_clients import FILTER, NativeClient, PriorityReader, QueuePublisher, QueueReader
from tests.simulation.network import Link
from tests.simulation.process import BrokerProcess
from tests.simulation.queue_history import QueueHistory
from tests.simulation.schedule import Schedule
from tests.simulation.selecting import NEVER, WHERES
from tests.simulation.worker_queues import BulkReader, Shift, SingleReader

TOPICS = ("a/0", "a/1", "a/b/2", "c")
FILTERS = ("a/#", "a/+", "a/1", "#", "+/b/2")
QUEUES: dict[str, dict[str, Any]] = {  # with their options
    "work": {}, "impatient": {}, "dying": {"deliveries_max": 3, "dead_letter": "dead.orders"},
    "graves": {}, "brief": {"message_ttl": 12.0},
}
# Those that lose nothing, and where their dead letters are.
DUE = {"work": None, "impatient": None, "dying": "graves", "urgent": None}
SMALL = {"messages_max": 5}  # refuses publishers
LATEST = {"messages_max": 5, "overflow": "drop_oldest"}
DELAYS = (0.0, 0.3, 2.0, 8.0)  # seconds
FAULTS_UNTIL = 30.0  # seconds of simulated time
REST_BY = 3_000.0
READ_WITHIN = 20.0  # until a new subscriber has all retained messages
CHECKED_EVERY = 50  # events


class Simulation:
    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.selecting = Random(f"selectors of {seed}")
        self.schedule = Schedule(self.random)
        self.history, self.queues = History(), QueueHistory()
        self.folder = folder
        self.events = self.cuts = self.standstills = self.kills = self.rounds = self.compactions = self.clocks = 0
        self.rows: list[Row] = []  # of the archive
        self.filled: list[FilledReader] = []
        self.last: LastReader | None = None
        self.sets_clock = self.random.random() < 0.3
        self.process = self._start()
        self.faults = True
        self.where_of_group = self._where()
        self.clients: list[Client | NativeClient] = [
            *(self._publisher(n) for n in range(self.random.randint(1, 4))),
            *(self._subscriber(n) for n in range(self.random.randint(1, 5))),
            *(self._member(n) for n in range(self.random.choice((0, 2, 3)))),
        ]
        self.with_queues = self.random.random() < 0.5
        if self.with_queues:
            self._add_native_clients()
        self.fault_rate = self.random.choice((0.5, 2.0, 10.0))  # a second
        self.schedule.after(self.random.uniform(0, 2), self._fault)

    def _version(self) -> Version:
        return self.random.choice((V3, V5))

    def _publisher(self, n: int) -> Publisher:
        count, window = self.random.randint(1, 60), self.random.choice((1, 3, 10))
        return Publisher(self, f"publisher-{n}", self._version(), TOPICS, count, window)

    def _subscriber(self, n: int) -> Subscriber:
        version, where = self._version(), self._where()
        return Subscriber(
            self, f"subscriber-{n}", version, self.random.choice(FILTERS), self.random.randint(0, 2),
            where=where if version is V5 else None,
        )

    def _where(self) -> str | None:
        """The selector of a subscription or queue; half of them have none."""
        return self.selecting.choice(WHERES) if self.selecting.random() < 0.5 else None

    def _member(self, n: int) -> Subscriber:
        brief = n > 0 and self.random.random() < 0.5
        version = self._version() if self.where_of_group is None else V5  # all have the same, or are another group
        return Subscriber(self, f"member-{n}", version, "a/#", 1, group="g", brief=brief, where=self.where_of_group)

    def _add_native_clients(self) -> None:
        random = self.random
        small = random.random() < 0.3
        for n in range(random.randint(1, 3)):
            # What is refused ends a producer's batch (docs/native-protocol.md, 3.8).
            count, window = random.randint(1, 60), random.choice((1, 3, 10))
            marked = random.random() < 0.5 and not small
            shop = QueuePublisher(self, f"shop-{n}", count, window, marked=marked)
            shop.delays = DELAYS if self.random.random() < 0.6 else ()
            self.clients.append(shop)
        self.clients.append(PriorityReader(self, "urgent-0", "urgent", lambda: self.process.unread("urgent")))
        self.due = dict(DUE)
        if small:
            self.clients.append(QueueReader(self, "small-0", "small", options=SMALL))
            self.due["small"] = None
        if random.random() < 0.3:
            self.clients.append(QueueReader(self, "latest-0", "latest", options=LATEST))
        for name, options in QUEUES.items():
            for n in range(1 if name == "brief" else random.randint(1, 2)):
                filter = "dead.#" if name == "graves" else FILTER
                reader = QueueReader(
                    self, f"{name}-{n}", name, filter, options, steady=name != "impatient", brief=name == "brief"
                )
                self.clients.append(reader)
        self._add_filled_queues()
        self._add_workers()
        self._add_chosen()

    def _add_workers(self) -> None:
        """Consumers that acknowledge many messages at once, and consumers of which one is active."""
        random = self.random
        if random.random() < 0.5:
            self.clients += (BulkReader(self, f"bulk-{n}", "bulk") for n in range(random.randint(1, 2)))
            self.due["bulk"] = None
        if random.random() < 0.5:
            shift = Shift()
            for n in range(random.randint(2, 3)):
                brief = n > 0 and random.random() < 0.5
                self.clients.append(SingleReader(self, f"single-{n}", "single", shift, brief=brief))
            self.due["single"] = None

    def _add_chosen(self) -> None:
        """Queues with a selector, one of which gets nothing."""
        for queue, where in ("chosen", self.selecting.choice(WHERES)), ("nothing", NEVER):
            for n in range(self.selecting.randint(1, 2)):
                self.clients.append(QueueReader(self, f"{queue}-{n}", queue, where=where))
            self.due[queue] = None

    def _add_filled_queues(self) -> None:
        """Later than the others, when there is something to begin with."""
        if self.random.random() < 0.5:
            self.schedule.after(self.random.uniform(0.0, 10.0), self._add_last)
        for number in range(self.random.choice((0, 1, 2))):
            self.schedule.after(self.random.uniform(0.0, 10.0), self._add_filled, f"filled-{number}")

    def _add_last(self) -> None:
        self.last = LastReader(self, "last-0", self._where())
        self.clients.append(self.last)

    def _add_filled(self, queue: str) -> None:
        reader = FilledReader(self, f"{queue}-0", queue, by_time=not self.sets_clock, where=self._where())
        self.filled.append(reader)
        self.clients.append(reader)
        self.due[queue] = None

    # -- for the clients ------------------------------------------------------------------------------------------

    def dial(self, client: Client, version: Version) -> Link | None:
        return self.process.accept(client, version) if self.process.running else None

    def dial_native(self, client: NativeClient) -> Link | None:
        return self.process.accept_native(client) if self.process.running else None

    # -- what goes wrong ------------------------------------------------------------------------------------------

    def _fault(self) -> None:
        if not self.faults:
            return
        self.schedule.after(self.random.expovariate(self.fault_rate), self._fault)
        client = self.random.choice(self.clients)
        match self.random.choice(("cut", "cut", "leave", "standstill", "kill", "clock")):
            case "cut" if client.link is not None:
                self.cuts += 1
                client.link.cut()
            case "leave":
                client.leave()
            case "standstill":
                self.standstills += 1
                seconds = self.random.choice((0.5, 7.0))
                self.schedule.now += seconds
                self.queues.stood += seconds
            case "clock" if self.sets_clock:
                seconds = self.random.choice((-9.0, -1.0, 1.0, 9.0))
                self.schedule.wall += seconds
                self.queues.forward += max(seconds, 0.0)
                self.queues.back += max(-seconds, 0.0)
                self.clocks += 1
            case "kill" if self.process.running:
                self.kills += 1
                self.rounds += self.process.checkpoint.rounds
                self.compactions += self.process.log.compactions
                self.process.kill(self.folder / str(self.kills))
                self.schedule.soon(self._restart, most=5.0)

    def _start(self) -> BrokerProcess:
        return BrokerProcess(self.schedule, self.folder / str(self.kills), self.rows)

    def _restart(self) -> None:
        self.process = self._start()

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Returns how many deliveries were due, all of which happened."""
        try:
            return self._run()
        finally:
            self.rounds += self.process.checkpoint.rounds
            self.compactions += self.process.log.compactions
            self.process.log.close()

    def _run(self) -> int:
        began = self.schedule.now
        while not self._at_rest():
            if self.schedule.now - began > FAULTS_UNTIL and self.process.running:
                self.faults = False
            if self.schedule.now - began > REST_BY:
                raise Violation(f"no rest: {[client.name for client in self.clients if not client.idle]}")
            self._step()
        self.process.check()
        self._check_retained()
        due = self.history.check() + (self.last.check() if self.last is not None else 0)
        archived = {reader.queue: reader.due() for reader in self.filled}
        return due + (self.queues.check(self.due, archived) if self.with_queues else 0)

    def _step(self) -> None:
        self.schedule.step()
        self.events += 1
        if not self.process.running:
            return
        self.process.run_turn()
        if self.events % CHECKED_EVERY == 0:
            self.process.check()

    def _check_retained(self) -> None:
        reader = Reader(self)
        until = self.schedule.now + READ_WITHIN
        while self.schedule.now < until:
            self._step()
        self.history.check_retained(reader.values)

    def _at_rest(self) -> bool:
        if self.faults or not all(client.idle for client in self.clients):
            return False
        return self.process.idle
