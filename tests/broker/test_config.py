"""Settings: one name in the file, the environment and the flags, and errors that say what to do."""

import dataclasses
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.config import (
    Key,
    Settings,
    SettingsError,
    Sources,
    apply_reload,
    keys,
    load,
    reload,
    reloadable_changes,
)
from fanlight_broker.config.explain import effective, markdown
from fanlight_broker.config.load import OTHER_VARIABLES, value_of
from fanlight_broker.config.values import parse
from fanlight_broker.core.limits import Limits

ROOT = Path(__file__).parents[2]


def problems(**sources: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(Sources(**sources))
    return str(caught.value)


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fanlight.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


# One name, four places.


def test_without_any_source_there_are_the_defaults() -> None:
    loaded = load(Sources())
    assert loaded.settings == Settings()
    assert set(loaded.places.values()) == {"default"}
    assert loaded.warnings == ()


def test_the_file_overrides_the_default_the_environment_the_file_and_a_flag_the_environment(
    tmp_path: Path,
) -> None:
    config = file(tmp_path, "native_port = 1\nhttp_port = 2\nroutes_max = 33\n")
    environment = {"FANLIGHT_HTTP_PORT": "3", "FANLIGHT_ROUTES_MAX": "44"}
    loaded = load(Sources(flags={"routes_max": "55"}, environment=environment, config=config))
    assert loaded.settings.native_port == 1
    assert loaded.settings.http_port == 3
    assert loaded.settings.limits.routes_max == 55
    assert loaded.places["native_port"] == f"{config}, line 1"
    assert loaded.places["http_port"] == "environment variable FANLIGHT_HTTP_PORT"
    assert loaded.places["routes_max"] == "flag --routes-max"
    assert loaded.places["grace_seconds"] == "default"


@pytest.mark.parametrize("key", keys().values(), ids=lambda key: key.name)
def test_every_key_can_be_set_by_its_variable(key: Key) -> None:
    value = another_value(key)
    environment = {key.variable: value, "FANLIGHT_ALLOW_ANONYMOUS": "true"} | {key.variable: value}
    settings = load(Sources(environment=environment), whole=False).settings
    assert value_of(settings, key.name) == parse(value, key.kind, key.unit) != key.default


def another_value(key: Key) -> str:
    if key.kind is bool:
        return "no" if key.default else "yes"
    if key.least is not None and key.most is not None:
        return key.show(key.least if key.default != key.least else key.most)
    members = getattr(key.kind, "__members__", None)
    return next(each.value for each in members.values() if each != key.default) if members else "other"


def test_the_config_file_is_found_by_its_variable_and_the_flag_goes_first(tmp_path: Path) -> None:
    one, two = file(tmp_path, "native_port = 1"), tmp_path / "two.toml"
    two.write_text("native_port = 2")
    environment = {"FANLIGHT_CONFIG": str(one)}
    assert load(Sources(environment=environment)).settings.native_port == 1
    assert load(Sources(environment=environment, config=two)).settings.native_port == 2


def test_a_relative_path_in_the_file_starts_from_its_folder_and_elsewhere_from_the_working_directory(
    tmp_path: Path,
) -> None:
    config = file(tmp_path, 'password_file = "users"')
    assert load(Sources(config=config)).settings.password_file == tmp_path / "users"
    assert load(Sources(flags={"password_file": "users"})).settings.password_file == Path("users")


# What is wrong, and where.


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    config = file(tmp_path, '# head\nframe_bytes_max = "64GiB"\nnative_prot = 1\n\n[limits]\nroutes_max = 5\n')
    text = problems(
        config=config,
        environment={"FANLIGHT_GRACE_SECONDS": "soon"},
        flags={"slow_policy": "drop", "http_port": "70000"},
    )
    assert text.startswith("6 settings are wrong:")
    assert f"frame_bytes_max = 64GiB ({config}, line 2): must be at most 64MiB: largest frame accepted" in text
    assert f"native_prot ({config}, line 3): no such setting; did you mean native_port?" in text
    assert f"limits = [...] ({config}, line 5): tables are not used" in text
    assert "grace_seconds = soon (environment variable FANLIGHT_GRACE_SECONDS): is not a time" in text
    assert "http_port = 70000 (flag --http-port): must be at most 65535" in text
    assert "slow_policy = drop (flag --slow-policy): is not one of drop_newest, drop_oldest, disconnect, pause" in text


def test_a_bound_is_told_with_its_reason() -> None:
    text = problems(flags={"handshake_seconds_max": "10h"})
    assert "must be at most 300s: time to complete the handshake; bounds how long a slow-loris" in text
    assert "must be at least 0.1s" in problems(flags={"handshake_seconds_max": "0"})


def test_a_value_overridden_by_a_good_one_is_still_an_error(tmp_path: Path) -> None:
    config = file(tmp_path, "native_port = -1")
    assert "native_port = -1" in problems(config=config, flags={"native_port": "1"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"native_port = \n", "is not TOML"),
        (b"a = 1\na = 2\n", "is not TOML"),
        (b"\xff\xfe", "is not UTF-8 (at byte 0)"),
        (b"a = " + b"[" * 100_000, "is not TOML"),
        (b"a = " + b"9" * 5_000, "is not TOML"),
        (b"#" * 2_000_000, "hardly a settings file"),
    ],
)
def test_a_file_that_is_none_is_told_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    text = problems(config=path)
    assert said in text
    assert str(path) in text


