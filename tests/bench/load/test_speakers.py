"""What is said once per connection, subscription and stream, in bytes, in each protocol."""

import json
import struct
from typing import Any

import msgpack  # type: ignore[import-untyped, unused-ignore]
import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.load.protocol import WELCOME
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import FrameTemplate, Speaker
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.target import parse


def speaks(url: str, **changes: Any) -> Speaker:
    return speaker(parse(url), Scenario("test", "test", "a/{i}", **changes))


def bodies(data: bytes) -> list[list[object]]:
    """The frames of the native protocol in data."""
    found = []
    while data:
        (size,) = struct.unpack_from(">I", data)
        found.append(msgpack.unpackb(data[4 : 4 + size]))
        data = data[4 + size :]
    return found


def test_connect_of_mqtt_3_1_1_is_a_clean_session_without_keep_alive() -> None:
    # 3.1 of MQTT 3.1.1: protocol name and level, flags, keep alive, client identifier
    assert speaks("mqtt://h").hello("me") == b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x00\x00\x02me"


def test_connect_of_mqtt_5_has_properties_and_credentials_behind_the_client_identifier() -> None:
    # 3.1.2.3 and 3.1.3 of MQTT 5
    said = speaks("mqtt5://u:p@h").hello("me")
    assert said == b"\x10\x15\x00\x04MQTT\x05\xc2\x00\x00\x00\x00\x02me\x00\x01u\x00\x01p"


def test_a_subscriber_of_mqtt_5_lets_the_broker_use_aliases_where_the_scenario_has_them() -> None:
    # 3.1.2.11.5, Topic Alias Maximum
    assert b"\x03\x22\x03\xe8\x00\x02me" in speaks("mqtt5://h", aliases=True).hello("me")


def test_hello_of_the_native_protocol_has_credentials_where_there_are_some() -> None:
    assert bodies(speaks("fanlight://h").hello("me")) == [[1, 1, {"client": "me", "agent": "bench"}]]
    (hello,) = bodies(speaks("fanlight://u:p@h").hello("me"))
    assert hello[2] == {"client": "me", "agent": "bench", "user": "u", "password": "p"}


def test_connect_of_nats_is_quiet_and_followed_by_a_ping() -> None:
    line, ping, rest = speaks("nats://u:p@h").hello("me").split(b"\r\n")
    assert (ping, rest) == (b"PING", b"")
    options = json.loads(line.removeprefix(b"CONNECT "))
    assert (options["verbose"], options["user"], options["pass"]) == (False, "u", "p")
    assert "user" not in json.loads(speaks("nats://h").hello("me").split(b"\r\n")[0].removeprefix(b"CONNECT "))


@pytest.mark.parametrize(
    ("url", "answers"), [("fanlight://h", 3), ("mqtt://h", 11), ("mqtt5://h", 11), ("nats://h", 3)]
)
def test_many_subscriptions_go_out_in_pieces_each_of_which_is_answered(url: str, answers: int) -> None:
    pieces = list(speaks(url).subscribe((number, f"a/{number}") for number in range(1_001)))
    assert [wanted for _, wanted in pieces] == [1] * answers
    assert sum(piece.count(b"a/") for piece, _ in pieces) == 1_001


def test_subscribe_in_each_protocol() -> None:
    def said(url: str, pattern: str, **changes: Any) -> bytes:
        ((piece, _),) = speaks(url, **changes).subscribe([(7, pattern)])
        return piece

    assert bodies(said("fanlight://h", "a.*")) == [[6, 1, 7, "a.*", {"syntax": 0}]]
    assert bodies(said("fanlight://h?syntax=mqtt", "a/+")) == [[6, 1, 7, "a/+", {"syntax": 1}]]
    assert said("mqtt://h", "a/+", qos=1) == b"\x82\x08\x00\x01\x00\x03a/+\x01"  # 3.8
    assert said("mqtt5://h", "a/+", qos=2) == b"\x82\x09\x00\x01\x00\x00\x03a/+\x02"
    assert said("nats://h", "a.*") == b"SUB a.* 7\r\nPING\r\n"


