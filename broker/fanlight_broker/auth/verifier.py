"""Checking a password against an argon2 hash, which is slow by design, without delaying other clients.

    login --remembered--> accepted immediately
          --otherwise---> FairQueue (by address, in turn, behind its penalty) --> a thread --> right or wrong

A few threads do the checks (argon2 releases the GIL). The number of waiting logins is bounded, and addresses take
turns, so that a flood of wrong passwords does not keep other clients out; repeated failures wait longer each time
(penalties.py). A success is remembered under a keyed hash of user, password and argon2 hash, never as the password:
when ten thousand clients reconnect together, each is accepted without 40 ms of work, however many logins wait. Equal
concurrent logins share one check. A failure is not remembered.

The user's name is part of the key: all unknown users have the same hash, so with hash and password alone they would
share a check, and their fast answers would show which users exist.
"""

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from fanlight_broker import event_log
from fanlight_broker.auth.fair_queue import FairQueue, QueuedLogin
from fanlight_broker.auth.hashing import HashingError, matches
from fanlight_broker.auth.penalties import Penalties
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.places import place_of

COUNTERS: Final[Mapping[str, str]] = {
    "passwords_checked": "Passwords checked against an argon2 hash",
    "passwords_remembered": "Logins accepted because the same login had succeeded before",
    "passwords_refused_busy": "Logins refused because too many were waiting (password_queue_max)",
    "passwords_delayed": "Logins delayed because of earlier wrong credentials (password_delay_seconds_max)",
}
GAUGES: Final[Mapping[str, str]] = {
    "passwords_waiting": "Logins waiting to be checked",
    "passwords_penalties": "Addresses, and user names from an address, whose wrong credentials are remembered",
}
BUSY: Final = "too many logins at once; try again in a second"

_log = event_log.get("auth")


@dataclass(frozen=True, slots=True)
class _Work:
    """What shows whether a user is who it says it is: `function(*arguments)`, in a thread."""

    user: str
    function: Callable[..., bool] = field(repr=False)
    arguments: tuple[str, ...] = field(default=(), repr=False)
    hash: str = field(default="", repr=False)  # "" for one whose success is not remembered


@dataclass(eq=False, slots=True)
class _Check:
    """One login to check: the answer that clients wait for, and its places in the queue."""

    work: _Work
    answer: asyncio.Future[bool]
    places: dict[str, QueuedLogin] = field(default_factory=dict)  # by address
    askers: int = 0
    task: asyncio.Task[None] | None = None  # once the check has begun


