"""A restart from the log: ns of processor time for each session, subscription, retained or waiting message.

    sessions       without subscriptions           subscriptions  three for each session
    retained       one a topic                     waiting        in absent sessions, 1,000 each
    all            of the four together; `round`   the same behind a round, which has no waiting bodies

Each turn is a process of its own, which reads a log that was made before and makes a broker of it. `read_ms` are of
the log and its records, `restore_ms` of what is made from them, `bytes` what the process grows by, each for one of the
counted things. `all` and `round` count sessions, subscriptions, retained and waiting messages alike.
"""

import select
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from fanlight_bench.micro.case import Case, Effort, Group
from fanlight_bench.micro.subscribe import resident
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.requests import SessionOptions
from fanlight_broker.core.subscriber import Session, Subscriber
from fanlight_broker.protocols.mqtt.format import MQTT_5_0 as FORMAT
from fanlight_broker.storage.checkpoint import Checkpoint
from fanlight_broker.storage.image import Image
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.pager import Pager
from fanlight_broker.storage.recovery import Recovery
from fanlight_broker.storage.restoring import collector_paused
from fanlight_broker.storage.store import Store
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.subscriptions import Subscriptions

SIZE = 20_000  # sessions
RETAINED, WAITING = 5, 50  # for each of them
SUBSCRIPTIONS = 3
EACH = 1_000  # that wait in one session
PAYLOAD = bytes(256)
MQTT = 1  # number of the syntax
WEEK = 7 * 86_400.0
LARGE = 1 << 50
NEVER_BY_ITSELF = 1 << 60


class Sizes(NamedTuple):
    sessions: int = 0
    subscriptions: int = 0  # of each session
    retained: int = 0
    waiting: int = 0
    rounds: bool = False

    @property
    def things(self) -> int:
        return self.sessions * (1 + self.subscriptions) + self.retained + self.waiting


class Turned(NamedTuple):
    read_ns: int
    restore_ns: int
    nbytes: int


