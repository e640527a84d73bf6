"""Frames of WebSocket as compiled code reads and writes them, beside wsproto, the oracle."""

import struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType
from wsproto.connection import Connection, ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong

from fanlight_broker.net.websocket_frames import FrameReader, binary_frame

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN = 0x80
ANY_SIZE = 1 << 62


def masked(
    first: int, payload: bytes, key: bytes = b"\x12\x34\x56\x78", form: int | None = None, mask: int = 0x80
) -> bytes:
    """A client's frame. `form`: what says how the length is written; None: the shortest."""
    size = len(payload)
    if form is None:
        form = size if size < 126 else 126 if size < 1 << 16 else 127
    length = struct.pack(">H", size) if form == 126 else struct.pack(">Q", size) if form == 127 else b""
    return bytes([first, mask | form]) + length + key + bytes(octet ^ key[i & 3] for i, octet in enumerate(payload))


class Seen(NamedTuple):
    payload: bytes
    controls: list[tuple[int, bytes | int]]  # opcode, and the payload or the code
    after: list[int]  # bytes of payload before each control frame
    error: int | None


def by_wsproto(pieces: list[bytes]) -> Seen:
    wsproto, payload, error = Connection(ConnectionType.SERVER), b"", None
    controls: list[tuple[int, bytes | int]] = []
    after: list[int] = []
    for piece in pieces:
        if error is not None or wsproto.state is not ConnectionState.OPEN:
            break
        wsproto.receive_data(piece)
        for event in wsproto.events():
            if isinstance(event, BytesMessage):
                payload += event.data
            elif isinstance(event, CloseConnection) and wsproto.state is ConnectionState.OPEN:
                error = int(event.code)
            elif isinstance(event, (Ping, Pong, CloseConnection)):
                after.append(len(payload))
                if isinstance(event, CloseConnection):
                    controls.append((CLOSE, int(event.code)))
                else:
                    controls.append((PING if isinstance(event, Ping) else PONG, bytes(event.payload)))
    return Seen(payload, controls, after, error)


def by_us(pieces: list[bytes]) -> Seen:
    """Control frames are wsproto's here, too: it gets them alone."""
    reader, wsproto, payload, error = FrameReader(ANY_SIZE), Connection(ConnectionType.SERVER), b"", None
    controls: list[tuple[int, bytes | int]] = []
    after: list[int] = []
    for piece in pieces:
        reader.feed(piece)
        while reader.pending and error is None and wsproto.state is ConnectionState.OPEN:
            payload += reader.read()
            if reader.error is not None:
                error = reader.error[0]
            elif reader.control is not None:
                wsproto.receive_data(reader.control)
                (event,) = wsproto.events()
                if isinstance(event, CloseConnection) and wsproto.state is ConnectionState.OPEN:
                    error = int(event.code)
                    continue
                after.append(len(payload))
                if isinstance(event, CloseConnection):
                    controls.append((CLOSE, int(event.code)))
                elif isinstance(event, (Ping, Pong)):
                    controls.append((PING if isinstance(event, Ping) else PONG, bytes(event.payload)))
    return Seen(payload, controls, after, error)


def cut(octets: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    while at < len(octets):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(octets[at : at + size])
        at += size
    return pieces


keys = st.binary(min_size=4, max_size=4)
payloads = st.one_of(
    st.binary(max_size=40), st.builds(lambda octet, size: bytes([octet]) * size, st.integers(0, 255), st.sampled_from(
        [124, 125, 126, 127, 300, 65_535, 65_536, 70_000]
    )),
)  # fmt: skip
messages = st.builds(
    lambda parts, key, between: b"".join(
        masked((FIN if n == len(parts) - 1 else 0) | (BINARY if n == 0 else CONTINUATION), part, key)
        + (between if n < len(parts) - 1 else b"")
        for n, part in enumerate(parts)
    ),
    st.lists(payloads, min_size=1, max_size=3), keys, st.sampled_from([b"", masked(FIN | PING, b"between")]),
)  # fmt: skip
controls = st.builds(masked, st.sampled_from([FIN | PING, FIN | PONG]), st.binary(max_size=125), keys)
closes = st.builds(
    lambda code, text: masked(FIN | CLOSE, struct.pack(">H", code) + text),
    st.sampled_from([999, 1000, 1001, 1005, 1011, 2999, 3000, 4999, 5000]), st.sampled_from([b"", b"bye", b"\xff"]),
)  # fmt: skip
# Any first two bytes but those of text, of which wsproto looks at the characters, too.
strange = st.builds(
    masked, st.integers(0, 255).filter(lambda first: first & 0x0F != TEXT), st.binary(max_size=125), keys,
    st.sampled_from([None, 126, 127]), st.sampled_from([0, 0x80]),
).map(lambda octets: octets + bytes(20))  # fmt: skip
streams = st.lists(st.one_of(messages, messages, controls, closes, strange), max_size=6).map(b"".join)
cuts = st.lists(st.sampled_from([1, 2, 3, 5, 13, 1_000, 100_000]), min_size=1, max_size=4)


@given(streams, cuts)
def test_what_is_read_is_what_wsproto_reads(stream: bytes, sizes: list[int]) -> None:
    pieces = cut(stream, [max(size, len(stream) // 500 + 1) for size in sizes])
    assert by_us(pieces) == by_wsproto(pieces)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 70_000])
def test_what_is_written_is_what_wsproto_writes(size: int) -> None:
    assert binary_frame(bytes(size)) == Connection(ConnectionType.SERVER).send(BytesMessage(data=bytes(size)))


@pytest.mark.parametrize("step", [1, 3, 1_000])
@pytest.mark.parametrize(
    ("octets", "error"),
    [
        (masked(FIN | TEXT, b"text"), 1003), (masked(FIN | TEXT, b""), 1003), (masked(FIN | BINARY, b"", mask=0), 1002),
        (masked(FIN | 0x40 | BINARY, b""), 1002), (masked(FIN | 3, b""), 1002), (masked(FIN | 11, b""), 1002),
        (masked(FIN | CONTINUATION, b""), 1002), (masked(PING, b""), 1002), (masked(BINARY, b"") * 2, 1002),
        (masked(FIN | PING, bytes(126)), 1002), (masked(FIN | BINARY, bytes(125), form=126), 1002),
        (masked(FIN | BINARY, bytes(60_000), form=127), 1002), (b"\x82\xff" + b"\xff" * 12, 1002),
        (masked(FIN | BINARY, bytes(101)), 1009), (masked(BINARY, bytes(60)) + masked(CONTINUATION, bytes(41)), 1009),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_code_and_what_came_before_is_read(octets: bytes, error: int, step: int) -> None:
    reader, read = FrameReader(100), b""
    for piece in cut(masked(FIN | BINARY, b"before") + octets, [step]):
        reader.feed(piece)
        while reader.pending and reader.error is None:
            read += reader.read()
    assert reader.error is not None
    assert reader.error[0] == error
    assert read.startswith(b"before")
    assert len(read) <= 106


def test_behind_text_and_a_message_that_is_too_long_frames_are_read_on() -> None:
    reader = FrameReader(10)
    reader.feed(masked(FIN | TEXT, b"text") + masked(FIN | BINARY, bytes(20)) + masked(FIN | CLOSE, b""))
    found = []
    while reader.pending:
        reader.read()
        found.append(reader.error[0] if reader.error else reader.control and reader.control[0])
    assert [each for each in found if each is not None] == [1003, 1009, FIN | CLOSE]