class Verifier:
    """Checks passwords. Used from one event loop only; it has threads of its own.

    executor, clock, call_later  default: threads of its own, and the loop's clock and timers
    """

    def __init__(
        self, *, threads: int, queue_max: int, cache_max: int, delay_seconds_max: float = 2.0,
        executor: Executor | None = None, clock: Callable[[], float] | None = None,
        call_later: Callable[[float, Callable[[], None]], Any] | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._threads = executor or ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._free = threads
        self._clock = clock or loop.time
        self._call_later = call_later or loop.call_later
        self._penalties = Penalties(delay_seconds_max)
        places = threads + queue_max
        self._queue = FairQueue(self._penalties, places, max(1, places // 4))
        self._cache_max = cache_max
        self._key = os.urandom(32)
        self._succeeded: OrderedDict[bytes, tuple[str, str]] = OrderedDict()  # user and hash; least recent first
        self._checks: dict[bytes, _Check] = {}
        self._timer: Any = None
        self._closed = False
        self._counts = dict.fromkeys(COUNTERS, 0)

    async def verify(self, user: str, hash: str, password: str, address: str) -> bool:
        """Whether `password` is the one of `hash`, for a client at `address`.

        Raises:
            AuthenticationFailed: too many logins are waiting; this one was not checked.
        """
        login = self._login(user, hash, password)
        if login in self._succeeded:
            self._succeeded.move_to_end(login)
            self._counts["passwords_remembered"] += 1
            return True
        return await self._wait(login, _Work(user, matches, (hash, password), hash), address)

    async def prove(self, user: str, address: str, work: Callable[[], bool]) -> bool:
        """Whether a client is the user, by a check of another kind. `work` runs in a thread, in this login's turn.

        Raises:
            AuthenticationFailed: as `verify` does, or raised by `work`, which counts as a failed login.
        """
        return await self._wait(os.urandom(16), _Work(user, work), address)

    async def _wait(self, login: bytes, work: _Work, address: str) -> bool:
        if self._closed:
            raise AuthenticationFailed("the broker is stopping")
        check = self._join(login, work, place_of(address))
        check.askers += 1
        try:
            # Shielded: a client that gives up must not cancel the check for others with the same login.
            return await asyncio.shield(check.answer)
        finally:
            check.askers -= 1
            if not check.askers and not check.answer.done() and check.task is None:
                self._give_up(login, check)

    def _join(self, login: bytes, work: _Work, address: str) -> _Check:
        """The check of a login, with a place for this address. Raises AuthenticationFailed if there is none."""
        now = self._clock()
        check = self._checks.get(login)
        if check is not None and (check.task is not None or address in check.places):
            return check
        place = QueuedLogin(address, work.user, login)
        there, loser = self._queue.join(place, now)
        if not there and check is None:
            self._counts["passwords_refused_busy"] += 1
            raise AuthenticationFailed(BUSY)
        if check is None:
            check = _Check(work, asyncio.get_running_loop().create_future())
            self._checks[login] = check
        if there:
            check.places[address] = place
            self._counts["passwords_delayed"] += self._penalties.until(address, work.user) > now
        if loser is not None:
            self._turn_away(loser)
        self._go_on()
        return check

    def _turn_away(self, loser: QueuedLogin) -> None:
        check = self._checks[loser.login]
        del check.places[loser.address]
        if not check.places:
            del self._checks[loser.login]
            self._counts["passwords_refused_busy"] += check.askers
            check.answer.set_exception(AuthenticationFailed(BUSY))

    def _give_up(self, login: bytes, check: _Check) -> None:
        """No client waits for the answer any more."""
        for place in check.places.values():
            self._queue.leave(place)
        del self._checks[login]
        check.answer.cancel()

    def _go_on(self) -> None:
        """Begin the checks that may begin, and set a timer for the end of the next penalty."""
        now = self._clock()
        while self._free and (place := self._queue.pop(now)) is not None:
            check = self._checks[place.login]
            del check.places[place.address]
            for other in check.places.values():  # one check answers all of them
                self._queue.leave(other)
            check.places.clear()
            self._free -= 1
            check.task = asyncio.get_running_loop().create_task(self._check(place, check))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._free and (at := self._queue.next_at()) < inf:
            self._timer = self._call_later(max(0.0, at - now), self._go_on)

    async def _check(self, place: QueuedLogin, check: _Check) -> None:
        self._counts["passwords_checked"] += bool(check.work.hash)
        try:
            good = await asyncio.get_running_loop().run_in_executor(
                self._threads, check.work.function, *check.work.arguments
            )
        except AuthenticationFailed as error:
            self._note(place, check, good=False)
            _answer(check, error)
        except HashingError as error:
            _log.error("password_not_checked", reason=str(error))
            _answer(check, AuthenticationFailed("the password could not be checked; see the broker's log"))
        else:
            self._note(place, check, good=good)
            _answer(check, good)
        finally:
            self._free += 1
            self._queue.done(place)
            del self._checks[place.login]
            if not check.answer.done():
                check.answer.cancel()
            if not self._closed:
                self._go_on()

    def _note(self, place: QueuedLogin, check: _Check, *, good: bool) -> None:
        self.note(place.address, place.user, good=good)
        if good and self._cache_max and check.work.hash:
            self._succeeded[place.login] = check.work.user, check.work.hash
            if len(self._succeeded) > self._cache_max:
                self._succeeded.popitem(last=False)

    def _login(self, user: str, hash: str, password: str) -> bytes:
        # The argon2 hash is part of it, so that an old password is not accepted after a change. The lengths separate
        # the parts, because a password may contain anything.
        parts = [part.encode(errors="surrogatepass") for part in (user, hash, password)]
        text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hashlib.blake2b(text, key=self._key, digest_size=32).digest()

    def delay(self, address: str, user: str) -> float:
        """Seconds until a login may be checked; not above 0: now. `address`: see places.place_of."""
        return self._penalties.until(address, user) - self._clock()

    def suspects(self, address: str, user: str) -> bool:
        """Whether one more failure brings a delay."""
        return self._penalties.suspects(address, user, self._clock())

    async def wait_out(self, address: str, user: str) -> None:
        """Wait until the penalty of a login is over that is checked elsewhere. `address`: see places.place_of."""
        delay = self.delay(address, user)
        if delay > 0:
            self._counts["passwords_delayed"] += 1
            await asyncio.sleep(delay)

    def note(self, address: str, user: str, *, good: bool) -> None:
        """The outcome of a login that was checked elsewhere."""
        if good:
            self._penalties.succeeded(address, user)
        else:
            self._penalties.failed(address, user, self._clock())

    def forget(self, outdated: Callable[[str, str], bool]) -> None:
        """Forget the successes of users whose hash is `outdated`."""
        for login in [login for login, (user, hash) in self._succeeded.items() if outdated(user, hash)]:
            del self._succeeded[login]

    def counters(self) -> dict[str, int]:
        return dict(self._counts)

    def gauges(self) -> dict[str, float]:
        return {"passwords_waiting": self._queue.waiting, "passwords_penalties": len(self._penalties)}

    async def close(self) -> None:
        """Cancel waiting logins, and wait for running checks, about 40 ms."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        checks = list(self._checks.items())
        running = [check.task for _, check in checks if check.task is not None]
        for login, check in checks:
            if check.task is None:
                self._give_up(login, check)
            else:
                check.task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for _, check in checks:
            check.answer.cancel()  # of a check that was cancelled before it began


def _answer(check: _Check, answer: bool | Exception) -> None:
    if check.answer.done():
        return
    if isinstance(answer, bool):
        check.answer.set_result(answer)
    elif check.askers:
        check.answer.set_exception(answer)
