"""The audit topics of a broker process: live, in the archive, in order, and over a restart."""

import json
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import fanlight
from fanlight_archive import Archive
from fanlight_broker.protocols.mqtt.packets import Publish, SubAck, Subscribe, Subscription
from fanlight_spark.recipients import Recipients
from fanlight_spark.trail import Trail, said_by
from tests.conftest import StartBroker, TestBroker
from tests.system.mqtt_peer import MqttPeer

ROOT = "$audit/"
LASTING: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 3_600}


def archived(folder: Path) -> list[tuple[str, Any]]:
    """What is there: the kind of an audit message and what it says, or the topic of another one and its value."""
    with Archive(folder) as archive:
        rows = [row for batch in archive.read() for row in batch.to_pylist()]
    return [
        (row["topic"].removeprefix(ROOT), json.loads(row["value"]) if row["topic"].startswith(ROOT) else row["value"])
        for row in rows
    ]


async def test_who_subscribed_when_is_in_the_archive_between_the_messages(tmp_path: Path) -> None:
    options = {
        "data": tmp_path / "data", "archive": tmp_path / "archive", "archive_topics": "#, $audit.#",
        "audit_topics": True, "archive_receipts": True,
    }  # fmt: skip
    with TestBroker(**options) as broker:
        async with await MqttPeer.connect(broker.mqtt_port, "kept", **LASTING) as kept:
            await kept.send(Subscribe(1, (Subscription("shop/#", 1),)))
            await kept.packet()
        async with await fanlight.connect(broker.url, name="desk") as desk:
            subscription = await desk.subscribe("stock.#", no_echo=True)
            await desk.publish("stock.a", b"1", receipt=True)
            await subscription.unsubscribe()
            await desk.publish("stock.a", b"2", receipt=True)
    found = archived(tmp_path / "archive")
    kinds = [kind for kind, _ in found]
    assert kinds[0] == "started"
    assert kinds[-1] == "stopped"
    about = [
        (kind, said if kind.startswith("stock") else (said["client"], said["filter"]))
        for kind, said in found if kind in {"subscribe", "unsubscribe", "stock.a"}
    ]
    assert about == [
        ("subscribe", ("kept", "shop/#")),
        ("subscribe", ("desk", "stock.#")), ("stock.a", b"1"),
        ("unsubscribe", ("desk", "stock.#")), ("stock.a", b"2"),
    ]  # fmt: skip
    said = dict(found)
    assert said["subscribe"] | {"id": 0, "connection": 0, "number": 0} == {
        "id": 0, "client": "desk", "user": "", "filter": "stock.#", "syntax": "amqp", "group": None, "qos": 0,
        "no_echo": True, "session": False, "number": 0, "connection": 0, "protocol": "native", "kept": False,
        "partly": 0,
    }  # fmt: skip
    assert said["unsubscribe"]["id"] == said["subscribe"]["id"]
    assert kinds.count("connect") == kinds.count("disconnect") == 2

    with TestBroker(**options) as broker:
        assert broker.port
    again = archived(tmp_path / "archive")[len(found) :]
    assert [kind for kind, _ in again] == ["started", "subscribe", "restored", "stopped"]
    assert (again[1][1]["client"], again[1][1]["filter"], again[1][1]["restored"]) == ("kept", "shop/#", True)


async def test_a_subscriber_sees_them_live_and_its_own_first(start_broker: StartBroker) -> None:
    broker = start_broker(audit_topics=True)
    async with await fanlight.connect(broker.url, name="siem") as siem:
        messages = await siem.subscribe("$audit.#")
        first = await anext(messages)
        assert (first.topic, json.loads(first.payload)["client"]) == (f"{ROOT}subscribe", "siem")
        assert first.headers is not None
        assert first.headers["content-type"] == "application/json"
        async with await fanlight.connect(broker.url, name="desk") as desk:
            await desk.subscribe("a.*.c")
        kinds = [(await anext(messages)).topic.removeprefix(ROOT) for _ in range(5)]
        assert kinds == ["login", "connect", "subscribe", "disconnect", "unsubscribe"]


