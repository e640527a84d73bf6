"""Teardown: takes a departed client's subscriptions out of force, some in each turn of the loop.

All are silent at once, in one step however many there are: they deliver nothing when their session's window has ended,
or their connection's outbox is closed. Out of the index and out of the routes they come a slice at a time, for a bridge
may leave 100,000 behind, at a microsecond or two each. Until then they count as subscriptions.
"""

from collections import deque
from typing import Final

from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.subscriptions import Subscriptions

LOOK: Final = 16  # subscriptions between two looks at the clock, at some µs each


class Teardown:
    def __init__(self, subscribing: Subscribing, turns: Turns) -> None:
        self._subscribing = subscribing
        self._turns = turns
        self._waiting: deque[Subscriptions] = deque()  # of each client that has gone

    def __len__(self) -> int:
        """Subscriptions that are silent and still there."""
        return sum(map(len, self._waiting))

    def end(self, subscriptions: Subscriptions) -> None:
        """End all subscriptions of a client or session that is over, and whose outbox or window says so."""
        if not len(subscriptions):
            return
        idle = not self._waiting
        self._waiting.append(subscriptions)
        if idle:
            self._turns.later(self._go_on)

    def _go_on(self) -> None:
        try:
            self._end_some()
        finally:  # a fault in one must not keep all that go later
            if self._waiting:
                self._turns.later(self._go_on)

    def _end_some(self) -> None:
        done = 0
        while self._waiting:
            oldest = self._waiting[0]
            while (subscription := oldest.any_left()) is not None:
                if done % LOOK == LOOK - 1 and self._turns.over():
                    return
                done += 1
                self._end_one(oldest, subscription)
            self._waiting.popleft()

    def _end_one(self, subscriptions: Subscriptions, subscription: Subscription) -> None:
        try:
            self._subscribing.end(subscription)
        finally:
            if subscription in subscriptions:  # it failed; it must not come up again
                subscriptions.remove(subscription)
