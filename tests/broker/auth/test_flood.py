"""Floods of wrong logins, with threads and a clock in the test's hands: who is checked when, and at what cost."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from fanlight_broker.auth.penalties import FREE_OF_NAME
from fanlight_broker.auth.verifier import BUSY, Verifier
from fanlight_broker.core.errors import AuthenticationFailed

RIGHT = "right"
GOOD = "192.0.2.1"


class Threads(Executor):
    """Checks that stand still until the test lets them go on. The argon2 hash of `right` is what RIGHT matches."""

    def __init__(self) -> None:
        self.asked: list[tuple[Future[bool], str, str]] = []  # (answer, hash, password), in the order of their turns
        self.checked: list[tuple[str, str]] = []

    def submit(self, _: Callable[..., Any], /, hash: str, password: str) -> Future[Any]:  # type: ignore[override]
        answer: Future[bool] = Future()
        answer.set_running_or_notify_cancel()
        self.asked.append((answer, hash, password))
        return answer

    def check_one(self) -> tuple[str, str]:
        answer, hash, password = self.asked.pop(0)
        self.checked.append((hash, password))
        answer.set_result(password == RIGHT)
        return hash, password


class Clock:
    """`clock` and `call_later` of a Verifier."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> "Timer":
        self.timers.append((self.now + delay, callback))
        return Timer(self, self.timers[-1])

    def to_the_next_timer(self) -> float:
        """Returns how long that is."""
        timer = min(self.timers, key=lambda each: each[0])
        self.timers.remove(timer)
        before, self.now = self.now, timer[0]
        timer[1]()
        return self.now - before


class Timer:
    def __init__(self, clock: Clock, entry: tuple[float, Callable[[], None]]) -> None:
        self.clock, self.entry = clock, entry

    def cancel(self) -> None:
        if self.entry in self.clock.timers:
            self.clock.timers.remove(self.entry)


class Logins:
    """A Verifier, and what has been asked of it."""

    def __init__(self, **bounds: Any) -> None:
        self.threads, self.clock = Threads(), Clock()
        self.verifier = Verifier(
            **{"threads": 2, "queue_max": 100, "cache_max": 100, **bounds}, executor=self.threads, clock=self.clock,
            call_later=self.clock.call_later,
        )

    def ask(self, user: str, password: str, address: str, hash: str = "$hash") -> asyncio.Task[bool]:
        return asyncio.create_task(self.verifier.verify(user, hash, password, address))

    async def turn(self) -> None:
        for _ in range(10):  # an answer of a thread comes by a future, a task and a shield
            await asyncio.sleep(0)

    async def check(self, count: int = 1) -> int:
        """Let up to so many checks be done, one after the other. Returns how many there were."""
        done = 0
        await self.turn()
        while done < count and self.threads.asked:
            self.threads.check_one()
            done += 1
            await self.turn()
        return done

    async def close(self) -> None:
        while self.threads.asked:
            self.threads.check_one()
        await self.verifier.close()


