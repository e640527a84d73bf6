"""The codec under whatever may come: any frame survives any cutting, and no bytes do more than raise ProtocolError."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight.codec import Decoder, Encoder, check_headers
from fanlight.errors import FrameTooLarge, ProtocolError
from fanlight.frames import Delivery, Ping

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
)
HEADERS = st.dictionaries(
    st.text(max_size=20).filter(lambda key: not key.startswith("$")),
    SCALARS | st.lists(SCALARS, max_size=3),
    max_size=4,
)
TOPICS = st.text(max_size=300) | st.binary(max_size=50)
MESSAGES = st.tuples(
    TOPICS,
    st.binary(max_size=2000),
    st.none() | HEADERS,
    st.sampled_from([0, 1]),
    st.none() | TOPICS,
    st.none() | st.integers(0, 2**32 - 1),
)


@given(st.lists(MESSAGES, max_size=8), st.lists(st.integers(1, 500), min_size=1), st.integers(8, 4096))
def test_any_messages_come_out_of_any_pieces(
    messages: list[tuple[Any, ...]], pieces: list[int], read_bytes: int
) -> None:
    encoder, decoder = Encoder(), Decoder(read_bytes=read_bytes)
    data = b"".join(encoder.publish(*message) for message in messages)
    frames = []
    start = turn = 0
    while start < len(data):
        size = pieces[turn % len(pieces)]
        frames += decoder.feed(data[start : start + size])
        start += size
        turn += 1
    assert [
        (frame.topic, frame.payload, frame.headers, frame.syntax, frame.reply, frame.request)
        for frame in frames
        if frame.__class__.__name__ == "Publish"
    ] == messages
    assert decoder.pending_bytes == 0


@given(st.binary(max_size=400))
def test_no_bytes_do_more_than_raise_protocol_error(data: bytes) -> None:
    decoder = Decoder(frame_bytes=1000)
    try:
        decoder.feed(data)
    except ProtocolError as error:
        assert str(error)  # noqa: PT017 - not raising is right as well


@given(st.binary(max_size=200))
def test_no_body_does_more_than_raise_protocol_error(body: bytes) -> None:
    decoder = Decoder(frame_bytes=1000)
    try:
        decoder.feed(len(body).to_bytes(4, "big") + body)
    except ProtocolError as error:
        assert str(error)  # noqa: PT017 - not raising is right as well


def test_a_frame_above_the_limit_is_refused_by_its_length_alone() -> None:
    decoder = Decoder(frame_bytes=1000)
    with pytest.raises(ProtocolError) as raised:
        decoder.feed((1001).to_bytes(4, "big"))
    assert raised.value.code == "frame_too_large"
    assert raised.value.details == {"size": 1001, "limit": 1000}


def test_the_buffer_grows_for_a_large_frame_and_is_given_back() -> None:
    decoder = Decoder(read_bytes=1024)
    large = Encoder().publish("t", bytes(100_000))
    assert len(decoder.feed(large)) == 1
    assert len(decoder.get_buffer()) == 1024


def test_the_buffer_never_holds_much_more_than_one_frame() -> None:
    decoder = Decoder(frame_bytes=10_000, read_bytes=1024)
    frame = Encoder().publish("t", bytes(9_000))
    for start in range(0, len(frame) * 50, 700):
        decoder.feed((frame * 50)[start : start + 700])
        assert len(decoder._buffer) <= 10_004 + 1024


def test_decoding_may_stop_between_two_frames_of_one_read() -> None:
    decoder = Decoder()
    data = Encoder().ping(1) + Encoder().ping(2)
    decoder.get_buffer()[: len(data)] = data
    decoder.advance(len(data))
    assert decoder.next_frame() == Ping(1)
    assert decoder.frame_size == len(data) // 2
    assert decoder.pending_bytes == len(data) // 2
    assert decoder.next_frame() == Ping(2)
    assert decoder.next_frame() is None


def test_the_size_of_a_frame_is_that_of_its_bytes() -> None:
    decoder = Decoder()
    data = bytes.fromhex("0000000a9404ce00000007a0c400")
    assert decoder.feed(data) == [Delivery(7, "", b"", None, 0, None)]
    assert decoder.frame_size == len(data)


def test_an_encoder_refuses_what_the_broker_would_close_for() -> None:
    encoder = Encoder(frame_bytes=100)
    encoder.publish("t", bytes(93))
    with pytest.raises(FrameTooLarge) as raised:
        encoder.publish("t", bytes(94))
    assert raised.value.details == {"size": 101, "limit": 100}


@pytest.mark.parametrize(
    "headers", [{1: "a"}, {"k": {}}, {"k": [[]]}, {"k" * 256: 1}, {"k": object()}, {"k": 2**64}], ids=str
)
def test_headers_that_are_none_are_refused_before_they_are_sent(headers: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        check_headers(headers)


@given(HEADERS)
def test_headers_that_are_allowed_are_let_through(headers: dict[str, Any]) -> None:
    check_headers(headers)
