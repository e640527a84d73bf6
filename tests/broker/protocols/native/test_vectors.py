"""The broker against docs/native-protocol-vectors.json, fed whole, byte by byte, and with a tail."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.broker.protocols.native.world import Fields, Peer, World, frame, split

PATH = Path(__file__).parents[4] / "docs" / "native-protocol-vectors.json"
VECTORS: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
# REPLAY wants an archive: tests/broker/storage/test_replay.py.
CLIENT_FRAMES = [v for v in VECTORS["frames"] if v["direction"] == "client" and v["type_name"] != "REPLAY"]
PING = frame(11, 4711)
PONG = [12, 4711]

WAYS = {
    "whole": lambda octets: [octets],
    "byte by byte": lambda octets: [octets[at : at + 1] for at in range(len(octets))],
    "cut in the middle": lambda octets: [octets[: len(octets) // 2], octets[len(octets) // 2 :]],
}


def each(section: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", section, ids=lambda vector: str(vector["name"]))


def plain(value: Any) -> Any:
    """Octets as the vectors write them."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("way", WAYS)
@each(CLIENT_FRAMES)
def test_a_good_frame_is_taken_and_the_next_one_too(vector: dict[str, Any], way: str) -> None:
    world = World()
    if vector["type_name"] == "HELLO":
        peer = world.open()
    else:
        peer = world.connect()
        peer.say(6, None, 7, "not.this")  # so that what names subscription 7 finds one, with credit to add to
        if vector["type_name"] == "CREDIT":
            peer.say(8, None, 7)
            peer.say(6, None, 7, "not.this", {"credit": 0})
        if vector["type_name"] == "SUBSCRIBE":
            peer.say(8, None, 7)
        if vector["type_name"] in ("ACK", "NACK", "TERM", "IN_PROGRESS", "CONSUMER"):
            peer.say(8, None, 7)
            peer.say(6, None, 7, "not.this", {"consumer": "queue", "ack": True})
    octets = bytes.fromhex(vector["bytes"])
    peer.send(*WAYS[way](octets))
    if vector["type_name"] == "GOODBYE":
        assert peer.frames() == []
        assert peer.gone
        return
    answers = peer.frames()
    refusals = [answer[:3] for answer in answers if answer[0] in (13, 14)]
    # It has no archive: the frame was understood, and what it asks for is not there.
    from_archive = isinstance((vector["fields"].get("options") or {}).get("deliver"), dict)
    assert refusals == ([[13, vector["fields"]["request"], "unsupported"]] if from_archive else [])
    # A whole frame behind it, and the beginning of another.
    peer.send(PING + PING[:3])
    peer.send(PING[3:])
    assert peer.frames()[-2:] == [PONG, PONG]
    if not from_archive:
        check_answer(vector, answers)


def check_answer(vector: dict[str, Any], answers: list[Fields]) -> None:
    fields = vector["fields"]
    expected: list[Any]
    match vector["type_name"]:
        case "HELLO":
            assert len(answers) == 1
            assert answers[0][:2] == [2, 1]
            assert answers[0][2]["client"] == fields["options"].get("client", "client-1")
            return
        case "PING":
            expected = [[12, fields["token"]]]
        case "PUBLISH" if fields["request"] is not None:
            expected = [[5, fields["request"], 0]]
        case "SUBSCRIBE" if "consumer" in (fields["options"] or ()):
            expected = [[7, fields["request"], {
                "consumer": fields["options"]["consumer"], "waiting": 0, "unacknowledged": 0, "prefetch": 10,
                "ack_wait": 5.0, "paused": False, "active": True,
            }]]
        case "CONSUMER" if fields["request"] is not None:
            options = {"prefetch": 100, "ack_wait": 30.0, "paused": False, "active": True, **(fields["options"] or {})}
            expected = [[7, fields["request"], options]]
        case "SUBSCRIBE" if fields["request"] is not None:
            expected = [[7, fields["request"]]]
        case "QUEUE" if fields["verb"] == "list":
            expected = [[7, fields["request"], {"queues": [], "after": None}]]
        case "QUEUE" if fields["verb"] == "delayed":
            expected = [[7, fields["request"], {"count": 0, "next_seconds": None, "messages": []}]]
        case "QUEUE" if fields["verb"] == "cancel":
            expected = [[7, fields["request"], {"cancelled": False}]]
        case "QUEUE" if fields["request"] is not None:
            expected = [[7, fields["request"], {"name": fields["arguments"]["name"], "created": True}]]
        case "UNSUBSCRIBE" if fields["request"] is not None:
            expected = [[7, fields["request"]] + ([] if fields["after"] else [{"delivered": 0, "dropped": 0}])]
        case _:
            expected = []
    assert answers == expected


