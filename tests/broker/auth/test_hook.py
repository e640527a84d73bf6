"""The HTTP hook, against a real HTTP server on the loopback: decisions, and failures of every kind."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from fanlight_broker.auth.breaker import FAILURES, Breaker
from fanlight_broker.auth.hook import NOT_TAKEN, OF_ADDRESS_MAX, UNAVAILABLE, Hook, HookRules, Question
from fanlight_broker.auth.penalties import FREE_OF_NAME
from fanlight_broker.auth.verifier import BUSY, Verifier
from fanlight_broker.core.errors import AuthenticationFailed

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
LONG = 600.0  # a test would hang before this is over


class Service:
    """Answers with what the test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = self.allow
        self.come = asyncio.Condition()
        self.over = asyncio.Event()

    async def allow(self, request: web.Request) -> web.Response:
        return web.json_response({"allow": True, "groups": ["ops"], "limits": {"connections": 3}})

    async def never(self, request: web.Request) -> web.StreamResponse:
        """No answer before the end of the test."""
        await self.over.wait()
        return web.Response(status=500)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.headers.append(dict(request.headers))
        async with self.come:
            self.come.notify_all()
        return await self.answer(request)

    async def has_come(self, count: int) -> None:
        async with self.come:
            await self.come.wait_for(lambda: len(self.asked) >= count)

    def says(self, found: object) -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.json_response(found)

        self.answer = answer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class World:
    def __init__(self, service: Service, url: str, stack: AsyncExitStack) -> None:
        self.service, self.url, self.clock, self._stack = service, url, Clock(), stack

    def hook(self, url: str = "", waiting: asyncio.Event | None = None, **rules: Any) -> Hook:
        """waiting: logins are delayed after failures, until this is set and the clock has gone on"""
        verifier = Verifier(
            threads=1, queue_max=1, cache_max=0, delay_seconds_max=0.0 if waiting is None else 2.0, clock=self.clock
        )
        if waiting is not None:
            async def wait_out(address: str, user: str) -> None:
                await waiting.wait()
                await asyncio.sleep(0)

            verifier.wait_out = wait_out  # type: ignore[method-assign]
        hook = Hook(HookRules(url or self.url, **{"timeout": LONG, **rules}), verifier, clock=self.clock)
        self._stack.push_async_callback(hook.close)
        self._stack.push_async_callback(verifier.close)
        return hook


