"""Writes docs/native-protocol-vectors.json from the specification, with nothing but struct and bytes.

On purpose without the SDK's codec and without a msgpack library: the broker, the SDK and this file are three
readings of docs/native-protocol.md, and a mistake has to be made in all three to go unnoticed.

    python clients/python/tests/make_vectors.py            writes the file
    python clients/python/tests/make_vectors.py --check    exits 1 if it is not what would be written
"""

import json
import struct
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[3] / "docs" / "native-protocol-vectors.json"

ABOUT = """Test vectors of docs/native-protocol.md, for brokers and clients in any language. All `bytes` are hex, \
and whole frames. `frames`: well-formed frames and what they mean; `fields` has every field that version 1 knows, by \
name, defaults filled in; octets are {"hex": ...}, as are topics that came as bin; `canonical` is true where an \
encoder that uses msgpack's shortest forms and leaves out trailing nil makes exactly these bytes. `invalid`: sent by a \
client after the handshake, with nothing subscribed; the broker answers ERROR `code` (with `request`, where the \
vector has that key) and, if `closes`, GOODBYE with the same reason and a close. `invalid_first_frames`: likewise, \
sent instead of HELLO. `invalid_from_broker`: frames on which a client gives up the connection. `sessions`: what goes \
over one connection, in order, except that messages and answers may overtake each other; steps that are not `exact` \
may differ in bytes, but not in the `fields` that are given."""

HELLO, WELCOME, PUBLISH, MESSAGE, RECEIPT, SUBSCRIBE, OK = 1, 2, 3, 4, 5, 6, 7
UNSUBSCRIBE, ENDED, CREDIT, PING, PONG, ERROR, GOODBYE, HELD = 8, 9, 10, 11, 12, 13, 14, 15
DELIVERY, ACK, NACK, TERM, IN_PROGRESS = 32, 33, 34, 35, 36
REPLAY, REPLAY_END = 48, 49
OTHER_NAMES = {
    DELIVERY: "DELIVERY", ACK: "ACK", NACK: "NACK", TERM: "TERM", IN_PROGRESS: "IN_PROGRESS",
    REPLAY: "REPLAY", REPLAY_END: "REPLAY_END",
}  # fmt: skip
FROM_CLIENTS = (HELLO, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, CREDIT, REPLAY, ACK, NACK, TERM, IN_PROGRESS)
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


# Well-formed frames.

FRAMES: list[dict[str, Any]] = []


def vector(name: str, kind: int, data: bytes, note: str = "", canonical: bool = False, **fields: Any) -> None:
    direction = "client" if kind in FROM_CLIENTS else "broker"
    directions = ("client", "broker") if kind in (PING, PONG, GOODBYE) else (direction,)
    FRAMES.extend(
        {
            "name": name if len(directions) == 1 else f"{name}_from_{each}",
            "direction": each,
            "type": kind,
            "type_name": OTHER_NAMES.get(kind) or NAMES[kind],
            "fields": {key: hexed(value) if isinstance(value, bytes) else value for key, value in fields.items()},
            "bytes": data.hex(),
            "canonical": canonical,
            "note": note,
        }
        for each in directions
    )