@pytest.mark.parametrize("lane", ["fast", "plain"])
@each([v for v in CLIENT_FRAMES if v["type_name"] == "PUBLISH"])
def test_what_is_published_is_what_a_subscriber_gets(vector: dict[str, Any], lane: str) -> None:
    world = World(plain=lane == "plain")
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 0xFFFF_FFFF, "#")
    subscriber.say(6, None, 3, f"{subscriber.info['inbox']}.#")
    for _ in range(2):  # the second time on a known route
        publisher.send(bytes.fromhex(vector["bytes"]))
    world.pass_time((vector["fields"]["options"] or {}).get("delay", 0))
    got = subscriber.frames()
    assert len(got) == (1 if vector["fields"]["mark"] else 2)
    for message in got:
        assert message[:2] == [4, 0xFFFF_FFFF]
        names = ("topic", "payload", "headers", "syntax", "reply")
        meant = dict(zip(names, [*plain(message[2:]), None, None, None], strict=False))
        meant["headers"] = meant["headers"] or None
        meant["syntax"] = meant["syntax"] or 0
        assert meant == {name: vector["fields"][name] for name in names}


def test_the_head_of_a_message_has_its_fixed_form() -> None:
    world = World()
    peer = world.connect()
    peer.say(6, None, 7, "forex.eur")
    for vector in CLIENT_FRAMES:
        if vector["type_name"] == "PUBLISH" and vector["fields"]["topic"] == "forex.eur":
            peer.send(bytes.fromhex(vector["bytes"]))
            for start in message_starts(peer.received):
                head = peer.received[start + 4 : start + 11]
                assert head[0] & 0xF0 == 0x90
                assert head[1:] == bytes.fromhex("04ce00000007")
            peer.frames()


def message_starts(octets: bytes) -> list[int]:
    starts, at = [], 0
    for fields in split(octets):
        if fields[0] == 4:
            starts.append(at)
        at += 4 + int.from_bytes(octets[at : at + 4], "big")
    return starts


def refuses(peer: Peer, vector: dict[str, Any]) -> None:
    """The answer is the vector's ERROR, and GOODBYE and the end if it closes."""
    octets = peer.received
    error, *rest = peer.frames()
    assert error[0] == 13
    assert error[2] == vector["code"]
    assert isinstance(error[3], str)
    assert error[3]
    if "request" in vector:
        assert error[1] == vector["request"]
    assert peer.gone is vector["closes"]
    if vector["closes"]:
        assert [answer[:2] for answer in rest] == [[14, vector["code"]]]
        assert peer.protocol.failed == vector["code"]
    else:
        assert rest == []
        peer.send(PING)
        assert peer.frames() == [PONG]
    assert len(octets) < 2_000


@pytest.mark.parametrize("way", WAYS)
@each(VECTORS["invalid"])
def test_a_bad_frame_gets_its_error(vector: dict[str, Any], way: str) -> None:
    peer = World().connect()
    peer.send(*WAYS[way](bytes.fromhex(vector["bytes"])))
    refuses(peer, vector)


@each(VECTORS["invalid"])
def test_a_bad_frame_between_good_ones_gets_its_error_in_its_turn(vector: dict[str, Any]) -> None:
    peer = World().connect()
    peer.send(frame(11, 1) + bytes.fromhex(vector["bytes"]) + frame(11, 2))
    first, error, *rest = peer.frames()
    assert first == [12, 1]
    assert error[:1] + error[2:3] == [13, vector["code"]]
    if vector["closes"]:
        assert [answer[:2] for answer in rest] == [[14, vector["code"]]]
    else:
        assert rest == [[12, 2]]


@pytest.mark.parametrize("way", WAYS)
@each(VECTORS["invalid_first_frames"])
def test_a_bad_first_frame_gets_its_error(vector: dict[str, Any], way: str) -> None:
    peer = World().open()
    peer.send(*WAYS[way](bytes.fromhex(vector["bytes"])))
    refuses(peer, vector)
    assert peer.protocol.client is None


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "all at once"])
@each(VECTORS["sessions"])
def test_a_session_goes_as_it_is_written(vector: dict[str, Any], at_once: bool) -> None:
    peer = World().open()
    steps = [(step, bytes.fromhex(step["bytes"])) for step in vector["steps"]]
    sent = [octets for step, octets in steps if step["from"] == "client"]
    peer.send(b"".join(sent) if at_once else b"", *([] if at_once else sent))
    expected = [(step, octets) for step, octets in steps if step["from"] == "broker"]
    got = peer.frames()
    assert len(got) == len(expected)
    for (step, octets), answer in zip(expected, got, strict=True):
        if step["exact"]:
            assert answer == next(split(octets))
        known = next(split(octets))
        assert answer[0] == known[0]
        for key, value in step["fields"].items():
            assert plain(answer[FIELDS[step["type_name"]].index(key)]) == value, key
    assert peer.gone


FIELDS = {
    "WELCOME": ["", "version", "info"],
    "OK": ["", "request", "result"],
    "MESSAGE": ["", "subscription", "topic", "payload", "headers", "syntax", "reply"],
    "RECEIPT": ["", "request", "routed"],
    "ENDED": ["", "subscription", "reason", "delivered", "dropped"],
    "PONG": ["", "token"],
    "ERROR": ["", "request", "code", "text", "details"],
}
