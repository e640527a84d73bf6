"""fanlightd serve as a process: who is let in, what SIGHUP reloads, and how it ends."""

import base64
import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import argon2
import pytest

from fanlight_bench.launch import Broker, fanlightd
from fanlight_broker.auth.password_file import set_hash
from fanlight_broker.config import Exit

CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
Start = Callable[..., Any]


def status(broker: Broker, path: str, user: str = "", password: str = "") -> int:
    """The HTTP status of a GET, with credentials if a user is given."""
    request = urllib.request.Request(broker.http_url + path)
    if user:
        encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {encoded}")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def said(broker: Broker, event: str) -> list[dict[str, Any]]:
    """The events of that name that it has logged."""
    events = [json.loads(line) for line in broker.lines if line.startswith("{")]
    return [each for each in events if each["event"] == event]


def test_a_broker_on_every_address_asks_for_its_password_except_for_its_health(start_broker: Start) -> None:
    broker = start_broker(http_host="0.0.0.0", environment={"FANLIGHT_PASSWORD": "sesame"})
    assert status(broker, "/healthz") == 200
    assert [status(broker, path) for path in ("/stats", "/metrics", "/readyz")] == [401, 401, 200]
    assert status(broker, "/stats", "anybody", "sesame") == 200
    assert status(broker, "/stats", "anybody", "sesam") == 401
    native, page, mqtt, websocket, amqp, http = (line["try_it"] for line in said(broker, "listening"))
    assert page.startswith("await connect('ws://127.0.0.1:")
    assert mqtt.endswith("-u USER -P PASSWORD -t 'stock/#'")
    assert "ws://127.0.0.1:" in websocket
    assert "fanlight://USER:PASSWORD@127.0.0.1:" in native
    assert "amqp://USER:PASSWORD@127.0.0.1:" in amqp
    assert "http://USER:PASSWORD@127.0.0.1:" in http
    assert not any("sesame" in line for line in broker.lines)


def test_an_open_broker_says_at_start_that_it_is_open(start_broker: Start) -> None:
    broker = start_broker(native_host="0.0.0.0", allow_anonymous=True)
    (warning,) = said(broker, "settings")
    assert warning["level"] == "warning"
    assert "everybody who can reach native_host 0.0.0.0" in warning["reason"]


def test_sighup_takes_new_users_and_limits_and_names_what_needs_a_restart(start_broker: Start, tmp_path: Path) -> None:
    users, config = tmp_path / "users", tmp_path / "fanlight.toml"
    set_hash(users, "alice", CHEAP.hash("wonder"))
    config.write_text('password_file = "users"\nconnections_max = 10\n')
    broker = start_broker(config=config)
    assert status(broker, "/stats", "alice", "wonder") == 200
    assert status(broker, "/stats", "bob", "builder") == 401

    set_hash(users, "alice", None)
    set_hash(users, "bob", CHEAP.hash("builder"))
    config.write_text('password_file = "users"\nconnections_max = 20\npassword_threads = 5\n')
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for_line('"reloaded"')
    (reloaded,) = said(broker, "reloaded")
    assert reloaded["applied"] == ["connections_max: 10 -> 20"]
    assert reloaded["needs_restart"] == ["password_threads: 2 -> 5"]
    assert status(broker, "/stats", "alice", "wonder") == 401
    assert status(broker, "/stats", "bob", "builder") == 200


@pytest.mark.parametrize("spoilt", ["users", "fanlight.toml"])
def test_sighup_with_something_spoilt_says_what_and_changes_nothing(
    start_broker: Start, tmp_path: Path, spoilt: str
) -> None:
    set_hash(tmp_path / "users", "alice", CHEAP.hash("wonder"))
    (tmp_path / "fanlight.toml").write_text('password_file = "users"\n')
    broker = start_broker(config=tmp_path / "fanlight.toml")
    broker.may_complain = True
    (tmp_path / spoilt).write_text("spoilt\n")
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for_line('"reload_failed"')
    (failed,) = said(broker, "reload_failed")
    assert str(tmp_path / spoilt) in failed["reason"]
    assert "line 1" in failed["reason"]
    assert status(broker, "/stats", "alice", "wonder") == 200


def test_what_the_last_part_refuses_is_applied_by_none(start_broker: Start, tmp_path: Path) -> None:
    """The password file is in order and comes first; the token of /metrics is not, and comes last."""
    users, token = tmp_path / "users", tmp_path / "token"
    set_hash(users, "alice", CHEAP.hash("wonder"))
    token.write_text("sesame\n")
    broker = start_broker(password_file=users, metrics_token_file=token)
    broker.may_complain = True
    set_hash(users, "alice", CHEAP.hash("changed"))
    token.write_text("two\nlines\n")
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for_line('"reload_failed"')
    (failed,) = said(broker, "reload_failed")
    assert failed["reason"] == f"http: metrics_token_file: {token}: must hold one line, the secret"
    assert status(broker, "/stats", "alice", "wonder") == 200
    assert status(broker, "/stats", "alice", "changed") == 401


