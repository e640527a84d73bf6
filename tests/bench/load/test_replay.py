"""Recordings: what a file may hold, what is wrong with it in words, and the faults that a replay sees."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.mqtt", reason="needs the compiled modules")
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load.kinds import recording
from fanlight_bench.load.kinds.recording import Event
from fanlight_bench.load.kinds.replay import FILLER, Player, copies
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.run import Plan
from fanlight_bench.load.speak_mqtt import packet, string
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.target import parse

LINES = """\
{"at": 12.5, "topic": "site/1/temp", "bytes": 40, "publisher": 7}
{"at": 10, "topic": "site/2/v1.2", "bytes": 30}

{"at": 11, "topic": "site/1/temp", "bytes": 50, "publisher": "p", "colour": "red"}
"""
EVENTS = [
    Event(0.0, "site/2/v1.2", "site/2/v1-2", 30),
    Event(1.0, "p", "site/1/temp", 50),
    Event(2.5, "7", "site/1/temp", 40),
]


def test_a_recording_is_read_by_time_from_a_file_a_packed_one_or_a_folder(tmp_path: Path) -> None:
    plain, packed, folder = tmp_path / "a.json", tmp_path / "b.json.gz", tmp_path / "parts"
    plain.write_text(LINES)
    packed.write_bytes(gzip.compress(LINES.encode()))
    folder.mkdir()
    first, *rest = LINES.splitlines(keepends=True)
    (folder / "part-1.json").write_text(first)
    (folder / "part-2.json.gz").write_bytes(gzip.compress("".join(rest).encode()))
    (folder / "_SUCCESS").write_text("no JSON")
    (folder / ".part-1.json.crc").write_text("no JSON")
    for path in (plain, packed, folder):
        assert recording.load(str(path), 10) == EVENTS
    assert recording.load(str(plain), 2) == EVENTS[:2]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 1: JSONDecodeError"),
        ("[1]", "line 1: TypeError"),
        ('{"at": 1, "topic": "a"}', "KeyError: 'bytes'"),
        ('{"at": 1, "topic": "a", "bytes": -1}', "-1 bytes"),
        ('{"at": 1, "topic": "a/+", "bytes": 1}', "wildcards"),
        ('{"at": 1, "topic": "a//b", "bytes": 1}', "empty levels"),
        ('{"at": 1, "topic": 7, "bytes": 1}', "topic 7"),
        ("", "nothing was recorded"),
    ],
)
def test_what_is_wrong_with_a_recording_is_told(line: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(line + "\n")
    with pytest.raises(Refused, match=complaint):
        recording.load(str(path), 10)
    with pytest.raises(Refused, match="No such file"):
        recording.load(str(tmp_path / "absent.json"), 10)


def test_the_sample_has_a_burst_of_prices_a_second() -> None:
    events = recording.load("sample", 1_000)
    assert {event.at for event in events} == {0.0, 1.0}
    assert all(event.topic.startswith("stock/") for event in events)


def test_the_real_data_is_read_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FANLIGHT_REAL_DATA", str(tmp_path))
    with pytest.raises(Refused, match="FANLIGHT_REAL_DATA"):
        recording.load("transit", 10)
    (tmp_path / "transit").mkdir()
    head = "vehicle_id,timestamp,speed,route_id,trip_id,latitude,longitude,trip_headsign"
    rows = [
        "5012,2017-03-21T00:00:10-05:00,3.1,801,9,30.2,-97.7,North",
        "5013,2017-03-21T00:00:40-05:00,0.0,7,8,30.3,-97.6,",
    ]
    text = "\n".join([head, *rows])
    (tmp_path / "transit" / "austin_vehicles_2017-03-21.csv.gz").write_bytes(gzip.compress(text.encode()))
    events = recording.load("transit", 10)
    assert [(event.at, event.publisher, event.topic) for event in events] == [
        (0.0, "5012", "transit/austin/801/5012"), (30.0, "5013", "transit/austin/7/5013"),
    ]  # fmt: skip


def test_copies_have_topics_and_publishers_of_their_own() -> None:
    made = copies(EVENTS[:1], 2)
    assert [(event.topic, event.publisher) for event in made] == [
        ("copy0/site/2/v1-2", "site/2/v1.2 of 0"), ("copy1/site/2/v1-2", "site/2/v1.2 of 1"),
    ]  # fmt: skip
    assert copies(EVENTS, 1) == EVENTS


def delivery(number: int, topic: str, size: int) -> bytes:
    return packet(0x30, string(topic) + struct.pack(">IQ", number, 1) + FILLER[: size - 12])


FAULTY: dict[str, tuple[str, Callable[[list[bytes]], list[bytes]]]] = {
    "twice": ("repeated", lambda sent: [*sent, sent[0]]),
    "late": ("reordered", lambda sent: [sent[1], sent[0]]),
    "cut": ("damaged", lambda sent: [*sent, delivery(0, "site/1/temp", 49)]),
    "changed": ("damaged", lambda sent: [*sent, sent[0].replace(b"xyz", b"xyZ")]),
    "under another topic": ("damaged", lambda sent: [*sent, delivery(0, "site/1/tump", 50)]),
    "never published": ("damaged", lambda sent: [*sent, delivery(3, "site/1/temp", 40)]),
    "not asked for": ("misrouted", lambda sent: [*sent, delivery(2, "site/2/temp", 30)]),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_replay_sees_each_fault(case: str) -> None:
    scenario = scenarios.load("replay").with_changes(publishers=1)
    said = (("site/1/temp", 50), ("site/1/temp", 40), ("site/2/temp", 30))
    events = [Event(0.0, "p", topic, size) for topic, size in said]
    watch = Watch(scenario, parse("mqtt://127.0.0.1:1"), Plan(1.0, 0.0))
    player = Player(watch, events, ["site/1/+"], ["site/1/+"])
    player.published, player.expected = 3, 2
    kind, make = FAULTY[case]
    sent = [delivery(0, "site/1/temp", 50), delivery(1, "site/1/temp", 40)]
    player._take(0, player._subscribers[0], b"".join(make(sent)))
    assert {name: count for name, count in watch.faults.items() if count} == {kind: 1}
    assert player.unique == 2
    player.drain(0.0)
    assert watch.faults["lost"] == 0
