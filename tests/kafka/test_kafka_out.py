"""Archive -> Kafka: every message a record, and none again after the position that Kafka has."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import Archive
from fanlight_spark.kafka.__main__ import main
from fanlight_spark.kafka.records import Naming
from tests.archive.messages import SECOND
from tests.kafka.peer import Bridge, MockKafka, Reader
from tests.pipeline.conftest import fill

Fresh = Callable[[str], str]


def places(records: list[Any]) -> list[int]:
    """The offsets of the archive that records name."""
    return [int(dict(record.headers())["fanlight-offset"].split(b"/")[1]) for record in records]


def out(folder: Path, kafka: MockKafka, fresh: Fresh, *more: str) -> list[str]:
    """The arguments of a bridge from a folder into the test's topic."""
    return [
        "out", str(folder), "--kafka", kafka.address, "--name", fresh("bridge"), "--topic", fresh("records"),
        "--positions", fresh("positions"), "--once", *more,
    ]  # fmt: skip


def test_records_have_all_of_a_message(folder: Path, mock_kafka: MockKafka, fresh: Fresh) -> None:
    assert main(out(folder, mock_kafka, fresh, "--rows", "300")) == 0
    found = mock_kafka.records(fresh("records"))
    assert sorted(places(found)) == list(range(1_000))
    assert all(places([one for one in found if one.key() == key]) == list(range(number, 1_000, 3))
               for number, key in enumerate([b"stock.AAPL.0", b"stock.AAPL.1", b"stock.AAPL.2"]))  # fmt: skip
    one = next(record for record in found if places([record]) == [7])
    assert (one.key(), int(one.value()), one.timestamp()[1]) == (b"stock.AAPL.1", 7, 7 * SECOND // 1_000)
    assert one.headers() == [("n", b"7"), ("fanlight-offset", b"1/7")]


def test_a_bridge_goes_on_where_it_was(folder: Path, mock_kafka: MockKafka, fresh: Fresh) -> None:
    arguments = out(folder, mock_kafka, fresh)
    assert main(arguments) == 0
    fill(folder, 1_000, 200)
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert sorted(places(mock_kafka.records(fresh("records")))) == list(range(1_200))


def test_only_what_is_wanted_is_sent_and_topics_are_by_root(folder: Path, mock_kafka: MockKafka, fresh: Fresh) -> None:
    fill(folder, 1_000, 30, topic="home.kitchen")
    root = fresh("records").replace("records", "{root}")
    for name in ("stock", "home"):
        mock_kafka.topic(root.replace("{root}", name))
    wanted = out(folder, mock_kafka, fresh, "--filter", "*.*.1", "--where", "n > 990", "--topic", root)
    assert main(wanted) == 0
    assert places(mock_kafka.records(root.replace("{root}", "stock"))) == [991, 997]
    assert places(mock_kafka.records(root.replace("{root}", "home"))) == list(range(1_003, 1_030, 6))


def test_a_root_that_kafka_has_no_name_for_is_spelled_otherwise() -> None:
    assert Naming("a-{root}")("größe/x", "mqtt") == "a-gr__e"
    assert Naming("{root}")("/x", "mqtt") == "_"
    with pytest.raises(ValueError, match="letters"):
        Naming("a b")


def test_messages_that_are_gone_end_a_bridge_unless_they_may(
    folder: Path, mock_kafka: MockKafka, fresh: Fresh, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka hides what is before them, in a transaction that is not committed. This one shows what of it had been sent:
    nothing, or on a slow machine some."""
    with Archive(folder) as archive:
        (folder / archive.spans[1].name).unlink()
    assert main(out(folder, mock_kafka, fresh)) == 2
    assert "400 to 799" in capsys.readouterr().err
    aborted = places(mock_kafka.records(fresh("records")))
    assert set(aborted) <= set(range(400))
    assert main(out(folder, mock_kafka, fresh, "--on-loss", "skip")) == 0
    sent = places(mock_kafka.records(fresh("records")))
    assert sorted(sent) == sorted([*aborted, *range(400), *range(800, 1_000)])


def test_mistakes_are_said_in_a_line(
    folder: Path, mock_kafka: MockKafka, fresh: Fresh, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kafka.properties"
    config.write_text("# ours\nisolation.level=read_uncommitted\n")
    assert main(out(folder, mock_kafka, fresh, "--kafka-config", str(config))) == 2
    assert ":2: isolation.level is the bridge's own choice" in capsys.readouterr().err
    config.write_text("message.max.bytes=1000\n")
    fill(folder, 1_000, 1, topic="x" * 2_000)
    assert main(out(folder, mock_kafka, fresh, "--kafka-config", str(config), "--from", "1000")) == 2
    assert "was refused" in capsys.readouterr().err
    nobody = out(folder, mock_kafka, fresh, "--kafka", "127.0.0.1:9", "--timeout", "0.1")
    assert main(nobody) == 2
    assert "is it running there?" in capsys.readouterr().err


def test_bridges_that_are_killed_leave_nothing_out(
    folder: Path, mock_kafka: MockKafka, fresh: Fresh, tmp_path: Path
) -> None:
    """Kafka hides what a killed bridge did not commit; this one shows it. So beside "all are there": only those of the
    transaction that was open at a kill may be there again."""
    kill_outward(folder, mock_kafka, fresh, tmp_path, kills=2, seed=1)


def kill_outward(folder: Path, kafka: MockKafka, fresh: Fresh, work: Path, *, kills: int, seed: int) -> None:
    chance, rows = random.Random(seed), 40
    arguments = out(folder, kafka, fresh, "--rows", str(rows))
    with Reader(kafka.address, fresh("records")) as reader:
        for _ in range(kills):
            bridge = Bridge(*arguments, log=work / "log")
            reader.wait(chance.randrange(1, 1_000 // (kills + 1)))
            bridge.kill()
    Bridge(*arguments, log=work / "log").end()
    found = places(kafka.records(fresh("records")))
    assert set(found) == set(range(1_000))
    assert len(found) <= 1_000 + kills * rows
