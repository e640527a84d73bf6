"""What a client's author reads when a frame was wrong: which field, what it must be, and which request it was."""

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest

from tests.broker.protocols.native.world import World, frame

NESTED: Any = "x"
for _ in range(9):
    NESTED = [NESTED]

PUBLISHES: dict[str, tuple[list[Any], str]] = {
    "no payload": ([3, 7, "a"], "a PUBLISH needs request (or nil), topic and payload at least"),
    "a negative request": ([3, -1, "a", b""], "PUBLISH request must be an integer from 0 to 4294967295, or nil"),
    "a topic that is nil": ([3, 7, None, b""], "PUBLISH topic must be a str, or a bin if it is not UTF-8"),
    "a payload of text": ([3, 7, "a", "text"], "PUBLISH payload must be a bin"),
    "headers in an array": (
        [3, 7, "a", b"", ["x"]],
        "PUBLISH headers must be nil, or a map of str keys to scalars or arrays of scalars",
    ),
    "a header in a map": (
        [3, 7, "a", b"", {"x": {}}],
        "PUBLISH headers must be nil, or a map of str keys to scalars or arrays of scalars",
    ),
    "a reserved header": (
        [3, 7, "a", b"", {"$seq": 1}],
        "PUBLISH headers: a key that begins with $, which is reserved; choose another name",
    ),
    "a long header": (
        [3, 7, "a", b"", {"x" * 256: 1}],
        "PUBLISH headers: a key of more than 255 bytes; shorten it",
    ),
    "a syntax by name": ([3, 7, "a", b"", None, "mqtt"], "PUBLISH syntax must be an integer from 0 up, or nil"),
    "a reply that is a number": (
        [3, 7, "a", b"", None, 0, 5],
        "PUBLISH reply must be a str, a bin if it is not UTF-8, or nil",
    ),
    "a mark that is none": (
        [3, 7, "a", b"", None, 0, "r", ["p", 1]],
        "PUBLISH mark must be nil, or an array of a str of 1 to 255 bytes, batch and sequence from 0 to 2^64-1",
    ),
    "options that are no map": ([3, 7, "a", b"", None, 0, "r", None, "soon"], "PUBLISH options must be nil, or a map"),
    "options that are nested": (
        [3, 7, "a", b"", None, 0, "r", None, {"delay": NESTED}],
        "PUBLISH options: nested too deep",
    ),
    "an extension among unknown fields": (
        [3, 7, "a", b"", None, 0, "r", None, None, msgpack.ExtType(1, b"x")],
        "PUBLISH fields behind options: an extension type, or the octet c1",
    ),
    "unknown fields that are nested": (
        [3, 7, "a", b"", None, 0, "r", None, None, NESTED],
        "PUBLISH fields behind options: nested too deep",
    ),
}


@pytest.mark.parametrize("what", PUBLISHES)
def test_a_publish_that_is_wrong_is_told_the_field_and_its_request(what: str) -> None:
    fields, text = PUBLISHES[what]
    world = World()
    # Sound ones before it: what they left behind must not be told of this one.
    peer = world.connect()
    peer.send(frame(3, 6, "a", b""), frame(3, None, "a", b""), frame(*fields))
    receipt, error, goodbye = peer.frames()
    assert receipt == [5, 6, 0]
    request = None if what in ("no payload", "a negative request") else 7
    assert error[:4] == [13, request, "protocol_error", text]
    assert goodbye[:2] == [14, "protocol_error"]


def test_bytes_behind_the_array_of_a_publish_are_told_as_such() -> None:
    body = msgpack.packb([3, 7, "a", b""]) + b"\x00"
    peer = World().connect()
    peer.send(len(body).to_bytes(4, "big") + body)
    assert peer.frames()[0][:4] == [13, 7, "protocol_error", "bytes left over behind the array of a PUBLISH"]


@pytest.mark.parametrize("body", [b"\x80", b"\x07", b"\x90", b"\x91\xc0", b"\x91\xcc\x0b"])
def test_a_body_that_is_no_frame_is_told_what_a_frame_is(body: bytes) -> None:
    peer = World().connect()
    peer.send(len(body).to_bytes(4, "big") + body)
    text = "a frame's body must be an array that begins with the frame's type, 0 to 127 in one byte"
    assert peer.frames()[0][:4] == [13, None, "protocol_error", text]


def test_a_frame_that_is_too_large_is_told_the_setting_it_met() -> None:
    world = World(handshake_frame_bytes_max=256, frame_bytes_max=1024)
    stranger = world.open()
    stranger.send((257).to_bytes(4, "big"))
    assert "at most 256 (handshake_frame_bytes_max)" in stranger.frames()[0][3]
    client = world.connect()
    client.send((1025).to_bytes(4, "big"))
    assert "at most 1024 (frame_bytes_max)" in client.frames()[0][3]


def test_limits_of_topics_are_told_by_the_names_of_the_settings() -> None:
    peer = World(topic_words_max=3, topic_bytes_max=20).connect()
    peer.send(frame(3, 1, "a.b.c.d", b""), frame(6, 2, 1, "a" * 21))
    words, octets = peer.frames()
    assert words[3].endswith("use fewer words, or raise the limit (topic_words_max)")
    assert octets[3].endswith("shorten it, or raise the limit (topic_bytes_max)")