def well_formed() -> None:
    # HELLO, WELCOME
    vector("hello_minimal", HELLO, frame(fixint(1), fixint(1), b"\x80"), "no options: anonymous, a name made up",
           True, version=1, options={})
    vector(
        "hello_all_options", HELLO,
        frame(fixint(1), fixint(1), options(client=text("desk-7"), user=text("anna"), password=text("s3cret"),
                                            agent=text("demo/1.0"), slow_policy=text("drop_oldest"))),
        "", True, version=1,
        options={"client": "desk-7", "user": "anna", "password": "s3cret", "agent": "demo/1.0",
                 "slow_policy": "drop_oldest"},
    )
    vector("hello_newer_client", HELLO, frame(fixint(1), fixint(9), b"\x80"),
           "a client of a later version; the broker answers with the version that both speak", True,
           version=9, options={})
    vector("hello_unknown_option_and_field", HELLO,
           frame(fixint(1), fixint(1), options(client=text("x"), compression=text("zstd")), text("later")),
           "an option and a field of a later version, both ignored", version=1,
           options={"client": "x", "compression": "zstd"})
    limits = {"frame_bytes": 1048576, "topic_bytes": 65535, "topic_words": 128, "subscriptions": 10000,
              "pending_messages": 65536, "outbox_bytes": 8388608}
    vector(
        "welcome", WELCOME,
        frame(fixint(2), fixint(1),
              options(server=text("fanlight/0.1.0"), connection=num(42), client=text("desk-7"),
                      inbox=text("$inbox.9f86d081884c7d659a2feaa0c55ad015"), slow_policy=text("pause"),
                      idle_seconds=num(60),
                      limits=options(**{key: num(value) for key, value in limits.items()}))),
        "", True, version=1,
        info={"server": "fanlight/0.1.0", "connection": 42, "client": "desk-7",
              "inbox": "$inbox.9f86d081884c7d659a2feaa0c55ad015", "slow_policy": "pause", "idle_seconds": 60,
              "limits": limits},
    )
    vector("welcome_unknown_info", WELCOME,
           frame(fixint(2), fixint(1), options(inbox=text("$inbox.0a"), shard=num(3)), TRUE),
           "a key and a field of a later version, both ignored", version=1, info={"inbox": "$inbox.0a", "shard": 3})

    # PUBLISH
    plain = {"request": None, "topic": "forex.eur", "payload": b"hi", "headers": None, "syntax": 0, "reply": None,
             "mark": None}
    topic, hi = text("forex.eur"), octets(b"hi")
    vector("publish_minimal", PUBLISH, frame(fixint(3), NIL, topic, hi), "fire-and-forget", True, **plain)
    vector("publish_nil_defaults", PUBLISH, frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL),
           "the same message: nil is a field's default", **plain)
    vector("publish_syntax_spelled_out", PUBLISH, frame(fixint(3), NIL, topic, hi, NIL, fixint(0)), "", **plain)
    vector("publish_empty_headers", PUBLISH, frame(fixint(3), NIL, topic, hi, b"\x80"),
           "an empty map means what nil means", **plain)
    vector("publish_trailing_unknown_fields", PUBLISH,
           frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL, options(ttl=num(30)), fixint(-1)),
           "fields of a later version, ignored", **plain)
    vector("publish_nested_eight_levels", PUBLISH,
           frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL, nested(7)),
           "an ignored field; with the frame's own array it is eight levels deep, which is allowed", **plain)
    vector("publish_receipt", PUBLISH, frame(fixint(3), fixint(7), topic, hi), "answered RECEIPT 7", True,
           **{**plain, "request": 7})
    vector("publish_request_u32_max", PUBLISH, frame(fixint(3), uint32(2**32 - 1), topic, hi), "", True,
           **{**plain, "request": 2**32 - 1})
    vector("publish_empty_payload", PUBLISH, frame(fixint(3), NIL, topic, octets(b"")), "", True,
           **{**plain, "payload": b""})
    vector("publish_empty_topic", PUBLISH, frame(fixint(3), NIL, text(""), hi),
           "in dotted spelling the empty topic has no words, and is allowed", True, **{**plain, "topic": ""})
    vector("publish_empty_words", PUBLISH, frame(fixint(3), NIL, text("a..b"), hi), "three words, the second empty",
           True, **{**plain, "topic": "a..b"})
    vector("publish_utf8_topic", PUBLISH, frame(fixint(3), NIL, text("börse.zürich"), hi), "", True,
           **{**plain, "topic": "börse.zürich"})
    vector("publish_bin_topic", PUBLISH, frame(fixint(3), NIL, octets(b"raw.\xff\xfe"), hi),
           "octets that are not UTF-8", True, **{**plain, "topic": b"raw.\xff\xfe"})
    vector("publish_mqtt", PUBLISH, frame(fixint(3), NIL, text("site/7/temp"), hi, NIL, fixint(1)), "", True,
           **{**plain, "topic": "site/7/temp", "syntax": 1})
    vector("publish_mqtt_dot_in_word", PUBLISH, frame(fixint(3), NIL, text("stock/nyse/BRK.B"), hi, NIL, fixint(1)),
           "three words: in this spelling a dot parts nothing", True,
           **{**plain, "topic": "stock/nyse/BRK.B", "syntax": 1})
    vector("publish_long_topic", PUBLISH, frame(fixint(3), NIL, text("w." * 20 + "w"), hi), "topic as str 8", True,
           **{**plain, "topic": "w." * 20 + "w"})
    vector("publish_bin16_payload", PUBLISH, frame(fixint(3), NIL, topic, octets(b"\x00\xff" * 150)), "", True,
           **{**plain, "payload": b"\x00\xff" * 150})
    vector("publish_non_minimal", PUBLISH,
           framed(array16(fixint(3), uint64(7), str32("forex.eur"), bin32(b"hi"), NIL, uint16(0))),
           "every length and integer in a longer form than it needs, the type excepted", **{**plain, "request": 7})
    vector("publish_array32", PUBLISH, framed(array32(fixint(3), int64(7), str16("forex.eur"), bin16(b"hi"))),
           "a signed form of an integer that is not negative", **{**plain, "request": 7})
    headers = mapping(
        (text("content-type"), text("application/json")), (text("correlation-id"), octets(b"\x01\x02")),
        (text("count"), num(300)), (text("ratio"), float64(0.5)), (text("live"), TRUE), (text("none"), NIL),
        (text("tags"), array(text("a"), num(1), NIL)), (text("below"), fixint(-3)),
    )  # fmt: skip
    known = {"content-type": "application/json", "correlation-id": hexed(b"\x01\x02"), "count": 300, "ratio": 0.5,
             "live": True, "none": None, "tags": ["a", 1, None], "below": -3}
    vector("publish_all_fields", PUBLISH,
           frame(fixint(3), fixint(9), topic, hi, headers, fixint(0), text("$inbox.0a.9")),
           "every kind of header value", **{**plain, "request": 9, "headers": known, "reply": "$inbox.0a.9"})
    vector("publish_mqtt_reply", PUBLISH,
           frame(fixint(3), fixint(9), text("ask/time"), octets(b""), NIL, fixint(1), text("$inbox/0a/9")),
           "topic and reply in the same spelling", True, request=9, topic="ask/time", payload=b"", headers=None,
           syntax=1, reply="$inbox/0a/9", mark=None)
    vector("publish_mark", PUBLISH,
           frame(fixint(3), fixint(7), topic, hi, NIL, NIL, NIL, array(text("q1.0"), fixint(3), num(4711))),
           "message 4711 of batch 3 of the producer q1.0 (3.8)", True,
           **{**plain, "request": 7, "mark": ["q1.0", 3, 4711]})
    vector("publish_mark_without_request", PUBLISH,
           frame(fixint(3), NIL, topic, hi, headers, fixint(0), text("$inbox.0a.9"),
                 array(text("p" * 255), num(2**64 - 1), num(2**64 - 1)), text("later")),
           "the longest name, the highest numbers, a field of a later version",
           **{**plain, "headers": known, "reply": "$inbox.0a.9", "mark": ["p" * 255, 2**64 - 1, 2**64 - 1]})
    vector("publish_mark_nil", PUBLISH, frame(fixint(3), NIL, topic, hi, NIL, NIL, NIL, NIL), "no mark", **plain)
    vector("publish_header_key_255_bytes", PUBLISH,
           frame(fixint(3), NIL, topic, hi, mapping((text("k" * 255), fixint(1)))), "the longest key allowed", True,
           **{**plain, "headers": {"k" * 255: 1}})

    # MESSAGE
    message = {"subscription": 7, "topic": "forex.eur", "payload": b"hi", "headers": None, "syntax": 0, "reply": None}
    vector("message_minimal", MESSAGE, frame(fixint(4), uint32(7), topic, hi),
           "the subscription always takes five bytes, at offset 6 of the frame", **message)
    vector("message_nil_defaults", MESSAGE, frame(fixint(4), uint32(7), topic, hi, NIL, NIL, NIL), "", **message)
    vector("message_all_fields", MESSAGE,
           frame(fixint(4), uint32(2**32 - 1), topic, hi, headers, fixint(0), text("$inbox.0a.9")), "",
           **{**message, "subscription": 2**32 - 1, "headers": known, "reply": "$inbox.0a.9"})
    vector("message_mqtt", MESSAGE, frame(fixint(4), uint32(7), text("site/7/temp"), hi, NIL, fixint(1)), "",
           **{**message, "topic": "site/7/temp", "syntax": 1})
    vector("message_bin_topic", MESSAGE, frame(fixint(4), uint32(7), octets(b"raw.\xff\xfe"), hi), "",
           **{**message, "topic": b"raw.\xff\xfe"})
    vector("message_publishers_encoding", MESSAGE,
           frame(fixint(4), uint32(7), str32("forex.eur"), bin32(b"hi"), NIL, uint16(0)),
           "from the topic on, the encoding is the publisher's", **message)
    vector("message_replayed", MESSAGE,
           frame(fixint(4), uint32(7), topic, hi, NIL, NIL, NIL, uint64(12345), uint64(1700000000000000)),
           "with the offset and timestamp of an archived one (3.7)",
           **{**message, "offset": 12345, "timestamp": 1700000000000000})
    vector("message_trailing_unknown_fields", MESSAGE,
           frame(fixint(4), uint32(7), topic, hi, NIL, NIL, NIL, NIL, NIL, text("later")),
           "fields of a later version, ignored", **message)
    # Queues (3.9)
    vector("subscribe_consumer", SUBSCRIBE,
           frame(fixint(6), fixint(5), fixint(7), text("orders.#"),
                 options(consumer=text("billing"), durable=TRUE, ack=TRUE, prefetch=fixint(10), ack_wait=fixint(5))),
           "a durable queue", True, request=5, subscription=7, filter="orders.#",
           options={"consumer": "billing", "durable": True, "ack": True, "prefetch": 10, "ack_wait": 5})
    delivery = {"subscription": 7, "sequence": 1, "attempt": 1, "topic": "forex.eur", "payload": hexed(b"hi"),
                "headers": None, "syntax": 0, "reply": None}
    vector("delivery_minimal", DELIVERY, frame(fixint(32), uint32(7), uint64(1), uint32(1), topic, hi),
           "subscription, sequence and attempt in their fixed forms", **delivery)
    vector("delivery_again", DELIVERY,
           frame(fixint(32), uint32(7), uint64(2**32), uint32(3), text("a/b"), hi, b"\x80", fixint(1), text("re")),
           "the third time, all fields",
           **{**delivery, "sequence": 2**32, "attempt": 3, "topic": "a/b", "headers": {}, "syntax": 1, "reply": "re"})
    acked: dict[str, Any] = {"subscription": 7, "sequence": 1}
    vector("ack", ACK, frame(fixint(33), fixint(7), fixint(1)), "", True, **acked, options=None)
    vector("ack_all", ACK, frame(fixint(33), fixint(7), uint16(300), options(all=TRUE)),
           "this delivery and all before it", True, subscription=7, sequence=300, options={"all": True})
    vector("nack", NACK, frame(fixint(34), fixint(7), fixint(1)), "again, at once", True, **acked, delay=None)
    vector("nack_delay", NACK, frame(fixint(34), fixint(7), fixint(1), float64(2.5)), "again, in 2.5 s", True,
           **acked, delay=2.5)
    vector("term", TERM, frame(fixint(35), fixint(7), fixint(1), text("no customer")), "never again", True,
           **acked, reason="no customer")
    vector("in_progress", IN_PROGRESS, frame(fixint(36), fixint(7), fixint(1)), "", True, **acked)
    vector("replay", REPLAY,
           frame(fixint(48), fixint(1), fixint(7), text("forex.#"), options(offset=fixint(5), epoch=fixint(1))),
           "from offset 5 on, if it still names what it named in epoch 1", True, request=1, subscription=7,
           filter="forex.#", options={"offset": 5, "epoch": 1})
    vector("replay_part", REPLAY,
           frame(fixint(48), fixint(1), fixint(7), text("forex.#"), options(offset=fixint(5), end=fixint(9))),
           "offsets 5 to 8", True, request=1, subscription=7, filter="forex.#", options={"offset": 5, "end": 9})
    vector("replay_begun", OK,
           frame(fixint(7), fixint(1), options(
               epoch=fixint(1), archive=text("0f3a"), start=fixint(0), end=fixint(9), offset=fixint(5),
           )),
           "the archive 0f3a has offsets 0 to 8, and this begins at 5", True, request=1,
           result={"epoch": 1, "archive": "0f3a", "start": 0, "end": 9, "offset": 5})
    vector("replay_end", REPLAY_END, frame(fixint(49), fixint(7), fixint(5), fixint(1)),
           "what follows to subscription 7 is published now", True, subscription=7, offset=5, epoch=1)
    vector("message_empty_topic", MESSAGE, frame(fixint(4), uint32(7), text(""), octets(b"")), "",
           **{**message, "topic": "", "payload": b""})

    # RECEIPT
    taken = {"offset": None, "repeated": False}
    vector("receipt", RECEIPT, frame(fixint(5), fixint(7), fixint(3)), "routed to three", request=7, routed=3, **taken)
    vector("receipt_nobody", RECEIPT, frame(fixint(5), fixint(7), fixint(0)), "no one is listening",
           request=7, routed=0, **taken)
    vector("receipt_large", RECEIPT, frame(fixint(5), num(70000), num(1000)), "", request=70000, routed=1000, **taken)
    vector("receipt_trailing", RECEIPT, frame(fixint(5), fixint(7), fixint(3), NIL), "", request=7, routed=3, **taken)
    vector("receipt_repeated", RECEIPT, frame(fixint(5), fixint(7), fixint(0), NIL, TRUE),
           "the message was taken before (3.8)", True, request=7, routed=0, offset=None, repeated=True)
    vector("receipt_not_repeated", RECEIPT, frame(fixint(5), fixint(7), fixint(1), NIL, FALSE, NIL), "",
           request=7, routed=1, **taken)

    # SUBSCRIBE, OK, UNSUBSCRIBE, ENDED, CREDIT
    sub = {"request": 1, "subscription": 7, "filter": "forex.*", "options": None}
    vector("subscribe_minimal", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), text("forex.*")), "", True, **sub)
    vector("subscribe_nil_options", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), text("forex.*"), NIL), "", **sub)
    vector("subscribe_without_request", SUBSCRIBE, frame(fixint(6), NIL, fixint(7), text("forex.*")),
           "no OK comes; an error comes with request nil", True, **{**sub, "request": None})
    vector(
        "subscribe_all_options", SUBSCRIBE,
        frame(fixint(6), fixint(1), num(300), text("site/+/temp/#"),
              options(syntax=fixint(1), group=text("workers"), no_echo=TRUE, credit=num(100),
                      pending_messages=num(1000), after=num(5000000000))),
        "", True, request=1, subscription=300, filter="site/+/temp/#",
        options={"syntax": 1, "group": "workers", "no_echo": True, "credit": 100, "pending_messages": 1000,
                 "after": 5000000000},
    )
    vector("subscribe_option_defaults", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("forex.*"),
                 options(syntax=NIL, group=NIL, no_echo=FALSE, credit=NIL, pending_messages=NIL, after=NIL)),
           "options that are nil have their defaults", request=1, subscription=7, filter="forex.*",
           options={"syntax": None, "group": None, "no_echo": False, "credit": None, "pending_messages": None,
                    "after": None})
    vector("subscribe_credit_zero", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("#"), options(credit=fixint(0))),
           "nothing is delivered until CREDIT comes: not the same as no credit option", True, request=1,
           subscription=7, filter="#", options={"credit": 0})
    vector("subscribe_bin_filter", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), octets(b"raw.\xff.*")), "", True,
           **{**sub, "filter": b"raw.\xff.*"})
    vector("subscribe_unknown_option", SUBSCRIBE,
           frame(fixint(6), fixint(1), fixint(7), text("forex.*"), options(colour=text("blue")), fixint(1)),
           "an option and a field of a later version, ignored", **{**sub, "options": {"colour": "blue"}})
    vector("subscribe_empty_filter", SUBSCRIBE, frame(fixint(6), fixint(1), fixint(7), text("")),
           "in dotted spelling: matches the empty topic, and nothing else", True, **{**sub, "filter": ""})
    vector("ok", OK, frame(fixint(7), fixint(1)), "", True, request=1, result=None)
    vector("ok_nil_result", OK, frame(fixint(7), fixint(1), NIL), "", request=1, result=None)
    vector("ok_unsubscribed", OK, frame(fixint(7), fixint(2), options(delivered=num(1000), dropped=num(3))), "", True,
           request=2, result={"delivered": 1000, "dropped": 3})
    vector("unsubscribe_minimal", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7)), "", True,
           request=2, subscription=7, after=0)
    vector("unsubscribe_nil_after", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7), NIL), "", request=2,
           subscription=7, after=0)
    vector("unsubscribe_zero_after", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7), fixint(0)), "", request=2,
           subscription=7, after=0)
    vector("unsubscribe_after", UNSUBSCRIBE, frame(fixint(8), fixint(2), fixint(7), num(2**40)), "", True, request=2,
           subscription=7, after=2**40)
    vector("unsubscribe_without_request", UNSUBSCRIBE, frame(fixint(8), NIL, fixint(7)), "", True, request=None,
           subscription=7, after=0)
    vector("ended", ENDED, frame(fixint(9), fixint(7), text("after"), num(1000), fixint(0)), "", True, subscription=7,
           reason="after", delivered=1000, dropped=0)
    vector("ended_trailing", ENDED, frame(fixint(9), uint32(7), text("after"), uint64(5), uint64(1), text("x")), "",
           subscription=7, reason="after", delivered=5, dropped=1)
    vector("credit", CREDIT, frame(fixint(10), fixint(7), num(500)), "", True, subscription=7, messages=500)
    vector("credit_non_minimal", CREDIT, frame(fixint(10), uint32(7), uint64(500)), "", subscription=7, messages=500)

    # PING, PONG, ERROR, GOODBYE
    vector("ping_minimal", PING, frame(fixint(11)), "no token: it is nil", True, token=None)
    vector("ping_nil", PING, frame(fixint(11), NIL), "", token=None)
    vector("ping_token", PING, frame(fixint(11), num(3000000000)), "", True, token=3000000000)
    vector("pong_minimal", PONG, frame(fixint(12)), "", True, token=None)
    vector("pong_nil", PONG, frame(fixint(12), NIL), "", token=None)
    vector("pong_token", PONG, frame(fixint(12), num(3000000000)), "", True, token=3000000000)
    vector("error", ERROR,
           frame(fixint(13), fixint(4), text("invalid_filter"), text("a+ is no level of a filter"),
                 options(position=fixint(1))),
           "", True, request=4, code="invalid_filter", text="a+ is no level of a filter", details={"position": 1})
    vector("error_of_no_request", ERROR, frame(fixint(13), NIL, text("not_permitted"), text("no")), "", True,
           request=None, code="not_permitted", text="no", details=None)
    vector("error_unknown_code", ERROR, frame(fixint(13), fixint(4), text("too_early"), text("come back"), NIL, NIL),
           "a code of a later version; it refuses request 4 all the same", request=4, code="too_early",
           text="come back", details=None)
    vector("goodbye_minimal", GOODBYE, frame(fixint(14), text("normal")), "", True, reason="normal", text=None)
    vector("goodbye_text", GOODBYE, frame(fixint(14), text("shutting_down"), text("back in a minute")), "", True,
           reason="shutting_down", text="back in a minute")
    vector("goodbye_trailing", GOODBYE, frame(fixint(14), text("normal"), NIL, num(1)), "", reason="normal", text=None)

    # HELD
    vector("held", HELD, frame(fixint(15), TRUE), "nothing more is read from this client for a while", True,
           held=True, seconds=None)
    vector("held_no_more", HELD, frame(fixint(15), FALSE, float64(0.25)), "", True, held=False, seconds=0.25)
    vector("held_no_more_integer", HELD, frame(fixint(15), FALSE, fixint(2)), "", True, held=False, seconds=2)
    vector("held_trailing", HELD, frame(fixint(15), TRUE, NIL, num(1)), "", held=True, seconds=None)


