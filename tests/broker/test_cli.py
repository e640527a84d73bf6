"""fanlightd as people and containers call it: a process, its output and its exit code."""

import http.server
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import argon2
import pytest

from fanlight_broker import __version__
from fanlight_broker.auth.password_file import read
from fanlight_broker.config import Exit, keys
from fanlight_broker.config.explain import markdown

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def fanlightd(tmp_path: Path) -> Run:
    """Runs fanlightd in an empty folder and an environment without settings; more variables are keywords."""

    def run(*arguments: str, stdin: str = "", **variables: str) -> Done:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("FANLIGHT_")}
        command = [sys.executable, "-m", "fanlight_broker", *arguments]
        return subprocess.run(
            command, input=stdin, env=clean | variables, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )  # fmt: skip

    return run


# Help.


def test_help_teaches_by_examples_and_names_the_exit_codes(fanlightd: Run) -> None:
    done = fanlightd("--help")
    assert done.returncode == Exit.OK
    assert "fanlightd serve --native-host 0.0.0.0 --users-file users.toml" in done.stdout
    for code in Exit:
        assert f"\n  {int(code)} " in done.stdout


def test_the_help_of_serve_has_every_setting_with_its_default_and_bounds(fanlightd: Run) -> None:
    text = " ".join(fanlightd("serve", "--help").stdout.split())
    for key in keys().values():
        assert key.flag if key.has_flag else key.variable in text
        assert key.reason in text, key.name
        if key.has_flag:
            assert f"{key.bounds()}) [default: {key.show(key.default)}]" in text or not key.bounds()
    assert "--no-http" in text


def test_no_command_and_an_unknown_one_are_usage_errors(fanlightd: Run) -> None:
    assert fanlightd().returncode == Exit.USAGE
    done = fanlightd("server")
    assert (done.returncode, "serve" in done.stderr) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serv"], "fanlightd: there is no command 'serv'; did you mean serve?\ntry `fanlightd --help`\n"),
        (["serve", "--nativ-port", "1"],
         "fanlightd serve: there is no --nativ-port; did you mean --native-port?\ntry `fanlightd serve --help`\n"),
        (["serve", "1883"], "fanlightd serve: not understood: 1883\ntry `fanlightd serve --help`\n"),
        (["healthcheck", "--timeout", "long"],
         "fanlightd healthcheck: argument --timeout: must be a number of seconds above 0; got 'long'\n"
         "try `fanlightd healthcheck --help`\n"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_told_what_was_meant_and_where_the_help_is(
    fanlightd: Run, words: list[str], said: str
) -> None:
    done = fanlightd(*words)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.USAGE, "", said)


