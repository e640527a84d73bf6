"""A broker, its clients and what happens to them, from one seed.

    Simulation(seed).run()    raises Violation, or an assertion of the broker's state; the same each time for a seed

The codecs, protocol, core and wire are the real ones; time and network are simulated. Clients connect, publish and
subscribe; connections are cut, clients leave, time stands still. Then everything comes to rest, and the history is
checked: nothing that was acknowledged is missing, in order, with QoS 2 once.
"""

from random import Random

from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.simulation.clients import Client, Publisher, Subscriber
from tests.simulation.history import History, Violation
from tests.simulation.network import Link
from tests.simulation.process import BrokerProcess
from tests.simulation.schedule import Schedule

TOPICS = ("a/0", "a/1", "a/b/2", "c")
FILTERS = ("a/#", "a/+", "a/1", "#", "+/b/2")
FAULTS_UNTIL = 30.0  # seconds of simulated time
REST_BY = 3_000.0
CHECKED_EVERY = 50  # events


class Simulation:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.schedule = Schedule(self.random)
        self.history = History()
        self.process = BrokerProcess(self.schedule)
        self.events = self.cuts = self.standstills = 0
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
        match self.random.choice(("cut", "cut", "leave", "standstill")):
            case "cut" if client.link is not None:
                self.cuts += 1
                client.link.cut()
            case "leave":
                client.leave()
            case "standstill":
                self.standstills += 1
                self.schedule.now += self.random.choice((0.5, 7.0))

    # -- the run --------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Returns how many deliveries were due, all of which happened."""
        began = self.schedule.now
        while not self._at_rest():
            if self.schedule.now - began > FAULTS_UNTIL:
                self.faults = False
            if self.schedule.now - began > REST_BY:
                raise Violation(f"no rest: {[client.name for client in self.clients if not client.idle]}")
            self.schedule.step()
            self.process.run_turn()
            self.events += 1
            if self.events % CHECKED_EVERY == 0:
                self.process.check()
        self.process.check()
        return self.history.check()

    def _at_rest(self) -> bool:
        if self.faults or not all(client.idle for client in self.clients):
            return False
        return not self.process.broker.ledger.stored_messages  # nothing is retained here: all of them are in queues
