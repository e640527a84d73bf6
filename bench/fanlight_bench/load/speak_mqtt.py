"""MQTT 3.1.1 and 5, said; sections of the MQTT 5 specification."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fanlight_bench.load.mqtt import MQTT_3, MQTT_5
from fanlight_bench.load.protocol import GRANTED, REFUSAL, WELCOME
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import FrameTemplate, Publish, Refused, Speaker
from fanlight_bench.load.spelling import ZEROS
from fanlight_bench.load.target import Target

PIECE_SUBSCRIPTIONS = 100  # of one SUBSCRIBE
KEEP_ALIVE_SECONDS = 0     # the generator sends no PINGREQ
FAILURE = 0x80
RECEIVE_MAXIMUM = 0x21
TOPIC_ALIAS_MAXIMUM = 0x22
TOPIC_ALIAS = 0x23
SUBSCRIBER_ALIASES = 1_000
# Sizes of the values of CONNACK's properties (3.2.2.3); 0: a string, which says its size.
CONNACK_PROPERTIES = {
    0x11: 4, 0x12: 0, 0x13: 2, 0x15: 0, 0x16: 0, 0x1A: 0, 0x1C: 0, 0x1F: 0, 0x21: 2, 0x22: 2, 0x24: 1, 0x25: 1, 0x27: 4,
    0x26: 0, 0x28: 1, 0x29: 1, 0x2A: 1,
}  # fmt: skip


class MqttSpeaker(Speaker):
    def __init__(self, target: Target, scenario: Scenario) -> None:
        self._five = target.protocol == "mqtt5"
        super().__init__(MQTT_5 if self._five else MQTT_3, target, scenario)
        self._identifier = 0
        if scenario.aliases:
            self.subscriber_aliases = SUBSCRIBER_ALIASES

    def hello(self, client: str) -> bytes:
        flags = 0x02 | (0x80 if self.target.user else 0) | (0x40 if self.target.password else 0)
        variable = string("MQTT") + bytes([5 if self._five else 4, flags]) + struct.pack(">H", KEEP_ALIVE_SECONDS)
        if self._five:
            properties = b""
            if self.subscriber_aliases:
                properties = struct.pack(">BH", TOPIC_ALIAS_MAXIMUM, self.subscriber_aliases)
            variable += length(len(properties)) + properties
        credentials = (self.target.user_of(client), self.target.password)
        return packet(0x10, variable + b"".join(string(said) for said in (client, *credentials) if said))

    def subscribe(self, filters: Iterable[tuple[int, str]]) -> Iterator[tuple[bytes, int]]:
        piece = bytearray()
        count = 0
        for _, pattern in filters:
            piece += string(pattern) + bytes([self.scenario.qos])
            count += 1
            if count == PIECE_SUBSCRIPTIONS:
                yield self._subscribe(bytes(piece)), 1
                piece.clear()
                count = 0
        if count:
            yield self._subscribe(bytes(piece)), 1

    def subscribe_where(self, filters: Iterable[tuple[int, str, str]]) -> Iterator[tuple[bytes, int]]:
        for _, pattern, where in filters:  # a User Property of SUBSCRIBE is one for all its filters (3.8.2.1.3)
            payload = string(pattern) + bytes([self.scenario.qos])
            yield self._subscribe(payload, pass_through({"user": {"where": where}})), 1

    def _subscribe(self, payload: bytes, properties: bytes = b"") -> bytes:
        self._identifier = self._identifier % 65_535 + 1
        said = length(len(properties)) + properties if self._five else b""
        return packet(0x82, struct.pack(">H", self._identifier) + said + payload)

    def is_answer(self, kind: int, frame: bytes) -> bool:
        if kind == REFUSAL:
            raise Refused(f"the broker answered {self.explain(frame)}")
        if kind == WELCOME:
            self._welcomed(body(frame))
        elif kind == GRANTED:
            codes = body(frame)[2:]
            if self._five:
                size, at = read_length(codes, 0)
                codes = codes[at + size :]
            if refused := [code for code in codes if code >= FAILURE]:
                raise Refused(f"{len(refused)} of {len(codes)} subscriptions refused, the first with {refused[0]:#04x}")
            if any(code < self.scenario.qos for code in codes):
                raise Refused(f"QoS {min(codes)} granted, and {self.scenario.qos} asked for")
        return kind in (WELCOME, GRANTED)

    def _welcomed(self, connack: bytes) -> None:
        if connack[1]:
            raise Refused(f"the broker answered CONNACK with {connack[1]:#04x}")
        if not self._five:
            return
        said = connack_properties(connack)
        inflight, aliases = said.get(RECEIVE_MAXIMUM, 65_535), said.get(TOPIC_ALIAS_MAXIMUM, 0)
        if self.scenario.qos and inflight < self.scenario.inflight:
            raise Refused(f"inflight is {self.scenario.inflight}; the broker's Receive Maximum is {inflight}")
        wanted = -(-self.scenario.topics // max(1, self.scenario.publishers)) if self.scenario.aliases else 0
        if aliases < wanted:
            raise Refused(f"{wanted} topic aliases are wanted; the broker's Topic Alias Maximum is {aliases}")

    def publish(self, topic: str, alias: int, index: int = 0) -> Publish:
        properties = pass_through(self.scenario.properties)
        properties += pass_through({"user": {name: str(value) for name, value in self.headers(index).items()}})
        octets = topic.encode()
        if self.scenario.aliases:
            with_alias = struct.pack(">BH", TOPIC_ALIAS, alias) + properties
            return Publish(
                octets, self._frame(octets, with_alias), self._frame(b"", with_alias), properties=properties
            )
        digits = octets.find(ZEROS.encode()) if "{n}" in self.scenario.topic else -1
        return Publish(octets, self._frame(octets, properties, digits), digits_at=digits, properties=properties)

    def _frame(self, topic: bytes, properties: bytes, digits: int = -1) -> FrameTemplate:
        variable = struct.pack(">H", len(topic)) + topic
        number_at = len(variable) if self.scenario.qos else 0
        variable += b"\0\0" if self.scenario.qos else b""
        variable += length(len(properties)) + properties if self._five else b""
        first = 0x30 | self.scenario.qos << 1 | self.scenario.retain
        made = packet(first, variable + bytes(self.scenario.payload_bytes))
        head = len(made) - len(variable) - self.scenario.payload_bytes
        return FrameTemplate(
            made,
            len(made) - self.scenario.payload_bytes,
            head + number_at if number_at else 0,
            head + 2 + digits if digits >= 0 else 0,
        )

    def explain(self, frame: bytes) -> str:
        names = {4: "PUBACK", 5: "PUBREC", 6: "PUBREL", 7: "PUBCOMP", 14: "DISCONNECT"}
        said = body(frame)
        kind = frame[0] >> 4
        code = said[0:1] if kind == 14 else said[2:3]
        return f"{names.get(kind, f'packet type {kind}')} with {code[0]:#04x}" if code else names.get(kind, repr(frame))

    def goodbye(self) -> bytes:
        return b"\xe0\0"


def string(text: str) -> bytes:
    """A UTF-8 string (1.5.4)."""
    octets = text.encode()
    return struct.pack(">H", len(octets)) + octets


def length(value: int) -> bytes:
    """A variable byte integer (1.5.5)."""
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def read_length(data: bytes, at: int) -> tuple[int, int]:
    """A variable byte integer, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def packet(first: int, rest: bytes) -> bytes:
    """A packet: its first octet, its length, and the rest."""
    return bytes([first]) + length(len(rest)) + rest


