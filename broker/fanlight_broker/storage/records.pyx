# cython: language_level=3
"""The records of the log: encoding and decoding of those that are many. The others are msgpack: see store.py.

Numbers are little-endian. A message is stored as its format wrote it, with the name of the format's family.
"""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.allocator cimport reallocate
from fanlight_broker.wire.message cimport Message

cdef enum:
    FIRST_OCTETS = 4096
    FAMILY_MOST = 255
    WITHIN_NOTHING = 0xFFFFFFFF    # in place of where the payload is among the fields: it stands behind them
    NO_TEXT_SIZE = 0xFFFF
    QOS = 3
    RETAIN = 4

TYPES = (
    "", "MESSAGE", "MOVES", "ENDED", "SLOT", "SLOT_SET", "RETAINED", "CLEARED", "SESSION", "SESSION_ENDED",
    "SUBSCRIBED", "UNSUBSCRIBED", "RECEIVED", "RELEASED", "GROUP", "GROUP_ENDED", "MARK",
)
globals().update({name: number for number, name in enumerate(TYPES) if name})
globals().update({"ASSIGNED": 0, "GIVEN_UP": 1, "RETURNED": 2})
NO_TEXT = NO_TEXT_SIZE

cdef packed struct Head:
    uint64_t number
    uint64_t expires      # ms since 1970; 0: never
    uint32_t payload_size, fields_size, payload_at, format_data
    int32_t expiry_hole
    uint16_t topic_size
    unsigned char flags, syntax, family_size, slots


class BadRecord(ValueError):
    """A record whose checksum is right has no meaning: it was written by another version, or by a fault."""


class MessageHead(NamedTuple):
    """What a MESSAGE record says besides the message."""

    number: int
    slots: tuple
    slot_set: int    # 0: the slots are inline
    end: int         # of the message; what stands behind it is of another record


cdef int make_room(Growing* octets, Py_ssize_t more) except -1:
    cdef Py_ssize_t capacity
    cdef char* data
    if octets.size + more > octets.capacity:
        capacity = max(octets.size + more, max(2 * octets.capacity, <Py_ssize_t> FIRST_OCTETS))
        data = <char*> reallocate(octets.data, capacity)
        if data is NULL:
            raise MemoryError()
        octets.data = data
        octets.capacity = capacity
    return 0


cdef Py_ssize_t message_size(Message message, Py_ssize_t slots) except -1:
    """Bytes of a record with so many inline slots, or with one set."""
    cdef Py_ssize_t at = message.payload_at - message.fields_at
    cdef Py_ssize_t size = sizeof(Head) + len(family_of(message)) + message.topic_size + message.fields_size
    if not 0 <= at <= message.fields_size - message.payload_size:
        size += message.payload_size
    return size + slots * sizeof(uint32_t)


cdef bytes family_of(Message message):
    cdef bytes family = (<str?> message.format.family).encode()
    if PyBytes_GET_SIZE(family) > FAMILY_MOST:
        raise ValueError(f"a family of formats with {PyBytes_GET_SIZE(family)} bytes")
    return family


cdef char* write_message(char* at, Message message, uint64_t number, double wall, const uint32_t* slots,
                         Py_ssize_t count, bint as_set) except NULL:
    """Write a record of `message_size`. wall: seconds of wall-clock time minus `now`. Returns its end."""
    cdef Head head
    cdef bytes family = family_of(message)
    cdef Py_ssize_t within = message.payload_at - message.fields_at
    head.number = number
    head.expires = 0
    if message.expires_at < INFINITY:
        head.expires = <uint64_t> max(1.0, (message.expires_at + wall) * 1000)
    head.payload_size, head.fields_size = <uint32_t> message.payload_size, <uint32_t> message.fields_size
    head.payload_at = WITHIN_NOTHING
    if 0 <= within <= message.fields_size - message.payload_size:
        head.payload_at = <uint32_t> within
    head.format_data, head.expiry_hole = message.format_data, <int32_t> message.expiry_hole
    head.topic_size = <uint16_t> message.topic_size
    head.flags = message.qos | (RETAIN if message.retain else 0)
    head.syntax, head.family_size = message.syntax, <unsigned char> PyBytes_GET_SIZE(family)
    head.slots = IN_A_SET if as_set else <unsigned char> count
    memcpy(at, &head, sizeof(Head))
    at += sizeof(Head)
    if count:
        memcpy(at, slots, count * sizeof(uint32_t))
        at += count * sizeof(uint32_t)
    memcpy(at, PyBytes_AS_STRING(family), head.family_size)
    at += head.family_size
    memcpy(at, message.topic_at, message.topic_size)
    at += message.topic_size
    memcpy(at, message.fields_at, message.fields_size)
    at += message.fields_size
    if head.payload_at == WITHIN_NOTHING:
        memcpy(at, message.payload_at, message.payload_size)
        at += message.payload_size
    return at


