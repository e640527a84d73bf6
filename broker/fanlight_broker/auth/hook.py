"""The HTTP hook: a service that decides who a client is. `auth_url` gets a JSON object by POST and answers with one.

    --> {"user": "alice", "password": "...", "client_id": "c1", "address": "192.0.2.7", "protocol": "mqtt",
         "listener": "mqtt_tls", "certificate": ""}
    <-- {"allow": true, "groups": ["ops"], "limits": {"connections": 10}, "expires": 1800000000}

All is bounded: requests under way, in all and of one address; the time of each; the size of an answer; the cache.
Whatever is no sound answer refuses the client, and after some of those in a row the service is left alone for a while.
Equal questions that come together are asked once. Logins that are penalized wait elsewhere, and are asked about one
after the other.
"""

import asyncio
import json
import os
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import event_log
from fanlight_broker.auth.breaker import Breaker
from fanlight_broker.auth.password_file import why_not_a_user
from fanlight_broker.auth.penalized import Penalized
from fanlight_broker.auth.users import permissions_of, why_not_groups, why_not_limits
from fanlight_broker.auth.verifier import BUSY, Verifier
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.places import place_of

if TYPE_CHECKING:
    import aiohttp

COUNTERS: Final[Mapping[str, str]] = {
    "hook_requests": "Requests sent to auth_url",
    "hook_failures": "Requests to auth_url without a sound answer in time; the client was refused",
    "hook_remembered": "Logins decided by an earlier answer of auth_url",
    "hook_refused_busy": "Logins refused because too many requests to auth_url were under way (auth_requests_max)",
    "hook_refused_broken": "Logins refused without a request, because auth_url had failed several times in a row",
}
GAUGES: Final[Mapping[str, str]] = {
    "hook_in_flight": "Logins that wait for auth_url",
    "hook_broken": "1 while auth_url counts as out of order",
}
ANSWER_BYTES_MAX: Final = 64 * 1024
CONNECTIONS_MAX: Final = 64
OF_ADDRESS_MAX: Final = 16  # of these; more of an address wait, so that others find a connection
NOT_TAKEN: Final = frozenset({400, 413, 422, 431})  # the service does not take what the client has given
DOWN: Final = frozenset({502, 503, 504})  # it is a proxy that has answered
REFUSAL_SECONDS_MAX: Final = 5.0  # a refusal is remembered for this long at most: a user may have been added
UNAVAILABLE: Final = "the authentication service does not answer; try again later"

_log = event_log.get("auth")


@dataclass(frozen=True, slots=True)
class HookRules:
    """The settings of the hook."""

    url: str = field(repr=False)
    timeout: float = 3.0  # seconds
    requests_max: int = 400
    cache_max: int = 10_000
    cache_seconds: float = 60.0
    token: str | None = field(default=None, repr=False)  # by which the service knows the broker


@dataclass(frozen=True, slots=True)
class Question:
    """What the service is asked."""

    user: str | None
    password: str | None = field(repr=False)
    client_id: str = ""
    address: str = ""
    protocol: str = ""
    listener: str = ""
    certificate: str = ""


class _Failure(Exception):
    """There is no sound answer. The text is for the log, and has nothing of the question or the answer."""


class _Unsound(_Failure):
    """There is an answer, and it is not sound: what was asked may be the reason."""


class _NotTaken(_Failure):
    """The service works, and does not take what it was asked."""


