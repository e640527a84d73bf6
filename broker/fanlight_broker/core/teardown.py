"""Teardown: removes a departed client's subscriptions, a slice per turn.

All of them stop delivering in one step: their session's window has ended, or their connection's outbox is closed. They
are removed from the index and the routes a slice at a time, because a bridge may leave 100,000 of them, at 1 to 2 µs
each. Until then they count as subscriptions.
"""

from collections import deque
from typing import Final

from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.turns import Turns
from fanlight_broker.wire.subscriptions import Subscriptions

LOOK: Final = 16  # subscriptions between two readings of the clock, a few µs each


class Teardown:
    def __init__(self, subscribing: Subscribing, turns: Turns) -> None:
        self._subscribing = subscribing
        self._turns = turns
        self._waiting: deque[Subscriptions] = deque()  # of each departed client

    def __len__(self) -> int:
        """Subscriptions that are still to be removed."""
        return sum(map(len, self._waiting))

    def end(self, subscriptions: Subscriptions) -> None:
        """End all subscriptions of a client or session whose outbox is closed or whose window has ended."""
        if not len(subscriptions):
            return
        idle = not self._waiting
        self._waiting.append(subscriptions)
        if idle:
            self._turns.later(self._go_on)

    def _go_on(self) -> None:
        try:
            self._end_some()
        finally:  # an error in one must not stop the others
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
            if subscription in subscriptions:  # it failed; it must not be tried again
                subscriptions.remove(subscription)