async def test_a_good_user_from_another_address_is_checked_in_its_turn_whatever_the_flood() -> None:
    logins = Logins()
    flood = [logins.ask(f"u{n}", f"wrong {n}", f"198.51.100.{n % 6}") for n in range(600)]
    await logins.turn()
    good = logins.ask("alice", RIGHT, GOOD)
    checks = 0
    while not good.done():
        checks += await logins.check()
    assert await good
    # The two that ran already, and one of each other address at most.
    assert checks <= 2 + 6 + 1
    refused = [each for each in flood if each.done() and str(each.exception()) == BUSY]
    assert len(refused) == logins.verifier.counters()["passwords_refused_busy"] == 600 - 102 + 1
    await logins.close()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_who_logged_in_lately_does_not_queue_at_all() -> None:
    logins = Logins()
    first = logins.ask("alice", RIGHT, GOOD)
    await logins.check()
    assert await first
    flood = [logins.ask(f"u{n}", f"wrong {n}", f"198.51.100.{n}") for n in range(200)]
    await logins.turn()
    checked = len(logins.threads.checked)
    assert await logins.ask("alice", RIGHT, "203.0.113.9")  # no check is let go on meanwhile
    assert len(logins.threads.checked) == checked
    await logins.close()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_known_and_unknown_users_are_checked_alike_and_share_nothing() -> None:
    """Each of these costs one argon2 run of its own, in its place: so no timing tells which of them exist."""
    known, nobody = "$hash of alice", "$hash of nobody"
    for users in (("bogus", "alice"), ("bogus", "also bogus"), ("alice", "bogus")):
        logins = Logins(threads=1)
        attempts = []
        for user in users:
            hash = known if user == "alice" else nobody
            attempts.append(logins.ask(user, "PW", "198.51.100.1", hash))
            attempts += [logins.ask(f"other{n}", f"{user} {n}", "198.51.100.1", nobody) for n in range(4)]
        assert await logins.check(100) == 10
        asked = [known if user == "alice" else nobody for user in users]
        assert [logins.threads.checked[0], logins.threads.checked[5]] == [(hash, "PW") for hash in asked]
        assert [await each for each in attempts] == [False] * 10
        await logins.close()


async def test_the_same_login_by_several_connections_is_checked_once() -> None:
    logins = Logins(threads=1)
    attempts = [logins.ask("alice", RIGHT, f"192.0.2.{n}") for n in range(50)]
    assert await logins.check(100) == 1
    assert await asyncio.gather(*attempts) == [True] * 50
    assert len(logins.verifier._queue) == 0
    await logins.close()


@pytest.mark.parametrize("exists", [True, False])
async def test_wrong_passwords_in_a_row_wait_longer_each_time_and_nobody_else_does(exists: bool) -> None:
    logins = Logins(delay_seconds_max=0.3)
    hash = "$hash of alice" if exists else "$hash of nobody"
    waits = []
    for number in range(FREE_OF_NAME + 5):
        attempt = logins.ask("alice", f"wrong {number}", "198.51.100.1", hash)
        await logins.turn()
        waited = 0.0
        while not await logins.check():
            waited += logins.clock.to_the_next_timer()
        assert not await attempt
        waits.append(round(waited, 1))
    assert waits == [0.0] * (FREE_OF_NAME + 1) + [0.1, 0.2, 0.3, 0.3]
    assert logins.verifier.counters()["passwords_delayed"] == 4
    for user, address in (("alice", GOOD), ("bob", "198.51.100.1")):  # alice elsewhere, another one there
        attempt = logins.ask(user, RIGHT, address, "$hash")
        assert await logins.check() == 1
        assert await attempt
    await logins.close()


async def test_who_gives_up_gives_its_place_back() -> None:
    logins = Logins(threads=1, queue_max=3)
    first = logins.ask("u", "running", "198.51.100.1")
    gone = [logins.ask("u", f"{n}", f"198.51.100.{n + 2}") for n in range(3)]
    await logins.turn()
    assert logins.verifier.gauges()["passwords_waiting"] == 3
    for each in gone:
        each.cancel()
    await logins.turn()
    assert logins.verifier.gauges()["passwords_waiting"] == 0
    assert await logins.check(10) == 1  # what nobody waits for is not checked
    assert not await first
    await logins.close()


async def test_what_is_turned_away_hears_of_it_at_once() -> None:
    logins = Logins(threads=1, queue_max=7, cache_max=0)  # 8 places, 2 of one address
    flood = [logins.ask("u", f"{n}", f"198.51.100.{n // 2}") for n in range(8)]
    await logins.turn()
    good = logins.ask("alice", RIGHT, GOOD)
    await logins.turn()
    (turned_away,) = [each for each in flood if each.done()]
    with pytest.raises(AuthenticationFailed, match="too many logins"):
        await turned_away
    assert await logins.check(100) == 8
    assert await good
    assert not any([await each for each in flood if each is not turned_away])
    await logins.close()
