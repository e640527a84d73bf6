"""What a broker sends is understood whole, byte by byte and with a tail, in each protocol; and answered."""

import struct

import msgpack  # type: ignore[import-untyped, unused-ignore]
import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.load import protocol
from fanlight_bench.load.amqp import AMQP
from fanlight_bench.load.mqtt import MQTT_3, MQTT_5
from fanlight_bench.load.native import NATIVE
from fanlight_bench.load.nats import JETSTREAM, NATS
from fanlight_bench.load.protocol import Damaged, Dialect


def native(*fields: object) -> bytes:
    body = msgpack.packb(fields)
    return struct.pack(">I", len(body)) + bytes(body)


def frame_of_amqp(kind: int, payload: bytes, channel: int = 1) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def delivered(tag: int, key: bytes, body: bytes) -> bytes:
    """basic.deliver, the content header with delivery-mode 2, the body."""
    method = b"\x00\x3c\x00\x3c\x01c" + struct.pack(">Q", tag) + b"\x00\x00" + bytes([len(key)]) + key
    header = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, 2)
    made = frame_of_amqp(1, method) + frame_of_amqp(2, header)
    return made + frame_of_amqp(3, body) if body else made


CONFIRM = b"\x00\x3c\x00\x50" + struct.pack(">QB", 77, 0)
ANSWERED = b'MSG _INBOX.p.0000000077 1 26\r\n{"stream":"kept","seq":77}\r\n'
KEPT = b"MSG kept.000001 2 $JS.ACK.kept.000000.1.9.9.1700000000000000000.0 3\r\nxyz\r\n"
MESSAGE = b"\x00\x00\x00\x13\x94\x04\xce\x00\x00\x00\x4d\xa5a.b.c\xc4\x03xyz\xc0"

# (dialect, what a broker sends, its kind)
FRAMES: list[tuple[Dialect, bytes, str]] = [
    (NATIVE, native(2, 1, {"server": "fanlight"}), "WELCOME"),
    (NATIVE, MESSAGE, "DELIVERY"),
    (NATIVE, native(5, 4_000_000_000, 3), "ACKNOWLEDGEMENT"),
    (NATIVE, native(7, 1), "GRANTED"),
    (NATIVE, native(11, 77), "PING"),
    (NATIVE, native(13, None, "not_permitted", "no"), "REFUSAL"),
    (NATIVE, native(14, "shutting_down"), "REFUSAL"),
    (NATIVE, native(99, "later"), "OTHER"),
    (MQTT_3, b"\x20\x02\x00\x00", "WELCOME"),
    (MQTT_3, b"\x30\x0a\x00\x05a/b/cxyz", "DELIVERY"),
    (MQTT_3, b"\x32\x0c\x00\x05a/b/c\x12\x34xyz", "DELIVERY"),
    (MQTT_3, b"\x40\x02\x12\x34", "ACKNOWLEDGEMENT"),
    (MQTT_3, b"\x50\x02\x12\x34", "RECEIVED"),
    (MQTT_3, b"\x62\x02\x12\x34", "RELEASE"),
    (MQTT_3, b"\x70\x02\x12\x34", "ACKNOWLEDGEMENT"),
    (MQTT_3, b"\x90\x03\x00\x01\x00", "GRANTED"),
    (MQTT_3, b"\xd0\x00", "OTHER"),
    (MQTT_5, b"\x20\x06\x00\x00\x03\x22\x00\x10", "WELCOME"),
    (MQTT_5, b"\x30\x0b\x00\x05a/b/c\x00xyz", "DELIVERY"),
    (MQTT_5, b"\x30\x11\x00\x05a/b/c\x06\x26\x00\x01u\x00\x00xyz", "DELIVERY"),
    (MQTT_5, b"\x40\x04\x12\x34\x10\x00", "ACKNOWLEDGEMENT"),  # no matching subscribers is no error
    (MQTT_5, b"\x40\x04\x12\x34\x87\x00", "REFUSAL"),
    (MQTT_5, b"\xe0\x01\x8e", "REFUSAL"),
    (NATS, b'INFO {"server_id":"x","max_payload":1048576}\r\n', "WELCOME"),
    (NATS, b"MSG a.b.c 77 3\r\nxyz\r\n", "DELIVERY"),
    (NATS, b"MSG a.b.c 77 reply.to 3\r\nxyz\r\n", "DELIVERY"),
    (NATS, b"MSG a.b.c 77 2\r\n\r\n\r\n", "DELIVERY"),  # a payload that looks like an end of line
    (NATS, b"PING\r\n", "PING"),
    (NATS, b"PONG\r\n", "GRANTED"),
    (NATS, b"+OK\r\n", "OTHER"),
    (NATS, b"-ERR 'Permissions Violation'\r\n", "REFUSAL"),
    (JETSTREAM, KEPT, "DELIVERY"),
    (JETSTREAM, ANSWERED, "ACKNOWLEDGEMENT"),
    (JETSTREAM, b'MSG _INBOX.p.0000000077 1 24\r\n{"error":{"code":"503"}}\r\n', "REFUSAL"),
    (JETSTREAM, b"PING\r\n", "PING"),
    (AMQP, frame_of_amqp(1, b"\x00\x0a\x00\x0a\x00\x09", 0), "OTHER"),             # connection.start
    (AMQP, frame_of_amqp(1, b"\x00\x0a\x00\x29\x00", 0), "WELCOME"),              # connection.open-ok
    (AMQP, frame_of_amqp(1, b"\x00\x14\x00\x0b\x00\x00\x00\x00"), "GRANTED"),     # channel.open-ok
    (AMQP, frame_of_amqp(1, b"\x00\x0a\x00\x32\x01\x93\x02no\x00\x00\x00\x00", 0), "REFUSAL"),  # connection.close
    (AMQP, frame_of_amqp(1, CONFIRM), "ACKNOWLEDGEMENT"),
    (AMQP, frame_of_amqp(1, b"\x00\x3c\x00\x78" + CONFIRM[4:]), "REFUSAL"),         # basic.nack
    (AMQP, frame_of_amqp(8, b"", 0), "OTHER"),                                     # heartbeat
    (AMQP, delivered(5, b"kept.000001", b"xyz"), "DELIVERY"),
    (AMQP, delivered(5, b"kept.000001", b""), "DELIVERY"),
]