# What is wrong, and what the broker says to it.

INVALID: list[dict[str, Any]] = []


def invalid(name: str, data: bytes, code: str = "protocol_error", closes: bool = True, note: str = "",
            **expected: Any) -> None:
    INVALID.append({"name": name, "bytes": data.hex(), "code": code, "closes": closes, "note": note, **expected})


def malformed() -> None:
    topic, hi = text("forex.eur"), octets(b"hi")

    def publish(*behind: bytes) -> bytes:
        return frame(fixint(3), *behind)

    # Framing
    invalid("zero_length", framed(b""), note="a body has at least one byte")
    invalid("length_all_ones", b"\xff\xff\xff\xff", "frame_too_large", note="refused by its length: no body follows")
    invalid("length_one_gigabyte", struct.pack(">I", 2**30), "frame_too_large", note="no body follows")
    invalid("truncated_array", framed(b"\x94\x03\xc0" + topic), note="an array of four that ends after three")
    invalid("truncated_string", framed(b"\x94\x03\xc0\xa9forex"), note="a str of nine bytes of which five are there")
    invalid("truncated_bin", framed(b"\x94\x03\xc0" + topic + b"\xc6\x00\x10\x00\x00hi"),
            note="a bin of 1 MiB of which two bytes are there")
    invalid("array_of_four_thousand_million", framed(b"\xdd\xff\xff\xff\xff\x0b"), note="must not be allocated for")
    invalid("leftover_bytes", framed(b"\x91\x0b\xc0"), note="a whole PING, and one byte more")
    invalid("two_arrays", framed(b"\x91\x0b\x91\x0b"))
    invalid("not_an_array_map", framed(b"\x81\x0b\xc0"))
    invalid("not_an_array_integer", framed(b"\x0b"))
    invalid("not_an_array_str", framed(text("hello")))
    invalid("never_used_byte", framed(b"\xc1"), note="c1 is no msgpack")
    invalid("never_used_byte_inside", framed(b"\x92\x0b\xc1"))
    invalid("empty_array", framed(b"\x90"), note="no type")
    invalid("http_request", b"GET / HTTP/1.1\r\n\r\n", "frame_too_large", note="read as a length of 1,195,725,856")
    # Type
    invalid("type_nil", framed(b"\x91\xc0"))
    invalid("type_str", framed(b"\x91" + text("PING")))
    invalid("type_negative", framed(b"\x91\xff"))
    invalid("type_in_two_bytes", framed(b"\x91\xcc\x0b"), note="PING, but not in the one-byte form")
    invalid("type_above_127", framed(b"\x91\xcc\x80"))
    for number in (0, 16, 31, 39, 40, 50, 127):
        reserved = " (reserved)" if 32 <= number < 56 else ""
        invalid(f"unknown_type_{number}", frame(fixint(number), fixint(1)), "unsupported", False,
                f"a type not known to version 1{reserved}; the connection goes on", request=None)
    invalid("replay_without_archive", frame(fixint(48), fixint(1)), "unsupported", False,
            "a type that only brokers with an archive know (3.7); the connection goes on", request=None)
    # Nesting and extensions
    invalid("nested_nine_levels", publish(NIL, topic, hi, NIL, NIL, NIL, nested(8)),
            note="in a field that would be ignored; the frame's own array is the first level")
    invalid("nested_two_thousand_levels", framed(b"\x95\x03\xc0" + topic + hi + nested(2000)))
    invalid("nested_maps", framed(b"\x92\x0b" + b"\x81\xa1k" * 40 + b"\xc0"))
    invalid("extension_in_trailing_field", frame(fixint(11), NIL, b"\xd4\x05\x00"), note="fixext 1")
    invalid("extension_as_payload", publish(NIL, topic, b"\xd5\x05hi"), note="fixext 2")
    invalid("timestamp_in_header", publish(NIL, topic, hi, mapping((text("at"), b"\xd6\xff\x00\x00\x00\x01"))),
            note="msgpack's timestamp is an extension, too")
    invalid("extension_with_length", frame(fixint(11), b"\xc7\x03\x05abc"), note="ext 8")
    # Fields of the wrong kind
    invalid("publish_without_payload", publish(NIL, topic))
    invalid("publish_payload_nil", publish(NIL, topic, NIL), note="the payload has no default")
    invalid("publish_payload_str", publish(NIL, topic, text("hi")), note="a payload is bin")
    invalid("publish_topic_nil", publish(NIL, NIL, hi))
    invalid("publish_topic_integer", publish(NIL, fixint(5), hi))
    invalid("publish_topic_invalid_utf8", publish(NIL, text(b"raw.\xff"), hi), note="such a topic must be bin")
    invalid("publish_topic_surrogate", publish(NIL, text(b"\xed\xa0\x80"), hi), note="U+D800 is not UTF-8")
    invalid("publish_topic_overlong", publish(NIL, text(b"\xc0\xaf"), hi), note="an overlong form of a slash")
    invalid("publish_request_negative", publish(fixint(-1), topic, hi))
    invalid("publish_request_too_large", publish(uint64(2**32), topic, hi))
    invalid("publish_request_str", publish(text("7"), topic, hi))
    invalid("publish_request_bool", publish(TRUE, topic, hi))
    invalid("publish_request_float", publish(float64(7.0), topic, hi))
    invalid("publish_headers_array", publish(NIL, topic, hi, array(text("a"))))
    invalid("publish_headers_str", publish(NIL, topic, hi, text("a")))
    invalid("publish_header_key_integer", publish(NIL, topic, hi, mapping((fixint(1), fixint(1)))))
    invalid("publish_header_key_bin", publish(NIL, topic, hi, mapping((octets(b"k"), fixint(1)))))
    invalid("publish_header_key_invalid_utf8", publish(NIL, topic, hi, mapping((text(b"\xff"), fixint(1)))))
    invalid("publish_header_key_too_long", publish(NIL, topic, hi, mapping((text("k" * 256), fixint(1)))))
    invalid("publish_header_value_map", publish(NIL, topic, hi, mapping((text("k"), b"\x80"))))
    invalid("publish_header_value_nested_array", publish(NIL, topic, hi, mapping((text("k"), array(array())))))
    invalid("publish_header_value_invalid_utf8", publish(NIL, topic, hi, mapping((text("k"), text(b"\xff")))))
    for name, bad in (
        ("str", text("q1.0")),
        ("empty", array()),
        ("of_two", array(text("p"), fixint(1))),
        ("of_four", array(text("p"), fixint(1), fixint(1), NIL)),
        ("producer_empty", array(text(""), fixint(1), fixint(1))),
        ("producer_256_bytes", array(text("p" * 256), fixint(1), fixint(1))),
        ("producer_bin", array(octets(b"p"), fixint(1), fixint(1))),
        ("producer_not_utf8", array(text(b"\xff"), fixint(1), fixint(1))),
        ("batch_negative", array(text("p"), fixint(-1), fixint(1))),
        ("batch_nil", array(text("p"), NIL, fixint(1))),
        ("sequence_float", array(text("p"), fixint(1), float64(1.0))),
        ("map", options(producer=text("p"))),
    ):
        invalid(f"publish_mark_{name}", publish(fixint(5), topic, hi, NIL, NIL, NIL, bad), request=5)
    invalid("publish_header_reserved_key", publish(NIL, topic, hi, mapping((text("$seq"), fixint(1)))),
            note="section 8: keys that begin with $")
    invalid("publish_syntax_str", publish(NIL, topic, hi, NIL, text("mqtt")))
    invalid("publish_reply_integer", publish(NIL, topic, hi, NIL, NIL, fixint(1)))
    invalid("subscribe_without_filter", frame(fixint(6), fixint(1), fixint(7)))
    invalid("subscribe_filter_nil", frame(fixint(6), fixint(1), fixint(7), NIL))
    invalid("subscribe_subscription_nil", frame(fixint(6), fixint(1), NIL, text("a")))
    invalid("subscribe_subscription_too_large", frame(fixint(6), fixint(1), uint64(2**32), text("a")))
    invalid("subscribe_options_array", frame(fixint(6), fixint(1), fixint(7), text("a"), array()))
    invalid("subscribe_option_key_integer", frame(fixint(6), fixint(1), fixint(7), text("a"),
                                                  mapping((fixint(1), fixint(1)))))
    invalid("subscribe_group_integer", frame(fixint(6), fixint(1), fixint(7), text("a"), options(group=fixint(1))))
    invalid("subscribe_no_echo_str", frame(fixint(6), fixint(1), fixint(7), text("a"), options(no_echo=text("yes"))))
    invalid("subscribe_credit_negative", frame(fixint(6), fixint(1), fixint(7), text("a"), options(credit=fixint(-1))))
    invalid("unsubscribe_without_subscription", frame(fixint(8), fixint(1)))
    invalid("unsubscribe_after_str", frame(fixint(8), fixint(1), fixint(7), text("5")))
    invalid("credit_without_messages", frame(fixint(10), fixint(7)))
    invalid("credit_negative", frame(fixint(10), fixint(7), fixint(-5)))
    invalid("ping_token_str", frame(fixint(11), text("x")))
    invalid("ping_token_too_large", frame(fixint(11), uint64(2**32)))
    invalid("goodbye_without_reason", frame(fixint(14)))
    # Frames that are not a client's, or not now
    invalid("second_hello", frame(fixint(1), fixint(1), b"\x80"))
    invalid("welcome_from_client", frame(fixint(2), fixint(1), b"\x80"), note="a frame that only brokers send")
    invalid("message_from_client", frame(fixint(4), uint32(7), topic, hi), note="a frame that only brokers send")
    invalid("ok_from_client", frame(fixint(7), fixint(1)), note="a frame that only brokers send")
    # Well-formed, and refused
    invalid("publish_mqtt_empty_topic", publish(fixint(5), text(""), hi, NIL, fixint(1)), "invalid_topic", False,
            request=5)
    invalid("publish_mqtt_empty_topic_without_request", publish(NIL, text(""), hi, NIL, fixint(1)), "invalid_topic",
            False, request=None)
    invalid("publish_unknown_syntax", publish(fixint(5), topic, hi, NIL, fixint(2)), "unsupported", False, request=5)
    invalid("publish_sys", publish(fixint(5), text("$SYS.load"), hi), "not_permitted", False, request=5)
    invalid("publish_sys_mqtt", publish(fixint(5), text("$SYS/load"), hi, NIL, fixint(1)), "not_permitted", False,
            request=5)
    invalid("subscribe_mqtt_hash_inside", frame(fixint(6), fixint(5), fixint(7), text("a/#/b"), options(syntax=fixint(1))),
            "invalid_filter", False, request=5)
    invalid("subscribe_mqtt_plus_in_word", frame(fixint(6), fixint(5), fixint(7), text("a+/b"), options(syntax=fixint(1))),
            "invalid_filter", False, request=5)
    invalid("subscribe_mqtt_empty", frame(fixint(6), fixint(5), fixint(7), text(""), options(syntax=fixint(1))),
            "invalid_filter", False, request=5)
    invalid("subscribe_unknown_syntax", frame(fixint(6), fixint(5), fixint(7), text("a"), options(syntax=fixint(9))),
            "unsupported", False, request=5)
    invalid("subscribe_consumer_without_ack",
            frame(fixint(6), fixint(5), fixint(7), text("a"), options(consumer=text("c"))),
            "unsupported", False, "deliveries of a queue are acknowledged", request=5)
    invalid("subscribe_ack_without_consumer", frame(fixint(6), fixint(5), fixint(7), text("a"), options(ack=TRUE)),
            "unsupported", False, request=5)
    invalid("subscribe_consumer_with_credit",
            frame(fixint(6), fixint(5), fixint(7), text("a"), options(consumer=text("c"), ack=TRUE, credit=fixint(1))),
            "unsupported", False, request=5)
    invalid("subscribe_consumer_empty",
            frame(fixint(6), fixint(5), fixint(7), text("a"), options(consumer=text(""), ack=TRUE)))
    for number, name in ((ACK, "ack"), (NACK, "nack"), (TERM, "term"), (IN_PROGRESS, "in_progress")):
        invalid(f"{name}_unknown_subscription", frame(fixint(number), fixint(99), fixint(1)), "no_such_subscription",
                False, request=None)
    invalid("ack_without_sequence", frame(fixint(33), fixint(7)))
    invalid("nack_delay_negative", frame(fixint(34), fixint(7), fixint(1), b"\xff"))
    invalid("delivery_from_client", frame(fixint(32), fixint(7), fixint(1), fixint(1), text("a"), octets(b"")))
    invalid("unsubscribe_unknown", frame(fixint(8), fixint(5), fixint(99)), "no_such_subscription", False, request=5)
    invalid("credit_unknown_subscription", frame(fixint(10), fixint(99), fixint(5)), "no_such_subscription", False,
            request=None)


