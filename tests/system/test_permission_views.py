"""/permissions and /quotas of a broker process: rules in force and why they decide so, and what each user uses."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fanlight_bench.launch import Broker, fanlightd
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.conftest import StartBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.test_permissions_file import post
from tests.system.views import ask, logged_once_it_is
from tests.system.wire import Peer, Type, ping, publish, subscribe

PERMISSIONS = """\
# What is locked is nobody's.
[[deny]]
name = "locked"
publish = "site/+/locked/#"

[[allow]]
group = "sensors"
publish = "site/%u/#"
subscribe = "site/%u/#"

# People.
[[allow]]
user = "root"
everything = "#"
admin = ["read", "write"]

[[allow]]
name = "never asked"
user = "nobody"
where = "price > 100"
publish = "market/#"

[default]
connect = "allow"
"""


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """Three users: alice and bob are sensors, and root is not."""
    path = tmp_path / "users.toml"
    for user, group in (("alice", "sensors"), ("bob", "sensors"), ("root", "people")):
        command = [fanlightd(), "user", "add", str(path), user, "--group", group, "--stdin"]
        subprocess.run(command, input="wonder\n", text=True, check=True, timeout=60, capture_output=True)
    return path


@pytest.fixture
def permissions(tmp_path: Path) -> Path:
    path = tmp_path / "permissions.toml"
    path.write_text(PERMISSIONS)
    return path


def seen(broker: Broker, path: str, *, login: str = "root", **query: object) -> dict[str, Any]:
    status, text = ask(f"{broker.http_url}{path}?{urlencode(query)}", user=login, password="wonder")
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found


def refused(broker: Broker, path: str, *, login: str = "root", **query: object) -> tuple[int, str]:
    status, text = ask(f"{broker.http_url}{path}?{urlencode(query)}", user=login, password="wonder")
    return status, json.loads(text)["error"]


async def test_the_rules_in_force_are_listed_with_how_often_each_decided(
    start_broker: StartBroker, users: Path, permissions: Path
) -> None:
    broker = start_broker(users_file=users, permissions=permissions)
    async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
        await alice.publish("site.alice.temp")
        for request in range(3):
            await alice.send(publish("site.alice.locked.a", b"", request))
            assert (await alice.expect(Type.ERROR))[1:3] == [request, "not_permitted"]
        await alice.send(publish("site.bob.temp", b"", 9))
        assert (await alice.expect(Type.ERROR))[1:3] == [9, "not_permitted"]
    page = seen(broker, "/permissions")
    rules = {rule["rule"]: rule for rule in page["rules"]}
    assert [rule["position"] for rule in page["rules"]] == [1, 2, 3, 4]
    assert list(rules) == ["locked", "line 6", "line 12", "never asked"]
    assert rules["locked"]["text"] == '[[deny]]\nname = "locked"\npublish = "site/+/locked/#"'
    assert rules["line 6"]["text"].endswith('subscribe = "site/%u/#"'), "the comment after it is of the next rule"
    assert rules["never asked"]["text"].endswith('publish = "market/#"'), "and so is the section after it"
    assert [rules[name]["effect"] for name in ("locked", "line 6")] == ["deny", "allow"]
    assert (rules["locked"]["refused"], rules["line 6"]["refused"], page["refused_without_rule"]) == (3, 0, 1)
    assert rules["locked"]["decisions"] >= 1
    assert rules["line 6"]["decisions"] >= 1
    assert rules["never asked"]["decisions"] == 0
    assert (page["rules_in_force"], page["total"], page["changed"]) == (4, 4, False)
    assert (page["file"], page["parties"], page["defaults"]["connect"]) == (str(permissions), 4, "allow")
    assert page["longest_piece_seconds"] > 0
    named = [seen(broker, "/permissions", **query)["rules"] for query in (
        {"effect": "deny"}, {"used": "false"}, {"rule": "line*"}, {"limit": 1, "offset": 2},
    )]
    assert [[rule["rule"] for rule in rules] for rules in named] == [
        ["locked"], ["never asked"], ["line 6", "line 12"], ["line 12"],
    ]
    assert refused(broker, "/permissions", used="maybe")[0] == 400
    assert refused(broker, "/permissions", login="alice") == (403, "no permission: admin:read")


def test_a_file_that_was_changed_is_not_taken_for_the_one_in_force(
    start_broker: StartBroker, users: Path, permissions: Path
) -> None:
    broker = start_broker(users_file=users, permissions=permissions)
    permissions.write_text(PERMISSIONS.replace("locked", "closed"))
    page = seen(broker, "/permissions")
    assert page["changed"]
    assert [rule["text"] for rule in page["rules"]] == [None] * 4
    found = seen(broker, "/permissions", action="publish", topic="site/bob/locked/a", user="bob", group="sensors")
    assert (found["decision"], found["rule"], found["changed"], "not" in found) == ("denied", "locked", True, False)
    assert post(broker, "/permissions/reload", "root") == (200, {"rules": 4})
    page = seen(broker, "/permissions")
    assert (page["changed"], page["rules"][0]["rule"]) == (False, "closed")


async def test_a_decision_is_explained_and_not_counted(
    start_broker: StartBroker, users: Path, permissions: Path
) -> None:
    broker = start_broker(users_file=users, permissions=permissions)
    asked = {"action": "publish", "topic": "site/alice/temp"}
    found = seen(broker, "/permissions", **asked, user="bob", group="sensors,night")
    assert (found["decision"], found["rule"], found["asker"]["group"]) == ("denied", "", ["night", "sensors"])
    reasons = {each["rule"]: each["why"] for each in found["not"]}
    assert reasons["line 6"] == ["'alice' stands where %u is, 'bob'"]
    assert reasons["line 12"] == ["user is bob, and the rule is for root"]
    found = seen(broker, "/permissions", **asked, user="alice", group="sensors")
    assert (found["decision"], found["rule"], found["place"]) == ("allowed", "line 6", "line 6")
    assert [each["rule"] for each in found["not"]] == ["locked"]
    found = seen(broker, "/permissions", action="subscribe", topic="site/#", user="root")
    assert (found["decision"], found["rule"]) == ("allowed", "line 12")
    market = {"action": "publish", "topic": "market/a", "user": "nobody"}
    assert seen(broker, "/permissions", **market)["decision"] == "depends on the content"
    assert seen(broker, "/permissions", **market, fields='{"price": 120}')["rule"] == "never asked"
    async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
        await alice.settle()
        (connection,) = seen(broker, "/connections")["connections"]
        found = seen(broker, "/permissions", **asked, connection=connection["connection"])
        assert (found["decision"], found["asker"]["user"], found["asker"]["group"]) == ("allowed", "alice", ["sensors"])
        assert found["asker"]["listener"] == "native"
    page = seen(broker, "/permissions")
    assert {rule["rule"]: rule["decisions"] for rule in page["rules"] if rule["rule"] != "line 12"} == {
        "locked": 0, "line 6": 0, "never asked": 0,
    }
    for query, said in (
        ({"action": "fly"}, "action is one of connect, publish"),
        ({"action": "publish"}, "action publish needs topic"),
        ({"action": "publish", "topic": "a/#"}, "invalid mqtt topic"),
        ({"action": "connect", "address": "here"}, "address: 'here'"),
        ({"topic": "a"}, "topic: say which action"),
        ({"action": "connect", "limit": "1"}, "limit is for the list of rules"),
        ({"action": "connect", "connection": "12345"}, "there is no connection 12345"),
        ({"action": "connect", "connection": "1", "user": "bob"}, "user is known of a connection"),
        ({**market, "fields": "price"}, "fields is not JSON"),
    ):
        status, text = refused(broker, "/permissions", **query)
        assert status == 400, query
        assert said in text


async def test_without_a_file_there_is_nothing_to_show(start_broker: StartBroker) -> None:
    broker = start_broker()
    status, text = await asyncio.to_thread(ask, f"{broker.http_url}/permissions")
    assert status == 404
    assert "see the setting permissions" in text


QUOTAS = """\
[[quota]]
name = "sensors"
group = "sensors"
connections = 2
subscriptions = 4
publish_messages = 0.001
burst_seconds = 3000
over_rate = "refuse"
"""


async def test_what_each_user_uses_is_shown_beside_its_quota(
    start_broker: StartBroker, users: Path, tmp_path: Path
) -> None:
    (tmp_path / "quotas.toml").write_text(QUOTAS)
    broker = start_broker(users_file=users, quotas=tmp_path / "quotas.toml")
    async with (
        await Peer.connect(broker.port, user="alice", password="wonder") as alice,
        await Peer.connect(broker.port, user="alice", password="wonder") as second,
        await Peer.connect(broker.port, user="bob", password="wonder") as bob,
        await Peer.connect(broker.port, user="root", password="wonder") as root,
    ):
        await root.subscribe(1, "a")
        for number in range(3):  # the burst, and no fourth message
            await alice.publish("a", b"12345")
            await second.subscribe(number, f"a.{number}")
        for request in (70, 71):
            await alice.send(publish("a", b"", request))
            assert (await alice.expect(Type.ERROR))[1:3] == [request, "limit_exceeded"]
        for number in range(5):
            await bob.send(subscribe(90 + number, number, f"b.{number}"))
        assert (await bob.until(Type.ERROR))[-1][1:3] == [94, "limit_exceeded"]
        await root.payloads(3)
        await root.settle()
        page = seen(broker, "/quotas", quota="sensors", by="refused")
        assert [row["principal"] for row in page["quotas"]] == ["user alice", "user bob"]
        parts = [row["part"] for row in seen(broker, "/quotas")["quotas"]]
        assert parts == sorted(parts, reverse=True)
        assert parts[:2] == [1.0, 1.0]
        rows = {row["principal"]: row for row in page["quotas"]}
        used = rows["user alice"]
        assert (used["quota"], used["connections"], used["messages_in"], used["bytes_in"]) == ("sensors", 2, 3, 18)
        assert used["quantities"]["connections"] == {"used": 2, "limit": 2, "quota": 2, "refused": 0}
        assert used["quantities"]["subscriptions"] == {"used": 3, "limit": 4, "quota": 4, "refused": 0}
        rate = used["rates"]["publish"]
        assert (rate["messages"], rate["bytes"], rate["over_rate"]) == (0.001, None, "refuse")
        assert (rate["passed"], rate["held"], rate["refused"]) == (3, 0, 2)
        assert 0 < rate["wait_seconds"] <= 1000
        assert (used["held"], used["refused"], used["part"]) == (0, 2, 1.0)
        assert rows["user bob"]["quantities"]["subscriptions"]["refused"] == 1
        everybody = seen(broker, "/quotas", by="messages_out", limit=1)
        assert everybody["total"] == 3
        (first,) = everybody["quotas"]
        assert (first["principal"], first["quota"], first["messages_out"]) == ("user root", None, 3)
        assert first["bytes_out"] > 15
        second_page = seen(broker, "/quotas", by="messages_out", limit=1, offset=1)["quotas"]
        assert second_page[0]["principal"] != "user root"
        assert [row["principal"] for row in seen(broker, "/quotas", principal="user bob")["quotas"]] == ["user bob"]
    assert refused(broker, "/quotas", by="size")[0] == 400


async def test_metrics_of_quotas_and_refusals_are_by_user_and_group(
    start_broker: StartBroker, users: Path, permissions: Path, tmp_path: Path
) -> None:
    (tmp_path / "quotas.toml").write_text(QUOTAS)
    broker = start_broker(users_file=users, permissions=permissions, quotas=tmp_path / "quotas.toml")
    async with await Peer.connect(broker.port, user="alice", password="wonder") as alice:
        for _ in range(3):
            await alice.publish("site.alice.a")
        await alice.send(publish("site.alice.a", b"", 70), subscribe(71, 1, "site.#"))
        assert (await alice.expect(Type.ERROR))[1:3] == [70, "limit_exceeded"]
        assert (await alice.expect(Type.ERROR))[1:3] == [71, "not_permitted"]
        await alice.subscribe(2, "site.alice.b")

        def scraped() -> str:
            return ask(f"{broker.http_url}/metrics", user="root", password="wonder")[1]

        text = scraped()
        assert 'fanlight_quota_refused_total{quota="sensors"} 1.0' in text
        assert "fanlight_quota_holds_total 0.0" in text
        assert 'fanlight_permission_group_denials_total{action="subscribe",group="sensors"} 1.0' in text
        for _ in range(1_000):  # the users are looked at after the first request
            if "fanlight_quota_used{" in text:
                break
            text = scraped()
        assert 'fanlight_quota_used{principal="user alice",quantity="subscriptions"} 1.0' in text
        assert 'fanlight_quota_limit{principal="user alice",quantity="connections"} 2.0' in text
        assert text.count("fanlight_quota_holds_total ") == 3, "HELP, TYPE and the counter"


@pytest.mark.parametrize("version", [V3, V5])
async def test_a_flood_of_refused_messages_is_one_line_and_a_count(
    start_broker: StartBroker, users: Path, permissions: Path, version: Version
) -> None:
    broker = start_broker(users_file=users, permissions=permissions, refusals_per_second_max=0)
    count = 10_000
    async with await MqttPeer.connect(
        broker.mqtt_port, "flood", version=version, user_name="alice", password=b"wonder"
    ) as peer:
        for first in range(0, count, 1_000):
            numbers = range(first, first + 1_000)
            await peer.send(*(
                Publish(f"site/bob/{each}", b"x", each % 2, packet_id=each % 2 or None) for each in numbers
            ))
            for _ in range(500):
                assert isinstance(await peer.packet(), PubAck)
    async with await Peer.connect(broker.port, user="bob", password="wonder", client="own") as bob:
        for first in range(0, count, 1_000):
            await bob.send(*(publish(f"site.alice.{each}") for each in range(first, first + 1_000)), ping(first))
            assert len(await bob.until(Type.PONG)) == 1_001
    found = seen(broker, "/stats")
    assert found["publish_denied"] == 2 * count
    assert seen(broker, "/permissions")["refused_without_rule"] == 2 * count
    for client in ("flood", "own"):
        lines = await logged_once_it_is(broker, "not_permitted", client=client)
        assert [(line["user"], line["action"], line["rule"]) for line in lines] == [
            ("alice" if client == "flood" else "bob", "publish", "(no rule)")
        ]
    metrics = ask(f"{broker.http_url}/metrics", user="root", password="wonder")[1]
    assert f'fanlight_permission_group_denials_total{{action="publish",group="sensors"}} {2.0 * count}' in metrics
