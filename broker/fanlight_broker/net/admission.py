"""Admission: how many connections there may be, in all and from one address, whichever listener they came to."""

from collections import Counter

from fanlight_broker.core.limits import Limits
from fanlight_broker.net.strangers import Strangers


class Admission:
    """One for all listeners of a broker. A connection counts from the moment it is accepted until it is closed."""

    def __init__(self) -> None:
        self.connections = 0
        self.refusing = ""  # why nobody is admitted now; "": it is by the limits
        self.strangers = Strangers()
        self._addresses: Counter[str] = Counter()

    def refusal(self, address: str, limits: Limits) -> str | None:
        """The limit that one more connection from `address` would exceed, in words; None if it may be admitted.

        "" is the address of those whose proxy has not said yet who they are: they are bounded all together alone.
        """
        if self.refusing:
            return self.refusing
        if self.connections >= limits.connections_max:
            return f"{limits.connections_max} connections (connections_max)"
        if address and self._addresses[address] >= limits.connections_per_address_max:
            return f"{limits.connections_per_address_max} connections from one address (connections_per_address_max)"
        return None

    def within(self, most: int | None, limit: str) -> "Admission":
        """For one listener, which may have a bound of its own beside these. limit: what to say of it"""
        return self if most is None else BoundedAdmission(self, most, limit)

    def admit(self, address: str) -> None:
        self.connections += 1
        self._addresses[address] += 1

    def leave(self, address: str) -> None:
        self.connections -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]


class BoundedAdmission(Admission):
    """Of one listener: its connections count among those of all, and there may be no more than `most`."""

    def __init__(self, whole: Admission, most: int, limit: str) -> None:
        super().__init__()
        self.strangers = whole.strangers
        self._whole, self._most, self._limit = whole, most, limit

    def refusal(self, address: str, limits: Limits) -> str | None:
        if self.connections >= self._most:
            return f"{self._most} connections ({self._limit})"
        return self._whole.refusal(address, limits)

    def admit(self, address: str) -> None:
        self.connections += 1
        self._whole.admit(address)

    def leave(self, address: str) -> None:
        self.connections -= 1
        self._whole.leave(address)