@pytest.fixture
async def world() -> AsyncIterator[World]:
    service, app = Service(), web.Application()
    app.router.add_post("/auth", service.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    async with AsyncExitStack() as stack:
        yield World(service, f"http://127.0.0.1:{port}/auth", stack)
    service.over.set()
    await runner.cleanup()


def question(user: str | None = "alice", password: str | None = "wonder", **more: Any) -> Question:
    return Question(user, password, **{"client_id": "c", "address": "192.0.2.1", **more})


async def refused(attempt: Awaitable[object]) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await attempt
    return caught.value.text


async def test_the_service_is_told_what_is_known_and_its_answer_counts(world: World) -> None:
    hook = world.hook(token="of the broker")
    more = {"protocol": "mqtt", "listener": "mqtt_tls", "certificate": "device"}
    found = await hook.identify(question(**more))
    assert (found.user, found.groups, found.limits, found.verified) == ("alice", {"ops"}, {"connections": 3}, True)
    assert found.credential == hook.credential
    assert world.service.asked == [
        {"user": "alice", "password": "wonder", "client_id": "c", "address": "192.0.2.1", **more}
    ]
    assert world.service.headers[0]["Authorization"] == "Bearer of the broker"
    for secret in ("wonder", "of the broker"):
        assert secret not in repr(question()) + repr(hook.rules) + repr(found)


async def test_a_name_and_an_expiry_may_come_from_the_service(world: World) -> None:
    hook, expires = world.hook(), time.time() + 1000
    world.service.says({"allow": True, "user": "bob", "expires": expires, "new": 1})
    found = await hook.identify(question(None))
    assert (found.user, found.expires, found.groups) == ("bob", expires, frozenset())
    world.service.says({"allow": True, "expires": time.time() - 1})
    assert await refused(hook.identify(question("eve"))) == "wrong user name or password"


async def test_a_refusal_is_one(world: World) -> None:
    world.service.says({"allow": False})
    assert await refused(world.hook().identify(question())) == "wrong user name or password"


@pytest.mark.parametrize(
    "answer",
    [[], {}, {"allow": 1}, {"allow": "yes"}, {"allow": True, "groups": ["anonymous"]}, {"allow": True, "groups": "ops"},
     {"allow": True, "groups": {}}, {"allow": True, "groups": ""}, {"allow": True, "limits": []},
     {"allow": True, "limits": False}, {"allow": True, "limits": {"a": "b"}}, {"allow": True, "user": ""},
     {"allow": True, "user": 1},
     {"allow": True, "expires": "never"}, {"allow": True, "permissions": [{"effect": "allow"}]}],
)
async def test_an_answer_that_is_not_sound_refuses(world: World, answer: object) -> None:
    world.service.says(answer)
    hook = world.hook()
    assert await refused(hook.identify(question())) == UNAVAILABLE
    assert hook.counters()["hook_failures"] == 1


@pytest.mark.parametrize("user", [None, "", "a:b", " a", "#", "a\x00b"])
async def test_a_name_that_no_user_can_have_is_refused_and_does_not_count_as_a_failure(
    world: World, user: str | None
) -> None:
    hook = world.hook()
    for n in range(FAILURES + 1):
        assert await refused(hook.identify(question(user, f"{n}"))) == "wrong user name or password"
    assert (hook.counters()["hook_failures"], hook.gauges()["hook_broken"]) == (0, 0)


async def status(request: web.Request) -> web.StreamResponse:
    return web.json_response({"allow": True}, status=500)


async def redirect(request: web.Request) -> web.StreamResponse:
    raise web.HTTPTemporaryRedirect(str(request.url))


async def no_json(request: web.Request) -> web.StreamResponse:
    return web.Response(text='{"allow": true')


async def deep(request: web.Request) -> web.StreamResponse:
    return web.Response(text="[" * 60_000)


async def large(request: web.Request) -> web.StreamResponse:
    return web.Response(body=json.dumps({"allow": True, "x": "x" * 70_000}).encode())


async def bomb(request: web.Request) -> web.StreamResponse:
    response = web.Response(body=json.dumps({"allow": True, "x": "x" * 10_000_000}).encode())
    response.enable_compression(web.ContentCoding.gzip)
    return response


async def cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b'{"allow": true}')
    assert request.transport is not None
    request.transport.abort()
    return response


@pytest.mark.parametrize("answer", [status, redirect, no_json, deep, large, bomb, cut])
async def test_a_service_that_fails_lets_nobody_in_and_nothing_is_remembered(world: World, answer: Answer) -> None:
    world.service.answer = answer
    hook = world.hook()
    assert await refused(hook.identify(question())) == UNAVAILABLE
    assert len(world.service.asked) == 1
    world.service.answer = world.service.allow
    assert (await hook.identify(question())).user == "alice"


async def test_a_service_that_is_not_there_or_too_slow_lets_nobody_in(world: World) -> None:
    assert await refused(world.hook("http://127.0.0.1:1/auth").identify(question())) == UNAVAILABLE

    world.service.answer = world.service.never
    hook = world.hook(timeout=0.05)
    assert await refused(hook.identify(question())) == UNAVAILABLE
    assert hook.gauges()["hook_in_flight"] == 0


async def test_decisions_are_remembered_for_their_time(world: World) -> None:
    hook = world.hook(cache_seconds=60.0)
    for _ in range(3):
        await hook.identify(question())
    assert len(world.service.asked) == 1
    for other in ({"user": "bob"}, {"password": "x"}, {"client_id": "d"}, {"address": "192.0.2.9"}, {"password": None}):
        await hook.identify(question(**other))
    assert len(world.service.asked) == 6
    world.clock.now += 59
    await hook.identify(question())
    assert len(world.service.asked) == 6
    world.clock.now += 2
    await hook.identify(question())
    assert len(world.service.asked) == 7
    world.service.says({"allow": False})
    for _ in range(2):
        await refused(hook.identify(question("eve")))
    assert len(world.service.asked) == 8
    world.clock.now += 6
    await refused(hook.identify(question("eve")))
    assert len(world.service.asked) == 9
    assert hook.counters()["hook_remembered"] == 4


