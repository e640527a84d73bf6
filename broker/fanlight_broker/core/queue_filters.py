"""The filters of named queues: put in force, added to a queue that exists, and removed.

Each is a subscription of the queue's own subscriber, whose messages go into the queue.
"""

from fanlight_broker.core.errors import LimitExceeded, QueueInUse
from fanlight_broker.core.permissions import Action
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES, parse_filter
from fanlight_broker.core.work_queue import WorkQueue


class QueueFilters:
    def __init__(self, subscribing: Subscribing) -> None:
        self._subscribing = subscribing

    def enforce(self, queue: WorkQueue) -> None:
        """Put all filters of a new queue in force. Raises InvalidFilter."""
        for number, (text, syntax) in enumerate(queue.filters, 1):
            self._bind(queue, number, text, syntax)

    def add(self, asker: Subscriber | None, queue: WorkQueue, text: bytes, syntax: str) -> bool:
        """False if the queue has it. All of it must be allowed to the asker (None: an operator), because who consumes
        gets whatever is in the queue.

        Raises InvalidFilter, NotPermitted, LimitExceeded, and QueueInUse for its text in the other syntax.
        """
        subscribing, limits = self._subscribing, self._subscribing.limits
        if (found := queue.subscriber.subscriptions.find(text, queue.name)) is not None:
            if found.syntax_number != SYNTAXES.index(syntax):
                raise QueueInUse(queue.name, f"syntax of the filter {text.decode(errors='replace')!r}")
            return False
        parse_filter(text, syntax, limits)
        if len(queue.filters) >= limits.subscriptions_per_client_max:
            raise LimitExceeded(
                f"the queue {queue.name!r} has too many filters", "subscriptions_per_client_max",
                limits.subscriptions_per_client_max,
            )
        if asker is not None:
            subscribing.check(asker, text, syntax, queue.name, queue.condition)
            subscribing.enforcement.check_filter(asker, Action.QUEUE, text, syntax, whole=True)
        self._bind(queue, len(queue.filters) + 1, text, syntax)
        queue.filters += ((text, syntax),)
        return True

    def remove(self, queue: WorkQueue, text: bytes, syntax: str) -> bool:
        """False if the queue has it not."""
        binding = queue.subscriber.subscriptions.find(text, queue.name)
        if binding is None or binding.syntax_number != SYNTAXES.index(syntax):
            return False
        self._subscribing.unbind(binding)
        queue.filters = tuple(each for each in queue.filters if each != (text, syntax))
        return True

    def _bind(self, queue: WorkQueue, number: int, text: bytes, syntax: str) -> None:
        subscribing = self._subscribing
        variant = subscribing.router.variants.of(queue.subscriber.format)
        subscribing.bind(queue.subscriber, Subscription(
            queue.inside.origin, variant, number, text, SYNTAXES.index(syntax), condition=queue.condition
        ), queue.inside)
