"""Frames from bytes, with nothing but struct: make_vectors.py and the SDK's tests are written with it.

On purpose without the SDK's codec and without a msgpack library: see make_vectors.py.
"""

import struct

HELLO, WELCOME, PUBLISH, MESSAGE, RECEIPT, SUBSCRIBE, OK = 1, 2, 3, 4, 5, 6, 7
UNSUBSCRIBE, ENDED, CREDIT, PING, PONG, ERROR, GOODBYE, HELD = 8, 9, 10, 11, 12, 13, 14, 15
DELIVERY, ACK, NACK, TERM, IN_PROGRESS, CONSUMER, CONSUMER_INFO, QUEUE = 32, 33, 34, 35, 36, 37, 38, 39
REPLAY, REPLAY_END = 48, 49
OTHER_NAMES = {
    DELIVERY: "DELIVERY", ACK: "ACK", NACK: "NACK", TERM: "TERM", IN_PROGRESS: "IN_PROGRESS",
    CONSUMER: "CONSUMER", CONSUMER_INFO: "CONSUMER_INFO", QUEUE: "QUEUE", REPLAY: "REPLAY", REPLAY_END: "REPLAY_END",
}  # fmt: skip
FROM_CLIENTS = (
    HELLO, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, CREDIT, REPLAY, ACK, NACK, TERM, IN_PROGRESS, CONSUMER, QUEUE,
)  # fmt: skip
NAMES = (
    "", "HELLO", "WELCOME", "PUBLISH", "MESSAGE", "RECEIPT", "SUBSCRIBE", "OK", "UNSUBSCRIBE", "ENDED", "CREDIT",
    "PING", "PONG", "ERROR", "GOODBYE", "HELD",
)  # fmt: skip

# msgpack, as far as it is needed, each form by its name in msgpack's specification.

NIL, FALSE, TRUE = b"\xc0", b"\xc2", b"\xc3"


def fixint(n: int) -> bytes:
    return struct.pack(">b", n)


def uint8(n: int) -> bytes:
    return b"\xcc" + struct.pack(">B", n)


def uint16(n: int) -> bytes:
    return b"\xcd" + struct.pack(">H", n)


def uint32(n: int) -> bytes:
    return b"\xce" + struct.pack(">I", n)


def uint64(n: int) -> bytes:
    return b"\xcf" + struct.pack(">Q", n)


def int64(n: int) -> bytes:
    return b"\xd3" + struct.pack(">q", n)


def float64(x: float) -> bytes:
    return b"\xcb" + struct.pack(">d", x)


def num(n: int) -> bytes:
    """The shortest form of an integer from 0."""
    if n < 128:
        return fixint(n)
    return uint8(n) if n < 2**8 else uint16(n) if n < 2**16 else uint32(n) if n < 2**32 else uint64(n)


def text(value: str | bytes) -> bytes:
    octets = value.encode() if isinstance(value, str) else value
    if len(octets) < 32:
        return bytes([0xA0 | len(octets)]) + octets
    if len(octets) < 2**8:
        return b"\xd9" + struct.pack(">B", len(octets)) + octets
    return b"\xda" + struct.pack(">H", len(octets)) + octets


def str16(value: str) -> bytes:
    return b"\xda" + struct.pack(">H", len(value.encode())) + value.encode()


def str32(value: str) -> bytes:
    return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()


def octets(value: bytes) -> bytes:
    if len(value) < 2**8:
        return b"\xc4" + struct.pack(">B", len(value)) + value
    return b"\xc5" + struct.pack(">H", len(value)) + value


def bin16(value: bytes) -> bytes:
    return b"\xc5" + struct.pack(">H", len(value)) + value


def bin32(value: bytes) -> bytes:
    return b"\xc6" + struct.pack(">I", len(value)) + value


def array(*items: bytes) -> bytes:
    assert len(items) < 16
    return bytes([0x90 | len(items)]) + b"".join(items)


def array16(*items: bytes) -> bytes:
    return b"\xdc" + struct.pack(">H", len(items)) + b"".join(items)


def array32(*items: bytes) -> bytes:
    return b"\xdd" + struct.pack(">I", len(items)) + b"".join(items)


def mapping(*pairs: tuple[bytes, bytes]) -> bytes:
    assert len(pairs) < 16
    return bytes([0x80 | len(pairs)]) + b"".join(key + value for key, value in pairs)


def options(**pairs: bytes) -> bytes:
    return mapping(*((text(key), value) for key, value in pairs.items()))


def nested(levels: int) -> bytes:
    """Arrays in arrays, `levels` deep; the innermost is empty."""
    return b"\x91" * (levels - 1) + b"\x90"


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def frame(*items: bytes) -> bytes:
    return framed(array(*items))


def hexed(value: bytes) -> dict[str, str]:
    return {"hex": value.hex()}