def test_subscribe_with_a_selector_in_each_protocol_that_has_them() -> None:
    def said(url: str, **changes: Any) -> list[tuple[bytes, int]]:
        return list(speaks(url, **changes).subscribe_where([(7, "a", "b = 1"), (8, "a", "b = 2")]))

    native = said("fanlight://h?syntax=mqtt")
    assert [answers for _, answers in native] == [1, 1]
    assert bodies(b"".join(piece for piece, _ in native)) == [
        [6, 1, 7, "a", {"syntax": 1, "where": "b = 1"}], [6, 1, 8, "a", {"syntax": 1, "where": "b = 2"}],
    ]  # fmt: skip
    # 3.8.2.1.3 of MQTT 5: one User Property for all filters of a packet, so a packet each.
    assert said("mqtt5://h", qos=1) == [
        (b"\x82\x16\x00\x01\x0f\x26\x00\x05where\x00\x05b = 1\x00\x01a\x01", 1),
        (b"\x82\x16\x00\x02\x0f\x26\x00\x05where\x00\x05b = 2\x00\x01a\x01", 1),
    ]


def test_headers_are_those_of_the_topic_typed_where_the_protocol_has_types() -> None:
    headers = {"unit": "u{i}", "price": 120}
    native = speaks("fanlight://h", headers=headers, payload_bytes=21).publish("a/3", 1, 3)
    assert bodies(native.frame.octets) == [[3, None, "a.3", bytes(21), {"unit": "u3", "price": 120}]]
    assert native.frame.octets[native.frame.payload_at :][:21] == bytes(21)
    five = speaks("mqtt5://h", headers=headers, payload_bytes=21).publish("a/3", 1, 3)
    assert five.properties == b"\x26\x00\x04unit\x00\x02u3\x26\x00\x05price\x00\x03120"
    assert five.properties in five.frame.octets


def test_only_the_last_subscription_of_a_piece_asks_the_native_protocol_for_an_answer() -> None:
    ((piece, _),) = speaks("fanlight://h").subscribe([(7, "a"), (8, "b")])
    assert [(fields[1], fields[2]) for fields in bodies(piece)] == [(None, 7), (1, 8)]


def test_the_null_broker_is_told_by_its_name_and_has_one_subscription_number() -> None:
    native = speaks("fanlight://h")
    assert native.subscription(7) == 7
    body = msgpack.packb([2, 1, {"server": "null"}])
    assert native.is_answer(WELCOME, struct.pack(">I", len(body)) + body)
    assert native.subscription(7) == 1


@pytest.mark.parametrize(
    ("url", "changes", "frame"),
    [
        ("mqtt://h", {}, FrameTemplate(b"\x30\x1a\x00\x03a/0" + bytes(21), 7)),
        ("mqtt://h", {"qos": 1}, FrameTemplate(b"\x32\x1c\x00\x03a/0\x00\x00" + bytes(21), 9, 7)),
        ("mqtt5://h", {"qos": 2}, FrameTemplate(b"\x34\x1d\x00\x03a/0\x00\x00\x00" + bytes(21), 10, 7)),
        ("nats://h", {}, FrameTemplate(b"PUB a.0 21\r\n" + bytes(21) + b"\r\n", 12)),
        ("fanlight://h", {}, FrameTemplate(b"\x00\x00\x00\x1e\x94\x03\xc0\xa3a.0\xc4\x15" + bytes(21), 13)),
        (
            "fanlight://h", {"qos": 1},
            FrameTemplate(b"\x00\x00\x00\x22\x94\x03\xce\0\0\0\0\xa3a.0\xc4\x15" + bytes(21), 17, 7),
        ),
    ],
)
def test_publish_is_written_with_the_places_to_patch(url: str, changes: dict[str, Any], frame: FrameTemplate) -> None:
    assert speaks(url, payload_bytes=21, **changes).publish("a/0", 1).frame == frame


def test_with_aliases_the_topic_is_sent_once() -> None:
    said = speaks("mqtt5://h", payload_bytes=21, aliases=True).publish("a/0", 5)
    assert said.frame.octets == b"\x30\x1e\x00\x03a/0\x03\x23\x00\x05" + bytes(21)  # 3.3.2.3.4
    assert said.later is not None
    assert said.later.octets == b"\x30\x1b\x00\x00\x03\x23\x00\x05" + bytes(21)
    assert said.later.payload_at == len(said.later.octets) - 21