FIRST_FRAMES: list[dict[str, Any]] = []
FROM_BROKER: list[dict[str, Any]] = []


def first_frames() -> None:
    def first(name: str, data: bytes, code: str, note: str = "") -> None:
        FIRST_FRAMES.append({"name": name, "bytes": data.hex(), "code": code, "closes": True, "note": note})

    first("publish_before_hello", frame(fixint(3), NIL, text("a"), octets(b"")), "protocol_error")
    first("subscribe_before_hello", frame(fixint(6), fixint(1), fixint(1), text("a")), "protocol_error")
    first("hello_version_zero", frame(fixint(1), fixint(0), b"\x80"), "unsupported_version", "there is no version 0")
    first("hello_version_str", frame(fixint(1), text("1"), b"\x80"), "protocol_error")
    first("hello_options_array", frame(fixint(1), fixint(1), array()), "protocol_error")
    first("hello_client_integer", frame(fixint(1), fixint(1), options(client=fixint(5))), "protocol_error")
    first("hello_too_large", struct.pack(">I", 4097), "frame_too_large", "the limit before the handshake is 4,096 bytes")
    first("http_request", b"GET / HTTP/1.1\r\n\r\n", "frame_too_large")


def from_broker() -> None:
    def wrong(name: str, data: bytes, note: str = "") -> None:
        FROM_BROKER.append({"name": name, "bytes": data.hex(), "note": note})

    topic, hi = text("forex.eur"), octets(b"hi")
    wrong("zero_length", framed(b""))
    wrong("leftover_bytes", framed(b"\x92\x07\x01\xc0"))
    wrong("truncated_array", framed(b"\x93\x05\x01"))
    wrong("type_in_two_bytes", framed(b"\x91\xcc\x0b"))
    wrong("nested_nine_levels", frame(fixint(7), fixint(1), NIL, nested(8)))
    wrong("nested_two_thousand_levels", framed(b"\x93\x07\x01" + nested(2000)))
    wrong("extension", frame(fixint(12), NIL, b"\xd4\x05\x00"))
    wrong("message_without_payload", frame(fixint(4), uint32(7), topic))
    wrong("message_subscription_nil", frame(fixint(4), NIL, topic, hi))
    wrong("message_topic_integer", frame(fixint(4), uint32(7), fixint(1), hi))
    wrong("message_payload_str", frame(fixint(4), uint32(7), topic, text("hi")))
    wrong("message_header_key_integer", frame(fixint(4), uint32(7), topic, hi, mapping((fixint(1), NIL))))
    wrong("message_header_value_map", frame(fixint(4), uint32(7), topic, hi, mapping((text("k"), b"\x80"))))
    wrong("message_syntax_unknown", frame(fixint(4), uint32(7), topic, hi, NIL, fixint(2)),
          "a client cannot guess how such a topic is spelled")
    wrong("message_reply_integer", frame(fixint(4), uint32(7), topic, hi, NIL, NIL, fixint(2)))
    wrong("receipt_without_routed", frame(fixint(5), fixint(7)))
    wrong("receipt_negative", frame(fixint(5), fixint(7), fixint(-1)))
    wrong("ok_result_array", frame(fixint(7), fixint(1), array()))
    wrong("ended_without_reason", frame(fixint(9), fixint(7)))
    wrong("error_code_integer", frame(fixint(13), NIL, fixint(5), text("x")))
    wrong("goodbye_without_reason", frame(fixint(14)))
    wrong("held_nil", frame(fixint(15), NIL))
    wrong("held_seconds_str", frame(fixint(15), FALSE, text("2")))


