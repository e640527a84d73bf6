"""Logins that wait for the end of a penalty before they are checked: a bounded number, in all and of one address.

They have places of their own, so that whoever is penalized does not take those of others.
"""

from collections import Counter
from typing import Final

from fanlight_broker.auth.verifier import BUSY, Verifier
from fanlight_broker.core.errors import AuthenticationFailed

WAITING_MAX: Final = 400  # each for some seconds at most
WAITING_OF_ADDRESS_MAX: Final = 100


class Penalized:
    def __init__(self, verifier: Verifier) -> None:
        self.refused = 0  # because too many waited
        self._verifier = verifier
        self._waiting: Counter[str] = Counter()  # by address

    def __len__(self) -> int:
        return self._waiting.total()

    async def wait_out(self, place: str, name: str) -> None:
        """Another penalty may have begun meanwhile. Raises AuthenticationFailed if too many wait."""
        if len(self) >= WAITING_MAX or self._waiting[place] >= WAITING_OF_ADDRESS_MAX:
            self.refused += 1
            raise AuthenticationFailed(BUSY)
        self._waiting[place] += 1
        try:
            await self._verifier.wait_out(place, name)
        finally:
            self._waiting[place] -= 1
            if not self._waiting[place]:
                del self._waiting[place]
