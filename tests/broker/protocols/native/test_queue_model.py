"""A named queue against a plain model of a work queue, in random steps: publish, deliver, ack, nack, connections that
come and are lost, time. Nothing is lost, nothing is with two consumers at once, the order is kept, the counts add up.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fanlight_broker.core.enforcement import UNKNOWN
from tests.broker.protocols.native.world import Peer, World, frame, publish

DELIVERY, ACK, NACK, TERM, IN_PROGRESS = 32, 33, 34, 35, 36
TTL, ACK_WAIT, DELIVERIES_MAX, DELAY = 60.0, 20.0, 4, 15.0


@dataclass(eq=False)
class Worker:
    peer: Peer
    prefetch: int
    holds: dict[int, int] = field(default_factory=dict)  # sequence -> message


@dataclass
class Known:
    """What the model knows of a message that is not done with."""

    came: float
    deliveries: int = 0
    due: float = 0.0  # to be acknowledged; or, waiting, not to be delivered before
    worker: Worker | None = None  # that has it


class WorkQueue(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(idle_seconds_max=0)
        self.publisher = self.world.connect()
        self.workers: list[Worker] = []
        self.known: dict[int, Known] = {}
        self.published = self.acknowledged = self.sequence = 0
        self.newest = -1  # of the messages delivered for the first time
        self.begin(1)

    # -- steps ------------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 5), plain=st.booleans())
    def publish(self, count: int, plain: bool) -> None:
        self.publisher.protocol.lane.badge = UNKNOWN if plain else None
        for _ in range(count):
            self.known[self.published] = Known(self.world.now)
            self.publisher.send(publish("orders.new", b"%d" % self.published))
            self.published += 1

    @precondition(lambda self: len(self.workers) < 4)
    @rule(prefetch=st.integers(1, 3))
    def begin(self, prefetch: int) -> None:
        worker = Worker(self.world.connect(), prefetch)
        self.workers.append(worker)
        worker.peer.say(6, 1, 7, "orders.#", {
            "consumer": "billing", "durable": True, "ack": True, "prefetch": prefetch, "ack_wait": ACK_WAIT,
            "queue": {"message_ttl": TTL, "deliveries_max": DELIVERIES_MAX},
        })

    @rule(at=st.integers(0, 3))
    def lose_connection(self, at: int) -> None:
        if at < len(self.workers):
            worker = self.workers.pop(at)
            self.observe(worker)
            for message in worker.holds.values():
                self.comes_back(message)
            worker.peer.vanish()

    @rule(at=st.integers(0, 3), nth=st.integers(0, 2), up_to=st.booleans())
    def acknowledge(self, at: int, nth: int, up_to: bool) -> None:
        worker, sequence = self.pick(at, nth)
        if worker is not None:
            for each in sorted(worker.holds):
                if each == sequence or (up_to and each < sequence):
                    del self.known[worker.holds.pop(each)]
                    self.acknowledged += 1
            worker.peer.say(ACK, 7, sequence, *([{"all": True}] if up_to else []))

    @rule(at=st.integers(0, 3), nth=st.integers(0, 2), later=st.booleans())
    def refuse(self, at: int, nth: int, later: bool) -> None:
        worker, sequence = self.pick(at, nth)
        if worker is not None:
            self.comes_back(worker.holds.pop(sequence), DELAY if later else 0.0)
            worker.peer.say(NACK, 7, sequence, *([DELAY] if later else []))

    @rule(at=st.integers(0, 3), nth=st.integers(0, 2))
    def reject(self, at: int, nth: int) -> None:
        worker, sequence = self.pick(at, nth)
        if worker is not None:
            del self.known[worker.holds.pop(sequence)]
            worker.peer.say(TERM, 7, sequence)

    @rule(at=st.integers(0, 3), nth=st.integers(0, 2))
    def prolong(self, at: int, nth: int) -> None:
        worker, sequence = self.pick(at, nth)
        if worker is not None:
            self.known[worker.holds[sequence]].due = self.world.now + ACK_WAIT
            worker.peer.say(IN_PROGRESS, 7, sequence)

    @rule(sequence=st.integers(0, 200))
    def acknowledge_what_is_not_there(self, sequence: int) -> None:
        for worker in self.workers:
            if sequence not in worker.holds:
                worker.peer.say(ACK, 7, sequence)

    @rule(seconds=st.sampled_from([1.0, 8.0, 16.0, 30.0]))
    def pass_time(self, seconds: float) -> None:
        now = self.world.now + seconds
        for worker in self.workers:
            for sequence, message in list(worker.holds.items()):
                if self.known[message].due <= now:
                    self.comes_back(worker.holds.pop(sequence))
        self.world.pass_time(seconds)

    # -- the model --------------------------------------------------------------------------------------------------

    def pick(self, at: int, nth: int) -> tuple[Worker | None, int]:
        if at < len(self.workers) and nth < len(self.workers[at].holds):
            return self.workers[at], sorted(self.workers[at].holds)[nth]
        return None, 0

    def comes_back(self, message: int, delay: float = 0.0) -> None:
        known = self.known[message]
        known.worker, known.due = None, self.world.now + delay if delay else 0.0
        if known.deliveries >= DELIVERIES_MAX:
            del self.known[message]

    def observe(self, worker: Worker) -> None:
        for fields in worker.peer.frames():
            if fields[0] != DELIVERY:
                continue
            sequence, attempt, message = fields[2], fields[3], int(fields[5])
            known = self.known[message]  # else it was done with
            assert known.worker is None, "it is with two consumers at once"
            assert known.due <= self.world.now, "it was to wait for longer"
            assert known.came + TTL > self.world.now, "it had expired"
            assert attempt == known.deliveries + 1
            self.sequence = max(self.sequence, sequence)
            if attempt == 1:
                assert message > self.newest, "a later one was delivered before it"
                self.newest = message
            known.worker, known.deliveries, known.due = worker, attempt, self.world.now + ACK_WAIT
            worker.holds[sequence] = message
            assert len(worker.holds) <= worker.prefetch

    @invariant()
    def all_adds_up(self) -> None:
        # In the order in which they were delivered, whichever consumer they went to.
        frames = sorted(
            ((worker, fields) for worker in self.workers for fields in worker.peer.frames() if fields[0] == DELIVERY),
            key=lambda each: each[1][2],
        )
        for worker, fields in frames:
            worker.peer.received = frame(*fields)
            self.observe(worker)
        now = self.world.now
        live = {number for number, known in self.known.items() if known.worker or known.came + TTL > now}
        ready = {number for number in live if self.known[number].worker is None and self.known[number].due <= now}
        if ready:
            assert all(len(worker.holds) == worker.prefetch for worker in self.workers), "somebody has room"
        inside = self.world.broker.queues.find("billing").inside
        assert inside.published == self.published
        assert inside.acknowledgements == self.acknowledged
        assert inside.unacknowledged == sum(len(worker.holds) for worker in self.workers)
        assert inside.published == inside.acknowledgements + inside.discards + len(inside)
        assert len(inside) >= len(live)
        assert len(inside) - len(live) <= len(self.known) - len(live)


WorkQueue.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWorkQueue = WorkQueue.TestCase
