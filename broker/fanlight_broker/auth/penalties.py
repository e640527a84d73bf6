"""How long a login must wait because of earlier wrong passwords.

Two tables, of addresses and of (address, user name). After a few failures in a row each further one doubles the time
until the next login of the same key is checked, up to a bound. A right password clears both. An address is allowed more
failures than a name, because many clients may share it. Other addresses are never affected, so nobody can lock a user
out.

It makes no difference whether the user exists. No clock here: `now` is an argument.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

FREE_OF_NAME: Final = 3  # failures without a delay: a person at a keyboard
FREE_OF_ADDRESS: Final = 10
FIRST_SECONDS: Final = 0.1
FORGOTTEN_SECONDS: Final = 300.0  # without a further failure
NAME_MAX: Final = 255  # characters of a name that count: no user has a longer one (password_file.USER_BYTES_MAX)
KEPT_MAX: Final = 10_000  # in each table, about 300 bytes each; beyond it the oldest are forgotten


class _Failures:
    """Consecutive failures by key, and until when the next login of that key waits."""

    def __init__(self, free: int, seconds_max: float) -> None:
        self._free = free
        self._seconds_max = seconds_max
        self._rows: OrderedDict[Hashable, tuple[int, float, float]] = OrderedDict()  # count, last, until

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, key: Hashable, now: float) -> int:
        count, last, _ = self._rows.get(key, (0, now, now))
        return count if now - last < FORGOTTEN_SECONDS else 0

    def used_up(self, key: Hashable, now: float) -> bool:
        """Are there no more failures without a delay?"""
        return self.count(key, now) >= self._free

    def until(self, key: Hashable) -> float:
        row = self._rows.get(key)
        return row[2] if row is not None else 0.0

    def add(self, key: Hashable, now: float) -> None:
        count = self.count(key, now) + 1
        self._rows.pop(key, None)
        doublings = min(count - self._free - 1, 30)
        delay = min(self._seconds_max, FIRST_SECONDS * 2**doublings) if doublings >= 0 else 0.0
        self._rows[key] = count, now, now + delay
        if len(self._rows) > KEPT_MAX:
            self._rows.popitem(last=False)

    def clear(self, key: Hashable) -> None:
        self._rows.pop(key, None)


class Penalties:
    """Of one broker's logins. `seconds_max`: the longest delay; 0 turns all delays off."""

    def __init__(self, seconds_max: float) -> None:
        self._addresses = _Failures(FREE_OF_ADDRESS, seconds_max)
        self._names = _Failures(FREE_OF_NAME, seconds_max)

    def __len__(self) -> int:
        return len(self._addresses) + len(self._names)

    def failures(self, address: str, now: float) -> int:
        """Consecutive failures of this address."""
        return self._addresses.count(address, now)

    def until(self, address: str, user: str) -> float:
        """When a login may be checked; in the past if it may be checked now."""
        return max(self._addresses.until(address), self._names.until((address, user[:NAME_MAX])))

    def suspects(self, address: str, user: str, now: float) -> bool:
        """Whether one more failure brings a delay."""
        return self._addresses.used_up(address, now) or self._names.used_up((address, user[:NAME_MAX]), now)

    def failed(self, address: str, user: str, now: float) -> None:
        self._addresses.add(address, now)
        self._names.add((address, user[:NAME_MAX]), now)

    def succeeded(self, address: str, user: str) -> None:
        self._addresses.clear(address)
        self._names.clear((address, user[:NAME_MAX]))