def kind(name: str) -> int:
    return int(getattr(protocol, name))


@pytest.mark.parametrize(("dialect", "frame", "name"), FRAMES)
def test_a_frame_is_understood_whole_and_with_a_tail(dialect: Dialect, frame: bytes, name: str) -> None:
    assert dialect.frames(frame) == ([(kind(name), frame)], len(frame))
    for tail in (frame[:1], frame[:-1]):
        assert dialect.frames(frame + frame + tail) == ([(kind(name), frame)] * 2, 2 * len(frame))


@pytest.mark.parametrize(("dialect", "frame", "name"), FRAMES)
def test_a_frame_is_understood_byte_by_byte(dialect: Dialect, frame: bytes, name: str) -> None:
    for size in range(len(frame)):
        assert dialect.frames(frame[:size]) == ([], 0)
    assert dialect.frames(frame)[1] == len(frame)


@pytest.mark.parametrize(
    ("dialect", "frame", "said"),
    [
        (NATIVE, MESSAGE, {"topic": b"a.b.c", "payload": b"xyz", "subscription": 77}),
        (MQTT_3, b"\x30\x0a\x00\x05a/b/cxyz", {"topic": b"a/b/c", "payload": b"xyz", "qos": 0, "number": 0}),
        (MQTT_3, b"\x3c\x0c\x00\x05a/b/c\x12\x34xyz", {"payload": b"xyz", "qos": 2, "number": 0x1234}),
        (MQTT_5, b"\x32\x0d\x00\x05a/b/c\x12\x34\x00xyz", {"payload": b"xyz", "qos": 1, "number": 0x1234}),
        (MQTT_5, b"\x30\x09\x00\x00\x03\x23\x00\x07xyz", {"topic": b"", "payload": b"xyz", "alias": 7}),
        (MQTT_5, b"\x30\x09\x00\x00\x03\x0b\x80\x02xyz", {"subscription": 256, "properties": b"\x0b\x80\x02"}),
        (NATS, b"MSG a.b 77 reply 3\r\nxyz\r\n", {"topic": b"a.b", "payload": b"xyz", "subscription": 77}),
        (JETSTREAM, KEPT, {"topic": b"kept.000001", "payload": b"xyz", "qos": 1}),
        (JETSTREAM, ANSWERED, {"number": 77}),
        (AMQP, delivered(2**40 + 5, b"a.b", b"xyz"), {"topic": b"a.b", "payload": b"xyz", "number": 5}),
        (AMQP, frame_of_amqp(1, CONFIRM), {"number": 77}),
    ],
)
def test_what_a_delivery_says(dialect: Dialect, frame: bytes, said: dict[str, object]) -> None:
    found = dialect.delivery(frame)
    assert {key: found[key] for key in said} == said


