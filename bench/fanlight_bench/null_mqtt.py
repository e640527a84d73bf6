"""What the null broker answers in MQTT, to anything but a PUBLISH: sections 3.1, 3.8, 3.12 of MQTT 5 and 3.1.1."""

CONNECT, SUBSCRIBE, PINGREQ, DISCONNECT = 1, 8, 12, 14
FIVE = 5  # the protocol version in CONNECT


def is_five(packet: bytes) -> bool:
    """Whether this is a CONNECT of MQTT 5: its version stands behind the six octets of the protocol's name."""
    return packet[0] >> 4 == CONNECT and _body(packet)[6] == FIVE


def answer(packet: bytes, five: bool) -> tuple[bytes, list[tuple[str, str]]]:
    """The answer, and (filter, syntax) of new subscriptions. Raises ValueError for a packet that is not known here."""
    kind, body = packet[0] >> 4, _body(packet)
    if kind == CONNECT:
        return (b"\x20\x03\0\0\0" if five else b"\x20\x02\0\0"), []
    if kind == PINGREQ:
        return b"\xd0\0", []
    if kind == DISCONNECT:
        return b"", []
    if kind != SUBSCRIBE:
        raise ValueError(f"packet type {kind}: the null broker is not a broker")
    at = 2
    if five:
        if body[at]:
            raise ValueError("a SUBSCRIBE with properties")
        at += 1
    filters = []
    while at < len(body):
        end = at + 2 + int.from_bytes(body[at : at + 2])
        filters.append((body[at + 2 : end].decode(), "mqtt"))
        at = end + 1
    granted = body[:2] + (b"\0" if five else b"") + bytes(len(filters))
    return b"\x90" + _length(len(granted)) + granted, filters


def _body(packet: bytes) -> bytes:
    at = 1
    while packet[at] & 128:
        at += 1
    return packet[at + 1 :]


def _length(size: int) -> bytes:
    made = bytearray()
    while size > 127:
        made.append(size & 127 | 128)
        size >>= 7
    return bytes([*made, size])
