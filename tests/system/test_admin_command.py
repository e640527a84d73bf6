"""`fanlight admin` and `fanlight context`, against a real broker with users, permissions, rules and a store."""

import asyncio
import json
import os
import pty
import socket
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fanlight.sync
from fanlight.cli import main
from fanlight.cli.admin.resources import RESOURCES
from fanlight.cli.contexts import file as contexts_file
from scripts.make_man import page
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.shell import FANLIGHT, SECONDS
from tests.system.test_users import user

PERMISSIONS = """
[[allow]]
everything = "#"
admin = ["read", "write"]
user = "root"

[[deny]]
publish = "shut/#"
"""
RULES = '[[rules]]\nname = "copies"\ntopic = "from.#"\nto = "to.$1"\n'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def broker(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> TestBroker:
    folder = tmp_path_factory.mktemp("admin")
    assert user("add", folder / "users.toml", "root", "--group", "ops", password="wonder").returncode == 0
    (folder / "permissions.toml").write_text(PERMISSIONS)
    (folder / "rules.toml").write_text(RULES)
    (folder / "quotas.toml").write_text('[[quota]]\nuser = "root"\nsubscriptions = 1000\n')
    (folder / "bridges.toml").write_text(
        'broker = "here"\n[[bridge]]\nname = "north"\naddress = "127.0.0.1:1"\n\n[[bridge.route]]\nfilter = "north/#"\n'
    )
    started = start_module_broker(
        users_file=folder / "users.toml", permissions=folder / "permissions.toml", rules=folder / "rules.toml",
        data=folder / "data", quotas=folder / "quotas.toml", bridges=folder / "bridges.toml",
        archive=folder / "archive", archive_topics="orders.#",
    )
    started.may_complain = True  # of the bridge
    return started


@pytest.fixture(autouse=True)
def environment(broker: TestBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FANLIGHT_URL", url(broker))
    monkeypatch.setenv("FANLIGHT_HTTP_URL", http_url(broker))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FANLIGHT_CONTEXT", raising=False)


def url(broker: TestBroker) -> str:
    return f"fanlight://root:wonder@127.0.0.1:{broker.port}"


def http_url(broker: TestBroker) -> str:
    return broker.http_url.replace("//", "//root:wonder@")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def client(broker: TestBroker) -> Iterator[fanlight.sync.Client]:
    with fanlight.sync.connect(url(broker), name="desk-7", reconnect=False) as client:
        yield client


def said(run: Run, *words: str) -> list[Any]:
    """The lines of JSON of a command that succeeds."""
    code, out, errors = run("admin", *words, "--json")
    assert (code, errors) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def filled(run: Run, client: fanlight.sync.Client) -> None:
    """At least a row of each list that can have one."""
    client.subscribe("desk.#", where="price > 1")
    said(run, "retained", "set", "site/7/state", "on")
    if run("queue", "info", "bills")[0]:
        assert run("queue", "add", "bills", "orders.#", "--dead-letter", "dead.bills")[0] == 0
    client.publish("orders.1", b"one", receipt=True)
    client.publish("orders.2", b"two", receipt=True, delay=3_600)


@pytest.mark.parametrize("what", [each for each in RESOURCES if each not in ("slow-consumers", "sessions", "readers")])
def test_a_list_has_rows_as_json_and_the_keys_that_its_table_names(what: str, run: Run, filled: None) -> None:
    rows = said(run, "ls", what)
    assert rows
    for heading, key in RESOURCES[what].columns:
        if heading not in ("REDUNDANT BY", "PER SECOND"):  # of other questions
            assert any(each in row for row in rows for each in key.split("|")), (heading, rows[0].keys())
    code, out, _ = run("admin", "ls", what, "--table", "--limit", "1")
    assert (code, len(out.splitlines())) == (0, 2)
    assert out.split()[0] in {heading.split()[0] for heading, _ in RESOURCES[what].columns}


def test_a_list_is_searched_sorted_and_cut(run: Run, filled: None, client: fanlight.sync.Client) -> None:
    with fanlight.sync.connect(os.environ["FANLIGHT_URL"], name="desk-8", reconnect=False):
        names = [row["client"] for row in said(run, "ls", "connections", "--q", "desk", "--sort", "client", "--desc")]
        assert names == ["desk-8", "desk-7"]
        assert [row["client"] for row in said(run, "ls", "connections", "client=desk-8")] == ["desk-8"]
        assert len(said(run, "ls", "connections", "--limit", "1")) == 1
    (found,) = said(run, "ls", "subscriptions", "topic=desk.a")
    assert found["where"] == "price > 1"
    code, _, errors = run("admin", "ls", "connections", "colour=blue")
    assert code == 2
    assert "keys of connections: client, user, address" in errors


def test_a_connection_is_kicked_by_its_number_and_all_of_a_client_by_its_name(
    run: Run, client: fanlight.sync.Client
) -> None:
    (row,) = said(run, "ls", "connections", "client=desk-7")
    assert said(run, "kick", str(row["connection"]), "--reason", "update")[0]["ended"] is True
    with pytest.raises(fanlight.ConnectionLost) as lost:
        client.flush()
    assert lost.value.code == "kicked"
    assert run("admin", "kick", str(row["connection"]))[0] == 1
    assert said(run, "kick", "--client", "nobody")[0]["ended"] == 0
    code, _, errors = run("admin", "kick")
    assert (code, "NUMBER, or --client" in errors) == (2, True)
    with pytest.raises(SystemExit, match="2"):
        run("admin", "kick", "desk-7")


def test_on_a_terminal_it_asks_before_something_is_lost(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said(run, "retained", "set", "asked.before", "on")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as answers, os.fdopen(os.dup(theirs), "w") as questions, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", answers)
        patch.setattr(sys, "stderr", questions)
        os.write(ours, b"n\n")
        assert run("admin", "retained", "clear", "asked.#")[0] == 1
        asked = os.read(ours, 4_096)
        while b"nothing was changed" not in asked:
            asked += os.read(ours, 4_096)
        assert b"[y/N]" in asked
        os.write(ours, b"y\n")
        assert run("admin", "retained", "clear", "asked.#")[0] == 0
    os.close(ours)
    assert said(run, "retained", "ls", "asked.#") == []


def test_retained_messages_are_set_read_listed_and_cleared(run: Run) -> None:
    said(run, "retained", "set", "house/1", "a")
    said(run, "retained", "set", "house/2", "b", "--expiry", "3600")
    assert [row["topic"] for row in said(run, "retained", "ls", "house/#")] == ["house/1", "house/2"]
    listed = {row["topic"] for row in said(run, "retained", "ls")}
    assert listed >= {"house/1", "house/2"}
    assert not any(topic.startswith("$SYS") for topic in listed)
    assert len(said(run, "retained", "ls", "$SYS/#", "--limit", "3")) == 3
    code, _, errors = run("admin", "retained", "rm", "house/#")
    assert (code, "retained clear" in errors) == (2, True)
    assert run("admin", "retained", "get", "house/2") == (0, "b", "")
    assert said(run, "retained", "get", "house/2")[0]["payload"] == "b"
    assert run("admin", "retained", "rm", "house/1", "--table") == (0, "'house/1' is cleared\n", "")
    assert said(run, "retained", "clear", "house/#") == [{"cleared": 1}]
    assert run("admin", "retained", "get", "house/2")[0] == 1


def test_a_queue_is_looked_into_moved_emptied_and_ended(run: Run, client: fanlight.sync.Client) -> None:
    for name, filter in (("first", "work.#"), ("second", "elsewhere")):
        assert run("queue", "add", name, filter)[0] == 0
    for n in range(3):
        client.publish(f"work.{n}", f"job {n}".encode(), receipt=True)
    assert [row["payload"] for row in said(run, "queue", "peek", "first", "--count", "2")] == ["job 0", "job 1"]
    assert said(run, "queue", "move", "first", "--to", "second", "--count", "2")[0]["messages"] == 2
    assert said(run, "queue", "info", "second")[0]["waiting"] == 2
    assert said(run, "purge", "second")[0]["messages"] == 2
    assert run("admin", "queue", "rm", "first")[0] == 1  # it has a message
    assert said(run, "queue", "rm", "first", "--force")[0]["messages"] == 1
    assert said(run, "queue", "rm", "second")[0]["messages"] == 0
    assert run("admin", "show", "queue", "second")[0] == 1


def test_what_is_allowed_is_said_with_its_rule(run: Run) -> None:
    allowed = said(run, "may", "publish", "a/b", "--user", "root", "--group", "ops")[0]
    denied = said(run, "may", "publish", "shut/b", "--user", "anna")[0]
    assert (allowed["decision"], denied["decision"]) == ("allowed", "denied")
    code, out, _ = run("admin", "may", "publish", "shut/b", "--user", "anna", "--table")
    assert (code, "permissions.toml" in out) == (0, True)


def test_users_are_added_changed_and_deleted(run: Run, broker: TestBroker, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("first\n")
    by_file = ("--password-file", str(tmp_path / "password"))
    added = said(run, "user", "add", "eve", "--group", "ops", "--limit", "queues=3", *by_file)[0]
    assert (added["groups"], added["limits"]) == (["ops"], {"queues": 3})
    assert run("admin", "user", "add", "eve", *by_file)[0] == 1
    changed = ("--add-group", "night", "--remove-group", "ops", "--limit", "connections=2", "--remove-limit", "queues")
    code, out, _ = run("admin", "user", "set", "eve", *changed, "--table")
    assert (code, out) == (0, "'eve': groups night; limits connections=2\n")
    assert [row["group"] for row in said(run, "user", "groups")] == ["night", "ops"]
    (tmp_path / "password").write_text("s:e/c@nd\n")
    assert said(run, "user", "passwd", "eve", *by_file)[0]["user"] == "eve"
    place = f"fanlight://eve@127.0.0.1:{broker.port}"
    assert run("context", "add", "eves", place, "--http", broker.http_url.replace("//", "//eve@"), *by_file)[0] == 0
    assert "s:e/c@nd" not in contexts_file().read_text()
    code, _, errors = run("admin", "status", "--context", "eves")
    assert (code, "admin:read" in errors) == (1, True)  # it is let in, and not permitted
    (tmp_path / "password").write_text("\n")
    assert "is empty" in run("admin", "status", "--context", "eves")[2]
    assert run("context", "add", "other", "fanlight://h", *by_file)[0] == 2
    assert said(run, "user", "rm", "eve") == [{"user": "eve", "deleted": True}]
    assert "NAME=NUMBER" in run("admin", "user", "set", "root", "--limit", "x")[2]
    assert run("admin", "user", "add", "zoe")[0] == 2  # no terminal to ask on


def test_rules_permissions_and_quotas_are_tried_and_read_again(run: Run) -> None:
    assert said(run, "rules", "reload") == [{"rules": 1}]
    assert said(run, "permission", "reload") == [{"rules": 2}]
    assert run("admin", "quota", "reload", "--table") == (0, "1 quotas are in force\n", "")
    assert [each["rule"] for each in said(run, "rules", "check", "from.x")[0]["rules"]] == ["copies"]
    code, out, _ = run("admin", "rules", "check", "from.x", "--fields", "{}", "--table")
    assert (code, out) == (0, "rules: copies\nrouted: from.x\nrouted: to.from\n")
    assert "not JSON" in run("admin", "rules", "check", "from.x", "--fields", "{")[2]


def test_a_bridge_is_paused_and_resumed(run: Run) -> None:
    assert said(run, "bridge", "pause", "north")[0]["state"] == "paused"
    assert said(run, "bridge", "show", "north")[0]["state"] == "paused"
    assert run("admin", "bridge", "reconnect", "north")[0] == 1
    said(run, "bridge", "resume", "north")
    while said(run, "bridge", "show", "north")[0]["state"] == "paused":
        pass
    assert [row["name"] for row in said(run, "bridge", "ls")] == ["north"]


def test_messages_are_published_seen_in_the_archive_and_given_up(run: Run, filled: None) -> None:
    assert said(run, "publish", "orders.7", "new")[0]["subscribers"] == 1
    assert said(run, "archive", "messages", "orders.7")[0]["payload"] == "new"
    assert said(run, "archive", "status")[0]["archive_healthy"] == 1
    assert said(run, "archive", "readers") == []
    assert "orders" in {row["word"] for row in said(run, "tree")}
    assert [row["word"] for row in said(run, "tree", "orders", "--limit", "1")] == ["1"]
    (row, *_) = said(run, "ls", "delayed")
    assert said(run, "cancel", str(row["id"]))[0]["cancelled"] is True
    assert run("admin", "cancel", str(row["id"]))[0] == 1


async def test_a_session_is_looked_into_moved_and_ended(broker: TestBroker, run: Run) -> None:
    login: dict[str, Any] = {"user_name": "root", "password": b"wonder", "session_expiry_interval": 3_600}
    async with await MqttPeer.connect(broker.mqtt_port, "s/1", **login) as peer:
        await peer.subscribe("sent/#", qos=1)
    await asyncio.to_thread(said, run, "publish", "sent/1", "waits")
    (waiting,) = await asyncio.to_thread(said, run, "session", "peek", "s/1")
    assert waiting["payload"] == "waits"
    code, out, _ = await asyncio.to_thread(run, "admin", "session", "move", "s/1", "s/2", "--table")
    assert code == 0
    assert out == "the session 's/1' is that of 's/2' now: 1 messages wait, 0 are in flight, 0 were lost\n"
    assert "s/2" in [row["client"] for row in await asyncio.to_thread(said, run, "session", "ls")]
    assert (await asyncio.to_thread(said, run, "session", "end", "s/2"))[0]["messages"] == 1


def test_any_call_of_the_api_is_made(run: Run) -> None:
    assert "times" in said(run, "api", "GET", "/history")[0]
    assert said(run, "api", "PUT", "/log-level", '{"level": "info"}') == [{"level": "info"}]
    assert said(run, "api", "GET", "/api/v1/connections?limit=1")[0]["items"] == []
    assert "JSON object" in run("admin", "api", "PUT", "/log-level", "[]")[2]


def test_the_log_level_reload_status_and_explain(run: Run, filled: None) -> None:
    assert said(run, "log-level", "debug") == [{"level": "debug"}]
    assert run("admin", "log-level", "--table") == (0, "debug\n", "")
    assert "applied" in said(run, "reload")[0]
    assert said(run, "log-level") == [{"level": "info"}]
    assert run("admin", "status", "--table")[1].startswith("fanlight ")
    assert said(run, "status")[0]["ready"] is True
    assert "price > 1" in run("admin", "explain", "desk.a", "--table")[1]


def test_a_backup_is_a_new_file_that_only_its_owner_may_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "store.tar"
    assert said(run, "backup", str(file)) == [{"file": str(file), "bytes": file.stat().st_size}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with tarfile.open(file) as copy:
        assert any(name.startswith("fanlight-store/") for name in copy.getnames())
    before = file.read_bytes()
    code, _, errors = run("admin", "backup", str(file))
    assert (code, "File exists" in errors, file.read_bytes() == before) == (2, True, True)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["store.tar"]


def test_events_come_as_they_happen(broker: TestBroker) -> None:
    command = [*FANLIGHT, "admin", "events", "--kinds", "connect,disconnect", "--count", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        while listening.poll() is None:  # until it listens, and one of them is seen
            with fanlight.sync.connect(url(broker), name="seen", reconnect=False) as client:
                client.flush()
        (line,) = listening.stdout.readlines()
    event = json.loads(line)
    assert (event["kind"] in ("connect", "disconnect"), event["client"]) == (True, "seen")


def test_watching_shows_it_again_and_again() -> None:
    command = [*FANLIGHT, "admin", "ls", "namespaces", "--watch", "0.01"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
        watching.terminate()
    assert [line["namespace"] for line in lines] == [""] * 3


def test_a_drained_broker_lets_nobody_in_until_it_is_cancelled(start_broker: StartBroker, run: Run) -> None:
    other = start_broker()
    http = ("--http", other.http_url)
    assert said(run, "drain", "--seconds", "5", *http)[0]["state"] == "drained"
    with pytest.raises(fanlight.FanlightError):
        fanlight.sync.connect(f"fanlight://127.0.0.1:{other.port}")
    said(run, "drain", "--cancel", *http)
    fanlight.sync.connect(f"fanlight://127.0.0.1:{other.port}").close()
    assert said(run, "drain", "--seconds", "1", "--stop", *http)[0]["state"] in ("drained", "stopped")
    assert other.process.wait(SECONDS) == 0


def test_the_second_of_two_servers_is_asked_when_the_first_is_away(broker: TestBroker, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = taken.getsockname()[1]
    both = http_url(broker).replace("127.0.0.1:", f"127.0.0.1:{away},127.0.0.1:")
    assert said(run, "status", "--http", both)[0]["ready"] is True
    said(run, "retained", "set", "both/1", "x", "--http", both)
    code, _, errors = run("admin", "status", "--http", f"http://root:wonder@127.0.0.1:{away}")
    assert (code, "Is the broker's HTTP listener there?" in errors, "wonder" in errors) == (3, True, False)


def test_credentials_that_are_wrong_are_refused(broker: TestBroker, run: Run) -> None:
    code, out, errors = run("admin", "status", "--http", broker.http_url)
    assert (code, out) == (1, "")
    assert errors.startswith("fanlight admin: ")


def test_contexts_are_kept_for_their_owner_alone_and_name_the_broker(
    broker: TestBroker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FANLIGHT_URL")
    monkeypatch.delenv("FANLIGHT_HTTP_URL")
    assert run("context", "add", "here", url(broker), "--http", http_url(broker))[0] == 0
    there = "fanlights://anna:secret@broker.example.com,two:7000"
    assert run("context", "add", "prod", there, "--ca", "ca.pem")[0] == 0
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    code, out, _ = run("context", "ls")
    assert (code, "secret" in out, "wonder" in out) == (0, False, False)
    assert "* here" in out
    assert "https://***@broker.example.com:7424,two:7424" in out
    kept = json.loads(contexts_file().read_text())["contexts"]["prod"]
    assert kept["ca"] == os.path.abspath("ca.pem")
    assert said(run, "status")[0]["ready"] is True  # the first one is in use
    assert run("pub", "a.b", "x")[0] == 0
    run("context", "use", "prod")
    assert said(run, "status", "--context", "here")[0]["ready"] is True
    monkeypatch.setenv("FANLIGHT_CONTEXT", "here")
    assert said(run, "status")[0]["ready"] is True
    code, _, errors = run("admin", "status", "--context", "her")
    assert (code, "did you mean here?" in errors) == (2, True)
    assert run("context", "rm", "prod")[0] == 0
    assert run("context", "use", "prod")[0] == 2
    assert run("context", "add", "web", "http://x")[0] == 2
    contexts_file().write_text("{")
    assert "not a file of contexts" in run("context", "ls")[2]


def test_bash_completes_words_of_the_command(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_bytes(subprocess.run([*FANLIGHT, "completion", "bash"], check=True, capture_output=True).stdout)
    program = f"""
        source {script}
        COMP_WORDS=(fanlight admin dr) COMP_CWORD=2 COMP_LINE="fanlight admin dr" COMP_POINT=17 COMP_TYPE=9
        $(complete -p fanlight | sed -E 's/.*-F ([^ ]+).*/\\1/') fanlight dr admin
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stdout.split() == ["drain"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_word(shell: str, run: Run) -> None:
    code, out, _ = run("completion", shell)
    assert code == 0
    for word in ("log-level", "retained", "slow-consumers", "context"):
        assert word in out


@pytest.mark.parametrize(("name", "has"), [("fanlight.1", "fanlight admin retained clear"), ("fanlightd.8", "serve")])
def test_the_man_page_of_a_command_is_made_from_its_help(name: str, has: str) -> None:
    made = page(name)
    assert made.startswith(".TH")
    assert has in made.replace("\\-", "-")
