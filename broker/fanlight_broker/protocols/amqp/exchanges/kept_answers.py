"""Answers of a vhost that are kept for their keys, as long as no binding on their path changes.

An answer belongs to the exchange that was asked, its root. Each exchange on the path knows the roots that have come
through it (`asked_by`), and a root the exchanges that it has asked (`asks`): so a change of one drops the answers of
those roots, and of no other. Keys that never repeat fill the room; then all answers are dropped and it begins anew.
"""

from collections.abc import Iterable

from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange, Destinations
from fanlight_broker.protocols.amqp.exchanges.kept_answer import KeptAnswer

LARGE = 16  # an answer may take this part of the room


class KeptAnswers:
    """room: in places: 8 for an answer, and one for each queue in it."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._roots: set[AmqpExchange] = set()
        self.taken = 0

    def keep(
        self, root: AmqpExchange, key: str | None, answer: Destinations, path: Iterable[AmqpExchange],
        answers: dict[str, Destinations] | None = None,
    ) -> None:
        """key: None for an answer to all keys. answers: where it is kept by its key, if not with those of the root."""
        places = _places(answer)
        if places > self._room // LARGE:
            return
        if self.taken + places > self._room:
            for each in list(self._roots):
                self.drop(each)
        self.taken += places
        self._roots.add(root)
        if key is None:
            root.always = answer
        else:
            (root.answers if answers is None else answers)[key] = answer
        answer.valid = True
        for exchange in path:
            if root not in exchange.asked_by:
                exchange.asked_by.add(root)
                root.asks.add(exchange)

    def keep_onward(self, root: AmqpExchange, key: str, answer: Destinations, path: Iterable[AmqpExchange]) -> None:
        """What is behind the topics. Its `prepared` says whether it is `valid`, too, for the core keeps that."""
        self.keep(root, key, answer, path, root.onward)

    def keep_routes(self, root: AmqpExchange, routes: KeptAnswer) -> None:
        """What the lane keeps of an exchange, until a binding of that changes."""
        if root.routes is not None:
            root.routes.valid = False
        root.routes = routes
        routes.valid = True
        self._roots.add(root)
        root.asked_by.add(root)
        root.asks.add(root)

    def changed(self, exchange: AmqpExchange) -> None:
        """What leads through it may be another answer now."""
        for root in list(exchange.asked_by):
            self.drop(root)

    def drop(self, root: AmqpExchange) -> None:
        """Drop the answers of an exchange."""
        for answer in root.answers.values():
            answer.valid = False
            self.taken -= _places(answer)
        root.answers.clear()
        for answer in root.onward.values():
            answer.valid = False
            if answer.prepared is not None:
                answer.prepared.valid = False
            self.taken -= _places(answer)
        root.onward.clear()
        if root.always is not None:
            root.always.valid = False
            self.taken -= _places(root.always)
            root.always = None
        if root.routes is not None:
            root.routes.valid = False
            root.routes = None
        for exchange in root.asks:
            exchange.asked_by.discard(root)
        root.asks.clear()
        self._roots.discard(root)


def _places(answer: Destinations) -> int:
    return 8 + len(answer.queues)
