"""Destinations of one key, or of one condition: one alone is itself, several are a bag."""

from fanlight_broker.protocols.amqp.exchanges.exchange import AmqpExchange, Destination, Search


class Bag:
    """Destinations with how many bindings lead to each."""

    __slots__ = ("exchanges", "queues")

    def __init__(self) -> None:
        self.queues: dict[str, int] = {}
        self.exchanges: dict[AmqpExchange, int] = {}

    def add(self, destination: Destination) -> None:
        if isinstance(destination, AmqpExchange):
            self.exchanges[destination] = self.exchanges.get(destination, 0) + 1
        else:
            self.queues[destination.name] = self.queues.get(destination.name, 0) + 1

    def remove(self, destination: Destination) -> bool:
        """True if nothing is left."""
        if isinstance(destination, AmqpExchange):
            self.exchanges[destination] -= 1
            if not self.exchanges[destination]:
                del self.exchanges[destination]
        else:
            self.queues[destination.name] -= 1
            if not self.queues[destination.name]:
                del self.queues[destination.name]
        return not self.queues and not self.exchanges

    def reached_by(self, search: Search) -> None:
        search.found = True
        search.queues.update(self.queues)
        search.exchanges.extend(self.exchanges)


Held = Destination | Bag | None


def with_destination(held: Held, destination: Destination) -> Held:
    if held is None:
        return destination
    if isinstance(held, Destination):
        bag = Bag()
        bag.add(held)
        held = bag
    held.add(destination)
    return held


def without_destination(held: Held, destination: Destination) -> Held:
    """None: nothing is left."""
    if isinstance(held, Bag):
        return None if held.remove(destination) else held
    return None


def pour(held: Held, search: Search) -> None:
    """What it holds is reached."""
    if isinstance(held, Bag):
        held.reached_by(search)
    elif held is not None:
        search.reach(held)
