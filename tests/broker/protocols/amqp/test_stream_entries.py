"""What a consumer of a stream makes of a record of the archive, whoever wrote it (stream_consumers.py)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.amqp.fields import TOPIC_EXCHANGE, pack_fields
from fanlight_broker.protocols.amqp.properties import BasicProperties, encode_properties
from fanlight_broker.protocols.amqp.stream_consumers import StreamEntry, entry_of

WHOLE = pack_fields("x", "k", encode_properties(BasicProperties(headers={"n": 1}, priority=3)))


def entry(value: str | bytes | int | float | bool | None) -> StreamEntry:
    headers = (("other", "x"), ("amqp-message", value))
    return entry_of(7, 0, b"$stream.q.0.x", 0, b"p", Content(b"$stream.q.0.x", 0, b"p", headers))


def check(found: StreamEntry) -> None:
    """It is whole: its strings are as long as they say, and its properties can be read."""
    fields = found.fields
    assert (found.offset, found.payload) == (7, b"p")
    assert len(fields.exchange) == 1 + fields.exchange[0]
    assert len(fields.routing_key) == 1 + fields.routing_key[0]
    assert fields.properties.headers is not None
    assert fields.properties.headers["x-stream-offset"] == 7


def test_what_was_recorded_comes_with_its_offset() -> None:
    found = entry(WHOLE)
    assert (found.fields.exchange, found.fields.routing_key) == (b"\x01x", b"\x01k")
    assert found.fields.properties == BasicProperties(headers={"n": 1, "x-stream-offset": 7}, priority=3)


@pytest.mark.parametrize(
    "value", ["x", "", b"", b"\xff", b"\x05ab", b"\x01x\x05k", b"\x01x\x01k", b"\x01\xff\x01k\0\0", None, 1, True,
              *(WHOLE[:size] for size in range(len(WHOLE)))],
)  # fmt: skip
def test_what_was_not_has_no_properties(value: str | bytes | int | None) -> None:
    found = entry(value)
    check(found)
    assert found.fields.exchange[1:] == TOPIC_EXCHANGE.encode()
    assert found.fields.properties == BasicProperties(headers={"x-stream-offset": 7})


@given(st.one_of(
    st.text(), st.binary(), st.none(), st.integers(), st.floats(), st.booleans(),
    st.tuples(st.integers(0, len(WHOLE)), st.binary(max_size=8)).map(
        lambda change: WHOLE[: change[0]] + change[1] + WHOLE[change[0] + len(change[1]) :]
    ),
))  # fmt: skip
def test_nothing_is_an_error(value: str | bytes | int | float | None) -> None:
    check(entry(value))
