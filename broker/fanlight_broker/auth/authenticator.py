"""Who a client is: the `Authenticator` of core/ports.py, over a users file, a password file or one password for
everybody.

A wrong password and an unknown user fail with the same words and after the same work: an unknown user is
checked against a hash that nothing matches, with the parameters of the others.

What happens to credentials, by what the broker has to check them against:

    client gives                  nothing        passwords, allow_anonymous    passwords
    nothing                       anonymous      anonymous                     refused
    a user name, no password      a label        a label                       refused
    "" and ""                     anonymous      anonymous                     checked
    a password                    a label        checked                       checked

A label is a user name that was not checked: its client is still anonymous (core/identity.py).
"""

import base64
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn

from fanlight_broker import audit
from fanlight_broker.auth import hook, password_file, token_logins, verifier
from fanlight_broker.auth.access import Credentials
from fanlight_broker.auth.exchanges import ScramExchange
from fanlight_broker.auth.files import never
from fanlight_broker.auth.hashing import hasher
from fanlight_broker.auth.hook import Hook, HookRules, Question
from fanlight_broker.auth.scram import MECHANISM
from fanlight_broker.auth.scram_keys import ITERATIONS, ScramKeys
from fanlight_broker.auth.token_logins import TokenLogins
from fanlight_broker.auth.users import User, Users
from fanlight_broker.auth.verifier import Verifier
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import ANONYMOUS, Identity
from fanlight_broker.core.ports import LoginExchange

if TYPE_CHECKING:
    from fanlight_broker.auth.tokens import Tokens

COUNTERS: Final[Mapping[str, str]] = {
    "logins": "Clients that gave the right credentials; HTTP requests are not among them",
    "logins_anonymous": "Clients admitted without credentials, or with credentials that were not checked",
    "logins_certified": "Clients admitted by their certificate, without a password",
    "logins_failed": "Clients and HTTP requests refused for wrong or missing credentials",
    **verifier.COUNTERS,
    **token_logins.COUNTERS,
    **hook.COUNTERS,
}
GAUGES: Final[Mapping[str, str]] = {**verifier.GAUGES, **hook.GAUGES}
HOW: Final = {"logins": "credentials", "logins_anonymous": "anonymous", "logins_certified": "certificate"}
LABELS_MAX: Final = 256  # user names that nothing was checked against, whose identities are kept
EVERYBODY: Final = "fanlight"  # the user name of a client that gives the password for everybody and no name
_TOKEN: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", re.ASCII)
CERTIFICATE: Final = "certificate"  # the credential of a client admitted by its certificate; no hash is equal to it


