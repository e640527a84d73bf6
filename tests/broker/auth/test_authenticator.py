"""Who a client is: right credentials, wrong ones, none, and many at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import argon2
import pytest

from fanlight_broker.auth import COUNTERS, Credentials, PasswordAuthenticator, PasswordFileError
from fanlight_broker.auth.authenticator import GAUGES
from fanlight_broker.auth.hashing import hasher
from fanlight_broker.auth.password_file import set_hash
from fanlight_broker.auth.scram_keys import ScramKeys
from fanlight_broker.auth.users_file import change
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity
from tests.broker.auth.scram_client import ScramClient

HERE = "192.0.2.1"
CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
Make = Callable[..., PasswordAuthenticator]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[PasswordAuthenticator] = []

    def one(credentials: Credentials, **bounds: int) -> PasswordAuthenticator:
        made.append(PasswordAuthenticator(credentials, **bounds))
        return made[-1]

    yield one
    for each in made:
        await each.close()


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    set_hash(path, "alice", CHEAP.hash("wonder"))
    set_hash(path, "bob", CHEAP.hash("builder"))
    return path


def spoil(path: Path) -> None:
    path.write_text("spoilt\n")


async def refusal(attempt: Awaitable[Identity]) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await attempt
    return str(caught.value)


async def test_a_user_comes_in_with_the_right_password(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    assert (await authenticator.authenticate("alice", "wonder", HERE)).user == "alice"
    assert (await authenticator.authenticate("bob", "builder", HERE)).user == "bob"


async def test_a_wrong_password_an_unknown_user_and_half_of_it_fail_with_the_same_words(
    make: Make, users: Path
) -> None:
    authenticator = make(Credentials(password_file=users))
    attempts = [
        ("alice", "builder"),
        ("eve", "wonder"),
        ("alice", ""),
        ("alice", None),
        (None, "wonder"),
        ("", ""),
    ]
    said = {await refusal(authenticator.authenticate(*attempt, HERE)) for attempt in attempts}
    assert said == {"wrong user name or password"}
    assert authenticator.counters()["logins_failed"] == len(attempts)


async def test_an_unknown_user_costs_what_a_wrong_password_does(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    await refusal(authenticator.authenticate("alice", "x", HERE))
    await refusal(authenticator.authenticate("eve", "x", HERE))
    assert authenticator.counters()["passwords_checked"] == 2
    # And of the same costs: the hash that nobody matches has the parameters of the others.
    assert argon2.extract_parameters(authenticator._nobody) == argon2.extract_parameters(CHEAP.hash("x"))


async def test_without_credentials_nobody_comes_in_where_there_are_users(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    refused = await refusal(authenticator.authenticate(None, None, HERE))
    assert refused == "this broker requires a user name and a password"


async def test_with_allow_anonymous_credentials_are_checked_if_they_are_given(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users, allow_anonymous=True))
    assert (await authenticator.authenticate(None, None, HERE)).user == ""
    assert (await authenticator.authenticate("alice", "wonder", HERE)).user == "alice"
    await refusal(authenticator.authenticate("alice", "wrong", HERE))


async def test_a_broker_without_users_takes_any_credentials_for_a_label(make: Make) -> None:
    authenticator = make(Credentials())
    for user, password, label in [
        (None, None, ""), ("", None, ""), ("", "", ""), (None, "x", ""), ("", "x", ""),
        ("alice", None, "alice"), ("alice", "", "alice"), ("alice", "wonder", "alice"), ("alice", "\udcff", "alice"),
    ]:
        identity = await authenticator.authenticate(user, password, HERE)
        assert identity == Identity(user="", verified=False, label=label, credential="")
        assert identity.anonymous
    assert authenticator.counters()["logins_anonymous"] == 9
    assert authenticator.counters()["passwords_checked"] == 0


async def test_where_anonymous_is_allowed_a_name_without_a_password_is_a_label(make: Make, users: Path) -> None:
    for credentials in (
        Credentials(password_file=users, allow_anonymous=True), Credentials(password="sesame", allow_anonymous=True),
    ):
        authenticator = make(credentials)
        for user, password, label in [(None, None, ""), ("", None, ""), ("", "", ""), ("alice", None, "alice")]:
            assert await authenticator.authenticate(user, password, HERE) == Identity(label=label)
        for user, password in [("alice", ""), ("alice", "wrong"), (None, "wrong"), ("", "wrong"), ("eve", "")]:
            assert await refusal(authenticator.authenticate(user, password, HERE)) == "wrong user name or password"


async def test_who_is_verified_depends_on_whose_the_password_is(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    alice = await authenticator.authenticate("alice", "wonder", HERE)
    assert (alice.user, alice.verified, alice.label, alice.anonymous) == ("alice", True, "", False)
    certified = await authenticator.authenticate(None, None, HERE, certified="device")
    assert (certified.user, certified.verified, certified.anonymous) == ("device", True, False)
    everybody = await make(Credentials(password="sesame")).authenticate("alice", "sesame", HERE)
    assert (everybody.user, everybody.verified, everybody.anonymous) == ("alice", False, False)
    assert "argon2" not in repr(alice)


async def test_one_password_for_everybody_goes_with_any_name(make: Make) -> None:
    authenticator = make(Credentials(password="sesame"))
    assert (await authenticator.authenticate("ali", "sesame", HERE)).user == "ali"
    assert (await authenticator.authenticate(None, "sesame", HERE)).user == "fanlight"
    await refusal(authenticator.authenticate("ali", "sesam", HERE))
    await refusal(authenticator.authenticate("ali", None, HERE))
    await refusal(authenticator.authenticate(None, None, HERE))


async def test_credentials_show_no_password() -> None:
    assert "sesame" not in repr(Credentials(password="sesame"))


async def test_lone_surrogates_and_long_passwords_are_just_wrong(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    for password in ("\ud800", "x" * 1_000_000, "\0"):
        await refusal(authenticator.authenticate("alice", password, HERE))
    await refusal(authenticator.authenticate("\ud800", "x", HERE))


# Many at once.


async def test_a_success_is_remembered_and_a_failure_is_not(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    for _ in range(5):
        await authenticator.authenticate("alice", "wonder", HERE)
    assert authenticator.counters()["passwords_checked"] == 1
    assert authenticator.counters()["passwords_remembered"] == 4
    for _ in range(3):
        await refusal(authenticator.authenticate("alice", "wrong", HERE))
    assert authenticator.counters()["passwords_checked"] == 4


async def test_equal_logins_that_come_together_share_one_check(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users), queue_max=1)
    attempts = [authenticator.authenticate("alice", "wonder", f"192.0.2.{each % 250}") for each in range(1000)]
    assert {each.user for each in await asyncio.gather(*attempts)} == {"alice"}
    assert authenticator.counters()["passwords_checked"] == 1
    assert authenticator.counters()["logins"] == 1000


async def test_what_is_remembered_is_bounded_and_the_least_recent_goes_first(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users), cache_max=1)
    for user, password in [("alice", "wonder"), ("bob", "builder"), ("bob", "builder"), ("alice", "wonder")]:
        await authenticator.authenticate(user, password, HERE)
    assert authenticator.counters()["passwords_checked"] == 3
    assert len(authenticator._verifier._succeeded) == 1


async def test_too_many_logins_are_refused_at_once_and_one_address_leaves_room_for_others(
    make: Make, tmp_path: Path
) -> None:
    path = tmp_path / "users"
    set_hash(path, "alice", hasher().hash("wonder"))
    authenticator = make(Credentials(password_file=path), threads=1, queue_max=7)
    attempts = [authenticator.authenticate("alice", f"guess {each}", HERE) for each in range(20)]
    flood = asyncio.gather(*attempts, return_exceptions=True)
    other = asyncio.create_task(authenticator.authenticate("alice", "wonder", "192.0.2.2"))
    said = [str(each) for each in await flood]
    assert said.count("too many logins at once; try again in a second") == 18
    assert said.count("wrong user name or password") == 2
    assert (await other).user == "alice"
    assert authenticator.counters()["passwords_refused_busy"] == 18

    addresses = [authenticator.authenticate("alice", "x" * each, f"198.51.100.{each}") for each in range(20)]
    said = [str(each) for each in await asyncio.gather(*addresses, return_exceptions=True)]
    assert said.count("too many logins at once; try again in a second") == 12
    assert not len(authenticator._verifier._queue)
    assert not authenticator._verifier._checks


async def test_the_loop_goes_on_while_a_password_is_checked(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "users"
    set_hash(path, "alice", hasher().hash("wonder"))
    authenticator = make(Credentials(password_file=path))
    task = asyncio.create_task(authenticator.authenticate("alice", "wonder", HERE))
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10
    assert task.result().user == "alice"


async def test_one_who_gives_up_does_not_take_the_answer_from_another(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    first = asyncio.create_task(authenticator.authenticate("alice", "wonder", HERE))
    second = asyncio.create_task(authenticator.authenticate("alice", "wonder", HERE))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).user == "alice"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_closing_ends_what_waits_and_refuses_what_comes(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "users"
    set_hash(path, "alice", hasher().hash("wonder"))
    authenticator = make(Credentials(password_file=path), threads=1)
    tasks = [asyncio.create_task(authenticator.authenticate("alice", f"{each}", HERE)) for each in range(4)]
    await asyncio.sleep(0)
    await authenticator.close()
    _, waiting = await asyncio.wait(tasks, timeout=5)
    assert not waiting
    assert await refusal(authenticator.authenticate("alice", "wonder", HERE)) == "the broker is stopping"


# Reload.


async def test_a_reload_takes_new_users_changed_passwords_and_deletions(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    await authenticator.authenticate("alice", "wonder", HERE)
    await authenticator.authenticate("bob", "builder", HERE)
    set_hash(users, "alice", CHEAP.hash("changed"))
    set_hash(users, "bob", None)
    set_hash(users, "carol", CHEAP.hash("new"))
    authenticator.reload()
    await refusal(authenticator.authenticate("alice", "wonder", HERE))
    await refusal(authenticator.authenticate("bob", "builder", HERE))
    assert (await authenticator.authenticate("alice", "changed", HERE)).user == "alice"
    assert (await authenticator.authenticate("carol", "new", HERE)).user == "carol"


async def test_a_reload_of_a_spoilt_file_raises_and_changes_nothing(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    spoil(users)
    with pytest.raises(PasswordFileError, match="line 1"):
        authenticator.reload(Credentials(password_file=users, allow_anonymous=True))
    assert (await authenticator.authenticate("alice", "wonder", HERE)).user == "alice"
    await refusal(authenticator.authenticate(None, None, HERE))


async def test_a_reload_may_turn_passwords_on_and_off(make: Make, users: Path) -> None:
    authenticator = make(Credentials())
    authenticator.reload(Credentials(password="sesame"))
    await refusal(authenticator.authenticate(None, None, HERE))
    assert (await authenticator.authenticate("ali", "sesame", HERE)).user == "ali"
    authenticator.reload(Credentials(password="changed"))
    await refusal(authenticator.authenticate("ali", "sesame", HERE))
    authenticator.reload(Credentials(password_file=users))
    await refusal(authenticator.authenticate("ali", "changed", HERE))
    assert (await authenticator.authenticate("bob", "builder", HERE)).user == "bob"


async def test_an_empty_password_file_lets_nobody_in(make: Make, users: Path) -> None:
    set_hash(users, "alice", None)
    set_hash(users, "bob", None)
    authenticator = make(Credentials(password_file=users))
    await refusal(authenticator.authenticate(None, None, HERE))
    await refusal(authenticator.authenticate("alice", "wonder", HERE))


async def test_after_a_reload_the_credentials_stand_that_would_let_in_now(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users, allow_anonymous=True))
    anonymous = await authenticator.authenticate(None, None, HERE)
    labelled = await authenticator.authenticate("alice", None, HERE)
    alice = await authenticator.authenticate("alice", "wonder", HERE)
    bob = await authenticator.authenticate("bob", "builder", HERE)
    certified = await authenticator.authenticate(None, None, HERE, certified="alice")
    everybody = (anonymous, labelled, alice, bob, certified)
    authenticator.reload()
    assert [authenticator.stands(each) for each in everybody] == [True] * 5
    set_hash(users, "alice", CHEAP.hash("wonder"))  # written anew, if with the same password
    authenticator.reload(Credentials(password_file=users))
    assert [authenticator.stands(each) for each in everybody] == [False, False, False, True, True]
    set_hash(users, "bob", None)
    authenticator.reload()
    assert not authenticator.stands(bob)
    authenticator.reload(Credentials())
    assert [authenticator.stands(each) for each in everybody] == [True, True, False, False, True]


async def test_a_password_that_is_changed_while_it_is_checked_does_not_let_in(make: Make, users: Path) -> None:
    authenticator = make(Credentials(password_file=users))
    login = asyncio.create_task(authenticator.authenticate("alice", "wonder", HERE))
    await asyncio.sleep(0)
    set_hash(users, "alice", CHEAP.hash("changed"))
    authenticator.reload()
    assert await refusal(login) == "wrong user name or password"


async def test_keys_that_are_changed_during_an_exchange_do_not_let_in(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    for after in ("wonder", "changed"):
        change(file, {"alice": {"password": CHEAP.hash("x"), "scram": ScramKeys.of("wonder").text()}})
        authenticator = make(Credentials(users_file=file))
        exchange, client = authenticator.exchange("SCRAM-SHA-256", None, HERE), ScramClient("alice", "wonder")
        assert exchange is not None
        challenge, _ = await exchange.step(client.first())
        if after == "changed":
            change(file, {"alice": {"scram": ScramKeys.of("wonder").text()}})  # with another salt
            authenticator.reload()
            await refusal(exchange.step(client.final(challenge or b"")))  # type: ignore[arg-type]
        else:
            _, identity = await exchange.step(client.final(challenge or b""))
            assert identity is not None
            assert authenticator.stands(identity)


async def test_wrong_proofs_wait_as_wrong_passwords_do(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    change(file, {"alice": {"password": CHEAP.hash("x"), "scram": ScramKeys.of("wonder", iterations=4096).text()}})
    authenticator = make(Credentials(users_file=file))
    for _ in range(5):
        exchange, client = authenticator.exchange("SCRAM-SHA-256", None, HERE), ScramClient("alice", "wrong")
        assert exchange is not None
        challenge, _ = await exchange.step(client.first())
        await refusal(exchange.step(client.final(challenge or b"")))  # type: ignore[arg-type]
    assert authenticator.counters()["passwords_delayed"] == 1
    assert authenticator.counters()["logins_failed"] == 5


async def test_exchanges_that_begin_wrong_delay_further_logins(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    change(file, {"alice": {"password": CHEAP.hash("x"), "scram": ScramKeys.of("wonder", iterations=4096).text()}})
    authenticator = make(Credentials(users_file=file))
    for first in (b"nonsense", b"p=tls-unique,,n=alice,r=abcdefgh", b"n,,n=mallory,r=abcdefgh", b"\xff"):
        exchange = authenticator.exchange("SCRAM-SHA-256", "alice", HERE)
        assert exchange is not None
        await refusal(exchange.step(first))  # type: ignore[arg-type]
    assert authenticator.gauges()["passwords_penalties"] >= 2  # the address, and names from it
    for _ in range(7):
        exchange = authenticator.exchange("SCRAM-SHA-256", "alice", HERE)
        assert exchange is not None
        await refusal(exchange.step(b"nonsense"))  # type: ignore[arg-type]
    await refusal(authenticator.authenticate("bob", "x", HERE))
    assert authenticator.counters()["passwords_delayed"] == 1


async def test_every_counter_has_its_meaning(make: Make) -> None:
    authenticator = make(Credentials())
    assert set(authenticator.counters()) == set(COUNTERS)
    assert set(authenticator.gauges()) == set(GAUGES)


@pytest.mark.parametrize("user", [None, "", "alice", "mallory"])
@pytest.mark.parametrize("password", [None, "", "wonder", "wrong"])
@pytest.mark.parametrize("certified", ["", "alice"])
@pytest.mark.parametrize("configured", [False, True])
@pytest.mark.parametrize("allow_anonymous", [False, True])
async def test_who_is_identified_at_once_is_who_would_be_authenticated_and_nobody_with_something_to_check(
    make: Make, users: Path, user: str | None, password: str | None, certified: str, configured: bool,
    allow_anonymous: bool,
) -> None:
    credentials = Credentials(password_file=users if configured else None, allow_anonymous=allow_anonymous)
    authenticator, other = make(credentials), make(credentials)
    identity = authenticator.identify(user, password, certified=certified)
    if identity is not None:
        assert identity == await other.authenticate(user, password, HERE, certified=certified)
        assert authenticator.counters() == other.counters()
        assert identity.anonymous
        return
    assert sum(authenticator.counters().values()) == 0
    assert certified or (configured and (user or password or not allow_anonymous))