cdef Py_ssize_t slot_count(Head* head) noexcept:
    return 1 if head.slots == IN_A_SET else head.slots


cdef Py_ssize_t read_into(Head* head, bytes body) except -1:
    """Raises BadRecord. Returns the end of the message."""
    cdef Py_ssize_t end = sizeof(Head)
    if PyBytes_GET_SIZE(body) >= end:
        memcpy(head, PyBytes_AS_STRING(body), sizeof(Head))
        end += slot_count(head) * <Py_ssize_t> sizeof(uint32_t) + head.family_size + head.topic_size + head.fields_size
        if head.payload_at == WITHIN_NOTHING:
            end += head.payload_size
        elif <uint64_t> head.payload_at + head.payload_size > head.fields_size:
            raise BadRecord("a payload behind the fields that it is said to be among")
        if head.slots <= SLOTS_INLINE or head.slots == IN_A_SET:
            if PyBytes_GET_SIZE(body) >= end:
                return end
    raise BadRecord(f"a message that does not end within the {PyBytes_GET_SIZE(body)} bytes of its record")


def read_head(bytes body not None):
    """What a MESSAGE record says besides the message. Raises BadRecord."""
    cdef Head head
    cdef Py_ssize_t end = read_into(&head, body), i
    cdef const uint32_t* slots = <const uint32_t*> (PyBytes_AS_STRING(body) + sizeof(Head))
    cdef uint32_t slot
    found = []
    for i in range(slot_count(&head)):
        memcpy(&slot, slots + i, sizeof(uint32_t))
        found.append(slot)
    if head.slots == IN_A_SET:
        return MessageHead(head.number, (), found[0], end)
    return MessageHead(head.number, tuple(found), 0, end)


def topic_of(bytes body not None):
    """(number of the syntax, topic) of a message. Raises BadRecord."""
    cdef Head head
    read_into(&head, body)
    cdef Py_ssize_t at = sizeof(Head) + slot_count(&head) * sizeof(uint32_t) + head.family_size
    return head.syntax, body[at:at + head.topic_size]


def read_message(bytes body not None, formats, double wall):
    """The message of a record, of the format of its family. Raises BadRecord.

    wall: seconds of wall-clock time minus `now`
    """
    cdef Head head
    read_into(&head, body)
    cdef Py_ssize_t at = sizeof(Head) + slot_count(&head) * sizeof(uint32_t)
    cdef bytes family = body[at:at + head.family_size]
    at += head.family_size
    format = formats.get(family.decode("utf-8", "replace"))
    if format is None:
        raise BadRecord(f"a message of {family.decode('utf-8', 'replace')!r}, which this broker does not speak")
    if (head.flags & QOS) > 2 or not -1 <= head.expiry_hole <= <Py_ssize_t> head.fields_size - 4 + \
            (4 if head.expiry_hole == -1 else 0):
        raise BadRecord("a message with impossible flags")
    cdef bytes topic = body[at:at + head.topic_size]
    at += head.topic_size
    cdef bytes fields = body[at:at + head.fields_size]
    at += head.fields_size
    cdef bytes payload
    if head.payload_at == WITHIN_NOTHING:
        payload = body[at:at + head.payload_size]
    else:
        payload = fields[head.payload_at:head.payload_at + head.payload_size]
    cdef Message message = Message(
        format, topic, head.syntax, payload, fields=fields, qos=head.flags & QOS, retain=head.flags & RETAIN != 0,
        expires_at=INFINITY if head.expires == 0 else head.expires / 1000.0 - wall, expiry_hole=head.expiry_hole,
        format_data=head.format_data,
    )
    if head.payload_at != WITHIN_NOTHING:
        message.payload_octets = None    # as it was: it is among the fields
        message.payload_at = message.fields_at + head.payload_at
    return message


