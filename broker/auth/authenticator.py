"""Who a client is: the `Authenticator` of core/ports.py, over a password file or one password for everybody.

A wrong password and an unknown user fail with the same words and after the same work: an unknown user is
checked against a hash that nothing matches, with the parameters of the others.
"""

import base64
import os
from collections.abc import Mapping
from typing import Final, NoReturn

from broker.auth import password_file, verifier
from broker.auth.access import Credentials
from broker.auth.hashing import HASHER
from broker.auth.verifier import Verifier
from broker.core.errors import AuthenticationFailed

COUNTERS: Final[Mapping[str, str]] = {
    "logins": "Clients that gave the right credentials",
    "logins_anonymous": "Clients let in without credentials",
    "logins_certified": "Clients let in by their certificate, without a password",
    "logins_failed": "Clients refused for wrong or missing credentials",
    **verifier.COUNTERS,
}
EVERYBODY: Final = "fanlight"  # the user name of one who gives the password for everybody and no name


class PasswordAuthenticator:
    """Checks credentials. Make it in the event loop that uses it, and `close` it.

    Raises:
        PasswordFileError: from the constructor and from `reload`, which then changes nothing.
    """

    def __init__(
        self, credentials: Credentials, *, threads: int = 2, queue_max: int = 100, cache_max: int = 10_000
    ) -> None:
        self._verifier = Verifier(threads=threads, queue_max=queue_max, cache_max=cache_max)
        self._counts = dict.fromkeys(("logins", "logins_anonymous", "logins_certified", "logins_failed"), 0)
        self._credentials = Credentials()
        self._users: dict[str, str] = {}
        self._everybody = ""  # the hash of the password for everybody
        self._nobody = _unmatched("$argon2id$v=19$m=19456,t=2,p=1$")
        self.reload(credentials)

    def reload(self, credentials: Credentials | None = None) -> None:
        """Read the password file again, and take new credentials if they are given."""
        credentials = credentials or self._credentials
        file = credentials.password_file
        users = password_file.read(file) if file is not None else {}
        if credentials.password is None:
            self._everybody = ""
        elif credentials.password != self._credentials.password:
            # It is checked as slowly as the others: guessing it must not be faster.
            self._everybody = HASHER.hash(credentials.password)
        if users:
            self._nobody = _unmatched(next(iter(users.values())))
        self._users = users
        self._credentials = credentials

    @property
    def users(self) -> int:
        """How many users the password file has."""
        return len(self._users)

    async def authenticate(
        self, user: str | None, password: str | None, address: str, *, certified: str = ""
    ) -> str:
        """Return the user's name, "" for an anonymous client. Raises AuthenticationFailed.

        certified: whom the client's verified certificate is of. It stands for name and password, where no password
        is given; a password that is given is checked.
        """
        try:
            if certified and password is None:
                return self._certified(user, certified)
            return await self._authenticate(user, password, address)
        except AuthenticationFailed:
            self._counts["logins_failed"] += 1
            raise

    def _certified(self, user: str | None, certified: str) -> str:
        if user and user != certified:
            raise AuthenticationFailed(f"the certificate is of {certified!r}; for another user name, give its password")
        self._counts["logins_certified"] += 1
        return certified

    async def _authenticate(self, user: str | None, password: str | None, address: str) -> str:
        if user is None and password is None:
            if not self._credentials.anonymous_allowed:
                raise AuthenticationFailed("this broker wants a user name and a password")
            self._counts["logins_anonymous"] += 1
            return ""
        if not self._credentials.configured:
            raise AuthenticationFailed(
                "this broker has neither users nor a password to check credentials against; "
                "connect without any, or start it with a password file or FANLIGHT_PASSWORD"
            )
        name = user or (EVERYBODY if self._everybody else "")
        hash = self._everybody or self._users.get(name, self._nobody)
        if password is None or not await self._verifier.verify(hash, password, address):
            _fail()
        self._counts["logins"] += 1
        return name

    def counters(self) -> dict[str, int]:
        """Counts since the start, by the names of COUNTERS."""
        return {**self._counts, **self._verifier.counters()}

    async def close(self) -> None:
        await self._verifier.close()


def _fail() -> NoReturn:
    raise AuthenticationFailed("wrong user name or password")


def _unmatched(like: str) -> str:
    """A hash of nothing, with the parameters of `like`."""
    parameters = like.split("$")[:4]  # "", variant, version, costs
    salt, digest = (base64.b64encode(os.urandom(size)).decode().rstrip("=") for size in (16, 32))
    return "$".join([*parameters, salt, digest])
