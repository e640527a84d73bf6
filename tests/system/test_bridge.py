"""Bridges between Fanlights: loops, kills, full queues, permissions, reload, views; tests/interop has mosquitto."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import Connect, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5
from tests.conftest import StartBroker, TestBroker
from tests.interop.bridged import bridge, free_port, gather_until, in_order, publish_many, route, up, write_bridges
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import ask, eventually, view

TOPICS = ["plant/a", "plant/b", "plant/c"]
JSON = Properties(content_type="application/json")
MANY = 3_000
EXPIRY: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 9_999}


async def publish(broker: TestBroker, topic: str, payload: bytes, **more: Any) -> None:
    async with await MqttPeer.connect(broker.mqtt_port) as peer:
        await peer.send(Publish(topic, payload, 1, packet_id=1, **more))
        await peer.packet()


async def test_one_bridge_both_ways_brings_nothing_back(tmp_path: Path, start_broker: StartBroker) -> None:
    far = start_broker()
    near = start_broker(bridges=write_bridges(tmp_path / "b.toml", [bridge("far", far.mqtt_port, route("#", "both"))]))
    up(near, "far")
    async with (
        await MqttPeer.connect(far.mqtt_port) as there, await MqttPeer.connect(near.mqtt_port) as here,
    ):
        for peer in (there, here):
            await peer.subscribe("#", qos=1)
        await publish(near, "a", b"from here", retain=True)
        await publish(far, "b", b"from there", retain=True)
        for topic in ("a/end", "b/end"):
            await publish(near if topic[0] == "a" else far, topic, b"1")
        wanted = {b"from here", b"from there"}
        for peer in (there, here):
            got = await gather_until(peer, wanted | {b"1"})
            assert sorted(payload for _, payload in got if payload in wanted) == sorted(wanted)


async def test_a_ring_of_three_ends_at_the_broker_where_it_began(tmp_path: Path, start_broker: StartBroker) -> None:
    """Each sends all it has to the next: a message has come to all of them once, and stops."""
    ports = [free_port() for _ in range(3)]
    brokers = []
    for number, port in enumerate(ports):
        following = bridge("next", ports[(number + 1) % 3], route("#"))
        file = write_bridges(tmp_path / f"{number}.toml", [following], broker=f"broker-{number}")
        brokers.append(start_broker(mqtt_port=port, bridges=file))
    for broker in brokers:
        up(broker, "next")
    await publish(brokers[0], "a", b"1")
    seen = await eventually(brokers[0], lambda found: found["bridges"][0]["out"]["looped"] == 1, "/bridges")
    assert seen["bridges"][0]["out"]["messages"] == 1
    for broker in brokers[1:]:
        assert (await view(broker, "/bridges"))["bridges"][0]["out"]["messages"] == 1


async def test_nothing_is_lost_when_either_is_killed(tmp_path: Path, start_broker: StartBroker) -> None:
    """The far side in the midst of it, then the near one; all comes in order, some of it twice."""
    port, data = free_port(), tmp_path / "near"
    file = write_bridges(tmp_path / "b.toml", [bridge("far", port, route("plant/#"))])
    far = start_broker(mqtt_port=port, data=tmp_path / "far")
    near = start_broker(bridges=file, data=data)
    up(near, "far")
    wanted = {b"%d" % number for number in range(MANY)}
    got: list[tuple[str, bytes]] = []
    async with await MqttPeer.connect(port, "reader", **EXPIRY) as reader:
        await reader.subscribe("plant/#", qos=1)
        publishing = asyncio.create_task(publish_many(near.mqtt_port, TOPICS, MANY))
        got += await gather_until(reader, {b"%d" % (MANY // 4)})
        far.kill()
        got += await gather_until(reader, wanted, until_closed=True)
    await publishing
    near.kill()
    start_broker(mqtt_port=port, data=tmp_path / "far")
    start_broker(bridges=file, data=data)
    async with await MqttPeer.connect(port, "reader", **EXPIRY) as reader:
        got += await gather_until(reader, wanted - {payload for _, payload in got})
    assert in_order(got)


async def test_a_full_queue_drops_by_its_policy_and_counts(tmp_path: Path, start_broker: StartBroker) -> None:
    port = free_port()
    broker = start_broker(queue_messages_max=5_000, bridges=write_bridges(tmp_path / "b.toml", [
        bridge("newest", port, route("plant/#"), queue_messages_max=10),
        bridge("oldest", port, route("plant/#"), queue_messages_max=10, queue_policy="drop_oldest"),
        bridge("more", port, route("plant/#")),
    ]))
    await publish_many(broker.mqtt_port, ["plant/a"], 6_000)
    found = {each["name"]: each for each in (await view(broker, "/bridges"))["bridges"]}
    assert {name: each["waiting"] for name, each in found.items()} == {"newest": 10, "oldest": 10, "more": 6_000}
    stats = await view(broker, "/stats")
    assert stats["dropped_session"] + stats["dropped_queue"] == 2 * 5_990
    far = start_broker(mqtt_port=port)
    await eventually(far, lambda seen: seen["messages_in"] == 6_020)
    await eventually(broker, lambda seen: not any(each["waiting"] for each in seen["bridges"]), "/bridges")


async def test_permissions_are_asked_for_the_bridges_own_user(tmp_path: Path, start_broker: StartBroker) -> None:
    far, rules = start_broker(), tmp_path / "permissions.toml"
    rules.write_text(
        '[[allow]]\nuser = "bridge:far"\nsubscribe = "mqtt:out/#"\npublish = "mqtt:in/ok/#"\n'
        '[[allow]]\ngroup = "anonymous"\npublish = "#"\nsubscribe = "#"\nadmin = "read"\n'
    )
    near = start_broker(permissions=rules, bridges=write_bridges(tmp_path / "b.toml", [
        bridge("far", far.mqtt_port, route("out/#"), route("secret/#"), route("in/#", "in"))
    ]))
    up(near, "far")
    near.wait_for_line('"bridge_filter_refused"')
    async with await MqttPeer.connect(near.mqtt_port) as here:
        await here.subscribe("#", qos=1)
        await publish(far, "in/no/1", b"1")
        await publish(far, "in/ok/1", b"2")
        assert (await here.message()).topic == "in/ok/1"
    found = (await view(near, "/bridges"))["bridges"][0]
    assert found["in"]["refused"] == 1
    assert found["in"]["messages"] == 1
    assert found["refused_filters"] == {"secret/#": "not_authorized"}


async def test_nobody_else_can_have_the_session_of_a_bridge(tmp_path: Path, start_broker: StartBroker) -> None:
    file = write_bridges(tmp_path / "b.toml", [bridge("far", free_port(), route("a/#"))])
    near = start_broker(bridges=file, environment={"FANLIGHT_PASSWORD": "sesame"})
    reader, writer = await asyncio.open_connection("127.0.0.1", near.mqtt_port)
    wanted = Connect("$bridge/far", V5, user_name="bridge:far", password=b"sesame")
    writer.write(encode(wanted, V5))
    assert (await reader.readexactly(4))[3] == ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
    writer.close()


async def test_reload_changes_the_bridges_that_differ_and_leaves_the_others(
    tmp_path: Path, start_broker: StartBroker
) -> None:
    far, file = start_broker(), tmp_path / "b.toml"
    same, other = bridge("same", far.mqtt_port, route("a/#")), bridge("other", far.mqtt_port, route("b/#"))
    near = start_broker(bridges=write_bridges(file, [same, other]))
    for name in ("same", "other"):
        up(near, name)

    def reload(*bridges: dict[str, object]) -> None:
        write_bridges(file, list(bridges))
        os.kill(near.pid, signal.SIGHUP)

    async with await MqttPeer.connect(far.mqtt_port) as there:
        await there.subscribe("#", qos=1)
        reload(same, {**other, "route": [route("c/#"), route("d/#", "in")]}, bridge("new", far.mqtt_port, route("e/#")))
        up(near, "other", 2)
        up(near, "new")
        for topic in ("a", "b", "c", "e"):
            await publish(near, topic, topic.encode())
        assert [(await there.message()).topic for _ in range(3)] == ["a", "c", "e"]
    reload(same)
    near.wait_for(lambda: sum('"bridge_removed"' in line for line in near.lines) == 2, 60)
    found = await eventually(near, lambda seen: seen["total"] == 1, "/bridges")
    assert found["bridges"][0]["connects"] == 1
    for broker, client in ((near, "$bridge/same"), (far, "fanlight-same")):
        left = await eventually(broker, lambda seen: seen["total"] == 1, "/sessions")
        assert left["sessions"][0]["client"] == client
    near.may_complain = True
    file.write_text("[[bridge]]\nname = 'x'\n")
    os.kill(near.pid, signal.SIGHUP)
    near.wait_for_line('"reload_failed"')
    assert (await view(near, "/bridges"))["total"] == 1


async def test_only_what_somebody_there_wants_is_sent(tmp_path: Path, start_broker: StartBroker) -> None:
    """The bridge's own subscriptions there do not count, and retained messages pass."""
    far = start_broker(publish_interest=True, sys_interval_seconds=1)
    near = start_broker(bridges=write_bridges(tmp_path / "b.toml", [
        bridge("far", far.mqtt_port, route("#", "both"), only_wanted=True)
    ]))
    up(near, "far")

    def wanted(count: int | None) -> Callable[[dict[str, Any]], bool]:
        return lambda found: found["bridges"][0]["wanted_filters"] == count

    await eventually(near, wanted(0), "/bridges")
    await publish(near, "a", b"1")
    await publish(near, "kept", b"2", retain=True)
    async with await MqttPeer.connect(far.mqtt_port) as there:
        await there.subscribe("b/+", "kept", qos=1)
        assert (await there.message()).payload == b"2"
        await eventually(near, wanted(2), "/bridges")
        for topic in ("a", "b/1", "b/1/2", "b/2"):
            await publish(near, topic, b"3")
        assert [(await there.message()).topic for _ in range(2)] == ["b/1", "b/2"]
    await eventually(near, wanted(0), "/bridges")
    counts = (await view(near, "/bridges"))["bridges"][0]["out"]
    assert (counts["messages"], counts["unwanted"]) == (3, 3)
    far.terminate()