class Hook:
    """Asks the service. Made in the loop that uses it, and must be closed.

    verifier           has the penalties of addresses and users, which count for the hook as well
    clock, wall_clock  default: the loop's, and the wall's
    """

    def __init__(
        self, rules: HookRules, verifier: Verifier, *, clock: Callable[[], float] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.rules = rules
        self._verifier = verifier
        self._penalized = Penalized(verifier)
        self._clock = clock or asyncio.get_running_loop().time
        self._wall_clock = wall_clock
        self._breaker = Breaker()
        self._session: aiohttp.ClientSession | None = None
        self._key = os.urandom(32)
        self._cache: OrderedDict[bytes, tuple[float, Identity | None]] = OrderedDict()  # until when; oldest first
        self._asked: dict[bytes, asyncio.Task[Identity | None]] = {}
        self._tasks: set[asyncio.Task[Identity | None]] = set()  # these, and those from before a reload
        self._waiting: Counter[str] = Counter()  # logins that are asked about, by address
        self._turns: dict[str, asyncio.Semaphore] = {}  # of those, by address
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._closed = False

    @property
    def credential(self) -> str:
        """Of those whom it lets in."""
        return "hook " + blake2b(self.rules.url.encode(), digest_size=16).hexdigest()

    def use(self, rules: HookRules) -> None:
        """Apply new settings, and forget all answers."""
        self.rules, self._breaker = rules, Breaker()
        self._cache.clear()
        self._asked = {}  # what is under way is answered, and not remembered

    async def identify(self, question: Question) -> Identity:
        """Raises AuthenticationFailed."""
        key = self._key_of(question)
        if (found := self._remembered(key)) is not None:
            self._counts["hook_remembered"] += 1
            return _allowed(found[0])
        address, user = place_of(question.address), question.user or ""
        while True:
            while self._verifier.delay(address, user) > 0:
                await self._penalized.wait_out(address, user)
            async with self._place(address):
                if self._verifier.delay(address, user) > 0:
                    continue  # penalized meanwhile
                charged = self._verifier.suspects(address, user)
                if charged:  # as if it had failed, until its answer is there: of those that come together one goes on
                    self._verifier.note(address, user, good=False)
                identity = await self._answer(key, question)
            break
        if identity is not None or not charged:
            self._verifier.note(address, user, good=identity is not None)
        return _allowed(identity)

    @asynccontextmanager
    async def _place(self, address: str) -> AsyncIterator[None]:
        """A login that the service may be asked about now. Raises AuthenticationFailed if they are too many."""
        places = self.rules.requests_max
        if self._closed or self._waiting.total() >= places or self._waiting[address] >= max(1, places // 4):
            self._counts["hook_refused_busy"] += 1
            raise AuthenticationFailed(BUSY)
        turn = self._turns.setdefault(address, asyncio.Semaphore(OF_ADDRESS_MAX))
        self._waiting[address] += 1
        try:
            async with turn:
                yield
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address], self._turns[address]

    async def _answer(self, key: bytes, question: Question) -> Identity | None:
        task = self._asked.get(key)
        if task is None:
            if not self._breaker.admits(self._clock()):
                self._counts["hook_refused_broken"] += 1
                raise AuthenticationFailed(UNAVAILABLE)
            task = asyncio.get_running_loop().create_task(self._ask(key, question))
            self._asked[key] = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        # Shielded: a client that gives up must not cancel the request for others with the same question.
        return await asyncio.shield(task)

    async def _ask(self, key: bytes, question: Question) -> Identity | None:
        """None: refused. Raises AuthenticationFailed if there is no sound answer."""
        rules, breaker, asked = self.rules, self._breaker, self._asked
        self._counts["hook_requests"] += 1
        try:
            identity = self._identity(question, await self._post(rules, question))
        except _NotTaken as failure:
            self._counts["hook_failures"] += 1
            breaker.given_up()
            _log.warning("hook_failed", reason=str(failure), advice="auth_url is to answer a login with status 200")
            return None
        except _Failure as failure:
            self._counts["hook_failures"] += 1
            asker = place_of(question.address) if isinstance(failure, _Unsound) else ""
            if asker:
                self._verifier.note(asker, question.user or "", good=False)
            if breaker.failed(self._clock(), asker):
                _log.error("hook_broken", reason=str(failure), advice="logins by auth_url are refused until it answers")
            else:
                _log.warning("hook_failed", reason=str(failure))
            raise AuthenticationFailed(UNAVAILABLE) from None
        except BaseException:
            breaker.given_up()
            raise
        finally:
            if asked.get(key) is asyncio.current_task():
                del asked[key]
        if breaker.open:
            _log.info("hook_works")
        breaker.succeeded()
        if asked is self._asked:
            self._remember(key, identity)
        return identity

    async def _post(self, rules: HookRules, question: Question) -> Any:
        """The JSON of the answer. Raises _Failure."""
        import aiohttp  # for those who have a hook

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX), cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # a few bytes could become many
            )
        fields = ("user", "password", "client_id", "address", "protocol", "listener", "certificate")
        body = json.dumps(dict(zip(fields, astuple(question), strict=True))).encode()
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if rules.token is not None:
            headers["Authorization"] = f"Bearer {rules.token}"
        try:
            async with self._session.post(
                rules.url, data=body, headers=headers, allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=rules.timeout),
            ) as answer:
                if answer.status != 200:
                    kind = _NotTaken if answer.status in NOT_TAKEN else _Failure if answer.status in DOWN else _Unsound
                    raise kind(f"status {answer.status}")
                octets = b""
                async for piece in answer.content.iter_any():
                    octets += piece
                    if len(octets) > ANSWER_BYTES_MAX:
                        raise _Unsound(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        except TimeoutError:
            raise _Failure(f"no answer within {rules.timeout:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _Failure(type(error).__name__) from None
        try:
            return json.loads(octets)
        except (ValueError, RecursionError):
            raise _Unsound("the answer is not JSON") from None

    def _identity(self, question: Question, answer: Any) -> Identity | None:
        """Who the client is by an answer; None if it is refused. Raises _Failure."""
        if not isinstance(answer, dict) or not isinstance(answer.get("allow"), bool):
            raise _Unsound('the answer has no "allow": true or false')
        if not answer["allow"]:
            return None
        user = answer.get("user")
        if user is None:
            user = question.user or ""
            if why_not_a_user(user):  # the client's fault: it must not open the circuit for others
                return None
        elif not isinstance(user, str) or why_not_a_user(user):
            raise _Unsound("the answer has a user name that is not allowed")
        groups, limits, expires = answer.get("groups"), answer.get("limits"), answer.get("expires")
        groups, limits = [] if groups is None else groups, {} if limits is None else limits
        if reason := why_not_groups(groups) or why_not_limits(limits):
            raise _Unsound(f"the answer is not sound: {reason}")
        try:
            permissions = permissions_of(answer.get("permissions"))
        except ValueError as error:
            raise _Unsound(f"the answer is not sound: {error}") from None
        if expires is not None:
            if not isinstance(expires, (int, float)) or isinstance(expires, bool) or not 0 < expires < 1e12:
                raise _Unsound("the answer is not sound: expires must be seconds since 1970")
            if expires <= self._wall_clock():
                return None
        return Identity(
            user, verified=True, credential=self.credential, groups=frozenset(groups), limits=limits,
            permissions=permissions, expires=expires,
        )

    # -- the cache --------------------------------------------------------------------------------------------------

    def _key_of(self, question: Question) -> bytes:
        # Keyed, so that memory has no hash that passwords could be guessed by. The lengths separate the parts.
        parts = [(part or "").encode(errors="surrogatepass") for part in astuple(question)]
        parts.append(bytes((question.user is None, question.password is None)))
        text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return blake2b(text, key=self._key, digest_size=32).digest()

    def _remembered(self, key: bytes) -> tuple[Identity | None] | None:
        until, identity = self._cache.get(key, (0.0, None))
        if until <= self._clock():
            self._cache.pop(key, None)
            return None
        if identity is not None and identity.expires is not None and identity.expires <= self._wall_clock():
            return None
        return (identity,)

    def _remember(self, key: bytes, identity: Identity | None) -> None:
        seconds = self.rules.cache_seconds
        if identity is None:
            seconds = min(seconds, REFUSAL_SECONDS_MAX)
        if self.rules.cache_max and seconds:
            self._cache.pop(key, None)
            self._cache[key] = self._clock() + seconds, identity
            if len(self._cache) > self.rules.cache_max:
                self._cache.popitem(last=False)

    # -- inspection and end -----------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        refused = self._counts["hook_refused_busy"] + self._penalized.refused
        return {**self._counts, "hook_refused_busy": refused}

    def gauges(self) -> dict[str, float]:
        return {"hook_in_flight": self._waiting.total(), "hook_broken": float(self._breaker.open)}

    async def close(self) -> None:
        """Cancel what is under way."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()


def _allowed(identity: Identity | None) -> Identity:
    if identity is None:
        raise AuthenticationFailed("wrong user name or password")
    return identity
