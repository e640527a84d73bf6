"""Frames (2.3.5): whole, byte by byte and with a tail; what is malformed is 501."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.frames import (
    HEARTBEAT,
    OVERHEAD,
    FrameDecoder,
    FrameType,
    RawFrame,
    check_heartbeat,
    encode_frame,
)
from fanlight_broker.protocols.amqp.reply_codes import ReplyCode

FRAME_MAX = 4_096

frames = st.builds(RawFrame, st.sampled_from(FrameType), st.integers(0, 65_535), st.binary(max_size=100))


@given(sent=st.lists(frames, max_size=5), cuts=st.lists(st.integers(0, 600), max_size=6))
def test_a_stream_in_any_pieces_is_the_frames_that_were_written(sent: list[RawFrame], cuts: list[int]) -> None:
    octets = b"".join(encode_frame(*frame) for frame in sent)
    decoder, found = FrameDecoder(FRAME_MAX), []
    places = sorted(min(cut, len(octets)) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(octets)], strict=True):
        found += decoder.feed(octets[start:end])
    assert found == sent
    assert decoder.waiting == 0


@given(frame=frames)
def test_byte_by_byte_a_frame_is_complete_with_its_end(frame: RawFrame) -> None:
    decoder, octets = FrameDecoder(FRAME_MAX), encode_frame(*frame)
    for at in range(len(octets) - 1):
        assert list(decoder.feed(octets[at : at + 1])) == []
    assert list(decoder.feed(octets[-1:] + octets[:3])) == [frame]
    assert decoder.waiting == 3


def test_the_layout_is_the_specifications() -> None:
    assert encode_frame(FrameType.METHOD, 0x1234, b"ab") == b"\x01\x12\x34\x00\x00\x00\x02ab\xce"
    assert HEARTBEAT == b"\x08\x00\x00\x00\x00\x00\x00\xce"


def test_a_frame_may_be_as_large_as_the_maximum_and_no_larger() -> None:
    payload = bytes(FRAME_MAX - OVERHEAD)
    (whole,) = FrameDecoder(FRAME_MAX).feed(encode_frame(FrameType.BODY, 1, payload))
    assert whole.payload == payload
    refused(encode_frame(FrameType.BODY, 1, payload + b"x"))


def test_a_frame_that_is_too_large_is_refused_before_it_has_come() -> None:
    refused(struct.pack(">BHI", 1, 0, 2**32 - 1))


@pytest.mark.parametrize("kind", [0, 4, 5, 7, 9, 65, 255])
def test_an_unknown_type_is_refused(kind: int) -> None:
    refused(bytes((kind,)) + bytes(6) + b"\xce")


def test_a_frame_without_its_end_is_refused() -> None:
    refused(b"\x08\x00\x00\x00\x00\x00\x00\xcd")


def refused(octets: bytes) -> None:
    with pytest.raises(AmqpError) as caught:
        list(FrameDecoder(FRAME_MAX).feed(octets))
    assert caught.value.code is ReplyCode.FRAME_ERROR
    assert caught.value.closes_all


@pytest.mark.parametrize(("channel", "size"), [(1, 0), (0, 1), (7, 7)])
def test_a_heartbeat_is_empty_and_of_channel_0(channel: int, size: int) -> None:
    check_heartbeat(0, 0)
    with pytest.raises(AmqpError):
        check_heartbeat(channel, size)
