"""Authentication as a part: the authenticator, made from the settings, and its files read again on SIGHUP."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.auth.access import Credentials
from fanlight_broker.auth.authenticator import COUNTERS, GAUGES, PasswordAuthenticator, read_tokens, read_users
from fanlight_broker.auth.files import PasswordFileError
from fanlight_broker.auth.hook import HookRules
from fanlight_broker.auth.token_keys import TokenKeysError
from fanlight_broker.children import command_line
from fanlight_broker.config import Settings
from fanlight_broker.config.checks import certificate_groups
from fanlight_broker.config.secret_file import SecretFileError, secret_in
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.parts import Apply, Part, PartError, SideThread

if TYPE_CHECKING:
    from fanlight_broker.auth.tokens import TokenRules

log: Final = logs.get("app")


class Authentication(Part):
    name = "authentication"
    authenticator: PasswordAuthenticator  # once it is open

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._thread = SideThread()
        self._prepared: Apply | None = None

    @property
    def required(self) -> bool:
        """Whether clients need credentials."""
        return not credentials_of(self.settings).anonymous_allowed

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {"users": lambda: self.authenticator.known, "change_users": self._change}

    async def _change(self, verb: str, user: str, password: str | None, *options: str) -> None:
        """Change the users file, by a process of its own: `fanlightd user VERB`. A reload reads it.

        Raises FanlightError.
        """
        file = self.settings.users_file
        if file is None:
            raise FanlightError("there is no file of users: see the setting users_file")
        stdin = ("--stdin",) if password is not None else ()
        process = await asyncio.create_subprocess_exec(
            *command_line("user", verb, *stdin, *options, "--", os.fspath(file), user),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate(None if password is None else f"{password}\n".encode())
        if process.returncode != 0:
            lines = said.decode(errors="replace").strip().splitlines()
            raise FanlightError(lines[-1].removeprefix("fanlightd: ") if lines else f"exit code {process.returncode}")

    async def open(self) -> None:
        settings = self.settings
        try:
            self.authenticator = PasswordAuthenticator(
                credentials_of(settings), threads=settings.password_threads, queue_max=settings.password_queue_max,
                cache_max=settings.password_cache_max, delay_seconds_max=settings.password_delay_seconds_max,
            )
        except TokenKeysError as error:
            raise PartError(f"token_keys_file: {error}") from error
        except PasswordFileError as error:
            raise PartError(f"{file_setting(settings)}: {error}") from error

    async def stop(self) -> None:
        self._thread.stop()
        await self.authenticator.close()

    async def prepare(self, settings: Settings) -> None:
        self._prepared = None
        self._prepared = await self._thread.read(partial(self._read, settings))

    def _read(self, settings: Settings, pause: Callable[[], None]) -> Apply:
        """In a thread: users, keys, and the hash of a new password. Raises PartError."""
        try:
            return self.authenticator.prepare(credentials_of(settings), pause)
        except TokenKeysError as error:
            raise PartError(f"token_keys_file: {error}") from error
        except PasswordFileError as error:
            raise PartError(f"{file_setting(settings)}: {error}") from error

    def reload(self, settings: Settings) -> Apply:
        use, self._prepared = self._prepared, None
        assert use is not None  # `prepare` comes before

        def apply() -> None:
            use()
            self.settings = settings
            log.info("credentials_reloaded", users=self.authenticator.users)

        return apply

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource({**COUNTERS, **GAUGES}, self.authenticator.counters, self.authenticator.gauges)]


def read_files(settings: Settings) -> None:
    """Read the files that the settings name, as a broker would. Raises PartError."""
    try:
        credentials = credentials_of(settings)
        read_users(credentials)
        read_tokens(credentials)
    except TokenKeysError as error:
        raise PartError(f"token_keys_file: {error}") from error
    except PasswordFileError as error:
        raise PartError(f"{file_setting(settings)}: {error}") from error


def tokens_of(settings: Settings) -> "TokenRules | None":
    if settings.token_keys_file is None:
        return None
    from fanlight_broker.auth.tokens import TokenRules  # for those who have tokens

    return TokenRules(
        settings.token_keys_file, settings.token_issuer, settings.token_audience, settings.token_leeway_seconds,
        settings.token_user_claim, settings.token_groups_claim, settings.token_permissions_claim,
        settings.token_limits_claim, settings.token_cache_max,
    )


def hook_of(settings: Settings) -> HookRules | None:
    """Raises PartError."""
    if settings.auth_url is None:
        return None
    try:
        token = secret_in(settings.auth_token_file) if settings.auth_token_file is not None else None
    except SecretFileError as error:
        raise PartError(f"auth_token_file: {error}") from error
    return HookRules(
        settings.auth_url, settings.auth_timeout_seconds, settings.auth_requests_max, settings.auth_cache_max,
        settings.auth_cache_seconds, token,
    )


def file_setting(settings: Settings) -> str:
    """The setting that names the file of users."""
    return "users_file" if settings.users_file is not None else "password_file"


def credentials_of(settings: Settings) -> Credentials:
    return Credentials(
        users_file=settings.users_file,
        password_file=settings.password_file,
        password=settings.password.reveal() if settings.password is not None else None,
        tokens=tokens_of(settings), hook=hook_of(settings),
        certificate_groups=certificate_groups(settings.tls_client_groups or ""),
        allow_anonymous=settings.allow_anonymous,
    )