def message_record(Message message not None, uint64_t number, double wall):
    """A MESSAGE record without slots."""
    cdef bytes body = PyBytes_FromStringAndSize(NULL, message_size(message, 0))
    write_message(PyBytes_AS_STRING(body), message, number, wall, NULL, 0, False)
    return body


cdef bytes text(words):
    cdef bytes octets
    if words is None:
        return b"\xff\xff"
    octets = words.encode("utf-8", "surrogateescape")
    if len(octets) >= NO_TEXT_SIZE:
        raise ValueError(f"a name of {len(octets)} bytes")
    return len(octets).to_bytes(2, "little") + octets


def retained_record(Message message not None, double wall, origin, principal):
    """A RETAINED record: a MESSAGE without slots, the session that published it, and the principal that pays."""
    return message_record(message, 0, wall) + text(origin) + text(principal)


def read_retained(bytes body not None, formats, double wall):
    """(message, name of the session that published it or None, principal or None). Raises BadRecord."""
    cdef Head head
    cdef Py_ssize_t at = read_into(&head, body), size
    found = []
    for _ in range(2):
        if at + 2 > PyBytes_GET_SIZE(body):
            raise BadRecord("a retained message without its publisher")
        size = int.from_bytes(body[at:at + 2], "little")
        at += 2
        if size == NO_TEXT_SIZE:
            found.append(None)
            continue
        if at + size > PyBytes_GET_SIZE(body):
            raise BadRecord("a retained message without its publisher")
        found.append(body[at:at + size].decode("utf-8", "surrogateescape"))
        at += size
    return read_message(body, formats, wall), found[0], found[1]


cdef uint64_t get_varint(bytes body, Py_ssize_t* at) except? 0xFFFFFFFFFFFFFFFF:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef unsigned char octet
    cdef const unsigned char* octets = <const unsigned char*> PyBytes_AS_STRING(body)
    while at[0] < PyBytes_GET_SIZE(body) and shift < 64:
        octet = octets[at[0]]
        at[0] += 1
        value |= <uint64_t> (octet & 0x7F) << shift
        if not octet & 0x80:
            return value
        shift += 7
    raise BadRecord("a number that does not end within its record")


cdef uint64_t unzigzag(uint64_t value, uint64_t before) noexcept:
    return before - (value >> 1) if value & 1 else before + (value >> 1)


def read_moves(bytes body not None):
    """(kind, queue, number, slot, tag) of each; slot and tag are 0 unless it is ASSIGNED. Raises BadRecord."""
    cdef Py_ssize_t at = 0
    cdef uint64_t head, number = 0, slot, tag
    found = []
    while at < PyBytes_GET_SIZE(body):
        head = get_varint(body, &at)
        number = unzigzag(get_varint(body, &at), number)
        slot = tag = 0
        if head & 3 == ASSIGNED:
            slot = get_varint(body, &at)
            tag = get_varint(body, &at)
        elif head & 3 > RETURNED:
            raise BadRecord("a move of unknown kind")
        found.append((head & 3, head >> 2, number, slot, tag))
    return found


def read_ended(bytes body not None):
    """(queue, first, last) of each run of numbers. Raises BadRecord."""
    cdef Py_ssize_t at = 0
    cdef uint64_t head, queue = 0, number = 0, more
    found = []
    while at < PyBytes_GET_SIZE(body):
        head = get_varint(body, &at)
        if head & 1:
            queue = head >> 1
            continue
        number = unzigzag(head >> 2, number)
        more = get_varint(body, &at) if head & 2 else 0
        found.append((queue, number, number + more))
        number += more
    return found
