"""The exposure rule, and that a password is never shown."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.config import Secret, SettingsError, Sources, is_loopback, load
from fanlight_broker.config.explain import effective


def problems(**sources: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(Sources(**sources))
    return str(caught.value)


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fanlight.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST.", "::ffff:127.0.0.1"])
def test_loopback_addresses_are_for_this_machine_only(host: str) -> None:
    assert is_loopback(host)
    load(Sources(flags={"native_host": host, "http_host": host}))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.0.1", "0", "127.0.0.1.example.org", "broker", "::ffff:8.8.8.8"]
)
@pytest.mark.parametrize("listener", ["native", "http"])
def test_any_other_address_wants_a_password_or_an_explicit_word(host: str, listener: str) -> None:
    assert not is_loopback(host)
    flags = {f"{listener}_host": host}
    text = problems(flags=flags)
    assert f"{listener}_host = {host} (flag --{listener}-host): can be reached from other machines" in text
    for remedy in ("fanlightd user add FILE USER", "FANLIGHT_PASSWORD", "--allow-anonymous"):
        assert remedy in text
    load(Sources(flags={**flags, "allow_anonymous": True}))
    load(Sources(flags={**flags, "password_file": "users"}))
    load(Sources(flags=flags, environment={"FANLIGHT_PASSWORD": "x"}))


def test_an_open_door_is_a_warning() -> None:
    loaded = load(Sources(flags={"native_host": "0.0.0.0", "allow_anonymous": True}))
    assert loaded.warnings == (
        "everybody who can reach native_host 0.0.0.0 is admitted without credentials (allow_anonymous)",
    )
    assert load(Sources(flags={"allow_anonymous": True})).warnings == ()


def test_an_ipv6_address_may_stand_in_brackets() -> None:
    assert load(Sources(flags={"native_host": "[::1]"})).settings.native_host == "::1"


def test_an_http_listener_that_is_off_exposes_nothing() -> None:
    load(Sources(flags={"http_host": "0.0.0.0", "http": False}))


def test_one_password_and_a_password_file_together_are_refused() -> None:
    text = problems(flags={"password_file": "users"}, environment={"FANLIGHT_PASSWORD": "x"})
    assert "use either one password for everybody or a password file" in text


# The password is never shown.

SECRET = "correct horse"


def test_a_password_shows_in_no_text(tmp_path: Path) -> None:
    loaded = load(Sources(environment={"FANLIGHT_PASSWORD": SECRET}))
    assert loaded.settings.password == Secret(SECRET)
    assert loaded.settings.password.reveal() == SECRET
    for text in (
        repr(loaded.settings),
        effective(loaded),
        str(loaded.settings.password),
        f"{loaded.settings}",
    ):
        assert SECRET not in text
    assert SECRET not in problems(environment={"FANLIGHT_PASSWORD": SECRET}, flags={"password_file": "x"})
    assert SECRET not in problems(environment={"FANLIGHT_PASSWORD": f"{SECRET}\0"})
    config = file(tmp_path, f'password = ["{SECRET}"]')
    assert SECRET not in problems(config=config)


def test_a_password_in_a_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    config = file(tmp_path, f'password = "{SECRET}"')
    assert load(Sources(config=config)).warnings == ()
    config.chmod(0o644)
    (warning,) = load(Sources(config=config)).warnings
    assert "chmod 600" in warning


def test_the_variable_of_the_password_file_may_name_a_bare_password(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    variable = {"FANLIGHT_PASSWORD_FILE": str(secret)}
    secret.write_text("sesame\n")
    settings = load(Sources(environment=variable)).settings
    assert settings.password is not None
    assert (settings.password.reveal(), settings.password_file) == ("sesame", None)
    with pytest.raises(SettingsError, match="FANLIGHT_PASSWORD is set as well"):
        load(Sources(environment={"FANLIGHT_PASSWORD": "x", **variable}))


@pytest.mark.parametrize(
    "text", ["alice:$argon2id$v=19$...", "alice:", ":", "", "\n", "one\ntwo\n", "# comment", "x" * 5000]
)
def test_what_could_be_a_damaged_password_file_is_not_taken_for_a_password(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    settings = load(Sources(environment={"FANLIGHT_PASSWORD_FILE": str(file)})).settings
    assert (settings.password, settings.password_file) == (None, file)


def test_a_password_file_in_a_flag_is_never_a_bare_password(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("sesame\n")
    settings = load(Sources(flags={"password_file": str(file)})).settings
    assert (settings.password, settings.password_file) == (None, file)


def test_metrics_that_are_open_to_other_machines_are_warned_about() -> None:
    sources = Sources(flags={"http_host": "0.0.0.0", "metrics_open": True}, environment={"FANLIGHT_PASSWORD": "x"})
    assert load(sources).warnings == ("everybody who can reach http_host 0.0.0.0 can read /metrics (metrics_open)",)
