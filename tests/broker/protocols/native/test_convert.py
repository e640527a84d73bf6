"""Native messages to Content and back (docs/native-protocol.md, section 3.3; docs/decisions/0008-mqtt.md)."""

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.publication import frame_of

TEXT = st.text(max_size=5)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), TEXT)
CONTENTS = st.builds(
    Content,
    topic=st.binary(max_size=8),
    syntax=st.integers(0, 1),
    payload=st.binary(max_size=8),
    headers=st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), SCALARS), max_size=5).map(
        lambda pairs: tuple(sorted(pairs, key=lambda pair: pair[0]))
    ),
    content_type=st.none() | TEXT,
    correlation=st.none() | st.binary(max_size=4),
    reply=st.none() | st.binary(min_size=1, max_size=8),
)


def fields_of(message: Message) -> list[Any]:
    frame = frame_of(Variant(FORMAT), message, number=9)
    assert frame is not None
    values: list[Any] = msgpack.unpackb(frame[4:])
    assert values[:2] == [4, 9]
    return values[2:]


@given(CONTENTS)
def test_what_a_native_message_says_survives_the_way_there_and_back(content: Content) -> None:
    message = FORMAT.write(content)
    assert message is not None
    assert FORMAT.read(message) == content
    assert fields_of(message)[1] == content.payload


def native(**headers: Any) -> Message:
    fields = msgpack.packb("t") + msgpack.packb(b"p") + msgpack.packb(headers)
    return Message(FORMAT, b"t", 0, b"p", fields=fields, format_data=5)


def test_headers_with_a_meaning_become_fields_and_arrays_several_of_one_name() -> None:
    content = FORMAT.read(native(**{"content-type": "text/plain", "correlation-id": "7", "a": [1, "x"], "b": None}))
    assert content == Content(
        b"t", 0, b"p", (("a", 1), ("a", "x"), ("b", None)), content_type="text/plain", correlation=b"7"
    )


@pytest.mark.parametrize(("name", "value"), [("content-type", 5), ("correlation-id", 5)])
def test_a_header_of_another_type_than_its_meaning_has_stays_a_header(name: str, value: object) -> None:
    content = FORMAT.read(native(**{name: value}))
    assert content.headers == ((name, value),)
    assert content.content_type is content.correlation is None


@pytest.mark.parametrize("name", ["content-type", "correlation-id"])
def test_an_array_of_a_name_with_a_meaning_stays_an_array(name: str) -> None:
    content = FORMAT.read(native(**{name: ["a", b"\xfe"]}))
    assert content.headers == ((name, "a"), (name, b"\xfe"))
    message = FORMAT.write(content)
    assert message is not None
    assert fields_of(message)[2] == {name: ["a", b"\xfe"]}


def test_nothing_is_written_that_the_protocol_forbids() -> None:
    message = FORMAT.write(
        Content(b"t", 1, b"", (("$x", 1), ("k" * 256, 2), ("content-type", "mine")), content_type="yours")
    )
    assert message is not None
    assert fields_of(message) == ["t", b"", {"content-type": "yours", "x-content-type": "mine"}, 1]


def test_octets_that_are_not_utf8_are_written_as_bin() -> None:
    message = FORMAT.write(Content(b"\xff", 0, b"", correlation=b"\xfe", reply=b"\xfd"))
    assert message is not None
    assert fields_of(message) == [b"\xff", b"", {"correlation-id": b"\xfe"}, None, b"\xfd"]
