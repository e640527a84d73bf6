"""Who may use /api/v1: logins by cookie, forged requests, permissions, and what the audit log says of it."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

import fanlight.sync
from fanlight_bench.launch import fanlightd
from tests.conftest import StartBroker, TestBroker
from tests.system.event_stream import EventStream
from tests.system.http_api import Answer, ApiClient
from tests.system.mqtt_peer import MqttPeer
from tests.system.test_credentials import reload

PERMISSIONS = """\
[[allow]]
user = "root"
everything = "#"
admin = ["read", "write"]

[[allow]]
user = "guest"
admin = ["read"]

[[allow]]
user = "clerk"
admin = ["read", "write"]
publish = "clerk.#"
subscribe = "clerk.#"
queue = "clerk.own"

[[allow]]
group = "tenant-*"
everything = "#"
admin = ["read", "write"]

[[namespace]]
group = "tenant-*"
name = "%g"

[default]
connect = "allow"
"""
READING = [("POST", "/rules/check")]  # change nothing
NOT_ASKED = ("/login", "/openapi.json", "/docs")  # of whoever asks; and what documents the others
PASSWORD = "wonder"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("access")
    for name in ("root", "guest", "clerk", "nobody"):
        command = [fanlightd(), "user", "add", str(path / "users.toml"), name, "--stdin"]
        subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, timeout=60, capture_output=True)
    command = [fanlightd(), "user", "add", str(path / "users.toml"), "tenant", "--group", "tenant-a", "--stdin"]
    subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, timeout=60, capture_output=True)
    (path / "permissions.toml").write_text(PERMISSIONS)
    return path


@pytest.fixture(scope="module")
def broker(folder: Path, start_module_broker: StartBroker) -> TestBroker:
    return start_module_broker(
        users_file=str(folder / "users.toml"), permissions=str(folder / "permissions.toml"),
        audit_log=str(folder / "audit.log"),
    )


@pytest.fixture
def api(broker: TestBroker) -> ApiClient:
    return ApiClient(broker.http_url)


def log_in(api: ApiClient, user: str) -> tuple[ApiClient, str, Answer]:
    """Who has the cookie, the token for what changes something, and the answer."""
    answer = api("POST", "/login", {"user": user, "password": PASSWORD})
    assert answer.status == 200, answer.octets
    (morsel,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    return ApiClient(api.url, {"Cookie": f"{morsel.key}={morsel.value}"}), answer.body["csrf"], answer


def notes(folder: Path, holds: Any) -> list[dict[str, Any]]:
    """Lines of kind `admin`, once some are there of which it holds: they are written behind."""
    with (folder / "audit.log").open() as file:
        found: list[dict[str, Any]] = []
        for line in follow(file):
            note = json.loads(line)
            if note["kind"] == "admin":
                found.append(note)
                if holds(note):
                    return found
    raise AssertionError


def follow(file: Any) -> Iterator[str]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        line = file.readline()
        if line:
            yield line
        else:
            time.sleep(0.02)


def test_without_credentials_there_is_only_the_login(api: ApiClient) -> None:
    answer = api("GET", "/connections")
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="fanlight"')
    who = api.ok("GET", "/login")
    assert who == {
        "user": "", "anonymous": True, "by": "none", "read": False, "write": False, "login_required": True,
        "csrf": None, "expires_seconds": None,
    }
    assert "wrong user name" in api.refused(401, "POST", "/login", {"user": "root", "password": "wrong"})
    api.refused(401, "GET", "/connections", Cookie="fanlight_session=forged")


def test_who_shows_no_credentials_has_not_failed_to_log_in(api: ApiClient, folder: Path) -> None:
    api.refused(401, "POST", "/login", {"user": "early", "password": "wrong"})
    failed = api.as_user("root", PASSWORD).ok("GET", "/stats")["logins_failed"]
    api.ok("GET", "/login")
    log_in(api, "root")
    api.refused(400, "POST", "/login", {})
    root = api.as_user("root", PASSWORD)
    assert root.ok("GET", "/stats")["logins_failed"] == failed
    api.refused(401, "POST", "/login", {"user": "late", "password": "wrong"})
    assert root.ok("GET", "/stats")["logins_failed"] == failed + 1
    with (folder / "audit.log").open() as file:
        refused = [""]
        for note in map(json.loads, follow(file)):
            refused += [note["user"]] if note["kind"] == "login_refused" else []
            if refused[-1] == "late":
                break
    assert refused[-2:] == ["early", "late"]


def test_a_login_has_a_short_body(api: ApiClient) -> None:
    body = {"user": "root", "password": PASSWORD}
    text = json.dumps(body).encode()
    assert api("POST", "/login", text + b" " * (16 * 1024 - len(text))).status == 200
    assert "16384" in api.refused(413, "POST", "/login", text + b" " * (16 * 1024 - len(text) + 1))
    api.as_user("root", PASSWORD).ok("POST", "/messages", {"topic": "long", "payload": "x" * 100_000})


def test_a_login_is_a_cookie_and_a_token(api: ApiClient) -> None:
    root, csrf, answer = log_in(api, "root")
    cookie = answer.headers["Set-Cookie"]
    assert all(each in cookie for each in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert answer.body["by"] == "login"
    assert 0 < answer.body["expires_seconds"] <= 1_800
    assert root.ok("GET", "/login") | {"expires_seconds": 0} == answer.body | {"expires_seconds": 0}
    root.ok("GET", "/overview")
    body = {"topic": "a", "payload": ""}
    assert "X-CSRF-Token" in root.refused(403, "POST", "/messages", body)
    root.refused(403, "POST", "/messages", body, X_CSRF_Token="0" * 64)
    root.ok("POST", "/messages", body, X_CSRF_Token=csrf)
    other, its_csrf, _ = log_in(api, "root")
    root.refused(403, "POST", "/messages", body, X_CSRF_Token=its_csrf)
    assert "Max-Age=0" in root("DELETE", "/login", X_CSRF_Token=csrf).headers["Set-Cookie"]
    root.refused(401, "GET", "/overview")
    other.ok("GET", "/overview")


def test_pages_of_other_sites_change_nothing(api: ApiClient, broker: TestBroker) -> None:
    root, csrf, _ = log_in(api, "root")
    body = {"topic": "a", "payload": ""}
    for client in (root, api.as_user("root", PASSWORD)):
        for origin in ("http://evil.example", "null", broker.http_url.replace("127.0.0.1", "localhost")):
            client.refused(403, "POST", "/messages", body, X_CSRF_Token=csrf, Origin=origin)
        client.refused(403, "POST", "/messages", body, X_CSRF_Token=csrf, Sec_Fetch_Site="cross-site")
        client.ok("POST", "/messages", body, X_CSRF_Token=csrf, Origin=broker.http_url, Sec_Fetch_Site="same-origin")
    api.refused(403, "POST", "/login", {"user": "root", "password": PASSWORD}, Origin="http://evil.example")


def test_reading_and_changing_are_two_permissions(api: ApiClient) -> None:
    guest, csrf, answer = log_in(api, "guest")
    assert (answer.body["read"], answer.body["write"]) == (True, False)
    guest.ok("GET", "/connections")
    assert "admin:write" in guest.refused(403, "DELETE", "/connections/1", X_CSRF_Token=csrf)
    nobody = api.as_user("nobody", PASSWORD)
    assert "admin:read" in nobody.refused(403, "GET", "/connections")
    assert nobody.ok("GET", "/login")["read"] is False
    clerk = api.as_user("clerk", PASSWORD)
    clerk.ok("POST", "/messages", {"topic": "clerk.1"})
    assert "publish" in clerk.refused(403, "POST", "/messages", {"topic": "other"})


def test_every_operation_asks_for_its_permission(api: ApiClient) -> None:
    """Of the document, so that one that is added later is here, too. A client of a namespace has none of them."""
    root, guest, nobody, tenant = (api.as_user(name, PASSWORD) for name in ("root", "guest", "nobody", "tenant"))
    paths = root.ok("GET", "/openapi.json")["paths"]
    asked, reading = 0, list[tuple[str, str]]()
    for path, operations in paths.items():
        if path in NOT_ASKED:
            continue
        where = re.sub(r"\{\w+\}", "1", path)
        for method in (each.upper() for each in operations if each in ("get", "post", "put", "patch", "delete")):
            body = None if method == "GET" else {}
            nobody.refused(403, method, where, body)
            tenant.refused(403, method, where, body)
            if method != "GET" and guest(method, where, body).status != 403:
                reading.append((method, path))
            asked += 1
    assert asked > 50
    assert reading == READING


async def leave_a_session(broker: TestBroker) -> None:
    fields = {"user_name": "root", "password": PASSWORD.encode(), "session_expiry_interval": 600}
    async with await MqttPeer.connect(broker.mqtt_port, "away", **fields):
        pass


def test_what_is_in_a_message_is_for_those_who_may_subscribe_to_it(api: ApiClient, broker: TestBroker) -> None:
    root, guest, clerk = (api.as_user(name, PASSWORD) for name in ("root", "guest", "clerk"))
    for topic in ("clerk.a", "others.a"):
        root.ok("PUT", f"/retained/{topic}", {"payload": "secret"})
    with fanlight.sync.connect(broker.url.replace("//", f"//root:{PASSWORD}@")) as client:
        client.queues.add("clerk-queue", "clerk.#")
        client.queues.add("others-queue", "others.#")
    asyncio.run(leave_a_session(broker))
    for path in ("/retained/others.a", "/queues/others-queue/messages"):
        root.ok("GET", path)
        for who in (guest, clerk):
            assert who.refused(403, "GET", path).startswith("no permission: subscribe others.")
    root.ok("GET", "/sessions/away/messages")
    for who in (guest, clerk):
        assert who.refused(403, "GET", "/sessions/away/messages") == "no permission: subscribe #"
    for path in ("/retained/clerk.a", "/queues/clerk-queue/messages"):
        clerk.ok("GET", path)
        guest.refused(403, "GET", path)
    assert {row["topic"] for row in guest.items("/retained?filter=*.a")} == {"clerk.a", "others.a"}  # without payloads
    for path in ("/retained/others.a", "/retained?filter=others.%23", "/retained?filter=%23"):
        assert "retain" in clerk.refused(403, "DELETE", path)
    assert clerk.ok("DELETE", "/retained/clerk.a")["cleared"] is True
    assert root.ok("DELETE", "/retained?filter=*.a") == {"cleared": 1}


def test_queues_are_changed_by_those_who_may_manage_them(api: ApiClient, broker: TestBroker) -> None:
    root, clerk = api.as_user("root", PASSWORD), api.as_user("clerk", PASSWORD)
    with fanlight.sync.connect(broker.url.replace("//", f"//root:{PASSWORD}@")) as client:
        client.queues.add("clerk-own", "clerk.own")
        client.queues.add("theirs", "theirs.#")
        client.queues.add("clerk-read", "clerk.read")
    root.ok("POST", "/messages", {"topic": "theirs.1", "payload": "secret"})
    for method, path, body in (
        ("POST", "/queues/theirs/move", {"to": "clerk-own"}), ("POST", "/queues/theirs/move", {}),
        ("POST", "/queues/clerk-own/move", {"to": "theirs"}), ("POST", "/queues/theirs/purge", None),
        ("DELETE", "/queues/theirs?force=true", None),
    ):
        assert clerk.refused(403, method, path, body).startswith("no permission: subscribe theirs.")
    # He may read it, and not manage it.
    assert clerk.refused(403, "POST", "/queues/clerk-read/purge") == "no permission: queue clerk.read"
    assert root.ok("GET", "/queues/theirs")["waiting"] == 1
    clerk.ok("POST", "/queues/clerk-own/purge")
    assert root.ok("POST", "/queues/theirs/move", {"to": "clerk-own"})["messages"] == 1
    assert root.ok("DELETE", "/queues/theirs") == {"messages": 0}


def test_every_change_is_noted(api: ApiClient, folder: Path) -> None:
    clerk = api.as_user("clerk", PASSWORD)
    clerk.ok("PUT", "/retained/clerk.noted", {"payload": "my secret payload"})
    clerk.refused(404, "DELETE", "/connections/123456")
    clerk.ok("DELETE", "/retained?filter=clerk.noted.%23")
    found = notes(folder, lambda note: note.get("asked", {}).get("filter") == "clerk.noted.#")
    put, kick, clear = [
        {name: value for name, value in note.items() if name != "time"} for note in found if note["user"] == "clerk"
    ][-3:]
    assert put == {
        "kind": "admin", "user": "clerk", "address": "127.0.0.1", "protocol": "http",
        "action": "PUT /api/v1/retained/{topic}", "status": 200,
        "asked": {"topic": "clerk.noted", "syntax": "amqp", "qos": 1},
    }
    assert (kick["status"], kick["result"]) == (404, "there is no connection 123456")
    assert clear["asked"]["filter"] == "clerk.noted.#"
    text = (folder / "audit.log").read_text()
    assert PASSWORD not in text
    assert "my secret payload" not in text


def test_one_user_has_so_many_logins(api: ApiClient) -> None:
    first, _, _ = log_in(api, "guest")
    for _ in range(16):
        last, _, _ = log_in(api, "guest")
    first.refused(401, "GET", "/overview")
    last.ok("GET", "/overview")


def test_a_login_ends_with_the_credentials(folder: Path, start_broker: StartBroker, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text((folder / "users.toml").read_text())
    users.chmod(0o600)
    broker = start_broker(users_file=str(users))
    root, _, _ = log_in(ApiClient(broker.http_url), "root")
    root.ok("GET", "/overview")
    subprocess.run([fanlightd(), "user", "rm", str(users), "root"], check=True, timeout=60, capture_output=True)
    reload(broker)
    root.refused(401, "GET", "/overview")


def test_a_proxy_that_ends_tls_says_how_a_client_came(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(http_forwarded_from="127.0.0.0/8", audit_log=str(tmp_path / "audit.log"))
    api = ApiClient(broker.http_url)
    host = broker.http_url.partition("//")[2]
    body = {"topic": "a", "payload": ""}
    page = {"Origin": f"https://{host}", "X-Forwarded-Proto": "https", "X-Forwarded-For": "6.6.6.6, 203.0.113.9"}
    api.ok("POST", "/messages", body, **page, X_Forwarded_Host=host)
    for topic, forwarded in (("b", "203.0.113.8, 127.0.0.8"), ("c", "203.0.113.7, unknown")):
        api.ok("POST", "/messages", {**body, "topic": topic}, **{**page, "X-Forwarded-For": forwarded})
    seen = [each["address"] for each in notes(tmp_path, lambda note: note["asked"]["topic"] == "c")]
    assert seen == ["203.0.113.9", "203.0.113.8", "127.0.0.1"]
    api.refused(403, "POST", "/messages", body, **{**page, "X-Forwarded-Proto": "http"})
    api.refused(403, "POST", "/messages", body, **{**page, "Origin": "https://evil.example"})
    api.ok("POST", "/messages", body, Origin=f"http://{host}")  # a client that came without a proxy
    named = {**page, "Origin": "https://broker.example", "X-Forwarded-Host": "broker.example"}
    assert "by address" in api.refused(403, "POST", "/messages", body, **named)  # nobody, and by a name of others


def test_what_others_say_of_a_proxy_is_not_believed(module_broker: TestBroker, start_broker: StartBroker) -> None:
    for broker in (module_broker, start_broker(http_forwarded_from="192.0.2.0/24")):
        host = broker.http_url.partition("//")[2]
        page = {"Origin": f"https://{host}", "X-Forwarded-Proto": "https"}
        ApiClient(broker.http_url).refused(403, "POST", "/messages", {"topic": "a", "payload": ""}, **page)


def test_a_listener_to_events_hears_nothing_more_when_its_user_is_changed(api: ApiClient, folder: Path) -> None:
    root, file = api.as_user("root", PASSWORD), folder / "permissions.toml"
    before = file.read_text()
    file.write_text(f'[[allow]]\nuser = "leaver"\nadmin = "read"\n\n{before}')
    root.ok("POST", "/users", {"user": "leaver", "password": PASSWORD})  # which reads that, too
    file.write_text(before)
    with EventStream(api.as_user("leaver", PASSWORD), "?kinds=admin") as stream:
        root.ok("PATCH", "/users/leaver", {"add_groups": ["late"]})
        assert list(stream) == []
