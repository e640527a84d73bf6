"""The part that reads users and keys: in a thread, at a reload, and the old ones stay if anything is wrong."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import argon2
import pytest

from fanlight_broker.authentication import Authentication
from fanlight_broker.config import Settings
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.parts import PartError

HERE = "192.0.2.1"
CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
HASH = CHEAP.hash("wonder")


def write(file: Path, users: int) -> None:
    file.write_text("".join(f'[users.u{number}]\npassword = "{HASH}"\n' for number in range(users)))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    write(tmp_path / "users.toml", 1)
    return Settings(users_file=tmp_path / "users.toml")


@pytest.fixture
async def part(settings: Settings) -> AsyncIterator[Authentication]:
    made = Authentication(settings)
    await made.open()
    yield made
    await made.stop()


async def is_user(part: Authentication, user: str) -> bool:
    try:
        return (await part.authenticator.authenticate(user, "wonder", HERE)).user == user
    except AuthenticationFailed:
        return False


async def test_the_loop_goes_on_while_a_large_file_is_read(
    part: Authentication, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.users_file is not None
    write(settings.users_file, 2_000)
    reading, let = Event(), Event()

    def pause(*_: object) -> None:
        reading.set()
        assert let.wait(60)

    monkeypatch.setattr(part._thread, "_pause", pause)
    prepared = asyncio.ensure_future(part.prepare(settings))
    assert await asyncio.to_thread(reading.wait, 60)
    assert await is_user(part, "u0")  # answered in the middle of it
    assert not await is_user(part, "u1999")
    assert not prepared.done()
    let.set()
    await prepared
    part.reload(settings)()
    assert await is_user(part, "u1999")


async def test_a_broken_file_leaves_the_users_that_were_there(part: Authentication, settings: Settings) -> None:
    assert settings.users_file is not None
    settings.users_file.write_text("[users.u0]\n")
    with pytest.raises(PartError, match=r"users_file: .*no password"):
        await part.prepare(settings)
    assert await is_user(part, "u0")
    write(settings.users_file, 2)
    await part.prepare(settings)
    part.reload(settings)()
    assert await is_user(part, "u1")


async def test_a_broker_that_stops_does_not_wait_for_a_large_file(part: Authentication, settings: Settings) -> None:
    assert settings.users_file is not None
    write(settings.users_file, 2_000)
    part._thread.stop()
    with pytest.raises(PartError, match="the broker stops"):
        await part.prepare(settings)
    assert await is_user(part, "u0")
