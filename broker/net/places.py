"""Places: how many connections there are, in all and from one address, whichever listener they came to."""

from collections import Counter

from broker.core.limits import Limits


class Places:
    """One for all listeners of a broker."""

    def __init__(self) -> None:
        self.taken = 0
        self._addresses: Counter[str] = Counter()

    def refusal(self, address: str, limits: Limits) -> str | None:
        """The limit that has no place left for one more from `address`, in words; None if there is a place."""
        if self.taken >= limits.connections_max:
            return f"{limits.connections_max} connections (connections_max)"
        if self._addresses[address] >= limits.connections_per_address_max:
            return f"{limits.connections_per_address_max} connections from one address (connections_per_address_max)"
        return None

    def take(self, address: str) -> None:
        self.taken += 1
        self._addresses[address] += 1

    def leave(self, address: str) -> None:
        self.taken -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