def test_a_missing_file_is_told_with_who_asked_for_it(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    assert f"config = {path} (flag --config): cannot be read: No such file" in problems(config=path)
    text = problems(environment={"FANLIGHT_CONFIG": str(tmp_path)})
    assert f"config = {tmp_path} (environment variable FANLIGHT_CONFIG): cannot be read: Is a directory" in text


def test_an_unknown_variable_is_a_warning_with_a_suggestion() -> None:
    loaded = load(Sources(environment={"FANLIGHT_HTTP_PROT": "1", "PATH": "/bin"}))
    (warning,) = loaded.warnings
    assert "FANLIGHT_HTTP_PROT is no setting and is ignored; did you mean FANLIGHT_HTTP_PORT?" in warning


def test_variables_of_the_tools_are_no_warnings() -> None:
    assert load(Sources(environment=dict.fromkeys(OTHER_VARIABLES, ""))).warnings == ()


def test_an_empty_variable_counts_as_not_set_with_a_warning() -> None:
    loaded = load(Sources(environment={"FANLIGHT_PASSWORD": "", "FANLIGHT_HTTP_PORT": ""}))
    assert loaded.settings == Settings()
    assert len(loaded.warnings) == 2


def test_a_port_that_kubernetes_set_is_recognised() -> None:
    assert "enableServiceLinks" in problems(environment={"FANLIGHT_NATIVE_PORT": "tcp://10.0.0.1:7420"})


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in problems(environment={"FANLIGHT_HTTP_PORT": "\x1b[2J"})


# Rules between settings.


def test_an_outbox_must_hold_two_frames() -> None:
    text = problems(flags={"frame_bytes_max": "6MiB"})
    assert "outbox_bytes_max = 8MiB (flag --frame-bytes-max): must be at least 2 times frame_bytes_max (12MiB)" in text
    load(Sources(flags={"frame_bytes_max": "6MiB", "outbox_bytes_max": "12MiB"}))


def test_a_stranger_must_not_send_more_than_a_client() -> None:
    assert "handshake_frame_bytes_max (4KiB)" in problems(flags={"frame_bytes_max": "1KiB"})


def test_all_outboxes_together_must_hold_one() -> None:
    assert "outboxes_bytes_max" in problems(flags={"outboxes_bytes_max": "1MiB"})


def test_two_listeners_cannot_share_a_port_but_may_both_ask_for_a_free_one() -> None:
    assert "cannot share a port" in problems(flags={"native_port": "9", "http_port": "9"})
    load(Sources(flags={"native_port": "0", "http_port": "0"}))
    load(Sources(flags={"native_port": "9", "http_port": "9", "http": False}))


def test_a_problem_with_a_value_hides_what_would_follow_from_its_default() -> None:
    text = problems(flags={"native_host": "0.0.0.0", "allow_anonymous": "perhaps"})
    assert text.startswith("1 setting is wrong")


# Reload.


def test_a_reload_reads_the_file_again_and_knows_what_needs_a_restart(tmp_path: Path) -> None:
    config = file(tmp_path, "connections_max = 10\nnative_port = 1\n")
    old = load(Sources(config=config, flags={"log_level": "debug"})).settings
    config.write_text('connections_max = 20\nnative_port = 2\nlog_level = "error"\n')
    new = reload(old).settings
    changes = reloadable_changes(old, new)
    assert [str(change) for change in changes.applied] == ["connections_max: 10 -> 20"]
    assert [str(change) for change in changes.needs_restart] == ["native_port: 1 -> 2"]
    in_force = apply_reload(old, new)
    assert (in_force.limits.connections_max, in_force.native_port, in_force.log_level) == (20, 1, "debug")


def test_a_reload_of_a_spoilt_file_raises_and_leaves_the_settings(tmp_path: Path) -> None:
    config = file(tmp_path, "connections_max = 10\n")
    old = load(Sources(config=config)).settings
    config.write_text("connections_max = 0\n")
    with pytest.raises(SettingsError, match="connections_max = 0"):
        reload(old)


def test_a_changed_password_shows_in_no_change(tmp_path: Path) -> None:
    old, new = (load(Sources(environment={"FANLIGHT_PASSWORD": each})).settings for each in ("one", "two"))
    (change,) = reloadable_changes(old, new).applied
    assert change.key == "password"
    assert "one" not in str(change)
    assert "two" not in str(change)


# The table and what is made of it.


def test_every_field_of_settings_and_limits_is_a_key_with_a_reason() -> None:
    fields = {each.name for owner in (Settings, Limits) for each in dataclasses.fields(owner)} - {"limits", "sources"}
    assert set(keys()) == fields
    assert all(key.reason for key in keys().values())


def test_every_number_has_a_unit_and_bounds_and_its_default_lies_within() -> None:
    for key in keys().values():
        if key.kind in (int, float):
            assert key.unit, key
            assert key.least is not None, key
            assert key.most is not None, key
            key.check(key.default)


def test_what_check_config_prints_is_a_file_with_the_same_settings(tmp_path: Path) -> None:
    environment = {
        "FANLIGHT_GRACE_SECONDS": "1.5s",
        "FANLIGHT_PASSWORD_FILE": '/a "b"\\c',
        "FANLIGHT_HTTP": "no",
    }
    loaded = load(Sources(environment=environment))
    text = effective(loaded)
    tomllib.loads(text)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("password ="))
    assert load(Sources(config=file(tmp_path, text))).settings == loaded.settings


def test_the_configuration_page_is_what_the_declarations_make() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    assert page == markdown(), "run: python -m fanlight_broker.config > docs/configuration.md"
    done = subprocess.run(
        [sys.executable, "-m", "fanlight_broker.config"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == page
