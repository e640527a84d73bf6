"""The codec against docs/native-protocol-vectors.json, fed whole, byte by byte, and with a tail."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fanlight.codec import Decoder, Encoder
from fanlight.errors import ProtocolError
from fanlight.frames import Frame, FrameType, Ping

from . import make_vectors

VECTORS = json.loads(make_vectors.TARGET.read_text())
FRAMES = VECTORS["frames"]
PING = bytes.fromhex("00000003920b07")


def plain(value: Any) -> Any:
    """Octets as the vectors write them."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


# What users see has the shorter names.
OTHER_NAMES = {
    "ChangeConsumer": "CONSUMER", "ConsumerInfo": "CONSUMER_INFO", "QueueDelivery": "DELIVERY",
    "InProgress": "IN_PROGRESS", "QueueRequest": "QUEUE",
    "Delivery": "MESSAGE", "Replayed": "MESSAGE", "ReplayRequest": "REPLAY", "ReplayEnd": "REPLAY_END",
}  # fmt: skip


def fields_of(frame: Frame) -> dict[str, Any]:
    fields: dict[str, Any] = plain(frame._asdict())
    return fields


def meant(vector: dict[str, Any]) -> dict[str, Any]:
    fields = dict(vector["fields"])
    if vector["name"] == "publish_empty_headers":
        fields["headers"] = {}
    return fields


def by_name(section: str) -> Any:
    return pytest.mark.parametrize("vector", VECTORS[section], ids=lambda vector: vector["name"])


def test_the_file_is_what_its_script_makes() -> None:
    assert make_vectors.TARGET.read_text() == make_vectors.vectors()


def test_every_frame_type_has_a_vector() -> None:
    assert {vector["type"] for vector in FRAMES} == set(FrameType)


@by_name("frames")
def test_a_frame_means_what_its_vector_says(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["bytes"])
    (frame,) = Decoder().feed(data)
    name = type(frame).__name__
    assert OTHER_NAMES.get(name, name.upper()) == vector["type_name"]
    assert fields_of(frame) == meant(vector)


@by_name("frames")
def test_a_frame_may_come_byte_by_byte(vector: dict[str, Any]) -> None:
    decoder = Decoder()
    data = bytes.fromhex(vector["bytes"])
    frames = [frame for byte in data for frame in decoder.feed(bytes([byte]))]
    assert [fields_of(frame) for frame in frames] == [meant(vector)]


@by_name("frames")
def test_what_follows_a_frame_is_the_next(vector: dict[str, Any]) -> None:
    decoder = Decoder()
    frames = decoder.feed(bytes.fromhex(vector["bytes"]) + PING + PING[:5])
    assert [fields_of(frame) for frame in frames] == [meant(vector), {"token": 7}]
    assert decoder.feed(PING[5:]) == [Ping(7)]


def unhexed(value: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"]) if set(value) == {"hex"} else {k: unhexed(v) for k, v in value.items()}
    return [unhexed(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "vector",
    [each for each in FRAMES if each["canonical"] and each["type_name"] != "PUBLISH"],
    ids=lambda v: v["name"],
)
def test_the_encoder_makes_the_canonical_bytes(vector: dict[str, Any]) -> None:
    fields = [unhexed(value) for value in vector["fields"].values()]
    if vector["type_name"] == "UNSUBSCRIBE" and not fields[-1]:
        fields[-1] = None
    if vector["type_name"] == "RECEIPT":
        fields = [None if each is False else each for each in fields]
    assert Encoder().frame(vector["type"], *fields).hex() == vector["bytes"]


@pytest.mark.parametrize(
    "vector",
    [each for each in FRAMES if each["canonical"] and each["type_name"] == "PUBLISH"],
    ids=lambda v: v["name"],
)
def test_the_encoder_publishes_what_the_vector_says(vector: dict[str, Any]) -> None:
    fields = {key: unhexed(value) for key, value in vector["fields"].items()}
    data = Encoder().publish(**fields)
    if not fields["syntax"]:
        assert data.hex() == vector["bytes"]
    assert [frame._asdict() for frame in Decoder().feed(data)] == [fields]


@by_name("invalid_from_broker")
def test_a_malformed_frame_is_refused_and_what_came_before_is_not_lost(vector: dict[str, Any]) -> None:
    decoder = Decoder()
    for byte in PING:
        frames = decoder.feed(bytes([byte]))
    assert frames == [Ping(7)]
    with pytest.raises(ProtocolError):
        decoder.feed(bytes.fromhex(vector["bytes"]))


CLOSING = [
    vector
    for vector in VECTORS["invalid"]
    if vector["closes"]
    # What these break are rules between client and broker, not the form of a frame.
    and not vector["name"].endswith("_from_client")
    and vector["name"] not in ("second_hello", "publish_header_reserved_key")
    and not vector["name"].startswith(
        ("subscribe_group", "subscribe_no_echo", "subscribe_credit", "subscribe_consumer", "consumer_p", "queue_add",
         "queue_list", "queue_info", "queue_peek", "queue_remove", "queue_move")
    )
]


@pytest.mark.parametrize("vector", CLOSING, ids=lambda vector: vector["name"])
def test_the_table_of_frames_knows_what_is_malformed_in_the_other_direction_too(
    vector: dict[str, Any],
) -> None:
    with pytest.raises(ProtocolError) as raised:
        Decoder().feed(bytes.fromhex(vector["bytes"]))
    assert raised.value.code == vector["code"]


@pytest.mark.parametrize(
    "vector",
    [each for each in VECTORS["invalid"] if each["name"].startswith("unknown_type")],
    ids=lambda v: v["name"],
)
def test_a_frame_of_an_unknown_type_is_skipped(vector: dict[str, Any]) -> None:
    assert Decoder().feed(bytes.fromhex(vector["bytes"]) + PING) == [Ping(7)]


def test_vectors_lie_where_the_documentation_says() -> None:
    assert Path("docs", "native-protocol-vectors.json").parts == make_vectors.TARGET.parts[-2:]