class PasswordAuthenticator:
    """Checks credentials. It is made in the event loop that uses it, and must be closed.

    Raises:
        PasswordFileError: from the constructor and from `reload`, which then changes nothing.
    """

    def __init__(
        self, credentials: Credentials, *, threads: int = 2, queue_max: int = 100, cache_max: int = 10_000,
        delay_seconds_max: float = 2.0,
    ) -> None:
        self._verifier = Verifier(
            threads=threads, queue_max=queue_max, cache_max=cache_max, delay_seconds_max=delay_seconds_max
        )
        self._token_logins = TokenLogins(self._verifier)
        self._counts = dict.fromkeys(("logins", "logins_anonymous", "logins_certified", "logins_failed"), 0)
        self._credentials = Credentials()
        self._offers: frozenset[str] = frozenset()
        self._users: Mapping[str, User] = {}
        self._tokens: Tokens | None = None
        self._hook: Hook | None = None  # the one in use
        self._made_hook: Hook | None = None  # kept for its connections, and closed at the end
        self._decoy_key = os.urandom(32)
        self._iterations = ITERATIONS
        self._everybody = ""  # the hash of the password for everybody
        self._nobody = _unmatched(["$argon2id$v=19$m=19456,t=2,p=1$"])
        self.reload(credentials)

    def reload(self, credentials: Credentials | None = None) -> None:
        """Read the files again, and apply new credentials if they are given."""
        self.prepare(credentials or self._credentials)()

    def prepare(self, credentials: Credentials, pause: Callable[[], None] = never) -> Callable[[], None]:
        """Read what new credentials name, and change nothing. Returns what applies them, in the loop.

        It may run in a thread. pause: called now and then, every 1 ms or so. Raises PasswordFileError, TokenKeysError.
        """
        found, tokens = read_users(credentials, pause), read_tokens(credentials)
        users = found.users
        pause()
        counts = Counter(user.scram.iterations for user in users.values() if user.scram is not None)
        iterations = counts.most_common(1)[0][0] if counts else ITERATIONS  # unknown users have as many
        everybody = self._everybody if credentials.password is not None else ""
        if credentials.password is not None and credentials.password != self._credentials.password:
            # It is checked as slowly as the others: guessing it must not be faster.
            everybody = hasher().hash(credentials.password)
        nobody = _unmatched([user.password for user in users.values()]) or self._nobody

        def apply() -> None:
            self._credentials, self._users, self._offers = credentials, users, offers_of(credentials)
            self._everybody, self._nobody, self._tokens = everybody, nobody, tokens
            self._decoy_key = found.decoy_key or self._decoy_key
            self._iterations = iterations
            self._use_hook(credentials.hook)
            self._verifier.forget(lambda user, hash: self._hash_of(user) != hash)

        return apply

    def _use_hook(self, rules: HookRules | None) -> None:
        if rules is None:
            self._hook = None
            return
        if self._made_hook is None:
            self._made_hook = Hook(rules, self._verifier)
        else:
            self._made_hook.use(rules)
        self._hook = self._made_hook

    @property
    def users(self) -> int:
        """How many users the file has."""
        return len(self._users)

    async def authenticate(
        self, user: str | None, password: str | None, address: str, *, certified: str = "", counted: bool = True,
        client: str = "", protocol: str = "", listener: str = "",
    ) -> Identity:
        """Return who the client is. Raises AuthenticationFailed.

        counted: a client logs in; False for single requests.

        certified: the name in the client's verified certificate. It replaces name and password if no password is given;
        a password that is given is checked.
        """
        question = Question(user, password, client, address, protocol, listener, certified)
        try:
            if certified and password is None:
                identity, how = self._certified(user, certified), "logins_certified"
            else:
                identity = await self._authenticate(question)
                how = "logins_anonymous" if identity.anonymous else "logins"
        except AuthenticationFailed as error:
            self._counts["logins_failed"] += 1
            _note_refusal(question, error)
            raise
        self._counts[how] += counted
        if counted:
            _note(identity, question, how)
        return identity

    def identify(
        self, user: str | None, password: str | None, *, certified: str = "", address: str = "", client: str = "",
        protocol: str = "", listener: str = "",
    ) -> Identity | None:
        """The identity of a client that logs in, if there is nothing to check; None: ask `authenticate`."""
        if (certified and password is None) or not self._open_to(user, password):
            return None
        self._counts["logins_anonymous"] += 1
        identity = _unchecked(user)
        if audit.is_heard("login"):
            _note(identity, Question(user, None, client, address, protocol, listener, certified), "logins_anonymous")
        return identity

    def _open_to(self, user: str | None, password: str | None) -> bool:
        credentials = self._credentials
        return not credentials.configured or (
            credentials.allow_anonymous and (password is None or (not user and not password))
        )

    def exchange(
        self, mechanism: str, user: str | None, address: str, *, protocol: str = "", listener: str = ""
    ) -> LoginExchange | None:
        """A login of several messages, for a client at `address` that gave this user name, or none."""
        if mechanism != MECHANISM or self._credentials.users_file is None:
            return None
        question = Question(user, None, "", address, protocol, listener)
        return _Counted(self._counts, question, ScramExchange(
            user, address, keys=self._scram_of, identity=self._identity_of, verifier=self._verifier,
            decoy_key=self._decoy_key, iterations=self._iterations,
        ))  # fmt: skip

    def offers(self) -> frozenset[str]:
        """How clients may log in now, beside a password or a certificate."""
        return self._offers

    def _scram_of(self, name: str) -> ScramKeys | None:
        user = self._users.get(name)
        return user.scram if user is not None else None

    def stands(self, identity: Identity) -> bool:
        """Whether the credentials of `identity` would be accepted now. TLS checks certificates."""
        if identity.anonymous:
            return self._credentials.anonymous_allowed
        if identity.credential == CERTIFICATE:
            return identity.groups == self._groups_of(identity.user)
        if self._tokens is not None and self._tokens.stands(identity.credential):
            return True
        if self._hook is not None and identity.credential == self._hook.credential:
            return True
        return identity.credential == self._credential_of(identity.user)

    def _certified(self, user: str | None, certified: str) -> Identity:
        if user and user != certified:
            raise AuthenticationFailed(f"the certificate is of {certified!r}; for another user name, give its password")
        return Identity(certified, verified=True, credential=CERTIFICATE, groups=self._groups_of(certified))

    def _groups_of(self, certified: str) -> frozenset[str]:
        return frozenset(
            group for pattern, group in self._credentials.certificate_groups if fnmatchcase(certified, pattern)
        )

    async def _authenticate(self, question: Question) -> Identity:
        user, password = question.user, question.password
        if self._open_to(user, password):
            return _unchecked(user)
        if self._tokens is not None and password is not None and is_token(password):
            return self._still(await self._token_logins.identify(self._tokens, password, user, question.address))
        if user is None and password is None:
            raise AuthenticationFailed("this broker requires a user name and a password")
        name = user or (EVERYBODY if self._everybody else "")
        hash = self._hash_of(name)
        if self._hook is not None and not hash:
            return self._still(await self._hook.identify(question))
        if password is None or not await self._verifier.verify(
            name, hash or self._nobody, password, question.address
        ):
            _fail()
        if not hash or hash != self._hash_of(name):
            _fail()  # the password was changed, or the user deleted, during the check
        return self._identity_of(name)

    def _still(self, identity: Identity) -> Identity:
        """Raises AuthenticationFailed if a reload has changed, meanwhile, what the identity was checked against."""
        if not self.stands(identity):
            _fail()
        return identity

    def _identity_of(self, name: str) -> Identity:
        """Of a user whose password is right."""
        credential, user = self._credential_of(name), self._users.get(name)
        if self._everybody or user is None:  # that password proves no name
            return Identity(name, credential=credential)
        return Identity(
            name, verified=True, credential=credential, groups=user.groups, limits=user.limits,
            permissions=user.permissions,
        )

    def _hash_of(self, name: str) -> str:
        """The hash that a user's password is checked against; "" for an unknown user."""
        if self._everybody:
            return self._everybody
        user = self._users.get(name)
        return user.password if user is not None else ""

    def _credential_of(self, name: str) -> str:
        """What a user is let in by: another one after any change of the user. "" for an unknown user."""
        if self._everybody:
            return self._everybody
        user = self._users.get(name)
        return user.fingerprint if user is not None else ""

    @property
    def known(self) -> Mapping[str, User]:
        """Those of the file, by name."""
        return self._users

    def counters(self) -> dict[str, int]:
        """Counts since the start, by the names of COUNTERS."""
        found = self._made_hook.counters() if self._made_hook is not None else dict.fromkeys(hook.COUNTERS, 0)
        return {**self._counts, **self._verifier.counters(), **self._token_logins.counters(), **found}

    def gauges(self) -> dict[str, float]:
        """Current values, by the names of GAUGES."""
        found = self._made_hook.gauges() if self._made_hook is not None else dict.fromkeys(hook.GAUGES, 0.0)
        return {**self._verifier.gauges(), **found}

    async def close(self) -> None:
        if self._made_hook is not None:
            await self._made_hook.close()
        await self._verifier.close()


