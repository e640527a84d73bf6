"""Kafka -> broker: every record a message, once, by its place in Kafka as a mark."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import fanlight.sync
from fanlight_archive import Archive
from fanlight_bench.launch import Broker
from fanlight_spark.broker import Address
from fanlight_spark.kafka.__main__ import main
from fanlight_spark.remote import Remote
from tests.conftest import StartBroker
from tests.kafka.peer import Bridge, MockKafka

Fresh = Callable[[str], str]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kafka") / "archive"


@pytest.fixture(scope="module")
def archiving(start_module_broker: StartBroker, archive: Path) -> Broker:
    """One for all tests: messages name the topic of Kafka that they came from."""
    return start_module_broker(archive=archive, archive_receipts=True)


def numbered(first: int, end: int) -> list[dict[str, Any]]:
    return [
        {"value": str(number), "key": f"plant.{number % 3}", "partition": number % 4} for number in range(first, end)
    ]


def into(broker: Broker, kafka: MockKafka, fresh: Fresh, *more: str) -> list[str]:
    return [
        "in",
        broker.url,
        "--kafka",
        kafka.address,
        "--name",
        fresh("bridge"),
        "--topic",
        fresh("in"),
        "--once",
        *more,
    ]


def archived(broker: Broker, folder: Path, topic: str) -> list[dict[str, Any]]:
    """What has come from a topic of Kafka."""
    with Remote(Address(broker.url), "#", "amqp", 1), Archive(folder) as there:  # asked, it has written what it had
        rows = [row for batch in there.read() for row in batch.to_pylist()]
    return [row for row in rows if dict_of(row)["kafka-offset"].startswith(f"{topic}/".encode())]


def dict_of(row: dict[str, Any]) -> dict[str, bytes]:
    return {header["key"]: header["value"] for header in row["headers"]}


def test_messages_have_all_of_a_record_and_come_once(
    archiving: Broker, archive: Path, mock_kafka: MockKafka, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = [("a", b"1"), ("a", b"2"), ("content-type", b"text/plain"), ("reply-topic", b"answers/x"),
               ("fanlight-syntax", b"mqtt"), ("correlation-id", b"\xff\x00")]  # fmt: skip
    mock_kafka.produce(fresh("in"), [{"value": "0", "key": "plant/hall", "partition": 2, "headers": headers}])
    mock_kafka.produce(fresh("in"), numbered(1, 500))
    assert main(into(archiving, mock_kafka, fresh)) == 0
    found = archived(archiving, archive, fresh("in"))
    assert sorted(int(row["value"]) for row in found) == list(range(500))
    for number in range(4):  # the order of a partition is that of the broker
        values = [int(row["value"]) for row in found if int(row["value"]) % 4 == number and row["value"] != b"0"]
        assert values == sorted(values)
    (one,) = [row for row in found if row["value"] == b"0"]
    assert (one["topic"], one["syntax"], one["content_type"]) == ("plant/hall", "mqtt", "text/plain")
    assert (one["reply_topic"], one["correlation"]) == ("answers/x", b"\xff\x00")
    assert [(header["key"], header["value"]) for header in one["headers"]] == [
        ("a", b"1"), ("a", b"2"), ("kafka-offset", f"{fresh('in')}/2/0".encode()),
    ]  # fmt: skip

    mock_kafka.produce(fresh("in"), numbered(500, 600))
    assert main(into(archiving, mock_kafka, fresh)) == 0
    assert len(archived(archiving, archive, fresh("in"))) == 600
    assert "100 messages, 0 repeated" in capsys.readouterr().err

    # What came from Kafka does not go there again.
    back = ["out", str(archive), "--kafka", mock_kafka.address, "--name", "back", "--topic", fresh("out"), "--once"]
    assert main([*back, "--positions", fresh("positions")]) == 0
    assert "0 records in 1 transactions, 600 from Kafka left out" in capsys.readouterr().err
    assert mock_kafka.records(fresh("out")) == []


def test_records_that_cannot_be_messages_end_a_bridge_unless_they_may_be_left_out(
    archiving: Broker, archive: Path, mock_kafka: MockKafka, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    bad: list[dict[str, Any]] = [{"value": None, "key": "a"}, {"value": "x", "key": b"\xff"}, {"value": "x", "key": ""}]
    mock_kafka.produce(fresh("in"), [{"partition": 0, **record} for record in [*bad, {"value": "7", "key": "good"}]])
    assert main(into(archiving, mock_kafka, fresh)) == 2
    assert "in/0/0: it has no value" in capsys.readouterr().err
    assert main(into(archiving, mock_kafka, fresh, "--skip")) == 0
    assert "1 messages, 0 repeated, 3 skipped" in capsys.readouterr().err
    assert main(into(archiving, mock_kafka, fresh, "--name", fresh("other"), "--to", "all.{topic}", "--skip")) == 0
    topics = [row["topic"] for row in archived(archiving, archive, fresh("in"))]
    assert topics == ["good", *[f"all.{fresh('in')}"] * 3]


def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    archiving: Broker, mock_kafka: MockKafka, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    mock_kafka.produce(fresh("in"), [{"value": "1", "key": "a", "partition": 0}])
    group = {"bootstrap.servers": mock_kafka.address, "group.id": f"fanlight-{fresh('bridge')}"}
    consumer = confluent_kafka.Consumer(group)
    consumer.commit(offsets=[confluent_kafka.TopicPartition(fresh("in"), 0, 9)], asynchronous=False)
    consumer.close()
    assert main(into(archiving, mock_kafka, fresh)) == 2
    assert "in/0 ends at 1, and this bridge has read up to 9" in capsys.readouterr().err


def test_bridges_that_are_killed_publish_every_record_once(
    archiving: Broker, archive: Path, mock_kafka: MockKafka, fresh: Fresh, tmp_path: Path
) -> None:
    kill_inward(archiving, archive, mock_kafka, fresh, tmp_path, kills=2, seed=1)


def kill_inward(
    broker: Broker, archive: Path, kafka: MockKafka, fresh: Fresh, work: Path, *, kills: int, seed: int
) -> None:
    """Long records: the bridge is slower than the kill. Offsets are committed a second later, so most come again."""
    chance, rows = random.Random(seed), 4_000
    kafka.produce(fresh("in"), [{**one, "headers": {"long": b"x" * 4_000}} for one in numbered(0, rows)])
    arguments = into(broker, kafka, fresh)
    with fanlight.sync.connect(broker.url) as client, client.subscribe("plant.#") as published:
        for _ in range(kills):
            bridge = Bridge(*arguments, log=work / "log")
            for _ in range(chance.randrange(1, rows // (kills + 1))):
                published.next(timeout=60)
            bridge.kill()
    Bridge(*arguments, log=work / "log").end()
    assert sorted(int(row["value"]) for row in archived(broker, archive, fresh("in"))) == list(range(rows))
