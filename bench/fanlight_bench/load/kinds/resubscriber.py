"""One connection that subscribes to a filter and gives it up again, at a steady rate, on a thread of its own.

At least a millisecond lies between two changes where the rate allows it, so that each is in force for a while.
"""

import select
import time

from fanlight_bench.load import connect
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.kinds import Resubscribe
from fanlight_bench.load.kinds.beside import Disturbance
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.protocol import PING, Damaged
from fanlight_bench.load.requests import requests
from fanlight_bench.load.speaker import Refused

READ_BYTES = 1 << 20
NUMBER = 1_000_000          # of the subscription
BEHIND_CHANGES = 100        # without an answer: the broker is too slow, and is waited for


class Resubscriber(Disturbance):
    """See above. changed: subscriptions that began, each of which ended."""

    def __init__(self, watch: Watch, options: Resubscribe) -> None:
        super().__init__("resubscribe")
        self._changed = 0
        self._watch = watch
        self._every = 0.5 / options.changes  # seconds between two requests
        self._speaker = watch.speaker()
        self._requests = requests(self._speaker)
        self._entries = [(NUMBER, self._requests.spelled(options.filter))]
        self._connection = Connection("bench-resubscribe")
        self._answers = 0   # that are still to come
        self._subscribed = False
        self._unsent = b""
        self._complaint = ""

    @property
    def changed(self) -> int:
        return self._changed

    def connect(self) -> int:
        connect.talk([self._connection], self._speaker, self._watch.address())
        return 1

    def finish(self, until: float) -> None:
        """Also give the filter up. `changing` must be False."""
        self._stop()
        if self._subscribed:
            self._change()
        while (self._answers or self._unsent) and not self._complaint and (left := until - time.monotonic()) > 0:
            self._listen(left)

    def found(self) -> tuple[dict[str, int], str]:
        return {"unacknowledged": self._answers, "refused": int(bool(self._complaint))}, self._complaint

    def _run(self) -> None:
        due = time.monotonic()
        while not self._end.is_set() and not self._complaint:
            self._listen(min(self._every, max(0.0, due - time.monotonic())))
            now = time.monotonic()
            if not self.changing:
                due = now + self._every
            elif now >= due:
                due = max(due + self._every, now - BEHIND_CHANGES * self._every)
                if self._answers < BEHIND_CHANGES:
                    self._change()

    def _change(self) -> None:
        ask = self._requests.unsubscribe if self._subscribed else self._requests.subscribe
        self._changed += not self._subscribed
        self._subscribed = not self._subscribed
        said, answers = ask(self._entries)
        self._answers += answers
        self._unsent += said

    def _listen(self, seconds: float) -> None:
        """Send what is unsent and read what has come within so long."""
        connection = self._connection.socket
        try:
            if self._unsent:
                self._unsent = self._unsent[connection.send(self._unsent) :]
            if not select.select([connection], [], [], seconds)[0]:
                return
            data = connection.recv(READ_BYTES)
            if not data:
                raise Refused(f"the broker closed the connection of {self._connection.name}")
            self._take(data)
        except BlockingIOError:
            return  # the next turn tries again
        except (Refused, Damaged, OSError) as error:
            self._complaint = str(error)

    def _take(self, data: bytes) -> None:
        rest = self._connection.rest
        rest += data
        frames, used = self._speaker.dialect.frames(rest, deliveries=False)
        del rest[:used]
        for kind, frame in frames:
            if kind == PING:
                self._unsent += self._speaker.dialect.reply(frame)
            elif self._requests.is_answer(kind, frame):
                self._answers -= 1

    def close(self) -> None:
        self._connection.close(self._speaker.goodbye())
