"""The HTTP views of a broker that is at work: what they show is what is so."""

import asyncio
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from fanlight_spark.snapshot import read, take
from tests.conftest import StartBroker, TestBroker
from tests.system.views import KIB, ask, stats, view
from tests.system.wire import SMALL_BUFFER, WAIT_SECONDS, Peer, Peers, numbered, publish


async def pages(broker: TestBroker, name: str, limit: int) -> list[dict[str, Any]]:
    """All rows of a view, page by page."""
    rows: list[dict[str, Any]] = []
    while True:
        page = await view(broker, f"/{name}?limit={limit}&offset={len(rows)}")
        assert len(page[name]) <= limit
        rows += page[name]
        if not page[name]:
            assert page["total"] == len(rows)
            return rows


async def test_connections_and_subscriptions_come_in_pages(broker: TestBroker) -> None:
    async with Peers() as peers:
        for number in range(25):
            peers.append(await Peer.connect(broker.port, client=f"client-{number}", agent="tests/1"))
            for each in range(number % 4):
                await peers[-1].subscribe(each, f"page.{number}.*", group="g" if each == 2 else None, credit=5)
        rows = await pages(broker, "connections", 7)
        assert [row["client"] for row in rows] == [f"client-{number}" for number in range(25)]
        assert [row["subscriptions"] for row in rows] == [number % 4 for number in range(25)]
        assert {(row["agent"], row["protocol"], row["address"]) for row in rows} == {("tests/1", "native", "127.0.0.1")}
        found = await pages(broker, "subscriptions", 7)
        assert len(found) == sum(number % 4 for number in range(25))
        assert {(row["client"], row["subscription"]) for row in found} == {
            (f"client-{number}", each) for number in range(25) for each in range(number % 4)
        }
        assert {row["group"] for row in found} == {None, "g"}
        assert {row["credit"] for row in found} == {5}