# Sessions. Requests are numbered from 1 and subscriptions from 1, in the order of the calls.

SESSIONS: list[dict[str, Any]] = []
HANDSHAKE = (
    ("client", "HELLO", frame(fixint(1), fixint(1), options(client=text("desk-7"))), False,
     {"version": 1}),
    ("broker", "WELCOME",
     frame(fixint(2), fixint(1), options(server=text("fanlight/0.1.0"), connection=num(1), client=text("desk-7"),
                                         inbox=text("$inbox.0a"), slow_policy=text("pause"), idle_seconds=num(60),
                                         limits=options(frame_bytes=num(1048576)))),
     False, {"version": 1}),
)  # fmt: skip

# What the SDK asks before it leaves with messages of which it does not know whether they were read.
ALL_READ = (
    ("client", "PING", frame(fixint(11), fixint(2)), True, {}),
    ("broker", "PONG", frame(fixint(12), fixint(2)), True, {}),
)


def session(name: str, note: str, *steps: tuple[str, str, bytes, bool, dict[str, Any]]) -> None:
    SESSIONS.append(
        {
            "name": name,
            "note": note,
            "steps": [
                {"from": who, "type_name": kind, "bytes": data.hex(), "exact": exact, "fields": fields}
                for who, kind, data, exact, fields in (*HANDSHAKE, *steps)
            ],
        }
    )