def test_a_table_in_the_file_is_told_that_there_are_none(fanlightd: Run, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("[mqtt]\nport = 3\n")
    done = fanlightd("serve", "--config", "f.toml")
    assert done.returncode == Exit.USAGE
    assert "mqtt = [...] (f.toml, line 1): tables are not used" in done.stderr


def test_flags_are_not_guessed_from_their_beginnings(fanlightd: Run) -> None:
    assert fanlightd("check-config", "--native-por", "1").returncode == Exit.USAGE


def test_version_is_one_line(fanlightd: Run) -> None:
    done = fanlightd("version")
    assert (done.returncode, done.stdout.split(",")[0]) == (Exit.OK, f"fanlightd {__version__}")
    assert fanlightd("--version").stdout == done.stdout


# check-config, and what serve refuses.


def test_check_config_prints_what_is_in_force_and_where_it_is_from(fanlightd: Run, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("http_port = 9000\n")
    done = fanlightd("check-config", "--config", "f.toml", "--no-http", FANLIGHT_PASSWORD="hunter2")
    assert done.returncode == Exit.OK
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "http_port = 9000 # f.toml, line 1" in lines
    assert "http = false # flag --http" in lines
    assert "native_port = 7420 # default" in lines
    assert "hunter2" not in done.stdout + done.stderr


def test_check_config_says_all_that_is_wrong_and_exits_with_1(fanlightd: Run) -> None:
    done = fanlightd("check-config", "--native-port", "-1", "--log-level", "loud")
    assert (done.returncode, done.stdout) == (Exit.FAILED, "")
    assert "2 settings are wrong" in done.stderr
    assert "flag --native-port" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_config_reads_the_password_file_that_serve_would_read(fanlightd: Run, tmp_path: Path) -> None:
    users = tmp_path / "users"
    missing = fanlightd("check-config", "--password-file", str(users))
    assert (missing.returncode, missing.stdout) == (Exit.FAILED, "")
    assert f"{users}: no such file; create it: fanlightd passwd" in missing.stderr
    users.write_text("# who may come in\nalice:plain\n")
    spoilt = fanlightd("check-config", "--password-file", str(users))
    assert (spoilt.returncode, spoilt.stdout) == (Exit.FAILED, "")
    assert f"password_file: {users}, line 2: no argon2 hash" in spoilt.stderr


def test_check_config_prints_warnings_beside_the_settings(fanlightd: Run) -> None:
    done = fanlightd("check-config", FANLIGHT_NATIV_PORT="1")
    assert done.returncode == Exit.OK
    assert "did you mean FANLIGHT_NATIVE_PORT?" in done.stderr


def test_check_config_prints_the_configuration_page(fanlightd: Run) -> None:
    assert fanlightd("check-config", "--markdown").stdout == markdown()


def test_a_reader_that_has_seen_enough_is_no_error(fanlightd: Run) -> None:
    shell = f"{sys.executable} -m fanlight_broker check-config --markdown | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("# Configuration\n0\n", "")


def test_serve_refuses_an_exposed_address_and_says_what_to_do(fanlightd: Run) -> None:
    done = fanlightd("serve", "--native-host", "0.0.0.0", "--native-port", "0", "--http-port", "0")
    assert done.returncode == Exit.USAGE
    assert "native_host = 0.0.0.0 (flag --native-host): can be reached from other machines" in done.stderr
    assert "fanlightd user add FILE USER" in done.stderr
    assert "Traceback" not in done.stderr


def test_there_is_no_password_on_the_command_line(fanlightd: Run) -> None:
    for flags in (["--password=hunter2"], ["--password", "hunter2"], ["--password"]):
        done = fanlightd("serve", *flags)
        assert done.returncode == Exit.USAGE
        assert "FANLIGHT_PASSWORD" in done.stderr
        assert "hunter2" not in done.stderr


# passwd.


def test_passwd_makes_changes_and_deletes_a_user(fanlightd: Run, tmp_path: Path) -> None:
    users = tmp_path / "users"
    done = fanlightd("passwd", "users", "alice", "--stdin", stdin="wonder land\nrest\n")
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    assert "added alice" in done.stdout
    assert users.stat().st_mode & 0o777 == 0o600
    assert argon2.PasswordHasher().verify(read(users)["alice"], "wonder land")
    assert "changed the password of alice" in fanlightd("passwd", "users", "alice", "--stdin", stdin="new").stdout
    assert argon2.PasswordHasher().verify(read(users)["alice"], "new")
    assert "deleted alice" in fanlightd("passwd", "users", "alice", "--delete").stdout
    assert read(users) == {}


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["users", "alice", "--stdin"], "", "the password is empty"),
        (["users", "alice", "--stdin"], "\nx", "the password is empty"),
        (["users", "alice", "--stdin"], "x" * 2000, "longer than 1024 bytes"),
        (["users", "a:b", "--stdin"], "x", "must not contain ':'"),
        (["users", "", "--stdin"], "x", "must not be empty"),
        (["users", "alice"], "x", "there is no terminal to ask on"),
        (["users", "alice", "--delete"], "", "has no user 'alice'"),
        (["no/such/folder/users", "alice", "--stdin"], "x", "No such file or directory"),
        (["/dev/null/users", "alice", "--stdin"], "x", "Not a directory"),
    ],
)
def test_passwd_that_changes_nothing_says_why_and_exits_with_1(
    fanlightd: Run, tmp_path: Path, arguments: list[str], stdin: str, said: str
) -> None:
    done = fanlightd("passwd", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (Exit.FAILED, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "users").exists()


def at_a_terminal(tmp_path: Path, *answers: str) -> tuple[int, str]:
    """Run passwd at a terminal, answering its questions; its exit code and what the terminal showed."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "fanlight_broker", "passwd", "users", "alice"])
    shown = b""
    remaining = list(answers)
    while True:
        try:
            data = os.read(terminal, 1024)
        except OSError:  # Linux says so when the other side has closed
            break
        if not data:
            break
        shown += data
        if data.endswith(b": ") and remaining:
            os.write(terminal, f"{remaining.pop(0)}\n".encode())
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_passwd_asks_twice_on_a_terminal_and_does_not_echo(tmp_path: Path) -> None:
    code, shown = at_a_terminal(tmp_path, "wonder", "wonder")
    assert code == Exit.OK
    assert "wonder" not in shown
    assert argon2.PasswordHasher().verify(read(tmp_path / "users")["alice"], "wonder")


def test_passwd_refuses_two_that_differ(tmp_path: Path) -> None:
    code, shown = at_a_terminal(tmp_path, "wonder", "wander")
    assert code == Exit.FAILED
    assert "differ" in shown
    assert not (tmp_path / "users").exists()


# healthcheck.


@pytest.fixture
def answering() -> Iterator[Callable[[int], int]]:
    """Starts an HTTP server that answers /healthz with a status; returns its port."""
    servers: list[http.server.HTTPServer] = []

    def start(status: int) -> int:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.path == "/healthz" else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server.server_port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_healthcheck_asks_where_the_settings_say(fanlightd: Run, answering: Callable[[int], int]) -> None:
    port = str(answering(200))
    everywhere = {"FANLIGHT_HTTP_HOST": "0.0.0.0"}  # and no password here: the broker may have got it elsewhere
    for done in (
        fanlightd("healthcheck", FANLIGHT_HTTP_PORT=port),
        fanlightd("healthcheck", FANLIGHT_HTTP_PORT=port, **everywhere),
        fanlightd("healthcheck", "--url", f"http://127.0.0.1:{port}"),
        fanlightd("healthcheck", "--url", f"127.0.0.1:{port}/"),
        fanlightd("healthcheck", FANLIGHT_HTTP_PORT=port, http_proxy="http://127.0.0.1:9"),
    ):
        assert (done.returncode, done.stderr) == (Exit.OK, "")


def test_healthcheck_fails_on_another_answer(fanlightd: Run, answering: Callable[[int], int]) -> None:
    done = fanlightd("healthcheck", FANLIGHT_HTTP_PORT=str(answering(503)))
    assert (done.returncode, "answered 503" in done.stderr) == (Exit.FAILED, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "http://127.0.0.1:1"], "Connection refused"),
        (["--url", "https://127.0.0.1"], "is not a URL such as"),
        (["--url", "http://127.0.0.1:x"], "is not a URL such as"),
        (["--url", "http://127.0.0.1:99999"], "is not a URL such as"),
        (["--url", "http://[::1"], "is not a URL such as"),
        (["--config", "none.toml"], "cannot be read"),
    ],
)
def test_healthcheck_says_what_is_wrong_in_a_line(fanlightd: Run, arguments: list[str], said: str) -> None:
    done = fanlightd("healthcheck", *arguments)
    assert done.returncode == Exit.FAILED
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_healthcheck_of_a_broker_without_http_says_so(fanlightd: Run) -> None:
    assert "--url" in fanlightd("healthcheck", FANLIGHT_HTTP="false").stderr
    assert fanlightd("healthcheck", FANLIGHT_HTTP_PORT="0").returncode == Exit.FAILED


def test_healthcheck_gives_up_on_a_server_that_does_not_answer(fanlightd: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = fanlightd("healthcheck", "--timeout", "0.2", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert (done.returncode, "timed out" in done.stderr) == (Exit.FAILED, True)
