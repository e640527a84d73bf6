"""Checking a password against an argon2 hash, which is made to be slow, without slowing anybody else.

It happens in a few threads (argon2 lets go of the interpreter lock). Logins that wait are bounded, in all and
by address, so that a flood of wrong passwords from one host leaves room for others. A success is remembered
under a keyed hash of password and argon2 hash, never the password: when ten thousand clients reconnect at
once, each is let in without 40 ms of work, and equal ones that come together share one check. A failure is
not remembered.
"""

import asyncio
import hashlib
import os
from collections import Counter, OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import argon2
import structlog

from broker.auth.hashing import matches
from broker.core.errors import AuthenticationFailed

COUNTERS: Final[Mapping[str, str]] = {
    "passwords_checked": "Passwords checked against an argon2 hash",
    "passwords_remembered": "Logins let in because the same one had succeeded before",
    "passwords_refused_busy": "Logins refused because too many were waiting (password_queue_max)",
}


_log = structlog.stdlib.get_logger("auth")


class Verifier:
    """Checks passwords; confined to one event loop, but for the threads that it keeps to itself."""

    def __init__(self, *, threads: int, queue_max: int, cache_max: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._waiting_max = threads + queue_max
        self._waiting_per_address_max = max(1, self._waiting_max // 4)
        self._cache_max = cache_max
        self._key = os.urandom(32)
        self._succeeded: OrderedDict[bytes, None] = OrderedDict()  # least recently used first
        self._running: dict[bytes, asyncio.Task[bool]] = {}
        self._addresses: Counter[str] = Counter()  # of what is running, who asked
        self._closed = False
        self._counts = dict.fromkeys(COUNTERS, 0)

    async def verify(self, hash: str, password: str, address: str) -> bool:
        """Whether `password` is the one of `hash`, asked by `address`.

        Raises:
            AuthenticationFailed: too many logins are waiting, so that this one was not looked at.
        """
        login = self._login(hash, password)
        if login in self._succeeded:
            self._succeeded.move_to_end(login)
            self._counts["passwords_remembered"] += 1
            return True
        if self._closed:
            raise AuthenticationFailed("the broker is stopping")
        task = self._running.get(login)
        if task is None:
            if (
                len(self._running) >= self._waiting_max
                or self._addresses[address] >= self._waiting_per_address_max
            ):
                self._counts["passwords_refused_busy"] += 1
                raise AuthenticationFailed("too many logins at once; try again in a second")
            task = asyncio.get_running_loop().create_task(self._check(login, hash, password))
            self._running[login] = task
            self._addresses[address] += 1
            task.add_done_callback(lambda _: self._done(login, address))
        # Shielded: one who gives up must not take the answer from others who gave the same password.
        return await asyncio.shield(task)

    async def _check(self, login: bytes, hash: str, password: str) -> bool:
        self._counts["passwords_checked"] += 1
        try:
            good = await asyncio.get_running_loop().run_in_executor(self._threads, matches, hash, password)
        except argon2.exceptions.Argon2Error as error:  # out of memory, most likely
            _log.error("password_not_checked", reason=str(error))
            raise AuthenticationFailed("the password could not be checked; see the broker's log") from error
        if good and self._cache_max:
            self._succeeded[login] = None
            if len(self._succeeded) > self._cache_max:
                self._succeeded.popitem(last=False)
        return good

    def _done(self, login: bytes, address: str) -> None:
        del self._running[login]
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def _login(self, hash: str, password: str) -> bytes:
        # The argon2 hash is part of it: a changed password is not let in by its old one.
        text = f"{hash}\0{password}".encode(errors="surrogatepass")
        return hashlib.blake2b(text, key=self._key, digest_size=32).digest()

    def counters(self) -> dict[str, int]:
        return dict(self._counts)

    async def close(self) -> None:
        """Give up what is waiting; what is being checked is waited for, some 40 ms."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
