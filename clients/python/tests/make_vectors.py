"""Writes docs/native-protocol-vectors.json from the specification, with nothing but struct and bytes.

On purpose without the SDK's codec and without a msgpack library: the broker, the SDK and these files are three
readings of docs/native-protocol.md, and a mistake has to be made in all three to go unnoticed.

    cd clients/python; python -m tests.make_vectors            writes the file
    cd clients/python; python -m tests.make_vectors --check    exits 1 if it is not what would be written

frame_bytes.py has the bytes of msgpack, well_formed.py and malformed.py the frames.
"""

import json
import sys
from pathlib import Path
from typing import Any

from .frame_bytes import (
    NIL,
    fixint,
    frame,
    hexed,
    num,
    octets,
    options,
    text,
    uint32,
)
from .malformed import FIRST_FRAMES, FROM_BROKER, INVALID, first_frames, from_broker, malformed
from .well_formed import FRAMES, well_formed

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