def sessions() -> None:
    topic, hi = text("forex.eur"), octets(b"hi")
    subscribe = frame(fixint(6), fixint(1), fixint(1), text("forex.*"))
    message = frame(fixint(4), uint32(1), topic, hi)
    session(
        "publish_subscribe",
        "subscribe, publish, get it back, unsubscribe, leave",
        ("client", "SUBSCRIBE", subscribe, True, {}),
        ("broker", "OK", frame(fixint(7), fixint(1)), False, {"request": 1}),
        ("client", "PUBLISH", frame(fixint(3), NIL, topic, hi), True, {}),
        ("broker", "MESSAGE", message, False, {"subscription": 1, "topic": "forex.eur", "payload": hexed(b"hi")}),
        ("client", "UNSUBSCRIBE", frame(fixint(8), fixint(2), fixint(1)), True, {}),
        ("broker", "OK", frame(fixint(7), fixint(2), options(delivered=fixint(1), dropped=fixint(0))), False,
         {"request": 2, "result": {"delivered": 1, "dropped": 0}}),
        ("client", "GOODBYE", frame(fixint(14), text("normal")), True, {}),
    )  # fmt: skip
    session(
        "receipts",
        "nobody; then one subscription",
        ("client", "PUBLISH", frame(fixint(3), fixint(1), topic, hi), True, {}),
        ("broker", "RECEIPT", frame(fixint(5), fixint(1), fixint(0)), False, {"request": 1, "routed": 0}),
        ("client", "SUBSCRIBE", frame(fixint(6), fixint(2), fixint(1), text("forex.*")), True, {}),
        ("broker", "OK", frame(fixint(7), fixint(2)), False, {"request": 2}),
        ("client", "PUBLISH", frame(fixint(3), fixint(3), topic, hi), True, {}),
        ("broker", "MESSAGE", message, False, {"subscription": 1, "topic": "forex.eur", "payload": hexed(b"hi")}),
        ("broker", "RECEIPT", frame(fixint(5), fixint(3), fixint(1)), False, {"request": 3, "routed": 1}),
        ("client", "GOODBYE", frame(fixint(14), text("normal")), True, {}),
    )
    session(
        "ends_after_two",
        "a subscription that ends by itself says so behind its last message",
        ("client", "SUBSCRIBE", frame(fixint(6), fixint(1), fixint(1), text("forex.*"), options(after=fixint(2))),
         True, {}),
        ("broker", "OK", frame(fixint(7), fixint(1)), False, {"request": 1}),
        ("client", "PUBLISH", frame(fixint(3), NIL, topic, hi), True, {}),
        ("client", "PUBLISH", frame(fixint(3), NIL, topic, hi), True, {}),
        ("client", "PUBLISH", frame(fixint(3), NIL, topic, hi), True, {}),
        ("broker", "MESSAGE", message, False, {"subscription": 1, "topic": "forex.eur", "payload": hexed(b"hi")}),
        ("broker", "MESSAGE", message, False, {"subscription": 1, "topic": "forex.eur", "payload": hexed(b"hi")}),
        ("broker", "ENDED", frame(fixint(9), fixint(1), text("after"), fixint(2), fixint(0)), False,
         {"subscription": 1, "reason": "after", "delivered": 2, "dropped": 0}),
        *ALL_READ,
        ("client", "GOODBYE", frame(fixint(14), text("normal")), True, {}),
    )  # fmt: skip
    session(
        "across_spellings",
        "a message spelled with slashes reaches a dotted filter, and keeps its spelling",
        ("client", "SUBSCRIBE", frame(fixint(6), fixint(1), fixint(1), text("site.*.temp")), True, {}),
        ("broker", "OK", frame(fixint(7), fixint(1)), False, {"request": 1}),
        ("client", "PUBLISH", frame(fixint(3), NIL, text("site/7/temp"), hi, NIL, fixint(1), NIL), False,
         {"topic": "site/7/temp", "syntax": 1}),
        ("broker", "MESSAGE", frame(fixint(4), uint32(1), text("site/7/temp"), hi, NIL, fixint(1), NIL), False,
         {"subscription": 1, "topic": "site/7/temp", "syntax": 1, "reply": None}),
        *ALL_READ,
        ("client", "GOODBYE", frame(fixint(14), text("normal")), True, {}),
    )  # fmt: skip
    session(
        "a_refusal_does_not_close",
        "a filter that is wrong, then one that is right",
        ("client", "SUBSCRIBE", frame(fixint(6), fixint(1), fixint(1), text("a/#/b"), options(syntax=fixint(1))),
         True, {}),
        ("broker", "ERROR", frame(fixint(13), fixint(1), text("invalid_filter"), text("# stands last only")), False,
         {"request": 1, "code": "invalid_filter"}),
        ("client", "PING", frame(fixint(11), fixint(2)), True, {}),
        ("broker", "PONG", frame(fixint(12), fixint(2)), True, {}),
        ("client", "GOODBYE", frame(fixint(14), text("normal")), True, {}),
    )  # fmt: skip


def vectors() -> str:
    """The file's text."""
    for part in (FRAMES, INVALID, FIRST_FRAMES, FROM_BROKER, SESSIONS):
        part.clear()
    well_formed()
    malformed()
    first_frames()
    from_broker()
    sessions()
    parts: dict[str, list[dict[str, Any]]] = {
        "frames": FRAMES,
        "invalid": INVALID,
        "invalid_first_frames": FIRST_FRAMES,
        "invalid_from_broker": FROM_BROKER,
        "sessions": SESSIONS,
    }
    for name, part in parts.items():
        names = [each["name"] for each in part]
        assert len(set(names)) == len(names), f"a name occurs twice in {name}"
    document = {"about": ABOUT, "protocol_version": 1, **parts}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    written = vectors()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() != written:
            print(f"{TARGET} is not what make_vectors.py makes; run it", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(written)
    print(f"{TARGET}: {len(FRAMES)} frames, {len(INVALID)} invalid, {len(SESSIONS)} sessions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