@pytest.mark.parametrize(
    ("dialect", "frame", "answer"),
    [
        (NATIVE, native(11, 4_000_000_000), native(12, 4_000_000_000)),
        (NATIVE, MESSAGE, b""),
        (MQTT_3, b"\x30\x0a\x00\x05a/b/cxyz", b""),
        (MQTT_3, b"\x32\x0c\x00\x05a/b/c\x12\x34xyz", b"\x40\x02\x12\x34"),
        (MQTT_3, b"\x34\x0c\x00\x05a/b/c\x12\x34xyz", b"\x50\x02\x12\x34"),
        (MQTT_3, b"\x50\x02\x12\x34", b"\x62\x02\x12\x34"),
        (MQTT_3, b"\x62\x02\x12\x34", b"\x70\x02\x12\x34"),
        (MQTT_3, b"\x40\x02\x12\x34", b""),
        (NATS, b"PING\r\n", b"PONG\r\n"),
        (NATS, b"PONG\r\n", b""),
        (JETSTREAM, KEPT, b"PUB $JS.ACK.kept.000000.1.9.9.1700000000000000000.0 0\r\n\r\n"),
        (JETSTREAM, ANSWERED, b""),
        (JETSTREAM, b"PING\r\n", b"PONG\r\n"),
        (AMQP, delivered(2**40 + 5, b"a.b", b"xyz"),
         frame_of_amqp(1, b"\x00\x3c\x00\x50\x00\x00\x01\x00\x00\x00\x00\x05\x00")),
        (AMQP, frame_of_amqp(1, CONFIRM), b""),
    ],
)
def test_what_is_answered_to_a_frame(dialect: Dialect, frame: bytes, answer: bytes) -> None:
    assert dialect.reply(frame) == answer


@pytest.mark.parametrize(
    ("dialect", "data"),
    [
        (NATIVE, b"\x00\x00\x00\x01\xc0"),                         # no array
        (NATIVE, b"HTTP/1.1 400 Bad Request\r\n"),                 # a frame of a gigabyte
        (NATIVE, b"\x00\x00\x00\x0a\x94\x04\x4d\xa5a.b.c\xc4"),    # the subscription is not in five bytes (3.4)
        (NATIVE, MESSAGE.replace(b"\xa5", b"\xbf")),               # a topic that is longer than its frame
        (MQTT_3, b"\x30\xff\xff\xff\xff\x01"),                     # a length of five octets (1.5.5)
        (MQTT_3, b"\x00\x00"),                                     # packet type 0 (2.1.2)
        (MQTT_3, b"\xf0\x00"),                                     # AUTH is of MQTT 5
        (MQTT_3, b"\x36\x0c\x00\x05a/b/c\x12\x34xyz"),             # QoS 3 (3.3.1.2)
        (MQTT_3, b"\x30\x05\x00\x05a/b"),                          # a topic that is longer than its packet
        (MQTT_3, b"\x40\x01\x12"),                                 # half a packet identifier
        (MQTT_5, b"\x30\x0b\x00\x05a/b/c\x09xyz"),                 # properties that are longer than their packet
        (MQTT_5, b"\x30\x0c\x00\x05a/b/c\x01\x7fxyz"),             # an unknown property (2.2.2.2)
        (MQTT_5, b"\x30\x0e\x00\x05a/b/c\x03\x26\x00\x09xyz"),     # a user property that is longer than the properties
        (NATS, b"HTTP/1.1 400 Bad Request\r\n"),
        (NATS, b"MSG a.b 77 3\r\nxyz__"),                          # no end of line behind the payload
        (NATS, b"MSG a.b seven 3\r\nxyz\r\n"),
        (NATS, b"MSG a.b 77\r\nxyz\r\n"),
        (NATS, b"MSG a.b 77 reply more 3\r\nxyz\r\n"),
        (NATS, b"PING\n"),
        (NATS, b"x" * 65_536),                                     # a line without an end
        (JETSTREAM, b"MSG kept.000001 2 3\r\nxyz\r\n"),            # a delivery that cannot be acknowledged
        (JETSTREAM, b"MSG kept.000001 2 " + b"r" * 171 + b" 3\r\nxyz\r\n"),
        (JETSTREAM, b"MSG _INBOX.p.number 1 3\r\nxyz\r\n"),        # an answer to no publish
        (AMQP, b"AMQP\0\0\x09\x01"),                              # the broker speaks another version (4.2.2)
        (AMQP, frame_of_amqp(1, CONFIRM)[:-1] + b"\0"),            # no end of frame (4.2.3)
        (AMQP, frame_of_amqp(1, b"\x00\x3c")),                     # half a method
        (AMQP, frame_of_amqp(1, CONFIRM[:-1])),                    # no "multiple"
        (AMQP, frame_of_amqp(1, b"\x00\x3c\x00\x3c\x40c")),        # a consumer tag that is longer than its method
        (AMQP, delivered(5, b"a.b", b"xyz").replace(b"\x02\x00\x01\x00\x00\x00\x0f", b"\x03\x00\x01\x00\x00\x00\x0f")),
        (AMQP, b"\x01\x00\x01\xff\xff\xff\xff"),                  # a frame of four gigabytes
    ],
)  # fmt: skip
def test_what_is_no_frame_is_damage(dialect: Dialect, data: bytes) -> None:
    with pytest.raises(Damaged):
        dialect.frames(data)
