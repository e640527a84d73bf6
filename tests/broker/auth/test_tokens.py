"""Tokens: keys of each kind, and what a token must not get by with."""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.auth import Credentials, PasswordAuthenticator
from fanlight_broker.auth.authenticator import is_token
from fanlight_broker.auth.penalized import WAITING_OF_ADDRESS_MAX
from fanlight_broker.auth.token_keys import TokenKeysError, read_keys
from fanlight_broker.auth.token_logins import TokenLogins
from fanlight_broker.auth.tokens import TokenRules, Tokens, claim_of
from fanlight_broker.auth.verifier import BUSY, Verifier
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity
from fanlight_permissions.own_rules import own_rules

NOW = 1_800_000_000.0
HERE = "192.0.2.1"
SECRET = "0123456789abcdef0123456789abcdef"
PRIVATE: dict[str, Any] = {
    "HS256": SECRET, "RS256": rsa.generate_private_key(65537, 2048), "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
CRITICAL = "the token has critical extensions (crit)"
RULES: dict[str, Any] = {"leeway": 10.0, "cache_max": 0}


def public(algorithm: str) -> bytes:
    if algorithm == "HS256":
        return SECRET.encode()
    return bytes(PRIVATE[algorithm].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def jwk(algorithm: str, kid: str | None = None, **more: str) -> dict[str, Any]:
    found = jwt.get_algorithm_by_name(algorithm)
    key = SECRET if algorithm == "HS256" else PRIVATE[algorithm].public_key()
    return {**found.to_jwk(key, as_dict=True), **({"kid": kid} if kid else {}), **more}  # type: ignore[call-overload]


def tokens(tmp_path: Path, content: bytes, **rules: Any) -> Tokens:
    file = tmp_path / "keys"
    file.write_bytes(content)
    return Tokens(TokenRules(file, **{**RULES, **rules}), lambda: NOW)


def token(algorithm: str = "HS256", headers: dict[str, Any] | None = None, **claims: Any) -> str:
    claims = {"sub": "alice", "exp": NOW + 60, **claims}
    claims = {name: value for name, value in claims.items() if value is not ...}
    return jwt.encode(claims, PRIVATE[algorithm], algorithm, headers)


def refusal(one: Tokens, text: str) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        one.check(text)
    return caught.value.text


@pytest.mark.parametrize("algorithm", PRIVATE)
@pytest.mark.parametrize("form", ["plain", "jwks"])
def test_a_token_says_who_its_client_is(tmp_path: Path, algorithm: str, form: str) -> None:
    content = public(algorithm) if form == "plain" else json.dumps({"keys": [jwk(algorithm, "k")]}).encode()
    rules = [{"effect": "deny", "publish": "a/b"}, {"publish": ["a/#"], "subscribe": "c"}]
    text = token(algorithm, groups=["ops", "dev"], permissions=rules, limits={"connections": 2})
    assert is_token(text)
    found = tokens(tmp_path, content).check(text)
    assert (found.user, found.verified, found.anonymous) == ("alice", True, False)
    assert found.groups == {"ops", "dev"}
    assert found.permissions == own_rules(rules)
    assert found.limits == {"connections": 2}
    assert found.expires == NOW + 70
    for secret in (text, SECRET):
        assert secret not in repr(found)


def test_claims_have_the_names_that_the_settings_say(tmp_path: Path) -> None:
    one = tokens(tmp_path, public("HS256"), user_claim="name", groups_claim="realm_access.roles")
    found = one.check(token(name="bob", realm_access={"roles": ["a"]}))
    assert (found.user, found.groups) == ("bob", {"a"})
    scoped = tokens(tmp_path, public("HS256"), groups_claim="scope")
    assert scoped.check(token(scope="a b")).groups == {"a", "b"}
    assert scoped.check(token(scope=" a ")).groups == {"a"}
    assert scoped.check(token(scope="")).groups == frozenset()
    assert claim_of({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert claim_of({"a": {"b": 2}}, "a.b") == 2
    assert claim_of({"a": 1}, "a.b") is None


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": NOW - 11}, "has expired"), ({"exp": ...}, "has no exp"), ({"exp": "soon"}, "exp"),
        ({"exp": True}, "exp"), ({"exp": 1e300}, "exp"), ({"exp": [1]}, "not valid"),
        ({"nbf": 4e9}, "not valid yet"), ({"aud": "other"}, "another audience"), ({"sub": ...}, "no user name"),
        ({"sub": ""}, "no user name"), ({"sub": "a:b"}, "no user name"),
        ({"groups": ["anonymous"]}, "of clients without"), ({"groups": {"a": 1}}, "groups must be"),
        ({"limits": {"connections": -1}}, "from 0"),
        ({"limits": {"a": 1}}, "no quota"), ({"limits": [1]}, "limits must be"),
        ({"limits": []}, "limits must be"), ({"limits": 0}, "limits must be"), ({"groups": 0}, "groups must be"),
        ({"permissions": [{"effect": "allow"}]}, "permission 1: it allows nothing"),
        ({"permissions": [{"publish": "a"}, {"effect": "maybe"}]}, "permission 2: effect is allow or deny"),
        ({"permissions": [{"publish": "a/#/b"}]}, "permission 1: publish: 'a/#/b'"),
        ({"permissions": [{"publish": "a"}] * 65}, "at most 64 rules"),
        ({"permissions": {"publish": "a"}}, "must be a list"), ({"permissions": 0}, "must be a list"),
        ({"permissions": False}, "must be a list"), ({"permissions": ""}, "must be a list"),
        ({"permissions": "all"}, "must be a list"),
    ],
)
def test_claims_that_do_not_do_are_refused(tmp_path: Path, claims: dict[str, Any], said: str) -> None:
    assert said in refusal(tokens(tmp_path, public("HS256")), token(**claims))


def test_what_was_read_of_other_claims_does_not_stand(tmp_path: Path) -> None:
    """Who was let in with the rules of a claim that is not trusted any more is to go."""
    before = tokens(tmp_path, public("HS256")).check(token())
    assert tokens(tmp_path, public("HS256")).stands(before.credential)
    for claim in ("user_claim", "groups_claim", "permissions_claim", "limits_claim"):
        assert not tokens(tmp_path, public("HS256"), **{claim: "other"}).stands(before.credential)


def test_within_the_leeway_a_token_is_good(tmp_path: Path) -> None:
    one = tokens(tmp_path, public("HS256"))
    assert one.check(token(exp=NOW - 9.5)).expires == NOW + 0.5
    assert "expired" in refusal(one, token(exp=NOW - 10))


def test_issuer_and_audience_must_be_the_ones_asked_for(tmp_path: Path) -> None:
    one = tokens(tmp_path, public("HS256"), issuer="https://id", audience="broker")
    assert one.check(token(iss="https://id", aud=["x", "broker"])).user == "alice"
    assert "another issuer" in refusal(one, token(iss="https://di", aud="broker"))
    assert "another audience" in refusal(one, token(iss="https://id", aud="brok"))
    assert "has no" in refusal(one, token(iss="https://id"))
    assert "has no" in refusal(one, token(aud="broker"))


def encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def test_none_is_no_algorithm(tmp_path: Path) -> None:
    for name in ("none", "None", "NONE", "", None):
        text = f"{encoded({'alg': name})}.{encoded({'sub': 'alice', 'exp': NOW + 60})}."
        assert is_token(text)
        assert "alg, kid" in refusal(tokens(tmp_path, public("RS256")), text)


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    """The confusion of algorithms: HS256, with what everybody knows as the secret."""
    body = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded({'sub': 'alice', 'exp': NOW + 60})}"
    for algorithm in ("RS256", "ES256", "EdDSA"):
        signature = hmac.new(public(algorithm), body.encode(), hashlib.sha256).digest()
        text = f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
        assert "alg, kid" in refusal(tokens(tmp_path, public(algorithm)), text)
        both = json.dumps({"keys": [jwk(algorithm, "k"), jwk("HS256", "s")]}).encode()
        assert refusal(tokens(tmp_path, both), text) == "the token is not valid"


def test_a_token_brings_no_key_of_its_own(tmp_path: Path) -> None:
    mine = rsa.generate_private_key(65537, 2048)
    own = jwt.get_algorithm_by_name("RS256").to_jwk(mine.public_key(), as_dict=True)  # type: ignore[call-overload]
    for headers in ({"jwk": own}, {"jku": "http://127.0.0.1/keys"}, {"x5u": "http://127.0.0.1/keys"}):
        text = jwt.encode({"sub": "alice", "exp": NOW + 60}, mine, "RS256", headers)
        assert refusal(tokens(tmp_path, public("RS256")), text) == "the token is not valid"


def test_the_key_is_the_one_with_the_name_in_the_token(tmp_path: Path) -> None:
    other = jwt.get_algorithm_by_name("RS256").to_jwk(  # type: ignore[call-overload]
        rsa.generate_private_key(65537, 2048).public_key(), as_dict=True
    )
    one = tokens(tmp_path, json.dumps({"keys": [jwk("RS256", "a"), {**other, "kid": "b"}]}).encode())
    assert one.check(token("RS256", {"kid": "a"})).user == "alice"
    assert refusal(one, token("RS256", {"kid": "b"})) == "the token is not valid"
    assert "alg, kid" in refusal(one, token("RS256", {"kid": "c"}))
    assert "alg, kid" in refusal(one, token("RS256"))  # which of the two?


def test_critical_extensions_and_long_tokens_are_refused(tmp_path: Path) -> None:
    one = tokens(tmp_path, public("HS256"))
    assert refusal(one, token(headers={"crit": ["b64"]})) in {"the token is not valid", CRITICAL}
    assert "more than" in refusal(one, token(sub="x" * 20_000))


def test_a_changed_token_is_refused(tmp_path: Path) -> None:
    one, good = tokens(tmp_path, public("HS256")), token()
    head, _, signature = good.split(".")
    assert one.check(good).user == "alice"
    assert refusal(one, f"{head}.{encoded({'sub': 'root', 'exp': NOW + 60})}.{signature}") == "the token is not valid"
    assert refusal(one, good[:-6]) == "the token is not valid"


@given(st.text(max_size=80) | st.builds(".".join, st.lists(st.binary(max_size=40).map(
    lambda octets: base64.urlsafe_b64encode(octets).decode()), min_size=3, max_size=3)))
def test_no_text_does_anything_but_fail(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    with pytest.raises(AuthenticationFailed):
        tokens(tmp_path_factory.getbasetemp(), public("HS256")).check(text)


async def test_the_user_name_beside_a_token_is_its_own_or_none(tmp_path: Path) -> None:
    one = tokens(tmp_path, public("HS256"))
    async with token_logins() as logins:
        for user in (None, "", "alice"):
            assert (await logins.identify(one, token(), user, HERE)).user == "alice"
        with pytest.raises(AuthenticationFailed, match="user name"):
            await logins.identify(one, token(), "bob", HERE)


async def test_a_key_that_is_taken_away_during_a_check_does_not_let_in(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    credentials = Credentials(tokens=TokenRules(file))
    file_of(file, SECRET)
    authenticator = PasswordAuthenticator(credentials)
    try:
        text = jwt.encode({"sub": "alice", "exp": time.time() + 1000}, SECRET, "HS256")
        assert (await authenticator.authenticate(None, text, "192.0.2.1")).user == "alice"
        login = asyncio.ensure_future(authenticator.authenticate(None, text, "192.0.2.1"))
        await asyncio.sleep(0)
        file_of(file, SECRET[::-1])
        authenticator.reload()
        with pytest.raises(AuthenticationFailed):
            await login
    finally:
        await authenticator.close()


def file_of(file: Path, secret: str) -> None:
    file.write_text(secret)


async def test_tokens_that_come_together_are_checked_one_in_a_turn(tmp_path: Path) -> None:
    one, turns = tokens(tmp_path, public("HS256")), 0
    async with token_logins() as logins:
        checks = [asyncio.ensure_future(logins.identify(one, token(), None, HERE)) for _ in range(5)]
        while not all(check.done() for check in checks):
            before = sum(check.done() for check in checks)
            await asyncio.sleep(0)
            turns += 1
            assert sum(check.done() for check in checks) <= before + 1
        assert turns >= 5
        assert all(isinstance(check.result(), Identity) for check in checks)


# -- delays after wrong ones -----------------------------------------------------------------------------------------


class Slow:
    """A clock that goes on when the test says so, and ends the delays of the verifier."""

    def __init__(self) -> None:
        self.now = 100.0
        self.delays: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        self.delays.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@asynccontextmanager
async def token_logins(clock: Slow | None = None, waits: bool = True) -> AsyncIterator[TokenLogins]:
    verifier = Verifier(threads=1, queue_max=1, cache_max=1, clock=clock)
    if clock is not None:
        async def wait_out(address: str, user: str) -> None:
            if waits:
                await clock.wait(verifier.delay(address, user))
            else:
                await asyncio.Event().wait()

        verifier.wait_out = wait_out  # type: ignore[method-assign]
    try:
        yield TokenLogins(verifier)
    finally:
        await verifier.close()


async def wrong(logins: TokenLogins, one: Tokens, text: str, address: str = HERE, user: str | None = None) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await logins.identify(one, text, user, address)
    return caught.value.text


async def test_wrong_tokens_delay_further_logins_of_the_address_and_of_the_user(tmp_path: Path) -> None:
    one, clock = tokens(tmp_path, public("HS256")), Slow()
    async with token_logins(clock) as logins:
        for _ in range(3):
            await wrong(logins, one, token(exp=NOW - 60))
        assert clock.delays == []
        await wrong(logins, one, token(exp=NOW - 60))
        await wrong(logins, one, token(exp=NOW - 60))  # the fifth waits
        assert clock.delays == [pytest.approx(0.1)]
        await logins.identify(one, token(sub="bob"), None, HERE)  # of the same address, and another user
        await logins.identify(one, token(), None, "192.0.2.2")  # of another address
        assert len(clock.delays) == 1
        assert (await logins.identify(one, token(), None, HERE)).user == "alice"  # waits, and then begins anew
        assert clock.delays[1:] == [pytest.approx(0.2)]
        await wrong(logins, one, token(exp=NOW - 60))
        assert len(clock.delays) == 2
        assert logins.counters()["tokens_checked"] == 9


class Clock:
    now = NOW


def signed(**claims: Any) -> str:
    return jwt.encode({"sub": "alice", "exp": NOW + 60, **claims}, SECRET, "HS256")


def remembering(tmp_path: Path, clock: Clock, cache_max: int = 2) -> Tokens:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    return Tokens(TokenRules(file, leeway=10.0, cache_max=cache_max), lambda: clock.now)


def test_an_accepted_token_is_remembered_until_it_expires(tmp_path: Path) -> None:
    clock = Clock()
    found, token = remembering(tmp_path, clock), signed(groups=["ops"])
    assert found.remembered(token) is None
    identity = found.check(token)
    clock.now = NOW + 69.9
    assert found.remembered(token) == identity
    clock.now = NOW + 70.0
    assert found.remembered(token) is None
    assert len(found) == 0


def test_what_is_remembered_is_bounded_and_the_least_recently_used_goes(tmp_path: Path) -> None:
    found = remembering(tmp_path, Clock())
    first, second, third = (signed(sub=name) for name in ("first", "second", "third"))
    found.check(first)
    found.check(second)
    assert found.remembered(first) is not None
    found.check(third)
    assert len(found) == 2
    assert found.remembered(first) is not None
    assert found.remembered(second) is None
    found.check(large := signed(groups=["x" * 200 + str(number) for number in range(10)]))
    assert found.remembered(large) is None
    none = remembering(tmp_path, Clock(), cache_max=0)
    none.check(first)
    assert len(none) == 0


@pytest.mark.parametrize("change", [lambda text: text[:-2] + ("A" if text[-2] != "A" else "B") + text[-1], str.upper])
def test_a_token_that_is_not_the_same_is_checked(tmp_path: Path, change: Any) -> None:
    found, token = remembering(tmp_path, Clock()), signed()
    found.check(token)
    assert found.remembered(change(token)) is None
    with pytest.raises(AuthenticationFailed):
        found.check(change(token))
    assert len(found) == 1


async def test_a_login_with_a_remembered_token_is_not_checked_and_its_name_still_is(tmp_path: Path) -> None:
    async with token_logins() as logins:
        found, token = remembering(tmp_path, Clock()), signed()
        for _ in range(3):
            assert (await logins.identify(found, token, None, HERE)).user == "alice"
        with pytest.raises(AuthenticationFailed, match="user name"):
            await logins.identify(found, token, "bob", HERE)
        counts = logins.counters()
        assert (counts["tokens_checked"], counts["tokens_remembered"]) == (1, 3)
        again = remembering(tmp_path, Clock())  # as after a reload
        assert again.remembered(token) is None


async def test_many_wrong_tokens_of_different_users_delay_the_address(tmp_path: Path) -> None:
    one, clock = tokens(tmp_path, public("HS256")), Slow()
    async with token_logins(clock) as logins:
        for number in range(11):
            await wrong(logins, one, token(sub=f"u{number}", exp=NOW - 60))
        assert clock.delays == []
        await wrong(logins, one, "eyJ.x.y")
        assert len(clock.delays) == 1


async def test_only_so_many_wait_after_wrong_tokens_and_others_come_in(tmp_path: Path) -> None:
    one, clock = tokens(tmp_path, public("HS256")), Slow()
    async with token_logins(clock, waits=False) as logins:
        for number in range(11):
            await wrong(logins, one, token(sub=f"u{number}", exp=NOW - 60))
        waiting = [
            asyncio.ensure_future(logins.identify(one, token(), None, HERE)) for _ in range(WAITING_OF_ADDRESS_MAX)
        ]
        await asyncio.sleep(0)
        assert await wrong(logins, one, token()) == BUSY
        assert logins.counters()["tokens_refused_busy"] == 1
        assert (await logins.identify(one, token(), None, "192.0.2.2")).user == "alice"
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert not len(logins._penalized)


async def test_a_flood_that_waits_already_is_delayed_by_its_first_failures(tmp_path: Path) -> None:
    """Those behind it in the queue do not wait for all of its checks."""
    one, clock = tokens(tmp_path, public("HS256")), Slow()
    async with token_logins(clock, waits=False) as logins:
        flood = [
            asyncio.ensure_future(logins.identify(one, token(sub=f"u{number}", exp=NOW - 60), None, HERE))
            for number in range(50)
        ]
        await asyncio.sleep(0)
        assert (await logins.identify(one, token(), None, "192.0.2.2")).user == "alice"
        assert logins.counters()["tokens_checked"] == 11 + 1
        for each in flood:
            each.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


def test_the_user_that_a_token_claims_is_read_of_anything(tmp_path: Path) -> None:
    one = tokens(tmp_path, public("HS256"))
    assert one.claimed_user(token(sub="bob")) == "bob"
    for payload in ("", "x", "W10", "bnVsbA", "eyJzdWIiOjF9", "WyI" * 5_000, "_" * 9):
        assert one.claimed_user(f"eyJ.{payload}.") == ""
    assert one.claimed_user(token(sub="b" * 100_000)) == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"short", "32 at least"), (b"{", "is not JSON"), (b"{}", "is no JWKS"), (b'{"keys": [1]}', "is no JWKS"),
        (b'{"keys": []}', "no key in it"), (b'{"keys": [{"kty": "RSA", "n": "AQ"}]}', "key 1 cannot be read"),
        (b'{"keys": [{"kty": "oct", "k": "c2hvcnQ"}]}', "32 at least"),
        (b"-----BEGIN PUBLIC KEY-----\nhunter2\n-----END PUBLIC KEY-----", "cannot be read"),
        (b"-----BEGIN PUBLIC KEY-----\nhunter2", "no whole key"),
        (public("RS256") + public("RS256"), "need a kid each"),
        (rsa.generate_private_key(65537, 1024).public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "1024 bits"),
        (ec.generate_private_key(ec.SECP384R1()).public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "of a kind"),
        (PRIVATE["RS256"].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "private key"),
    ],
    ids=range(13),
)
def test_a_file_without_usable_keys_is_refused_and_not_shown(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(TokenKeysError) as caught:
        read_keys(tmp_path / "keys")
    assert said in caught.value.text
    assert "hunter2" not in caught.value.text


def test_keys_for_other_purposes_are_left_out(tmp_path: Path) -> None:
    rows = [jwk("RS256", "a", use="enc"), jwk("ES256", "b", alg="ES384"), jwk("EdDSA", "c"), {"kty": "new"}]
    (tmp_path / "keys").write_text(json.dumps({"keys": rows}))
    assert [(key.kid, key.algorithm) for key in read_keys(tmp_path / "keys")] == [("c", "EdDSA")]


def test_without_the_library_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(TokenKeysError, match=r"pip install './broker\[jwt\]'"):
        read_keys(tmp_path / "keys")
