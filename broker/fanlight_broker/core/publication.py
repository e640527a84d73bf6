"""A publication: a message, and who publishes it."""


from typing import NamedTuple

from fanlight_broker.core.marks import Mark
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.route import Route


class Publication(NamedTuple):
    message: Message  # may point into an inbox: copy what must last
    publisher: Subscriber | None = None  # None: the broker itself
    mark: Mark | None = None  # for deduplication, if its publisher numbers its messages
    identifier: int | None = None  # of QoS 2: its session remembers it until the publisher releases it
    due: float | None = None  # it is delayed until this time of `now`; None: it is routed at once
    ruled: bool = True  # routing rules may act on it; False: a queue has had it, and they did when it came first
    requests: bool = False  # it names a topic for the reply
    route: Route | None = None  # who gets it, where the publisher's protocol says so; None: the topic's subscriptions