async def test_selectors_properties_and_what_is_shown(tmp_path: Path, start_broker: StartBroker) -> None:
    """A selector on either side; state under $SYS, at /metrics and in one line of the log a change."""
    port = free_port()
    near = start_broker(sys_interval_seconds=1, bridges=write_bridges(tmp_path / "b.toml", [bridge(
        "far", port, route("hot/#", where="payload.value > 25"), route("cold/#", "in", where="payload.value < 0"),
    )]))
    near.wait_for_line('"bridge_down"')
    async with await MqttPeer.connect(near.mqtt_port) as here:
        await here.subscribe("$SYS/broker/bridge/far/state", "cold/#", qos=1)
        assert (await here.message()).payload == b"0"
        far = start_broker(mqtt_port=port, payload_format="#=json")
        up(near, "far")
        assert (await here.message()).payload == b"1"
        async with await MqttPeer.connect(port) as there:
            await there.subscribe("hot/#", qos=1)
            for value in (20, 30):
                text = json.dumps({"value": value}).encode()
                await publish(near, f"hot/{value}", text, properties=JSON)
            message = await there.message()
            assert (message.topic, message.properties.content_type) == ("hot/30", "application/json")
            for value in (5, -5):
                await publish(far, f"cold/{value}", json.dumps({"value": value}).encode())
            assert (await here.message()).topic == "cold/-5"
        far.terminate()
        assert (await here.message()).payload == b"0"
    status, metrics = await asyncio.to_thread(ask, near.http_url + "/metrics")
    assert status == 200
    assert 'fanlight_bridge_messages_total{bridge="far",direction="out"} 1.0' in metrics
    assert 'fanlight_bridge_up{bridge="far"} 0.0' in metrics
    lines = [json.loads(line) for line in near.lines if '"logger": "bridges"' in line]
    changes = [key for key, _ in groupby(each["event"] for each in lines)]
    assert changes == ["bridges_in_force", "bridge_down", "bridge_up", "bridge_down"]
    said = [each["reason"] for each in lines if each["event"] == "bridge_down"]
    assert all(one != other for one, other in pairwise(said))  # once, however often it was tried
