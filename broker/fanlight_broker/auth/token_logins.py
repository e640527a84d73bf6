"""Logins by token: one check in a turn of the loop, and none before the penalties of its address and user are over.

    login --penalty--> waits, a bounded number --> the turn, first come, first served --> checked in the loop
                 ^------- penalized meanwhile ------------'

A check takes less than 0.2 ms, so it is made in the loop (docs/decisions/0022-identity.md). A flood of wrong tokens
from one address gets its penalty with the first ones, and the rest of it leaves the queue of the others.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fanlight_broker.auth.penalized import Penalized
from fanlight_broker.auth.verifier import Verifier
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.places import place_of

if TYPE_CHECKING:
    from fanlight_broker.auth.tokens import Tokens

COUNTERS: Final[Mapping[str, str]] = {
    "tokens_checked": "Tokens checked",
    "tokens_remembered": "Tokens accepted without a check because they were accepted before",
    "tokens_refused_busy": "Logins by token refused because too many waited after wrong credentials",
}


class TokenLogins:
    """verifier: has the penalties of addresses and users, which count for passwords, tokens and the hook alike"""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._turn = asyncio.Lock()
        self._penalized = Penalized(verifier)
        self._counts = dict.fromkeys(("tokens_checked", "tokens_remembered"), 0)

    async def identify(self, tokens: "Tokens", token: str, user: str | None, address: str) -> Identity:
        """Who a token is of. Raises AuthenticationFailed.

        user: the name that the client gives beside it; if there is one, it must be the token's.
        """
        place, name = place_of(address), user or tokens.claimed_user(token)
        while True:
            if self._verifier.delay(place, name) > 0:
                await self._penalized.wait_out(place, name)
            async with self._turn:
                if self._verifier.delay(place, name) > 0:
                    continue
                identity = self._check(tokens, token, user, place, name)
                await asyncio.sleep(0)
            return identity

    def _check(self, tokens: "Tokens", token: str, user: str | None, place: str, name: str) -> Identity:
        remembered = tokens.remembered(token)
        self._counts["tokens_checked" if remembered is None else "tokens_remembered"] += 1
        try:
            identity = tokens.check(token) if remembered is None else remembered
            if user and user != identity.user:
                raise AuthenticationFailed("the user name is not the one in the token")
        except AuthenticationFailed:
            self._verifier.note(place, name, good=False)
            raise
        self._verifier.note(place, name, good=True)
        return identity

    def counters(self) -> dict[str, int]:
        return {**self._counts, "tokens_refused_busy": self._penalized.refused}
