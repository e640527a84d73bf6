"""Logins of several messages (ports.LoginExchange): what MQTT 5 calls enhanced authentication, and AMQP SASL."""

from collections.abc import Callable
from typing import Final

from fanlight_broker.auth.scram import ScramServer, decoy
from fanlight_broker.auth.scram_keys import ITERATIONS, ScramKeys
from fanlight_broker.auth.verifier import Verifier
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.places import place_of

FAILED: Final = "wrong user name or password"


class ScramExchange:
    """One login by SCRAM-SHA-256.

    asked      the user name that the client gave beside the exchange; None if it gave none
    keys       of a user; None for one that does not exist, or has no keys
    identity   of a user whose proof is right
    """

    def __init__(
        self, asked: str | None, address: str, *, keys: Callable[[str], ScramKeys | None],
        identity: Callable[[str], Identity], verifier: Verifier, decoy_key: bytes, iterations: int = ITERATIONS,
    ) -> None:
        self._asked, self._address = asked, address
        self._keys, self._identity, self._verifier = keys, identity, verifier
        self._server = ScramServer(lambda user: keys(user) or decoy(decoy_key, user, iterations))
        self._silent = False  # the client's first message was empty

    @property
    def user(self) -> str:
        """The name that was given, whether or not there is such a user."""
        return self._server.user or self._asked or ""

    def _first(self, data: bytes) -> bytes:
        try:
            answer = self._server.first(data)
            if self._asked and self._asked != self._server.user:
                raise AuthenticationFailed("the user name and the one in the exchange differ")
        except AuthenticationFailed:  # it takes no time to check, and delays later ones as a wrong proof does
            self._verifier.note(place_of(self._address), self.user, good=False)
            raise
        return answer

    async def step(self, data: bytes | None) -> tuple[bytes | None, Identity | None]:
        server = self._server
        if server.keys is None:
            if not data and not self._silent:
                self._silent = True
                return b"", None
            return self._first(data or b""), None
        final = data or b""
        # In the queue of all logins, where each address has its turn and waits after wrong proofs.
        if not await self._verifier.prove(server.user, self._address, lambda: server.final(final)):
            raise AuthenticationFailed(FAILED)
        if self._keys(server.user) != server.keys:  # a decoy, or the password was changed meanwhile
            raise AuthenticationFailed(FAILED)
        return server.done(), self._identity(server.user)
