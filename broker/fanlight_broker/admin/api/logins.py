"""Logins by cookie, for pages: bounded in number and time, each with a token against forged requests (CSRF).

A cookie is sent by the browser whatever page asks for it, so a write by cookie must carry the login's second secret in
a header, which only the broker's own page can know. Of the cookie only a digest is kept.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from fanlight_broker.core.identity import Identity

COOKIE: Final = "fanlight_session"
CSRF_HEADER: Final = "X-CSRF-Token"
LOGINS_MAX: Final = 256
OF_ONE_MAX: Final = 16  # of one user
SECONDS: Final = 12 * 3600.0
IDLE_SECONDS: Final = 1800.0
SECRET_BYTES: Final = 32


@dataclass(slots=True)
class Login:
    identity: Identity
    csrf: str
    began: float
    used: float

    def over(self, now: float, wall: float) -> bool:
        return self.seconds_left(now, wall) <= 0

    def seconds_left(self, now: float, wall: float) -> float:
        """wall: the time in seconds since 1970, as the end of the credentials is."""
        left = min(self.began + SECONDS, self.used + IDLE_SECONDS) - now
        if self.identity.expires is not None:
            left = min(left, self.identity.expires - wall)
        return max(0.0, left)


class Logins:
    """stands: are the credentials of an identity still valid? wall_clock: seconds since 1970"""

    def __init__(
        self, stands: Callable[[Identity], bool], clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._stands, self._clock, self._wall_clock = stands, clock, wall_clock
        self._by_digest: dict[bytes, Login] = {}  # the oldest first
        self._key = secrets.token_bytes(SECRET_BYTES)

    def __len__(self) -> int:
        return len(self._by_digest)

    def begin(self, identity: Identity) -> tuple[str, Login]:
        """Returns the cookie's value. The oldest login goes if there are too many: of this user, or of all."""
        now, wall = self._clock(), self._wall_clock()
        for digest in [digest for digest, login in self._by_digest.items() if login.over(now, wall)]:
            del self._by_digest[digest]
        own = [digest for digest, login in self._by_digest.items() if login.identity.user == identity.user]
        if len(own) >= OF_ONE_MAX:
            del self._by_digest[own[0]]
        elif len(self._by_digest) >= LOGINS_MAX:
            del self._by_digest[next(iter(self._by_digest))]
        secret = secrets.token_urlsafe(SECRET_BYTES)
        login = Login(identity, self._csrf(secret), now, now)
        self._by_digest[digest_of(secret)] = login
        return secret, login

    def find(self, secret: str) -> Login | None:
        """The login of a cookie, which is used now; None if there is none, or not any more."""
        digest, now = digest_of(secret), self._clock()
        login = self._by_digest.get(digest)
        if login is None:
            return None
        if login.over(now, self._wall_clock()) or not self._stands(login.identity):
            del self._by_digest[digest]
            return None
        login.used = now
        return login

    def seconds_left(self, login: Login) -> float:
        return round(login.seconds_left(self._clock(), self._wall_clock()), 3)

    def end(self, secret: str) -> bool:
        return self._by_digest.pop(digest_of(secret), None) is not None

    def _csrf(self, secret: str) -> str:
        return hmac.digest(self._key, secret.encode(), "sha256").hex()


def digest_of(secret: str) -> bytes:
    return sha256(secret.encode(errors="surrogateescape")).digest()


def is_token(login: Login, given: str) -> bool:
    """Is this the token of the login?"""
    return hmac.compare_digest(login.csrf.encode(), given.encode(errors="surrogateescape"))