async def test_the_cache_is_bounded_and_a_reload_empties_it(world: World) -> None:
    hook = world.hook(cache_max=2)
    for user in ("a", "b", "c", "b", "c", "a"):
        await hook.identify(question(user))
    assert len(world.service.asked) == 4
    hook.use(hook.rules)
    await hook.identify(question("a"))
    assert len(world.service.asked) == 5


def late_answers(world: World) -> asyncio.Event:
    """The service allows, but not before this is set."""
    go_on = asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        await go_on.wait()
        return await world.service.allow(request)

    world.service.answer = late
    return go_on


async def test_equal_questions_are_asked_once_and_one_may_give_up(world: World) -> None:
    go_on = late_answers(world)
    hook = world.hook()
    logins = [asyncio.ensure_future(hook.identify(question())) for _ in range(3)]
    await world.service.has_come(1)
    logins[0].cancel()
    go_on.set()
    assert [login.user for login in await asyncio.gather(*logins[1:])] == ["alice", "alice"]
    assert len(world.service.asked) == 1


async def test_an_answer_that_comes_after_a_reload_is_not_remembered(world: World) -> None:
    go_on = late_answers(world)
    hook = world.hook()
    login = asyncio.ensure_future(hook.identify(question()))
    await world.service.has_come(1)
    hook.use(hook.rules)
    go_on.set()
    assert (await login).user == "alice"
    await hook.identify(question())
    assert len(world.service.asked) == 2


async def test_what_is_under_way_is_bounded_in_all_and_for_each_address(world: World) -> None:
    go_on = late_answers(world)
    hook = world.hook(requests_max=8)
    logins = [asyncio.ensure_future(hook.identify(question(f"u{n}"))) for n in range(3)]
    logins += [asyncio.ensure_future(hook.identify(question(f"u{n}", address=f"198.51.100.{n}"))) for n in range(7)]
    await world.service.has_come(8)
    refusals = [login for login in logins if login.done()]
    assert logins[2] in refusals  # a quarter of the places is for one address
    assert [await refused(login) for login in refusals] == [BUSY, BUSY]
    assert hook.counters()["hook_refused_busy"] == 2
    assert hook.gauges()["hook_in_flight"] == 8
    go_on.set()
    assert len(await asyncio.gather(*(login for login in logins if login not in refusals))) == 8


async def test_after_failures_in_a_row_the_service_is_left_alone_and_then_tried_by_one(world: World) -> None:
    world.service.answer = status
    hook = world.hook()
    for n in range(FAILURES):
        assert await refused(hook.identify(question(address=f"192.0.2.{n}"))) == UNAVAILABLE
    assert hook.gauges()["hook_broken"] == 1
    world.service.answer = world.service.allow
    assert await refused(hook.identify(question())) == UNAVAILABLE
    assert len(world.service.asked) == FAILURES
    assert hook.counters()["hook_refused_broken"] == 1
    world.clock.now += 1.1
    assert (await hook.identify(question())).user == "alice"
    assert hook.gauges()["hook_broken"] == 0


async def test_whoever_finds_a_question_that_the_service_fails_on_does_not_close_it_for_others(world: World) -> None:
    hook = world.hook()
    world.service.answer = status
    for n in range(2 * FAILURES):
        assert await refused(hook.identify(question(f"u{n}"))) == UNAVAILABLE
    assert hook.gauges()["hook_broken"] == 0
    world.service.answer = world.service.allow
    assert (await hook.identify(question(address="192.0.2.2"))).user == "alice"


