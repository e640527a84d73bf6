"""/api/v1 of a running broker: what an operator sees, and what he does with it."""

import asyncio
import math
import re
import secrets
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

import fanlight
import fanlight.sync
from fanlight import QueueOptions
from fanlight_broker.protocols.mqtt.packets import Disconnect
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from tests.conftest import StartBroker, TestBroker
from tests.system.http_api import ApiClient
from tests.system.mqtt_peer import MqttPeer


@pytest.fixture(scope="module")
def api(module_broker: TestBroker) -> ApiClient:
    return ApiClient(module_broker.http_url)


def names(rows: list[dict[str, object]], key: str) -> list[object]:
    return [row[key] for row in rows]


def test_the_index_and_the_document_have_the_same_operations(api: ApiClient) -> None:
    index = api.ok("GET", "")
    document = api.ok("GET", "/openapi.json")
    assert document["openapi"] == "3.1.0"
    described = {
        (method.upper(), f"/api/v1{path}".rstrip("/")) for path, methods in document["paths"].items()
        for method in methods
    }
    assert {(each["method"], each["path"]) for each in index["operations"]} == described
    assert ("DELETE", "/api/v1/connections/{number}") in described


def test_the_page_has_all_operations(api: ApiClient) -> None:
    page = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text()
    said = set(re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/api/v1[^`]*)`", page))
    assert {(each["method"], each["path"]) for each in api.ok("GET", "")["operations"]} == said


def test_what_is_asked_wrongly_is_a_problem(api: ApiClient) -> None:
    assert "GET /api/v1" in api.refused(404, "GET", "/nothing")
    answer = api("PATCH", "/connections")
    assert (answer.status, answer.headers["Allow"]) == (405, "DELETE, GET")
    assert api.refused(400, "GET", "/connections?limit=1001") == "limit: must be from 1 to 1000"
    assert "unknown here" in api.refused(400, "GET", "/connections?colour=red")
    assert "more than once" in api.refused(400, "GET", "/connections?q=a&q=b")
    assert "next" in api.refused(400, "GET", "/connections?cursor=xyz")
    assert "say whom" in api.refused(400, "DELETE", "/connections")
    assert api("GET", "/connections/77777").body["connection"] == 77777
    assert "JSON" in api.refused(400, "POST", "/messages", b"{")
    assert "is missing" in api.refused(400, "POST", "/messages", {})
    assert "unknown" in api.refused(400, "POST", "/messages", {"topic": "a", "color": 1})
    assert "object" in api.refused(400, "POST", "/messages", [1])
    assert "at most one" not in api.refused(400, "POST", "/messages", {"topic": "a", "payload": "", "json": 1})
    assert "base64" in api.refused(400, "POST", "/messages", {"topic": "a", "payload_base64": "?"})
    assert "application/json" in api.refused(415, "POST", "/messages", b"{}", Content_Type="text/plain")
    assert "bytes" in api.refused(413, "POST", "/messages", b" " * (512 * 1024 + 1))
    assert "wildcard" in api.refused(400, "POST", "/messages", {"topic": "a/+", "syntax": "mqtt"})


async def test_connections_are_searched_sorted_and_paged(module_broker: TestBroker, api: ApiClient) -> None:
    async with AsyncExitStack() as stack:
        for number in range(25):
            peer = await MqttPeer.connect(module_broker.mqtt_port, f"pump-{number:02}")
            stack.push_async_callback(peer.close)
            await peer.subscribe(*(f"pump/{each}" for each in range(1 + number % 5)))
        by_name = await asyncio.to_thread(api.items, "/connections?q=PUMP&sort=client&order=desc&limit=7")
        assert names(by_name, "client") == [f"pump-{number:02}" for number in range(24, -1, -1)]
        busy = await asyncio.to_thread(api.items, "/connections?q=pump&sort=subscriptions&limit=4")
        assert names(busy, "subscriptions") == sorted(1 + number % 5 for number in range(25))
        assert len(set(names(busy, "connection"))) == 25
        page = await asyncio.to_thread(api.ok, "GET", "/connections?q=pump&limit=10")
        assert (page["total"], len(page["items"]), page["complete"]) == (25, 10, True)
        one = await asyncio.to_thread(api.ok, "GET", "/connections?client=pump-07&address=127.0.0.1")
        assert names(one["items"], "client") == ["pump-07"]
        shown = await asyncio.to_thread(api.ok, "GET", one["items"][0]["href"].removeprefix("/api/v1"))
        assert (shown["client"], shown["subscriptions"]) == ("pump-07", 3)
        other = await asyncio.to_thread(api.refused, 400, "GET", f"/connections?order=desc&cursor={page['next']}")
        assert "another order" in other


async def gone(api: ApiClient, path: str) -> None:
    """It is not there any more, once its socket is closed."""
    await asyncio.to_thread(api.until, 404, path)


async def test_a_kicked_client_is_told_why_and_its_session_stays(module_broker: TestBroker, api: ApiClient) -> None:
    async with await MqttPeer.connect(module_broker.mqtt_port, "kick-me", session_expiry_interval=60) as peer:
        await peer.subscribe("kick/#", qos=1)
        (row,) = await asyncio.to_thread(api.items, "/connections?client=kick-me")
        path = f"/connections/{row['connection']}"
        assert await asyncio.to_thread(api.ok, "DELETE", f"{path}?reason=maintenance") == {
            "connection": row["connection"], "client": "kick-me", "ended": True,
        }
        packet = await peer.packet()
        assert isinstance(packet, Disconnect)
        assert packet.reason_code == ReasonCode.ADMINISTRATIVE_ACTION
        assert packet.properties.reason_string == "maintenance"
    await gone(api, path)
    sent = await asyncio.to_thread(api.ok, "POST", "/messages", {"topic": "kick.1", "payload": "kept"})
    assert sent == {"subscribers": 1, "routed": True}
    session = await asyncio.to_thread(api.ok, "GET", "/sessions/kick-me")
    assert (session["connected"], session["queued"]) == (False, 1)
    waiting = await asyncio.to_thread(api.ok, "GET", "/sessions/kick-me/messages")
    assert [(each["topic"], each["payload"]) for each in waiting["items"]] == [("kick.1", "kept")]
    ended = await asyncio.to_thread(api.ok, "DELETE", "/sessions/kick-me")
    assert ended == {"client": "kick-me", "ended": True, "messages": 1}
    await asyncio.to_thread(api.refused, 404, "GET", "/sessions/kick-me")


async def test_all_connections_of_a_client_are_kicked(module_broker: TestBroker, api: ApiClient) -> None:
    clients = [await fanlight.connect(module_broker.url, name="many", reconnect=False) for _ in range(3)]
    try:
        rows = await asyncio.to_thread(api.items, "/connections?client=many")
        assert await asyncio.to_thread(api.ok, "DELETE", "/connections?client=many&address=10.0.0.1") == {"ended": 0}
        assert await asyncio.to_thread(api.ok, "DELETE", "/connections?client=many&at_once=true") == {"ended": 3}
        for row in rows:
            await gone(api, row["href"].removeprefix("/api/v1"))
    finally:
        for client in clients:
            await client.close()


async def test_a_session_ends_with_its_connection(module_broker: TestBroker, api: ApiClient) -> None:
    async with await MqttPeer.connect(module_broker.mqtt_port, "end/me", session_expiry_interval=60) as peer:
        (row,) = await asyncio.to_thread(api.items, "/sessions?client=end/me&connected=true")
        assert row["href"] == "/api/v1/sessions/end%2Fme"
        await asyncio.to_thread(api.ok, "DELETE", "/sessions/end%2Fme")
        assert isinstance(await peer.packet(), Disconnect)
    assert await asyncio.to_thread(api.items, "/sessions?client=end/me") == []


def test_subscriptions_by_topic_by_filter_and_the_redundant_ones(module_broker: TestBroker, api: ApiClient) -> None:
    with fanlight.sync.connect(module_broker.url, name="sub") as client:
        for filter in ("sea.#", "sea.north.*", "land.*.x"):
            client.subscribe(filter)
        client.subscribe("sea.#", where="depth > 10")

        def filters(query: str) -> list[str]:
            return sorted(map(str, names(api.items(f"/subscriptions?client=sub&{query}"), "filter")))

        assert filters("topic=sea.north.1") == ["sea.#", "sea.#", "sea.north.*"]
        assert filters("topic=land/a/x&syntax=mqtt") == ["land.*.x"]
        assert filters("filter=sea.south.%23") == ["sea.#", "sea.#"]
        assert filters("filter=sea.%23&relation=covered") == ["sea.#", "sea.#", "sea.north.*"]
        assert filters("filter=land/%2B/x&syntax=mqtt&relation=equal") == ["land.*.x"]
        assert filters("filter=sea.north.1&relation=covers&limit=1") == ["sea.#", "sea.#", "sea.north.*"]
        found = api.items("/subscriptions?client=sub&redundant=true")
        assert sorted((each["filter"], each["where"], each["redundant_by"]) for each in found) == [
            ("sea.#", "depth > 10", "sea.#"), ("sea.north.*", None, "sea.#"),
        ]
        assert "together" in api.refused(400, "GET", "/subscriptions?topic=a&redundant=true")
        client.publish("sea.north.1", b"", receipt=True)
        most = api.ok("GET", "/subscriptions?client=sub&sort=delivered&order=desc&limit=1")
        assert most["items"][0]["delivered"] == 1


def test_retained_messages_are_set_found_and_cleared(api: ApiClient) -> None:
    for number in range(12):
        path = f"/retained/house%2Froom{number}%2Ftemperature?syntax=mqtt"
        assert api.ok("PUT", path, {"json": {"celsius": number}}) == {"subscribers": 0, "routed": False}
    found = api.items("/retained?filter=house.*.temperature&limit=5&sort=topic")
    assert names(found, "topic") == sorted(f"house/room{number}/temperature" for number in range(12))
    shown = api.ok("GET", found[0]["href"].removeprefix("/api/v1"))
    assert shown["payload"] == '{"celsius": 0}'
    assert shown["content_type"] == "application/json"
    assert api.ok("GET", "/retained/house.room0.temperature")["topic"] == "house/room0/temperature"
    assert api.ok("DELETE", "/retained/house.room0.temperature")["cleared"] is True
    assert "no retained" in api.refused(404, "DELETE", "/retained/house.room0.temperature")
    assert "DELETE" in api.refused(400, "PUT", "/retained/house", {"payload": ""})
    assert "own" in api.refused(409, "DELETE", "/retained?filter=$SYS/%23&syntax=mqtt")
    assert "own" in api.refused(409, "DELETE", "/retained/%24SYS%2Fbroker%2Fversion?syntax=mqtt")
    assert api.ok("DELETE", "/retained?filter=house/%23&syntax=mqtt") == {"cleared": 11}
    assert api.items("/retained?q=house") == []
    assert api.items("/retained?q=broker/version")[0]["own"] is True


def test_any_octets_are_a_topic(api: ApiClient) -> None:
    api.ok("PUT", "/retained/odd.%FF%20%C3%A9", {"payload_base64": "AP8="})
    (row,) = api.items("/retained?filter=odd.%23")
    assert row["topic"] == "odd.\\xff é"
    assert api.ok("GET", row["href"].removeprefix("/api/v1"))["payload_base64"] == "AP8="
    api.ok("DELETE", row["href"].removeprefix("/api/v1"))


def test_queues_are_looked_into_purged_moved_and_removed(module_broker: TestBroker, api: ApiClient) -> None:
    with fanlight.sync.connect(module_broker.url) as client:
        client.queues.add("jobs", "work.jobs.#")
        client.queues.add("later", "work.later")
    for number in range(5):
        body = {"topic": f"work.jobs.{number}", "payload": "x" * 2_000, "headers": {"n": number}}
        assert api.ok("POST", "/messages", body)["subscribers"] == 1
    (row,) = api.items("/queues?queue=jobs")
    assert (row["waiting"], row["href"]) == (5, "/api/v1/queues/jobs")
    peeked = api.ok("GET", "/queues/jobs/messages?limit=2&payload_bytes=3")
    assert peeked["total"] == 5
    assert [(each["topic"], each["payload"], each["cut"], each["headers"]) for each in peeked["items"]] == [
        ("work.jobs.0", "xxx", True, {"n": 0}), ("work.jobs.1", "xxx", True, {"n": 1}),
    ]
    assert api.ok("POST", "/queues/jobs/move", {"to": "later", "count": 2}) == {"messages": 2, "stopped": None}
    assert api.ok("GET", "/queues/later")["waiting"] == 2
    assert api.ok("POST", "/queues/later/move", {}) == {"messages": 2, "stopped": None}  # back by their topics
    assert "no queue" in api.refused(404, "POST", "/queues/jobs/move", {"to": "nowhere"})
    assert api.ok("POST", "/queues/jobs/purge") == {"messages": 5}
    api.ok("POST", "/messages", {"topic": "work.jobs.9"})
    answer = api("DELETE", "/queues/jobs")
    assert (answer.status, answer.body["messages"], answer.body["consumers"]) == (409, 1, 0)
    assert api.ok("DELETE", "/queues/jobs?force=true") == {"messages": 1}
    assert api.ok("DELETE", "/queues/later") == {"messages": 0}
    assert "no queue" in api.refused(404, "GET", "/queues/jobs")


def test_where_dead_letters_are(module_broker: TestBroker, api: ApiClient) -> None:
    with fanlight.sync.connect(module_broker.url) as client:
        client.queues.add("bills", "bills.#", options=QueueOptions(dead_letter="dead.bills"))
        client.queues.add("graveyard", "dead.#")
    (row,) = api.items("/dead-letters?queue=bills")
    assert row["dead_letter"] == "dead.bills"
    assert names(row["held_in"], "queue") == ["graveyard"]


def test_a_message_is_what_was_said(module_broker: TestBroker, api: ApiClient) -> None:
    with fanlight.sync.connect(module_broker.url) as client, client.subscribe("say.#") as said:
        api.ok("POST", "/messages", {
            "topic": "say/it", "syntax": "mqtt", "json": {"price": 1.5}, "headers": {"to": "all", "urgent": True},
            "expiry_seconds": 60, "qos": 0,
        })
        message = said.next(timeout=60)
        assert (message.topic, message.payload) == ("say/it", b'{"price": 1.5}')
        assert message.headers["to"] == "all"
        assert message.headers["urgent"] is True


def test_the_tree_of_topics_level_by_level(api: ApiClient) -> None:
    for topic in ("tree/a/1", "tree/a/2", "tree/b", "tree/%C3%A9"):
        api.ok("PUT", f"/retained/{topic.replace('/', '%2F')}?syntax=mqtt", {"payload": "x"})
    api.ok("POST", "/messages", {"topic": "tree.c.deep.est"})
    api.ok("POST", "/messages", {"topic": "tree.b"})
    level = api.ok("GET", "/topics/tree?below=tree")
    rows = {each["word"]: each for each in level["items"]}
    assert list(rows) == ["a", "b", "c", "é"]
    assert (rows["a"]["is_topic"], rows["a"]["deeper"], rows["a"]["retained"]) == (False, True, 2)
    assert (rows["b"]["is_topic"], rows["b"]["is_retained"], rows["b"]["deeper"]) == (True, True, False)
    assert rows["b"]["messages"] >= 2
    assert (rows["c"]["is_topic"], rows["c"]["deeper"], rows["c"]["messages_below"]) == (False, True, 1)
    assert api.ok("GET", rows["b"]["retained_href"].removeprefix("/api/v1"))["payload"] == "x"
    words: list[object] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api.ok("GET", f"/topics/tree?below=tree&syntax=mqtt&limit=1{cursor}")
        words += names(page["items"], "topic")
        cursor = None if page["next"] is None else f"&cursor={quote(page['next'], safe='')}"
    assert words == ["tree/a", "tree/b", "tree/c", "tree/é"]
    assert "tree" in names(api.ok("GET", "/topics/tree?limit=1000")["items"], "word")


def test_delayed_messages_are_listed_and_given_up(module_broker: TestBroker, api: ApiClient) -> None:
    with fanlight.sync.connect(module_broker.url, name="later") as client:
        client.publish("delay.me", b"x", delay=3_600, receipt=True)
        (row,) = api.items("/delayed?client=later")
        assert row["topic"] == "delay.me"
        assert api.ok("DELETE", row["href"].removeprefix("/api/v1")) == {"id": row["id"], "cancelled": True}
        assert api.items("/delayed?client=later") == []
        api.refused(404, "DELETE", row["href"].removeprefix("/api/v1"))


def test_a_window_of_the_archive(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(
        archive=str(tmp_path / "archive"), archive_topics="kept.#", archive_segment_bytes_max=str(64 * 1024)
    )
    api = ApiClient(broker.http_url)
    for number in range(30):
        api.ok("POST", "/messages", {"topic": f"kept.{number % 3}", "payload": str(number), "headers": {"n": number}})
    found, path = [], "/archive/messages?filter=kept.1&limit=4"
    begin: int | None = 0
    while begin is not None:
        window = api.ok("GET", f"{path}&from={begin}")
        found += window["items"]
        begin = window["next"]
    assert names(found, "payload") == [str(number) for number in range(1, 30, 3)]
    assert found[0]["headers"] == {"n": "1"}  # as the archive has them
    (first,) = api.ok("GET", f"/archive/messages?since={found[5]['time']}&limit=1")["items"]
    assert first["offset"] == found[5]["offset"]
    assert "together" in api.refused(400, "GET", "/archive/messages?since=1&from=1")
    assert api.ok("GET", "/archive")["filters"] == [{"filter": "kept.#", "syntax": "amqp"}]
    (one,) = api.items("/archive/segments")
    assert (one["first"], one["end"], one["messages"], one["open"], one["bytes"]) == (0, 30, 30, True, None)
    for _ in range(2):  # the second begins another file
        api.ok("POST", "/messages", {"topic": "kept.0", "payload": secrets.token_hex(70_000)})
        api.ok("GET", "/archive/messages?limit=1")  # after which all is written
    closed, still_open = api.items("/archive/segments?sort=end")
    assert (closed["first"], closed["end"], closed["open"]) == (0, still_open["first"], False)
    assert closed["bytes"] > 70_000
    assert 1 < closed["earliest"] <= closed["latest"]
    assert still_open["end"] == 32
    assert api.ok("GET", "/archive/segments?limit=1")["total"] == 2
    assert api.items("/archive/replays?client=nobody") == []
    assert api.items("/archive/holds?sort=behind") == []


def test_headers_that_json_has_no_number_for_are_text(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(archive=str(tmp_path / "archive"), archive_topics="odd.#")
    api = ApiClient(broker.http_url)
    sent = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5}
    shown = {"a": "nan", "b": "inf", "c": "-inf", "d": 1.5}
    with fanlight.sync.connect(broker.url) as client:
        client.queues.add("odd", "odd.#")
        client.publish("odd.1", b"x", headers=sent, receipt=True)
        client.publish("odd.2", b"x", headers=sent, receipt=True, delay=3_600)
        api.ok("PUT", "/retained/odd.3", {"payload": "x", "headers": sent})
    (row, _) = api.ok("GET", "/queues/odd/messages")["items"]
    assert row["headers"] == shown
    assert api.ok("GET", "/retained/odd.3")["headers"] == shown
    assert len(api.items("/delayed")) == 1
    (first, *_) = api.ok("GET", "/archive/messages?filter=odd.1")["items"]
    assert first["headers"] == {name: str(value) for name, value in shown.items()}


def test_the_views(module_broker: TestBroker, api: ApiClient) -> None:
    overview = api.ok("GET", "/overview")
    assert overview["ready"] is True
    assert overview["counters"]["connections_kicked"] >= 0
    assert all(each["most"] > 0 for each in overview["limits"])
    stats = api.ok("GET", "/stats")
    assert stats["uptime_seconds"] > 0
    assert stats["http_slice_cpu_max_seconds"] > 0
    for path in ("/topics", "/slow-consumers", "/shares", "/quotas", "/namespaces", "/topics?sort=per_second"):
        api.ok("GET", path)
    assert api.ok("GET", "/namespaces")["items"][0]["namespace"] == ""
    explained = api.ok("GET", "/explain?topic=a.b&client=nobody&fields=%7B%22x%22:1%7D")
    assert explained["client"]["connected"] == 0
    assert "JSON" in api.refused(400, "GET", "/explain?topic=a&fields=%7B")
    assert "namespace" in api.refused(404, "GET", "/explain?topic=a&namespace=nowhere")
    api.refused(404, "GET", "/archive")
    for path in ("messages", "segments", "replays", "holds"):
        api.refused(404, "GET", f"/archive/{path}")
