"""The end of what a client held that has gone: of its subscriptions, some in each turn of the loop.

All are silent at once. Out of the index and out of the routes they come a slice at a time, for a bridge may leave
100,000 behind, at a microsecond or two each. Until then they count as subscriptions.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.core.subscription import Subscription
from broker.wire.subscriptions import Subscriptions

if TYPE_CHECKING:
    from broker.core.broker import Broker

SLICE: Final = 500  # subscriptions in one turn: about a millisecond


class Endings:
    """next_turn  as the broker's; None: nothing is put off"""

    def __init__(self, broker: "Broker", next_turn: Callable[[Callable[[], None]], Any] | None) -> None:
        self._broker = broker
        self._next_turn = next_turn
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
            self._go_on()

    def _go_on(self) -> None:
        try:
            self._end_some()
        finally:  # a fault in one must not keep all that go later
            if self._waiting and self._next_turn is not None:
                self._next_turn(self._go_on)

    def _end_some(self) -> None:
        left = SLICE
        while self._waiting and (left or self._next_turn is None):
            oldest = self._waiting[0]
            while oldest and (left or self._next_turn is None):
                subscription = oldest.pop()
                if subscription in subscription.client.subscriptions:  # else it had its last message: Broker.finish
                    self._broker.end_subscription(subscription)
                left -= 1
            if not oldest:
                self._waiting.popleft()
