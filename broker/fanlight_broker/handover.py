"""Handing clients over to other brokers: nobody is let in, and connected clients get a goodbye.

    open --begin--> draining --the last client has gone, or its time is over--> drained --> the process ends, if wanted
      ^                 |                                                          |
      '------end--------'----------------------------------------------------------'

The ports stay open, and whoever comes is refused: so it can be taken back. What is kept for clients stays where it is.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import Any, Final

from fanlight_broker import logs
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.subscriber import Client
from fanlight_broker.net.admission import Admission

log: Final = logs.get("app")

GOODBYE: Final = "the broker is being drained; connect to another one"
REFUSAL: Final = "no room for anybody, as it is being drained"
LOOK_SECONDS: Final = 0.05
TOLD_PER_LOOK: Final = 16  # clients, between two looks at the clock


class Handover:
    def __init__(self, broker: Broker, admission: Admission, clock: Callable[[], float]) -> None:
        self._broker, self._admission, self._clock = broker, admission, clock
        self._task: asyncio.Task[None] | None = None
        self._ends = 0.0
        self._drained = False
        self.followers: list[Callable[[bool], None]] = []  # are called at the begin and at the end, with `draining`

    @property
    def draining(self) -> bool:
        """Is nobody let in?"""
        return bool(self._admission.refusing)

    def view(self) -> dict[str, Any]:
        state = "open" if not self.draining else "drained" if self._drained else "draining"
        left = max(0.0, round(self._ends - self._clock(), 3)) if state == "draining" else None
        return {
            "state": state, "connections": len(self._broker.everybody), "deadline_seconds": left,
            "stored_messages": self._broker.ledger.stored_messages,
        }

    def begin(self, seconds: float, *, stop: bool) -> None:
        """Begin, or begin again with another time. stop: the process ends then, as by SIGTERM."""
        self.cancel()
        self._drained = False
        self._admission.refusing = REFUSAL
        self._ends = self._clock() + seconds
        log.info("draining", connections=len(self._broker.everybody), grace_seconds=seconds)
        self._tell_followers()
        self._task = asyncio.get_running_loop().create_task(self._run(stop=stop))

    def end(self) -> None:
        """Let clients in again."""
        self.cancel()
        if self.draining:
            self._admission.refusing = ""
            self._drained = False
            log.info("drain_ended")
            self._tell_followers()

    def _tell_followers(self) -> None:
        for follow in self.followers:
            follow(self.draining)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, *, stop: bool) -> None:
        everybody = self._broker.everybody
        # A client in the middle of its handshake still comes in, and gets its goodbye at the next look.
        while len(everybody) and self._clock() < self._ends:
            await self._tell(lambda client: client.connection.say_goodbye("shutting_down", GOODBYE))
            await asyncio.sleep(LOOK_SECONDS)
        late = len(everybody)
        while len(everybody):
            await self._tell(lambda client: client.connection.cut_off("shutting_down", GOODBYE))
            await asyncio.sleep(LOOK_SECONDS)
        self._drained = True
        log.info("drained", late=late)
        if stop:
            signal.raise_signal(signal.SIGTERM)

    async def _tell(self, say: Callable[[Client], None]) -> None:
        """All clients, some in a turn of the loop."""
        self._begin_turn()
        for number, client in enumerate(list(self._broker.everybody), 1):
            say(client)
            if number % TOLD_PER_LOOK == 0 and self._broker.turns.over():
                self._broker.finish()
                await asyncio.sleep(0)
                self._begin_turn()
        self._broker.finish()

    def _begin_turn(self) -> None:
        self._broker.turns.begin()
        self._broker.ledger.now = self._clock()
