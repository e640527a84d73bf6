"""Teardown: takes a departed client's subscriptions out of force, some in each turn of the loop.

All are silent at once. Out of the index and out of the routes they come a slice at a time, for a bridge may leave
100,000 behind, at a microsecond or two each. Until then they count as subscriptions.
"""

from collections import deque
from typing import Final

from broker.core.subscribing import Subscribing
from broker.core.subscription import Subscription
from broker.core.turns import Turns
from broker.wire.subscriptions import Subscriptions

LOOK: Final = 16  # subscriptions between two looks at the clock, at some µs each


class Teardown:
    def __init__(self, subscribing: Subscribing, turns: Turns) -> None:
        self._subscribing = subscribing
        self._turns = turns
        self._waiting: deque[list[Subscription]] = deque()  # of each client that has gone; the end of the list first

    def __len__(self) -> int:
        """Subscriptions that are silent and still there."""
        return sum(map(len, self._waiting))

    def end(self, subscriptions: Subscriptions) -> None:
        """End all subscriptions of a client or session that is over."""
        if not len(subscriptions):
            return
        idle = not self._waiting
        self._waiting.append(subscriptions.cancel())
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
            while oldest:
                if done % LOOK == LOOK - 1 and self._turns.over():
                    return
                done += 1
                subscription = oldest.pop()
                if subscription in subscription.client.subscriptions:  # else it had its last message: Broker.finish
                    self._subscribing.end(subscription)
            if not oldest:
                self._waiting.popleft()
