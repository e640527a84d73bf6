"""A broker, its clients and what happens to them, from one seed.

    Simulation(seed, folder).run()    raises Violation, or an assertion of the broker's state: each time for a seed

The codecs, protocol, core, wire and store are the real ones; time, network and syncs are simulated. Clients connect,
publish and subscribe; connections are cut, clients leave, time stands still, the broker is killed and started again.
Then everything comes to rest, and the history is checked: nothing that was acknowledged is missing, in order, with
QoS 2 once.
"""

from pathlib import Path
from random import Random

from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.simulation.clients import Client, Publisher, Reader, Subscriber
from tests.simulation.history import History, Violation
from tests.simulation.network import Link
from tests.simulation.process import BrokerProcess
from tests.simulation.schedule import Schedule

TOPICS = ("a/0", "a/1", "a/b/2", "c")
FILTERS = ("a/#", "a/+", "a/1", "#", "+/b/2")
FAULTS_UNTIL = 30.0  # seconds of simulated time
REST_BY = 3_000.0
READ_WITHIN = 20.0  # until a new subscriber has all retained messages
CHECKED_EVERY = 50  # events


class Simulation:
    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.schedule = Schedule(self.random)
        self.history = History()
        self.folder = folder
        self.events = self.cuts = self.standstills = self.kills = 0
        self.process = self._start()
        self.faults = True
        self.clients: list[Client] = [
            *(self._publisher(n) for n in range(self.random.randint(1, 4))),
            *(self._subscriber(n) for n in range(self.random.randint(1, 5))),
            *(self._member(n) for n in range(self.random.choice((0, 2, 3)))),
        ]
        self.fault_rate = self.random.choice((0.5, 2.0, 10.0))  # a second
        self.schedule.after(self.random.uniform(0, 2), self._fault)

    def _version(self) -> Version:
        return self.random.choice((V3, V5))

    def _publisher(self, n: int) -> Publisher:
        count, window = self.random.randint(1, 60), self.random.choice((1, 3, 10))
        return Publisher(self, f"publisher-{n}", self._version(), TOPICS, count, window)

    def _subscriber(self, n: int) -> Subscriber:
        return Subscriber(
            self, f"subscriber-{n}", self._version(), self.random.choice(FILTERS), self.random.randint(0, 2)
        )

    def _member(self, n: int) -> Subscriber:
        return Subscriber(self, f"member-{n}", self._version(), "a/#", 1, group="g")

    # -- for the clients ------------------------------------------------------------------------------------------

    def dial(self, client: Client, version: Version) -> Link | None:
        return self.process.accept(client, version) if self.process.running else None

    # -- what goes wrong ------------------------------------------------------------------------------------------

    def _fault(self) -> None:
        if not self.faults:
            return
        self.schedule.after(self.random.expovariate(self.fault_rate), self._fault)
        client = self.random.choice(self.clients)
        match self.random.choice(("cut", "cut", "leave", "standstill", "kill")):
            case "cut" if client.link is not None:
                self.cuts += 1
                client.link.cut()
            case "leave":
                client.leave()
            case "standstill":
                self.standstills += 1
                self.schedule.now += self.random.choice((0.5, 7.0))

            case "kill" if self.process.running:
                self.kills += 1
                self.process.kill(self.folder / str(self.kills))
                self.schedule.soon(self._restart, most=5.0)

    def _start(self) -> BrokerProcess:
        return BrokerProcess(self.schedule, self.folder / str(self.kills))

    def _restart(self) -> None:
        self.process = self._start()

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Returns how many deliveries were due, all of which happened."""
        try:
            return self._run()
        finally:
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
        return self.history.check()

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
