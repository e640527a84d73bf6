"""/api/v1 while a broker runs: draining and restarting, reloading, the log, users, permissions, rules, a backup."""

import asyncio
import io
import stat
import subprocess
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest

import fanlight
import fanlight.sync
from fanlight_bench.launch import fanlightd
from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.broker.protocols.mqtt.world import connect
from tests.conftest import StartBroker, TestBroker
from tests.system.http_api import ApiClient
from tests.system.mqtt_peer import MqttPeer
from tests.system.wire import Closed

RULES = """\
[[rules]]
name = "hot"
topic = "temp.*"
where = "celsius > 30"
to = "alarm.heat"
"""


async def test_drained_and_restarted_without_losing_a_queued_message(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = await asyncio.to_thread(start_broker, data=str(tmp_path / "data"))
    api = ApiClient(broker.http_url)
    async with await MqttPeer.connect(broker.mqtt_port, "away", session_expiry_interval=3_600) as peer:
        await peer.subscribe("kept/#", qos=1)

    def fill() -> None:
        with fanlight.sync.connect(broker.url) as client:
            client.queues.add("jobs", "kept.jobs")
        for number in range(50):
            body = {"topic": "kept.jobs", "payload": str(number), "retain": number == 49}
            assert api.ok("POST", "/messages", body)["subscribers"] == 2

    await asyncio.to_thread(fill)
    async with await MqttPeer.connect(broker.mqtt_port, "here") as here:
        state = await asyncio.to_thread(api, "POST", "/drain", {"seconds": 60, "stop": True})
        assert (state.status, state.body["state"]) == (202, "draining")
        said = await here.packet()
        assert isinstance(said, Disconnect)
        assert said.reason_code == ReasonCode.SERVER_SHUTTING_DOWN
    assert await asyncio.to_thread(broker.process.wait, 60) == 0
    again = await asyncio.to_thread(start_broker, data=str(tmp_path / "data"))
    api = ApiClient(again.http_url)
    assert (await asyncio.to_thread(api.ok, "GET", "/sessions/away"))["queued"] == 50
    waiting = await asyncio.to_thread(api.ok, "GET", "/queues/jobs/messages?limit=200")
    assert [each["payload"] for each in waiting["items"]] == [str(number) for number in range(50)]
    assert (await asyncio.to_thread(api.ok, "GET", "/retained/kept.jobs"))["payload"] == "49"


async def test_a_drain_is_taken_back(start_broker: StartBroker) -> None:
    broker = await asyncio.to_thread(start_broker)
    api = ApiClient(broker.http_url)
    assert (await asyncio.to_thread(api.ok, "GET", "/drain"))["state"] == "open"
    assert (await asyncio.to_thread(api, "POST", "/drain", {"seconds": 0})).status == 202

    def drained() -> None:
        while api.ok("GET", "/drain")["state"] != "drained":
            pass

    async with asyncio.timeout(60):
        await asyncio.to_thread(drained)
    assert (await asyncio.to_thread(api.ok, "GET", "/overview"))["draining"] is True
    refused = MqttPeer(*await asyncio.open_connection("127.0.0.1", broker.mqtt_port), V5)
    with suppress(Closed):  # as the goodbye may be there before CONNECT is
        await refused.send(connect("late", V5))
        answer = await refused.packet()
        assert isinstance(answer, ConnAck)
        assert answer.reason_code >= 0x80
    await refused.close()
    assert await asyncio.to_thread(api.items, "/connections") == []
    assert (await asyncio.to_thread(api.ok, "DELETE", "/drain"))["state"] == "open"
    async with await MqttPeer.connect(broker.mqtt_port, "late"):
        assert (await asyncio.to_thread(api.ok, "GET", "/overview"))["ready"] is True


def test_a_backup_is_a_store(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(data=str(tmp_path / "data"))
    api = ApiClient(broker.http_url)
    for number in range(20):
        api.ok("PUT", f"/retained/back.{number}", {"payload": "up"})
    answer = api("POST", "/backup")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-tar")
    with tarfile.open(fileobj=io.BytesIO(answer.octets)) as tar:
        tar.extractall(tmp_path / "copy", filter="data")
    assert not list(tmp_path.glob(".fanlight-backup-*"))
    other = start_broker(data=str(tmp_path / "copy" / "fanlight-store"))
    assert ApiClient(other.http_url).ok("GET", "/retained?filter=back.%23")["total"] == 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("running")
    command = [fanlightd(), "user", "add", str(path / "users.toml"), "root", "--group", "ops", "--stdin"]
    subprocess.run(command, input="wonder\n", text=True, check=True, timeout=60, capture_output=True)
    (path / "permissions.toml").write_text('[[allow]]\nuser = "root"\neverything = "#"\nadmin = ["read", "write"]\n')
    (path / "rules.toml").write_text(RULES)
    (path / "quotas.toml").write_text('[[quota]]\nuser = "root"\nsubscriptions = 1000\n')
    (path / "fanlight.toml").write_text(
        f'users_file = "{path}/users.toml"\npermissions = "{path}/permissions.toml"\nrules = "{path}/rules.toml"\n'
        f'quotas = "{path}/quotas.toml"\n'
    )
    return path


@pytest.fixture(scope="module")
def broker(folder: Path, start_module_broker: StartBroker) -> TestBroker:
    broker = start_module_broker(config=str(folder / "fanlight.toml"))
    broker.may_complain = True  # of the reload that fails
    return broker


@pytest.fixture
def api(broker: TestBroker) -> ApiClient:
    return ApiClient(broker.http_url).as_user("root", "wonder")


def test_users_are_shown_without_their_secrets(api: ApiClient) -> None:
    (row,) = api.items("/users?q=OPS")
    assert row == {
        "user": "root", "groups": ["ops"], "limits": {}, "own_permissions": False, "scram": True, "connections": 0,
        "href": "/api/v1/users/root",
    }
    assert api.ok("GET", "/users/root") == row
    assert "no user" in api.refused(404, "GET", "/users/eve")


def test_users_are_added_changed_and_deleted(api: ApiClient, folder: Path) -> None:
    added = api.ok("POST", "/users", {"user": "eve", "password": "first", "groups": ["ops"], "limits": {"queues": 3}})
    assert (added["groups"], added["limits"]) == (["ops"], {"queues": 3})
    eve = ApiClient(api.url).as_user("eve", "first")
    assert eve.ok("GET", "/login")["user"] == "eve"
    assert "already" in api.refused(409, "POST", "/users", {"user": "eve", "password": "other"})
    assert "whole number" in api.refused(400, "POST", "/users", {"user": "x", "password": "y", "limits": {"a": "b"}})
    for wrong in (
        {"groups": ["a\ud800"]}, {"groups": ["a" * 1_025]}, {"groups": [7]}, {"groups": [""]}, {"groups": ["a"] * 65},
        {"limits": {"a\ud800": 1}}, {"limits": {"a" * 200_000: 1}}, {"limits": {"queues": -1}},
        {"limits": {f"{each}": 1 for each in range(65)}}, {"user": "x\ud800"},
    ):
        api.refused(400, "POST", "/users", {"user": "x", "password": "y", **wrong})
    assert "control" in api.refused(400, "POST", "/users", {"user": "x", "password": "y\nz"})
    assert api.ok("PUT", "/users/eve/password", {"password": "second"})["user"] == "eve"
    eve.refused(401, "GET", "/login")
    assert ApiClient(api.url).as_user("eve", "second").ok("GET", "/login")["user"] == "eve"
    file = folder / "users.toml"
    file.write_text(f"# staff\n{file.read_text()}")
    changed = {"add_groups": ["night"], "remove_groups": ["ops"], "limits": {"queues": None, "connections": 2}}
    shown = api.ok("PATCH", "/users/eve", changed)
    assert (shown["groups"], shown["limits"]) == (["night"], {"connections": 2})
    assert api.items("/groups?sort=group") == [{"group": "night", "users": 1}, {"group": "ops", "users": 1}]
    assert api.ok("PATCH", "/users/eve", {})["groups"] == ["night"]
    assert "no user" in api.refused(404, "PATCH", "/users/bob", {"add_groups": ["ops"]})
    assert "colour" in api.refused(409, "PATCH", "/users/eve", {"limits": {"colour": 1}})
    assert "whole number" in api.refused(400, "PATCH", "/users/eve", {"limits": {"queues": "x"}})
    assert (file.read_text().startswith("# staff\n"), stat.S_IMODE(file.stat().st_mode)) == (True, 0o600)
    assert ApiClient(api.url).as_user("eve", "second").ok("GET", "/login")["user"] == "eve"
    assert api.ok("DELETE", "/users/eve") == {"user": "eve", "deleted": True}
    assert "no user" in api.refused(404, "DELETE", "/users/eve")
    assert "eve" not in (folder / "users.toml").read_text()


def test_permissions_are_listed_asked_and_read_again(api: ApiClient) -> None:
    assert api.ok("GET", "/permissions?effect=allow&used=true")["total"] == 1
    decided = api.ok("GET", "/permissions/check?action=publish&topic=a.b&user=eve")
    assert decided["decision"] == "denied"
    assert api.ok("GET", "/permissions/check?action=publish&topic=a.b&user=root")["decision"] == "allowed"
    assert "missing" in api.refused(400, "GET", "/permissions/check")
    assert api.ok("POST", "/permissions/reload") == {"rules": 1}


def test_rules_are_listed_and_tried(api: ApiClient) -> None:
    (rule,) = api.ok("GET", "/rules")["items"]
    assert (rule["rule"], rule["messages"]) == ("hot", 0)
    asked = {"topic": "temp/roof", "syntax": "mqtt", "fields": {"celsius": 31}}
    tried = api.ok("POST", "/rules/check", asked)
    assert [each["topic"] for each in tried["routed"]] == ["temp/roof", "alarm/heat"]
    assert len(api.ok("POST", "/rules/check", {**asked, "fields": {"celsius": 30}})["routed"]) == 1


def test_the_files_of_rules_and_quotas_are_read_again_alone(api: ApiClient, folder: Path) -> None:
    rules, quotas = folder / "rules.toml", folder / "quotas.toml"
    before = quotas.read_text()
    rules.write_text(RULES + RULES.replace('"hot"', '"cold"').replace(">", "<"))
    assert api.ok("POST", "/rules/reload") == {"rules": 2}
    rules.write_text("[[rules]]\n")
    assert "rule 1" in api.refused(409, "POST", "/rules/reload")
    assert api.ok("GET", "/rules")["total"] == 2
    rules.write_text(RULES)
    assert api.ok("POST", "/rules/reload") == {"rules": 1}
    quotas.write_text(before + before.replace("root", "eve"))
    assert api.ok("POST", "/quotas/reload") == {"entries": 2}
    quotas.write_text("colour = 1\n")
    assert "colour" in api.refused(409, "POST", "/quotas/reload")
    quotas.write_text(before)
    assert api.ok("POST", "/quotas/reload") == {"entries": 1}


def test_settings_are_read_again(api: ApiClient, folder: Path) -> None:
    file = folder / "fanlight.toml"
    before = file.read_text()
    file.write_text(before + "retained_messages_max = 77\n")
    done = api.ok("POST", "/reload")
    assert any("retained_messages_max" in each for each in done["applied"])
    shown = {each["name"]: each["value"] for each in api.ok("GET", "/settings")["settings"]}
    assert shown["retained_messages_max"] == "77"
    file.write_text(before + "colour = 1\n")
    answer = api("POST", "/reload")
    assert answer.status == 409
    assert "colour" in answer.body["problems"][0]
    file.write_text(before)
    api.ok("POST", "/reload")


def test_the_log_level_is_changed(api: ApiClient) -> None:
    assert api.ok("GET", "/log-level") == {"level": "info"}
    assert api.ok("PUT", "/log-level", {"level": "debug"}) == {"level": "debug"}
    assert "none of" in api.refused(400, "PUT", "/log-level", {"level": "loud"})
    api.ok("POST", "/reload")
    assert api.ok("GET", "/log-level") == {"level": "info"}


def test_a_mosquitto_conf_that_is_sent_is_converted_and_reads_no_file_here(api: ApiClient, folder: Path) -> None:
    (folder / "secret.acl").write_text("topic secret/#\n")
    configuration = f"listener 1883\nacl_file {folder}/secret.acl\nconnection cloud\naddress far\ntopic home/# out 1\n"
    made = api.ok("POST", "/import/mosquitto", {"configuration": configuration, "files": {"other": "topic x"}})
    assert [each["name"] for each in made["files"]] == ["fanlight.toml", "bridges.toml"]
    assert "not among the files that were sent" in made["left_out"][0]
    assert "secret/#" not in str(made)
    sent = {"configuration": "include_dir /etc", "files": {}}
    assert "none of its files" in api.refused(400, "POST", "/import/mosquitto", sent)
    assert "files" in api.refused(400, "POST", "/import/mosquitto", {"configuration": "", "files": {"acl": 1}})


def test_what_is_not_there(module_broker: TestBroker) -> None:
    api = ApiClient(module_broker.http_url)
    assert "permissions" in api.refused(409, "GET", "/permissions")
    assert "permissions" in api.refused(409, "POST", "/permissions/reload")
    assert "data" in api.refused(409, "POST", "/backup")
    assert "see the setting rules" in api.refused(409, "POST", "/rules/reload")
    assert "see the setting quotas" in api.refused(409, "POST", "/quotas/reload")
    assert api.ok("GET", "/rules") == {"items": [], "total": 0}
    assert api.ok("POST", "/rules/check", {"topic": "a"}) == {"rules": [], "routed": []}
    assert api.items("/users") == []
    assert "users_file" in api.refused(409, "POST", "/users", {"user": "x", "password": "y"})
    assert "samples" in api.ok("GET", "/history") or api.ok("GET", "/history")