class Restarted:
    """A broker over a store, without sockets."""

    def __init__(self, folder: Path) -> None:
        self.steps: list[Callable[[], None]] = []
        self.broker = Broker(
            Limits(
                retained_messages_max=LARGE, retained_bytes_max=LARGE, stored_bytes_max=LARGE, share_percent=100,
                sessions_max=LARGE, sessions_bytes_max=LARGE, subscriptions_max=LARGE, subscriptions_bytes_max=LARGE,
                queue_messages_max=LARGE, queue_bytes_max=LARGE,
            ),
            lambda: None, self.steps.append, wall=time.time,
        )
        self.log = Log(folder, self.progress)
        self.store = Store(
            self.log, self.broker.ledger, now=time.monotonic, wall=time.time, schedule=lambda seconds: None
        )
        self.store.pager = Pager(
            self.log, {FORMAT.family: FORMAT}, self.broker.variants, now=time.monotonic,
            ahead=lambda: self.store.records.wall, run=lambda read, then: None, soon=self.steps.append,
        )
        self.checkpoint = Checkpoint(self.store, self.broker, self.steps.append, garbage_bytes=NEVER_BY_ITSELF)
        self.poll = select.poll()
        self.poll.register(self.log.fileno(), select.POLLIN)

    def open(self) -> tuple[int, int]:
        """ns of processor time to read the log, and to make what it says."""
        started = time.thread_time_ns()
        image = Image()
        with collector_paused():
            image.read(self.log)
            read = time.thread_time_ns()
            Recovery(
                image, self.store, self.broker, {FORMAT.family: FORMAT}, now=time.monotonic(), wall=time.time()
            ).run()
            del image
        return read - started, time.thread_time_ns() - read

    def progress(self) -> None:
        self.store.progress()
        self.checkpoint.progress()

    def turn(self) -> None:
        """End a turn, and wait for the disk."""
        self.store.seal()
        while self.log.buffered:
            self.poll.poll()
            self.log.collect()

    # -- what there is after a restart --------------------------------------------------------------------------------

    def fill(self, sizes: Sizes) -> None:
        for number in range(sizes.sessions):
            session = self.session(f"away-{number}")
            for at in range(sizes.subscriptions):
                self.subscribe(session, b"away/%d/%d" % (number, at))
            if number % EACH == 0:
                self.turn()
        for number in range(sizes.retained):
            message = Message(FORMAT, b"kept/%d" % number, MQTT, PAYLOAD, fields=b"\0", qos=1, retain=True)
            self.broker.retained.put(message, time.monotonic())
            if number % EACH == 0:
                self.turn()
        queues = max(1, sizes.waiting // EACH)
        if sizes.waiting:
            for number in range(queues):
                self.subscribe(self.session(f"late-{number}"), b"late/%d" % number)
        for number in range(sizes.waiting):
            message = Message(FORMAT, b"late/%d" % (number % queues), MQTT, PAYLOAD, fields=b"\0", qos=1)
            publish(self.broker.router.route(message.topic, "mqtt"), self.broker.ledger, None, message)
            if number % 64 == 0:
                self.store.seal()
            if number % EACH == 0:
                self.turn()
        self.turn()
        if sizes.rounds:
            self.round()
            self.session("after")  # begins the segment whose header has the floor
            self.turn()

    def session(self, name: str) -> Session:
        share = self.broker.shares.of("address 127.0.0.1")
        subscriber = Subscriber(
            name, "", "mqtt 5.0", FORMAT, share, "_INBOX.x", subscriptions=Subscriptions(by_filter=True)
        )
        return self.broker.sessions.begin(subscriber, WEEK, time.monotonic())

    def subscribe(self, session: Session, filter: bytes) -> None:
        self.broker.sessions.subscribe(session, filter, "mqtt", SessionOptions(qos=1))

    def round(self) -> None:
        self.checkpoint.begin()
        while not self.checkpoint.rounds:
            while self.steps:
                self.steps.pop(0)()
            self.turn()


def fill(folder: str, sizes: Sizes) -> None:
    broker = Restarted(Path(folder))
    broker.open()
    broker.fill(sizes)
    broker.log.close()


def restart(folder: str) -> Turned:
    broker = Restarted(Path(folder))
    before = resident()
    times = broker.open()
    nbytes = resident() - before
    broker.log.close()
    return Turned(*times, nbytes)


class Restarts:
    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.folder, self.sizes = folder, sizes
        self.turns: list[Turned] = []
        self.folder.mkdir()
        with get_context("spawn").Pool(1) as alone:
            alone.apply(fill, (str(folder), sizes))

    def turn(self) -> float:
        with get_context("spawn").Pool(1) as alone:
            self.turns.append(alone.apply(restart, (str(self.folder),)))
        return self.turns[-1].read_ns + self.turns[-1].restore_ns

    def facts(self) -> dict[str, object]:
        return {
            "read_ms": round(min(turn.read_ns for turn in self.turns) / 1e6, 1),
            "restore_ms": round(min(turn.restore_ns for turn in self.turns) / 1e6, 1),
            "bytes": round(min(turn.nbytes for turn in self.turns) / self.sizes.things, 1),
        }


def groups(effort: Effort) -> Iterator[Group]:
    size = effort.sized(SIZE, 100)
    everything = Sizes(size, SUBSCRIPTIONS, RETAINED * size, WAITING * size)
    kinds = {
        "sessions": Sizes(size),
        "subscriptions": Sizes(size, SUBSCRIPTIONS),
        "retained": Sizes(retained=RETAINED * size),
        "waiting": Sizes(waiting=WAITING * size),
        "all": everything,
        "round": everything._replace(rounds=True),
    }
    if effort.quick:
        kinds = {"round": kinds["round"]}
    with tempfile.TemporaryDirectory() as name:
        made = {kind: Restarts(Path(name) / kind, sizes) for kind, sizes in kinds.items()}
        yield Group(
            f"{size:,} sessions",
            [Case(kind, each.sizes.things, each.turn, (), each.facts) for kind, each in made.items()],
        )
