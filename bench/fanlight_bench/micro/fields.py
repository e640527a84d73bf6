"""The fields that selectors ask for, read out of a body of 20 fields: ns a message, as Python calls the reader.

    call            the reader with nobody asking: what the call takes that the others take besides
    msgpack, JSON   14 fields of the 20 are asked for, the last one among them; 238 bytes of msgpack
    ... one         one field is asked for, the first: the rest is not looked at
    ... library     msgpack.unpackb, json.loads

Beside the reader: the call alone, and the library.
"""

import json
from collections.abc import Callable, Iterator

import msgpack  # type: ignore[import-untyped]

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.protocols.mqtt.format import MQTT_5_0
from fanlight_broker.wire.message import Message
from matchcore.body_reader import BODY_FORMATS
from matchcore.fields import Attributes
from matchcore.selector import Attribute, Source

MESSAGES = 2_000
ASKED = 14
BODY = {
    "symbol": "IBM", "market": "NASDAQ", "open": 187.15, "high": 188.44, "low": 183.885, "close": 185.64,
    "volume": 82488700, "trades": 1009074, "vwap": 185.9465, "unit": "USD", "region": "us", "sector": "technology",
    "halted": False, "session": "open", "sequence": 4711, "bid": 185.63, "ask": 185.65, "lot": 100, "venue": 12,
    "urgent": True,
}  # fmt: skip


def reading(body: bytes, format: str, asked: int) -> Callable[[], int]:
    """A turn of a reader of the last `asked` names. RuntimeError: it did not find them."""
    names = list(BODY)[-asked:] if asked > 1 else list(BODY)[:asked]
    attributes = Attributes()
    for name in names:
        attributes.acquire(Attribute(Source.PAYLOAD, (name,)))
    reader, message, number = FieldReader(attributes), Message(MQTT_5_0, b"t", 1, body), BODY_FORMATS[format]

    def check() -> None:
        read = reader.read_fields
        for _ in range(MESSAGES):
            read(message, number)

    def turn() -> int:
        spent = timed(check)
        if list(reader.values().values()) != [BODY[name] for name in names]:
            raise RuntimeError(f"{len(reader.values())} fields found of {len(names)}")
        return spent

    return turn


def decoding(decode: Callable[[bytes], object], body: bytes) -> Callable[[], int]:
    """A turn of a library. RuntimeError: it does not decode the body as it is."""

    def check() -> None:
        for _ in range(MESSAGES):
            decode(body)

    def turn() -> int:
        if decode(body) != BODY:
            raise RuntimeError("another value was decoded")
        return timed(check)

    return turn


def groups(effort: Effort) -> Iterator[Group]:
    bodies = {"msgpack": msgpack.packb(BODY), "JSON": json.dumps(BODY, separators=(",", ":")).encode()}
    libraries = {"msgpack": msgpack.unpackb, "JSON": json.loads}
    cases = [Case("call", MESSAGES, reading(bodies["msgpack"], "msgpack", 0))]
    for name, body in bodies.items():
        beside = ("call", f"{name} library")
        cases += [
            Case(name, MESSAGES, reading(body, name.lower(), ASKED), beside),
            Case(f"{name} one", MESSAGES, reading(body, name.lower(), 1), beside),
            Case(f"{name} library", MESSAGES, decoding(libraries[name], body)),
        ]
    sizes = {f"{name} bytes": len(body) for name, body in bodies.items()}
    yield Group(f"{ASKED} of {len(BODY)} fields", cases, {**sizes, "asked": ASKED})