@pytest.mark.parametrize("code", sorted(NOT_TAKEN))
async def test_a_question_that_the_service_does_not_take_is_a_refusal(world: World, code: int) -> None:
    async def not_taken(request: web.Request) -> web.StreamResponse:
        return web.json_response({"allow": True}, status=code)

    world.service.answer = not_taken
    hook = world.hook()
    for n in range(FAILURES + 1):
        said = await refused(hook.identify(question(None, address=f"192.0.2.{n}")))
        assert said == "wrong user name or password"
    assert (hook.gauges()["hook_broken"], hook.counters()["hook_failures"]) == (0, FAILURES + 1)


async def test_logins_of_one_address_leave_connections_to_others(world: World) -> None:
    go_on = late_answers(world)
    hook = world.hook()
    many = [asyncio.ensure_future(hook.identify(question(f"u{n}"))) for n in range(OF_ADDRESS_MAX + 3)]
    await world.service.has_come(OF_ADDRESS_MAX)
    many.append(asyncio.ensure_future(hook.identify(question(address="192.0.2.2"))))
    await world.service.has_come(OF_ADDRESS_MAX + 1)
    assert world.service.asked[-1]["address"] == "192.0.2.2"
    go_on.set()
    assert len(await asyncio.gather(*many)) == len(world.service.asked) == OF_ADDRESS_MAX + 4
    assert hook.gauges()["hook_in_flight"] == 0


async def penalized(hook: Hook, world: World, address: str) -> None:
    world.service.says({"allow": False})
    for n in range(FREE_OF_NAME + 1):
        await refused(hook.identify(question("eve", f"{n}", address=address)))


async def test_penalized_logins_do_not_take_the_places_of_others(world: World) -> None:
    hook = world.hook(waiting=asyncio.Event(), requests_max=4)
    addresses = [f"198.51.100.{n}" for n in range(5)]
    for address in addresses:
        await penalized(hook, world, address)
    waiting = [
        asyncio.ensure_future(hook.identify(question("eve", "again", address=address))) for address in addresses
    ]
    await asyncio.sleep(0)
    world.service.answer = world.service.allow
    assert (await hook.identify(question())).user == "alice"
    for login in waiting:
        login.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_of_penalized_logins_that_waited_together_one_is_asked_about(world: World) -> None:
    over = asyncio.Event()
    hook = world.hook(waiting=over)
    await penalized(hook, world, "192.0.2.1")
    before = len(world.service.asked)
    guesses = [asyncio.ensure_future(hook.identify(question("eve", f"guess {n}"))) for n in range(3)]
    for count in (1, 2, 3):
        world.clock.now += 3
        over.set()
        await world.service.has_come(before + count)
        over.clear()
        assert await refused(next(asyncio.as_completed([guess for guess in guesses if not guess.done()])))
        assert len(world.service.asked) == before + count
        assert sum(guess.done() for guess in guesses) == count
    assert hook.gauges()["hook_in_flight"] == 0


def test_a_breaker_counts_answers_once_for_each_asker() -> None:
    breaker = Breaker()
    for _ in range(3):
        for asker in ("a", "b", "c", "d"):
            assert not breaker.failed(0.0, asker)
    assert breaker.failed(0.0, "e")
    assert breaker.admits(1.0)
    assert not breaker.failed(1.0, "e")  # which says nothing new
    assert breaker.admits(1.0)
    breaker.succeeded()
    assert not breaker.failed(1.0, "a")


def test_a_breaker_waits_longer_after_each_try_and_admits_one() -> None:
    breaker, now, waits = Breaker(), 0.0, []
    for _ in range(FAILURES):
        assert breaker.admits(now)
        breaker.failed(now)
    for _ in range(8):
        before = now
        while not breaker.admits(now):
            now += 0.5
        waits.append(now - before)
        assert not breaker.admits(now)  # one at a time
        assert not breaker.failed(now)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    breaker.given_up()
    now += 30
    assert breaker.admits(now)
    breaker.given_up()
    assert breaker.admits(now)
    breaker.succeeded()
    assert breaker.admits(now)
    assert not breaker.open


async def test_an_end_cancels_what_is_under_way(world: World) -> None:
    world.service.answer = world.service.never
    hook = world.hook()
    login = asyncio.ensure_future(hook.identify(question()))
    await world.service.has_come(1)
    await hook.close()
    with pytest.raises(asyncio.CancelledError):
        await login