def body(frame: bytes) -> bytes:
    """A packet without its fixed header."""
    return frame[read_length(frame, 1)[1] :]


def pass_through(properties: Mapping[str, Any]) -> bytes:
    """The properties of a PUBLISH that a broker hands on unchanged (3.3.2.3)."""
    made = b""
    if "content_type" in properties:
        made += b"\x03" + string(properties["content_type"])
    if "response_topic" in properties:
        made += b"\x08" + string(properties["response_topic"])
    if "correlation_data" in properties:
        made += b"\x09" + string(properties["correlation_data"])
    for name, value in properties.get("user", {}).items():
        made += b"\x26" + string(name) + string(value)
    return made


def connack_properties(connack: bytes) -> dict[int, int]:
    """The properties of a CONNACK that are integers, by identifier. Raises Refused."""
    size, at = read_length(connack, 2)
    end = at + size
    found: dict[int, int] = {}
    while at < end:
        identifier = connack[at]
        if identifier not in CONNACK_PROPERTIES:
            raise Refused(f"a CONNACK with property {identifier:#04x}")
        value_bytes = CONNACK_PROPERTIES[identifier]
        if value_bytes:
            found[identifier] = int.from_bytes(connack[at + 1 : at + 1 + value_bytes])
        else:
            value_bytes = 2 + int.from_bytes(connack[at + 1 : at + 3])
            if identifier == 0x26:
                value_bytes += 2 + int.from_bytes(connack[at + 1 + value_bytes : at + 3 + value_bytes])
        at += 1 + value_bytes
    return found
