"""Whether to read from the socket: where a full subscription (overflow="pause") meets everything else.

some subscription is    and an answer is awaited    then
full                    no                          stop reading
full                    yes                         read on: the answer may come behind messages, and
                                                    whoever awaits it may be the one to make room
at twice its limits     yes                         stop; waiters get ReadingPaused
"""

import asyncio
from collections.abc import Callable

from .answers import Answers
from .errors import ReadingPaused


class Reading:
    """`apply` is called with the new decision whenever it changes."""

    def __init__(self, *awaited: Answers, apply: Callable[[bool], None]) -> None:
        self.on = True
        self._awaited = awaited
        self._apply = apply
        self._full: set[object] = set()
        self._bursting: set[object] = set()
        self._room = asyncio.Event()  # nobody is at twice its limits
        self._room.set()
        for answers in awaited:
            answers.on_change = self.decide

    def hold(self, who: object, *, bursting: bool) -> None:
        """`who` is full; `bursting`: at twice its limits."""
        self._full.add(who)
        if bursting:
            self._bursting.add(who)
            self._room.clear()
        self.decide()

    def release(self, who: object) -> None:
        self._full.discard(who)
        self._bursting.discard(who)
        if not self._bursting:
            self._room.set()
        self.decide()

    async def room(self) -> None:
        """Wait until an answer could arrive again."""
        await self._room.wait()

    def restart(self) -> None:
        """On a new connection, which reads to begin with."""
        self.on = True
        self.decide()

    def decide(self) -> None:
        awaited = any(self._awaited)
        if self._bursting and awaited:
            # In a turn of its own: this may be called from within the asking.
            asyncio.get_running_loop().call_soon(self._fail_those_who_wait)
        on = not self._bursting and (not self._full or awaited)
        if on != self.on:
            self.on = on
            self._apply(on)

    def _fail_those_who_wait(self) -> None:
        if not self._bursting:
            return
        error = ReadingPaused(
            "the answer cannot be received: a subscription with overflow='pause' is full of unread messages. "
            "Give it credit=, a larger pending_messages=, or a client of its own",
            details={"subscriptions": sorted(str(who) for who in self._bursting)},
        )
        for answers in self._awaited:
            answers.fail_all(error)