async def test_the_views_tell_what_is_going_on_under_load(start_broker: StartBroker) -> None:
    broker = start_broker(outbox_bytes_max=256 * KIB, frame_bytes_max=64 * KIB, burst_seconds_max=0)
    slow = await Peer.connect(broker.port, receive_buffer=SMALL_BUFFER, client="slow", slow_policy="drop_oldest")
    async with (
        slow,
        await Peer.connect(broker.port, client="quick") as quick,
        await Peer.connect(broker.port, client="source") as publisher,
    ):
        await slow.subscribe(1, "load.#")
        await quick.subscribe(1, "load.hot")
        busy = True

        async def source() -> int:
            sent = 0
            while busy:
                await publisher.send(*(publish("load.hot", each) for each in numbered(range(sent, sent + 90), 1_000)))
                await publisher.send(*(publish("load.mild", each) for each in numbered(range(10), 1_000)))
                await quick.payloads(90)
                sent += 90
            await publisher.settle()
            return sent

        working = asyncio.create_task(source())
        while not (late := await view(broker, "/slow-consumers"))["slow_consumers"]:
            assert not working.done()
        for path in ("/connections", "/subscriptions", "/topics", "/stats", "/explain?topic=load.hot", "/metrics"):
            status, _ = await asyncio.to_thread(ask, broker.http_url + path)
            assert status == 200
        busy = False
        sent = await working

        (late,) = (await view(broker, "/slow-consumers"))["slow_consumers"]
        seen = await stats(broker)
        assert (late["client"], late["policy"], late["dropped"]) == ("slow", "drop_oldest", seen["dropped_oldest"])
        topics = (await view(broker, "/topics"))["topics"]
        assert [(each["topic"], each["messages"], each["subscribers"]) for each in topics] == [
            ("load.hot", sent, 2), ("load.mild", sent // 9, 1),
        ]
        by_client = {row["client"]: row for row in (await view(broker, "/connections"))["connections"]}
        assert by_client["slow"]["messages_dropped"] == seen["dropped_oldest"]
        assert by_client["quick"]["messages_dropped"] == 0
        assert by_client["quick"]["messages_sent"] == sent
        rows = (await view(broker, "/subscriptions"))["subscriptions"]
        counted = {row["client"]: row["delivered"] + row["dropped"] for row in rows}
        assert counted == {"slow": sent + sent // 9, "quick": sent}
        assert seen["messages_in"] == sent + sent // 9


async def test_explain_says_which_rows_matched_and_why_others_did_not(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port, client="desk") as desk, await Peer.connect(broker.port) as other:
        await desk.subscribe(1, "stock.*.AAPL")
        await desk.subscribe(2, "stock/+/AAPL", syntax=1)
        await desk.subscribe(3, "stock.nasdaq.AAPL")
        await desk.subscribe(4, "stock.*.MSFT")
        await desk.subscribe(5, "stock.#.close")
        await other.subscribe(1, "#", group="archive")
        found = await view(broker, f"/explain?topic={quote('stock.nasdaq.AAPL')}&client=desk")
        assert found["words"] == ["stock", "nasdaq", "AAPL"]
        assert found["total"] == 4
        matches = {(each["client"], each["subscription"]): each for each in found["matches"]}
        assert {key for key in matches if key[0] == "desk"} == {("desk", 1), ("desk", 2), ("desk", 3)}
        assert all(each["rows"] for each in matches.values())
        assert matches["desk", 3]["tier"] == "exact"
        assert matches["desk", 1]["reason"] == "pool: length 3, left 0 'stock', left 2 'AAPL'"
        assert [each["group"] for each in found["matches"] if each["client"] != "desk"] == ["archive"]
        why_not = {each["filter"]: each["reason"] for each in found["client"]["why_not"]}
        assert set(why_not) == {"stock.*.MSFT", "stock.#.close"}
        assert "MSFT" in why_not["stock.*.MSFT"]
        assert all(why_not.values())
        status, text = await asyncio.to_thread(ask, f"{broker.http_url}/explain?topic=a%2F%23&syntax=mqtt")
        assert status == 400
        assert "error" in text


async def test_the_metrics_are_what_prometheus_reads_and_agree_with_the_stats(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "a")
        for _ in range(5):
            await peer.send(publish("a", b"x"))
            await peer.message()
        shown = await stats(broker)
        status, text = await asyncio.to_thread(ask, f"{broker.http_url}/metrics")
        assert status == 200
        families = {family.name: family for family in text_string_to_metric_families(text)}
        values = {sample.name: sample.value for family in families.values() for sample in family.samples}
        assert sum_of(families, "messages_in") == shown["messages_in"] == 5
        assert sum_of(families, "messages_out") == 5
        assert sum_of(families, "bytes_in") >= shown["bytes_in"] > 0
        assert values["fanlight_clients"] == values["fanlight_subscriptions"] == 1
        assert values["process_resident_memory_bytes"] > 0


def sum_of(families: dict[str, Metric], name: str) -> float:
    """Of all samples of a family, whatever their labels."""
    return sum(sample.value for sample in families[f"fanlight_{name}"].samples if sample.name.endswith("_total"))


def refused_by(port: int) -> bytes:
    """What is answered to a CONNECT of MQTT 3.1, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as connection:
        connection.sendall(b"\x10\x0f\0\6MQIsdp\3\2\0\0\0\1a")
        answer = b""
        while octets := connection.recv(1024):
            answer += octets
        return answer


async def test_what_becomes_of_mqtt_clients_is_counted_by_reason(broker: TestBroker) -> None:
    assert await asyncio.to_thread(refused_by, broker.mqtt_port) == b"\x20\2\0\1"
    shown = await stats(broker)
    assert shown["mqtt_connects_refused"] == {"unsupported_protocol_version": 1}
    assert (shown["mqtt_errors"], shown["mqtt_unknown_acknowledgements"]) == ({}, 0)
    _, text = await asyncio.to_thread(ask, f"{broker.http_url}/metrics")
    assert 'fanlight_mqtt_connects_refused_total{reason="unsupported_protocol_version"} 1.0' in text.splitlines()


async def test_the_broker_publishes_what_it_says_of_itself(start_broker: StartBroker) -> None:
    broker = start_broker(sys_interval_seconds=0.25)
    async with await Peer.connect(broker.port) as peer:
        await peer.subscribe(1, "$SYS.broker.#")
        seen: dict[str, bytes] = {}
        while not {"$SYS/broker/uptime", "$SYS/broker/load/sockets/1min", "$SYS/broker/bytes/sent"} <= seen.keys():
            message = await peer.message()
            seen[message.topic] = message.payload
        assert seen["$SYS/broker/uptime"].endswith(b" seconds")
        assert float(seen["$SYS/broker/load/sockets/1min"]) > 0


async def test_a_snapshot_has_every_subscription_of_a_broker_at_work(broker: TestBroker, tmp_path: Path) -> None:
    """5,000 that stay are told once each, while others come and go."""
    async with Peers() as peers:
        for number in range(5):
            peers.append(await Peer.connect(broker.port, client=f"client-{number}"))
            for each in range(1_000):
                await peers[-1].subscribe(each, f"plant.{number}.{each}", group="g" if each == 2 else None)
        taking = asyncio.create_task(asyncio.to_thread(take, broker.http_url, tmp_path / "snapshot"))
        while not taking.done():
            async with await Peer.connect(broker.port, client="passing") as passing:
                await passing.subscribe(1, "passing.#")
        assert await taking >= 5_000
        told = read(tmp_path / "snapshot").subscriptions
        assert {each.client for each in told} <= {*(f"client-{number}" for number in range(5)), "passing"}
        stayed = [(each.client, each.filter, each.group) for each in told if each.client != "passing"]
        assert sorted(stayed) == sorted(
            (f"client-{number}", f"plant.{number}.{each}", "g" if each == 2 else None)
            for number in range(5) for each in range(1_000)
        )  # fmt: skip


async def test_explain_shows_who_is_nearly_reached_and_at_which_rows_it_fails(broker: TestBroker) -> None:
    async with await Peer.connect(broker.port, client="desk") as desk:
        await desk.subscribe(1, "stock.*.AAPL")
        await desk.subscribe(2, "stock.*.MSFT")
        await desk.subscribe(3, "forex.eur.usd.spot")
        await desk.subscribe(4, "transit.*.MSFT")
        found = await view(broker, f"/explain?topic={quote('stock.nasdaq.AAPL')}&near=2")
        assert [each["filter"] for each in found["near"]] == ["stock.*.MSFT", "transit.*.MSFT"]
        assert found["near_of"] == 4
        assert found["near"][0]["bits"] == {"length 3": True, "left 0 'stock'": True, "left 2 'AAPL'": False}
        (match,) = found["matches"]
        assert match["bits"] == {"length 3": True, "left 0 'stock'": True, "left 2 'AAPL'": True}
