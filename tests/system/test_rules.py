"""Routing rules of a broker process: both protocols over real sockets, SIGHUP, metrics, /explain."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import fanlight
from fanlight_bench.launch import fanlightd
from fanlight_broker.protocols.mqtt.packets import PubAck, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import ask, logged, view

RULES = """\
[[rules]]
name = "copy"
topic = "orders.*.new"
where = "price > 100"
to = "stock.$2.$1"

[[rules]]
name = "drop"
topic = "orders.secret.#"
drop = true
"""


def reload(broker: TestBroker, event: str = "reloaded") -> None:
    before = len(logged(broker, event))
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for(lambda: len(logged(broker, event)) > before, 60)


def metric(broker: TestBroker, name: str) -> float:
    _, text = ask(broker.http_url + "/metrics")
    (line,) = [line for line in text.splitlines() if line.startswith(f"fanlight_{name} ")]
    return float(line.split()[1])


async def published(broker: TestBroker, *topics: str) -> list[str]:
    """What a subscriber of everything gets, of messages with a high price from a native and an MQTT client each."""
    got: list[str] = []
    async with (
        fanlight.connect(broker.url) as client, client.subscribe("#") as everything,
        await MqttPeer.connect(broker.mqtt_port) as peer,
    ):
        for number, topic in enumerate(topics, 1):
            await client.publish(topic, b"1", headers={"price": 120})
            await client.publish("end", b"")
            async for message in everything:
                if message.topic == "end":
                    break
                got.append(message.topic)
            await peer.send(Publish(topic.replace(".", "/"), b"2", 1, packet_id=number, properties=price(120)))
            assert isinstance(await peer.packet(), PubAck)
            await client.publish("end", b"")
            async for message in everything:
                if message.topic == "end":
                    break
                got.append(message.topic)
    return got


def price(value: int) -> Properties:
    return Properties(user_properties=(("price", str(value)),))




async def test_rules_act_on_both_protocols_and_are_replaced_as_a_whole(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    broker = start_broker(rules=path)
    broker.may_complain = True
    assert await published(broker, "orders.eu.new", "orders.secret.x") == [
        "orders.eu.new", "stock.eu.orders", "orders/eu/new", "stock/eu/orders",
    ]
    path.write_text(RULES + '[[rules]]\nname = "wrong"\nwhere = "a >"\ndrop = true\n')
    await asyncio.to_thread(reload, broker, "reload_failed")
    (failed,) = logged(broker, "reload_failed")
    assert failed["reason"].startswith(f"rules: {path}, line 11, rule 'wrong': where: invalid selector")
    assert await asyncio.to_thread(metric, broker, "rules_reloads_failed_total") == 1
    assert len(await published(broker, "orders.eu.new", "orders.secret.x")) == 4
    path.write_text('[[rules]]\nname = "copy"\ntopic = "orders.eu.#"\nreplace = "moved.$0"\n')
    await asyncio.to_thread(reload, broker)
    assert await published(broker, "orders.eu.new", "orders.secret.x") == [
        "moved.orders.eu.new", "moved/orders/eu/new", "orders.secret.x", "orders/secret/x",
    ]
    assert await asyncio.to_thread(metric, broker, 'rule_messages_total{rule="copy"}') == 6
    assert await asyncio.to_thread(metric, broker, "rules_in_force") == 1
    assert await asyncio.to_thread(metric, broker, "rules_dropped_total") == 4


async def test_explain_says_which_rules_act(start_broker: StartBroker, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    broker = start_broker(rules=path)
    async with fanlight.connect(broker.url) as client, client.subscribe("stock.#"):
        found = await view(broker, f"/explain?topic=orders.eu.new&fields={quote(json.dumps({'price': 120}))}")
        (rule,) = found["rules"]
        assert (rule["rule"], rule["place"], rule["does"]) == ("copy", "line 1", "copies it to stock.eu.orders")
        assert [each["topic"] for each in found["routed"]] == ["orders.eu.new", "stock.eu.orders"]
        found = await view(broker, "/explain?topic=orders.eu.new")
        assert [(each["rule"], each["where"]) for each in found["rules"]] == [("copy", "price > 100")]


async def test_a_broker_without_rules_shows_none(broker: TestBroker) -> None:
    assert "rules" not in await view(broker, "/explain?topic=a")
    assert await asyncio.to_thread(metric, broker, "rules_in_force") == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("x", "rules: "), ('[[rules]]\narchive = true\n', "archive: this broker has no archive"),
     ('[[rules]]\nto = "a.$0"\n', "send messages in a circle")],
)  # fmt: skip
def test_a_broker_does_not_start_on_rules_that_cannot_be_put_in_force(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    ports = [f"--{name}-port=0" for name in ("native", "native-websocket", "http", "mqtt", "mqtt-websocket", "amqp")]
    done = subprocess.run(
        [fanlightd(), "serve", *ports, "--rules", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert f"fanlightd: rules: {path}" in done.stderr
    assert said in done.stderr


async def test_what_a_rule_delays_or_copies_into_a_session_survives_a_kill(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        '[[rules]]\ntopic = "a"\nto = "b"\n[[rules]]\ntopic = "later"\ndelay = "1s"\n'
        '[[rules]]\ntopic = "later"\nto = "b"\n'
    )
    broker = start_broker(rules=path, data=tmp_path / "data")
    kept: dict[str, Any] = {"session_expiry_interval": 1_000}
    async with await MqttPeer.connect(broker.mqtt_port, "s", **kept) as peer:
        await peer.subscribe("b", qos=1)
    async with await MqttPeer.connect(broker.mqtt_port, "p") as peer:
        await peer.send(Publish("a", b"now", 1, packet_id=1), Publish("later", b"later", 1, packet_id=2))
        assert [type(await peer.packet()) for _ in range(2)] == [PubAck, PubAck]
    broker.process.kill()
    await asyncio.to_thread(broker.process.wait)
    again = start_broker(rules=path, data=tmp_path / "data")
    async with await MqttPeer.connect(again.mqtt_port, "s", clean_start=False, **kept) as peer:
        assert [(await peer.message()).payload for _ in range(2)] == [b"now", b"later"]