async def test_who_may_read_all_of_the_brokers_own_topics_does_not_read_these(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    """They say who everybody is and where from: a rule that allows `$SYS/#`, for a dashboard, is not about them."""
    rules = tmp_path / "permissions.toml"
    rules.write_text(
        '[[allow]]\nclient = "siem"\nsubscribe = "$audit/#"\n\n'
        '[[allow]]\nsubscribe = ["#", "$SYS/#"]\npublish = ["#", "$audit/#"]\n'
    )
    broker = start_broker(audit_topics=True, permissions=rules)
    async with await fanlight.connect(broker.url, name="siem") as siem, \
            await MqttPeer.connect(broker.mqtt_port, "desk") as desk:  # fmt: skip
        seen = await siem.subscribe("$audit.#")
        filters = ("#", "$SYS/#", "+/#", "$SYS/+/#", "$audit/#", "$audit/login")
        await desk.send(Subscribe(1, tuple(Subscription(filter, 0) for filter in filters)))
        answer = await desk.packet()
        while not isinstance(answer, SubAck):
            answer = await desk.packet()
        assert [code < 0x80 for code in answer.reason_codes] == [True, True, True, True, False, False]
        while json.loads((message := await anext(seen)).payload).get("filter") != "$SYS/#":
            assert message.topic.startswith(ROOT)
        with pytest.raises(fanlight.NotPermitted):
            await siem.publish("$audit.login", b"forged", receipt=True)
        await siem.publish("done", b"", receipt=True)
        topics = set()
        while "done" not in topics:
            packet = await desk.packet()
            assert isinstance(packet, Publish)
            topics.add(packet.topic)
        assert not any(topic.startswith("$audit") for topic in topics), topics


FILTERS = ("#", "a.#", "a.*", "b.x", "*.x", "a.#.x")
ACTS = ("come", "subscribe", "unsubscribe", "publish", "leave")
TOPICS = ("a.x", "a.y", "b.x", "c", "a.b.x")


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_archive_says_who_got_it_as_the_clients_do(tmp_path: Path, seed: int) -> None:
    """Clients come, go, subscribe and publish at random; what each got is what the archive has for it."""
    dice = random.Random(seed)
    got: Counter[tuple[str, str, int]] = Counter()  # client, filter, number of the message
    folder = tmp_path / "archive"
    with TestBroker(archive=folder, archive_topics="#, $audit.#", audit_topics=True) as broker:
        async with AsyncExitStack() as stack:
            writer = await stack.enter_async_context(await fanlight.connect(broker.url, name="writer"))
            clients: dict[str, fanlight.Client] = {}
            held: list[tuple[str, str, fanlight.Subscription]] = []
            for number in range(200):
                match dice.choices(ACTS, weights=(2, 3, 1, 6, 1))[0]:
                    case "come" if len(clients) < 4:
                        name = f"c{number}"
                        clients[name] = await stack.enter_async_context(await fanlight.connect(broker.url, name=name))
                    case "subscribe" if clients:
                        name, filter = dice.choice(list(clients)), dice.choice(FILTERS)
                        where = dice.choice([None, "n >= 75"])
                        held.append((name, filter, await clients[name].subscribe(filter, where=where)))
                    case "unsubscribe" if held:
                        name, filter, subscription = held.pop(dice.randrange(len(held)))
                        await subscription.unsubscribe()
                        got.update([(name, filter, int(each.payload)) async for each in subscription])
                    case "publish":
                        headers = {"n": number}
                        await writer.publish(dice.choice(TOPICS), b"%d" % number, headers=headers, receipt=True)
                    case "leave" if clients:
                        name = dice.choice(list(clients))
                        for each in [each for each in held if each[0] == name]:
                            held.remove(each)
                            await each[2].unsubscribe()
                            got.update([(name, each[1], int(one.payload)) async for one in each[2]])
                        await clients.pop(name).close()
            for name, filter, subscription in held:
                await subscription.unsubscribe()
                got.update([(name, filter, int(each.payload)) async for each in subscription])
    with Archive(folder) as archive:
        batches = list(archive.read())
    rows = [row for batch in batches for row in batch.select(["offset", "topic", "value"]).to_pylist()]
    trail = Trail.of(said_by((row["offset"], row["topic"], row["value"]) for row in rows if ROOT in row["topic"]))
    values = {row["offset"]: row["value"] for row in rows}
    asked = Recipients(trail)
    said = Counter(
        (each["client"], each["filter"], int(values[each["offset"]]))
        for batch in batches for each in asked.of(batch).to_pylist() if not each["topic"].startswith("$SYS")
    )  # fmt: skip
    assert said == got
    assert len(said) > 20
