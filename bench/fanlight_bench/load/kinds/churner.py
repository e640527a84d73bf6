"""Connections whose subscriptions come and go at a steady rate, on a thread of their own.

Each has as many as ever: for one that it begins it ends its oldest.

       ended    |  in force                 |  not yet
    ------------+---------------------------+----------     entries 0, 1, 2 ... of one connection
              oldest                      newest
"""

import select
import time
from collections.abc import Callable

from fanlight_bench.load import connect, spelling
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.kinds import Churn
from fanlight_bench.load.kinds.beside import Disturbance
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.protocol import DELIVERY, PING, Damaged
from fanlight_bench.load.requests import ClientRequests, Entry, requests
from fanlight_bench.load.speaker import Refused, Speaker

TICK_SECONDS = 0.01
READ_BYTES = 65_536
BEHIND_SECONDS = 0.5       # of changes that are not answered: then the broker is too slow, and waited for
PROBES = 20                # messages of each connection, at the end, of each sort
NUMBER_MIN = 1_000_000     # of subscriptions


class Member:
    """One of the connections. answers: that are still to come."""

    def __init__(self, connection: Connection, first: int) -> None:
        self.connection = connection
        self.first = first
        self.oldest = self.newest = 0
        self.answers = 0
        self.unsent = b""
        self.probes: set[bytes] = set()


class Churner(Disturbance):
    """Call connect, subscribe, start; set `changing`; finish. changed: subscriptions begun or ended."""

    def __init__(self, watch: Watch, options: Churn) -> None:
        super().__init__("churn")
        self._changed = self.misrouted = self.lost = self.unanswered = 0
        self.complaints: list[str] = []
        self._watch = watch
        self._options = options
        self._speaker: Speaker = watch.speaker()
        self._requests: ClientRequests = requests(self._speaker)
        self._filter = spelling.Expander(options.filters)
        self._standing = max(1, options.standing // options.connections)
        # Far apart, so that two connections never have the same filter.
        self._members = [
            Member(Connection(f"bench-churn-{number}"), number * 10_000_019) for number in range(options.connections)
        ]
        self._epoll = select.epoll()
        self._by_number: dict[int, Member] = {}

    @property
    def changed(self) -> int:
        return self._changed

    def connect(self) -> int:
        """Open the connections; how many."""
        connect.talk([member.connection for member in self._members], self._speaker, self._watch.address())
        return len(self._members)

    def subscribe(self) -> int:
        """Begin with as many subscriptions as there are ever to be; how many."""
        for member in self._members:
            member.newest = self._standing
            member.connection.say(self._speaker.subscribe(self._entries(member, 0, self._standing)))
        connect.talk([member.connection for member in self._members], self._speaker)
        return self._standing * len(self._members)

    def start(self) -> None:
        for member in self._members:
            self._by_number[member.connection.socket.fileno()] = member
            self._epoll.register(member.connection.socket, select.EPOLLIN)
        super().start()

    def finish(self, until: float) -> None:
        """Wait for all answers, then look whether the right subscriptions are in force. `changing` must be False."""
        self._stop()
        self._wait(until, lambda: any(member.answers for member in self._members))
        self.unanswered = sum(member.answers for member in self._members)
        if self.unanswered or self.complaints:
            return
        for member in self._members:
            self._probe(member)
        self._wait(until, lambda: any(member.answers or member.unsent for member in self._members))
        self.lost = sum(len(member.probes) for member in self._members)

    def found(self) -> tuple[dict[str, int], str]:
        """Its faults, and the first complaint."""
        counts = {
            "misrouted": self.misrouted, "lost": self.lost, "unacknowledged": self.unanswered,
            "refused": len(self.complaints),
        }  # fmt: skip
        return counts, next(iter(self.complaints), "")

    def _probe(self, member: Member) -> None:
        """Publish for some ended subscriptions and some in force; the answer to a ping says that all has arrived."""
        ended = range(max(0, member.oldest - PROBES), member.oldest)
        standing = range(member.newest - min(PROBES, self._standing), member.newest)
        said = b""
        for at in (*ended, *standing):
            topic = self._filter(member.first + at).replace("+", "any").replace("#", "rest")
            publish = self._speaker.publish(topic, 1)
            said += publish.frame.octets
            if at >= member.oldest:
                member.probes.add(publish.topic)
        ping, answers = self._requests.ping()
        member.answers += answers
        member.unsent += said + ping
        self._flush(member)

    def _run(self) -> None:
        every = self._options.changes * TICK_SECONDS / 2 / len(self._members)  # begun and ended, of each, in a tick
        due, started = 0.0, time.monotonic()
        while not self._end.is_set():
            self._receive(max(0.0, started + TICK_SECONDS - time.monotonic()))
            now = time.monotonic()
            if now - started < TICK_SECONDS:
                continue
            due = min(due + every * (now - started) / TICK_SECONDS, every * BEHIND_SECONDS / TICK_SECONDS)
            started = now
            if not self.changing:
                due = 0.0
                continue
            count, due = int(due), due - int(due)
            for member in self._members:
                if member.answers < 1 + every * 2 * BEHIND_SECONDS / TICK_SECONDS:
                    self._change(member, count)

    def _change(self, member: Member, count: int) -> None:
        if not count:
            return
        begun, answers = self._requests.subscribe(self._entries(member, member.newest, member.newest + count))
        ended, more = self._requests.unsubscribe(self._entries(member, member.oldest, member.oldest + count))
        member.newest += count
        member.oldest += count
        member.answers += answers + more
        member.unsent += begun + ended
        self._changed += 2 * count
        self._flush(member)

    def _entries(self, member: Member, first: int, end: int) -> list[Entry]:
        return [(NUMBER_MIN + at, self._requests.spelled(self._filter(member.first + at))) for at in range(first, end)]

    def _wait(self, until: float, waiting: Callable[[], bool]) -> None:
        while waiting() and time.monotonic() < until and not self.complaints:
            self._receive(TICK_SECONDS)

    def _receive(self, seconds: float) -> None:
        for number, _ in self._epoll.poll(seconds):
            member = self._by_number[number]
            try:
                data = member.connection.socket.recv(READ_BYTES)
                if not data:
                    raise Refused(f"the broker closed the connection of {member.connection.name}")
                self._take(member, data)
            except (Refused, Damaged, OSError) as error:
                self._epoll.unregister(number)
                self.complaints.append(str(error))
        for member in self._members:
            if member.unsent:
                self._flush(member)

    def _take(self, member: Member, data: bytes) -> None:
        rest = member.connection.rest
        rest += data
        frames, used = self._speaker.dialect.frames(rest)
        del rest[:used]
        for kind, frame in frames:
            if kind == DELIVERY:
                topic = self._speaker.dialect.delivery(frame)["topic"]
                if topic in member.probes:
                    member.probes.remove(topic)
                else:
                    self.misrouted += 1
            elif kind == PING:
                member.unsent += self._speaker.dialect.reply(frame)
            elif self._requests.is_answer(kind, frame):
                member.answers -= 1

    def _flush(self, member: Member) -> None:
        try:
            member.unsent = member.unsent[member.connection.socket.send(member.unsent) :]
        except BlockingIOError:
            return  # the next turn tries again
        except OSError as error:
            member.unsent = b""
            self.complaints.append(str(error))

    def close(self) -> None:
        for member in self._members:
            member.connection.close(self._speaker.goodbye())
        self._epoll.close()