def test_a_port_in_use_is_exit_code_69_and_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        names = ("native-port", "native-websocket-port", "mqtt-port", "mqtt-websocket-port", "amqp-port", "http-port")
        free = dict.fromkeys(names, "0")
        for name in free:
            done = serve(*(word for each in {**free, name: str(port)}.items() for word in (f"--{each[0]}", each[1])))
            assert done.returncode == Exit.UNAVAILABLE
            assert done.stderr == (
                f"fanlightd: {'http' if name == 'http-port' else 'listeners'}: "
                f"cannot listen on 127.0.0.1:{port} ({name.replace('-', '_')}): Address already in use. "
                "Is another broker running? Choose another port, or stop the other\n"
            )
            assert "error" not in done.stdout


def test_an_address_that_is_not_this_machines_is_exit_code_69() -> None:
    done = serve("--native-host", "192.0.2.1", "--native-port", "0", "--http-port", "0", "--allow-anonymous")
    assert done.returncode == Exit.UNAVAILABLE
    assert "cannot listen on 192.0.2.1:0 (native_port): Cannot assign requested address. Choose an" in done.stderr
    assert "Errno" not in done.stdout + done.stderr


def test_an_authentication_method_that_cannot_be_had_is_exit_code_2() -> None:
    done = serve("--mqtt-authentication-methods", "RIDDLE=no_such_module:Riddle")
    assert done.returncode == Exit.USAGE
    assert told_once(done, "listeners: mqtt_authentication_methods: 'RIDDLE=no_such_module:Riddle': No module named")


def test_a_spoilt_password_file_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice:hunter2\n")
    done = serve("--password-file", str(tmp_path / "users"), "--native-port", "0", "--http-port", "0")
    assert done.returncode == Exit.USAGE
    assert told_once(done, f"authentication: password_file: {tmp_path}/users, line 1: no argon2 hash")
    assert "hunter2" not in done.stdout + done.stderr


def test_a_certificate_that_is_not_there_is_exit_code_2(tmp_path: Path) -> None:
    done = serve("--tls-certificate", str(tmp_path / "no.pem"), "--native-port", "0", "--http-port", "0")
    assert done.returncode == Exit.USAGE
    assert told_once(done, f"tls: tls_certificate {tmp_path}/no.pem: No such file or directory")


def test_an_archive_that_cannot_be_is_exit_code_2(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "file").write_text("")
    done = serve("--archive", str(tmp_path / "file"), "--native-port", "0", "--http-port", "0")
    assert done.returncode == Exit.USAGE
    assert told_once(done, f"archive: archive = {tmp_path}/file: is not a folder")


def told_once(done: "subprocess.CompletedProcess[str]", text: str) -> bool:
    """As prose on standard error, in one line, and nowhere else."""
    return done.stderr.startswith(f"fanlightd: {text}") and done.stderr.count("\n") == 1 and done.stdout == ""


def test_without_http_websocket_mqtt_and_amqp_there_is_one_listener() -> None:
    process = subprocess.Popen(
        [fanlightd(), "serve", "--native-port", "0", "--no-native-websocket", "--no-http", "--no-mqtt", "--no-amqp",
         "--log-format", "json"],
        stdout=subprocess.PIPE, text=True, env=clean(),
    )  # fmt: skip
    assert process.stdout is not None
    events = []
    while "ready" not in events:
        events.append(json.loads(process.stdout.readline())["event"])
    process.terminate()
    rest, _ = process.communicate(timeout=20)
    assert events.count("listening") == 1
    assert process.returncode == Exit.OK
    assert json.loads(rest.splitlines()[-1])["event"] == "stopped"


@pytest.mark.parametrize(("flags", "told"), [("", 0), ("--connections-max 15000", 1)])
def test_too_few_files_are_told_only_for_a_number_of_connections_that_was_chosen(flags: str, told: int) -> None:
    ports = "--native-port 0 --no-native-websocket --no-http --no-mqtt --no-amqp --log-format json"
    process = subprocess.Popen(
        ["sh", "-c", f"ulimit -n 600; exec {fanlightd()} serve {ports} {flags}"],
        stdout=subprocess.PIPE, text=True, env=clean(),
    )  # fmt: skip
    assert process.stdout is not None
    events = []
    while "ready" not in events:
        events.append(json.loads(process.stdout.readline())["event"])
    process.terminate()
    process.communicate(timeout=60)
    assert events.count("few_files") == told


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FANLIGHT_")}


def serve(*flags: str) -> subprocess.CompletedProcess[str]:
    """Run a broker that is expected to end by itself."""
    return subprocess.run([fanlightd(), "serve", *flags], capture_output=True, text=True, timeout=30, env=clean())
