"""TLS handshakes start some in each turn of the loop, however many clients arrive together.

A handshake takes a millisecond or two of the processor, and the event loop's TLS does it in one step as soon as it may
read. So the number of connections that begin to read in a turn is limited. A connection waits for its first bytes, and
then for its turn: a peer that sends nothing keeps nobody waiting.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

HANDSHAKES_PER_TURN: Final = 2  # some 2 ms in all, as long as any turn (core/turns.py)


class HandshakeTurns:
    """One for all listeners of a broker.

    later  calls a function in a later turn of the loop (core.turns.Turns.later)
    """

    def __init__(self, later: Callable[[Callable[[], Any]], Any]) -> None:
        self._later = later
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Handshakes that wait for their turn."""
        return len(self._waiting)

    async def wait(self) -> None:
        """Return when one more handshake may start. First come, first served."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._later(self._start_some)
        await turn

    def _start_some(self) -> None:
        started = 0
        while self._waiting and started < HANDSHAKES_PER_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else its connection was given up meanwhile
                turn.set_result(None)
                started += 1
        if self._waiting:
            self._later(self._start_some)