@lru_cache(LABELS_MAX)
def _unchecked(user: str | None) -> Identity:
    return Identity(label=user) if user else ANONYMOUS


def offers_of(credentials: Credentials) -> frozenset[str]:
    offered = {"ANONYMOUS": credentials.anonymous_allowed, MECHANISM: credentials.users_file is not None}
    return frozenset(mechanism for mechanism, may_be in offered.items() if may_be)


def _fail() -> NoReturn:
    raise AuthenticationFailed("wrong user name or password")


class _Counted:
    """An exchange whose outcome is counted."""

    def __init__(self, counts: dict[str, int], question: Question, exchange: ScramExchange) -> None:
        self._counts, self._question, self._exchange = counts, question, exchange

    async def step(self, data: bytes | None) -> tuple[bytes | None, Identity | None]:
        try:
            answer, identity = await self._exchange.step(data)
        except AuthenticationFailed as error:
            self._counts["logins_failed"] += 1
            _note_refusal(replace(self._question, user=self._exchange.user), error)
            raise
        if identity is not None:
            self._counts["logins"] += 1
            _note(identity, self._question, "logins")
        return answer, identity


def _note(identity: Identity, question: Question, how: str) -> None:
    audit.note(
        "login", user=identity.user, unverified_user=identity.label, how=HOW[how], groups=identity.groups,
        expires=identity.expires, permissions=identity.permissions or None, **_whence(question),
    )


def _note_refusal(question: Question, error: AuthenticationFailed) -> None:
    audit.note("login_refused", user=question.user or "", reason=error.text, **_whence(question))


def _whence(question: Question) -> dict[str, str]:
    return {
        "client": question.client_id, "address": question.address, "protocol": question.protocol or "http",
        "listener": question.listener or "http", "certificate": question.certificate,
    }


def read_users(credentials: Credentials, pause: Callable[[], None] = never) -> Users:
    """Raises PasswordFileError. pause: called now and then, every 1 ms or so."""
    if credentials.users_file is not None:
        from fanlight_broker.auth import users_file  # here: it brings tomllib

        return users_file.read(credentials.users_file, pause)
    if credentials.password_file is not None:
        hashes = password_file.read(credentials.password_file)
        return Users({name: User(hash) for name, hash in hashes.items()}, b"")
    return Users({}, b"")


def read_tokens(credentials: Credentials) -> "Tokens | None":
    """Raises TokenKeysError."""
    if credentials.tokens is None:
        return None
    from fanlight_broker.auth.tokens import Tokens  # here: it brings PyJWT

    return Tokens(credentials.tokens)


def is_token(password: str) -> bool:
    """Whether a password has the form of a token (RFC 7519): its header begins as a JSON object does."""
    return _TOKEN.fullmatch(password) is not None


def _unmatched(hashes: Iterable[str]) -> str:
    """A hash of nothing, with the parameters of the first argon2 hash; "" without one."""
    like = next((hash for hash in hashes if hash.startswith("$argon2")), None)
    if like is None:
        return ""
    parameters = like.split("$")[:4]  # "", variant, version, costs
    salt, digest = (base64.b64encode(os.urandom(size)).decode().rstrip("=") for size in (16, 32))
    return "$".join([*parameters, salt, digest])
