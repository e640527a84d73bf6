# cython: language_level=3
"""Messages as records of the log: MESSAGE, and RETAINED, which begins as one. docs/store-format.md has the bytes.

A message is stored as its format wrote it, with the name of the format's family. Nearly all have a short head; the long
one is for those that expire, are large, or have a hole in their fields.
"""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from fanlight_broker.storage.records cimport CAME_OCTETS, IN_A_SET, SLOTS_INLINE
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.wire.message cimport OBJECTS, PAYLOAD_OBJECT, Format, Message

cdef enum:
    FAMILY_MOST = 255
    SHORT = 0xFF                   # the form of a ShortHead
    FORM_AT = 15                   # in either head
    SHORT_MOST = 0xFFFF            # what a number of a ShortHead has to be below
    WITHIN_NOTHING = 0xFFFFFFFF    # in place of where the payload is among the fields: it stands behind them
    NO_TEXT_SIZE = 0xFFFF
    QOS = 3
    RETAIN = 4
    CAME = 8

# ms since 1970, in 36 million years: what expires later is said to expire then, so the highest byte is never SHORT.
cdef double EXPIRES_MOST = 1 << 60

# Of formats, as they are written: one for each protocol. And the one that was asked for last.
cdef dict families = {}
cdef Format last_format = None
cdef bytes last_family = None

cdef packed struct Head:
    uint64_t number
    uint64_t expires      # ms since 1970; 0: never
    uint32_t payload_size, fields_size, payload_at, format_data
    int32_t expiry_hole
    uint16_t topic_size
    unsigned char flags, syntax, family_size, slots

# Of a message that never expires and whose numbers fit in: nearly all. `form` is where a Head has the highest byte of
# `expires`, which is never SHORT there.
cdef packed struct ShortHead:
    uint64_t number
    uint16_t fields_size, payload_size, topic_size
    unsigned char flags, form
    uint16_t payload_at
    unsigned char syntax, family_size, slots, format_data

# A head that was read, whichever it is.
cdef struct FoundHead:
    Head head
    Py_ssize_t size       # of its bytes


class MessageHead(NamedTuple):
    """What a MESSAGE record says besides the message."""

    number: int
    slots: tuple
    slot_set: int    # 0: the slots are inline
    end: int         # of the message; what stands behind it is of another record
    nbytes: int      # that it takes while it is kept
    expires: float   # wall-clock time; inf: never
    came: float      # the same; 0: its record does not say


cdef Py_ssize_t message_size(Message message, Py_ssize_t slots) except -1:
    """Bytes of a record with so many inline slots, or with one set."""
    cdef uint32_t within = payload_within(message)
    cdef Py_ssize_t size = sizeof(ShortHead) if is_short(message, within) else sizeof(Head)
    size += PyBytes_GET_SIZE(family_of(message)) + message.topic_size + message.fields_size
    if within == WITHIN_NOTHING:
        size += message.payload_size
    return size + slots * sizeof(uint32_t)


cdef uint32_t payload_within(Message message) noexcept:
    """Where the payload is among the fields, or WITHIN_NOTHING."""
    cdef Py_ssize_t within = message.payload_at - message.fields_at
    return <uint32_t> within if 0 <= within <= message.fields_size - message.payload_size else WITHIN_NOTHING


cdef bint is_short(Message message, uint32_t within) noexcept:
    """Does its record begin with a ShortHead?"""
    return message.fields_size < SHORT_MOST and message.payload_size < SHORT_MOST \
        and (within < SHORT_MOST or within == WITHIN_NOTHING) \
        and message.expires_at == INFINITY and message.expiry_hole == -1 and message.format_data <= 0xFF


cdef bytes family_of(Message message):
    global last_format, last_family
    if message.format is last_format:
        return last_family
    cdef bytes family = families.get(message.format.family)
    if family is None:
        family = (<str?> message.format.family).encode()
        if PyBytes_GET_SIZE(family) > FAMILY_MOST:
            raise ValueError(f"a family of formats with {PyBytes_GET_SIZE(family)} bytes")
        families[message.format.family] = family
    last_format, last_family = message.format, family
    return family


cdef char* write_message(char* at, Message message, uint64_t number, double wall, const uint32_t* slots,
                         Py_ssize_t count, bint as_set, uint64_t came=0) except NULL:
    """Write a record of `message_size`, and CAME_OCTETS more if `came` is not 0. Returns its end.

    wall  seconds of wall-clock time minus `now`
    came  when it came, in ms since 1970
    """
    cdef bytes family = family_of(message)
    cdef uint32_t within = payload_within(message)
    cdef unsigned char flags = message.qos | (RETAIN if message.retain else 0) | (CAME if came else 0)
    cdef unsigned char places = IN_A_SET if as_set else <unsigned char> count
    if is_short(message, within):
        at = write_short(at, message, number, within, flags, <unsigned char> PyBytes_GET_SIZE(family), places)
    else:
        at = write_head(at, message, number, wall, within, flags, <unsigned char> PyBytes_GET_SIZE(family), places)
    if count:
        memcpy(at, slots, count * sizeof(uint32_t))
        at += count * sizeof(uint32_t)
    if came:
        memcpy(at, &came, CAME_OCTETS)
        at += CAME_OCTETS
    memcpy(at, PyBytes_AS_STRING(family), PyBytes_GET_SIZE(family))
    at += PyBytes_GET_SIZE(family)
    memcpy(at, message.topic_at, message.topic_size)
    at += message.topic_size
    memcpy(at, message.fields_at, message.fields_size)
    at += message.fields_size
    if within == WITHIN_NOTHING:
        memcpy(at, message.payload_at, message.payload_size)
        at += message.payload_size
    return at


cdef char* write_short(char* at, Message message, uint64_t number, uint32_t within, unsigned char flags,
                       unsigned char family_size, unsigned char slots) noexcept:
    cdef ShortHead head
    head.number, head.flags, head.form = number, flags, SHORT
    head.fields_size, head.payload_size = <uint16_t> message.fields_size, <uint16_t> message.payload_size
    head.payload_at = <uint16_t> within     # of WITHIN_NOTHING, SHORT_MOST
    head.topic_size, head.syntax = <uint16_t> message.topic_size, message.syntax
    head.family_size, head.slots, head.format_data = family_size, slots, <unsigned char> message.format_data
    memcpy(at, &head, sizeof(ShortHead))
    return at + sizeof(ShortHead)


cdef char* write_head(char* at, Message message, uint64_t number, double wall, uint32_t within, unsigned char flags,
                      unsigned char family_size, unsigned char slots) noexcept:
    cdef Head head
    head.number, head.expires = number, 0
    if message.expires_at < INFINITY:    # rounded, else each time 1 ms sooner
        head.expires = <uint64_t> min(max(1.0, (message.expires_at + wall) * 1000 + 0.5), EXPIRES_MOST)
    head.payload_size, head.fields_size = <uint32_t> message.payload_size, <uint32_t> message.fields_size
    head.payload_at = within
    head.format_data, head.expiry_hole = message.format_data, <int32_t> message.expiry_hole
    head.topic_size, head.flags, head.syntax = <uint16_t> message.topic_size, flags, message.syntax
    head.family_size, head.slots = family_size, slots
    memcpy(at, &head, sizeof(Head))
    return at + sizeof(Head)


cdef Py_ssize_t slot_count(FoundHead* found) noexcept:
    return 1 if found.head.slots == IN_A_SET else found.head.slots


cdef Py_ssize_t family_at(FoundHead* found) noexcept:
    """Where the name of the family begins."""
    return found.size + slot_count(found) * sizeof(uint32_t) + (CAME_OCTETS if found.head.flags & CAME else 0)


cdef Py_ssize_t read_into(FoundHead* found, const char* body, Py_ssize_t size) except -1:
    """Raises BadRecord. Returns the end of the message."""
    cdef Head* head = &found.head
    cdef Py_ssize_t end
    if size > FORM_AT and <unsigned char> body[FORM_AT] == SHORT:
        found.size = sizeof(ShortHead)
        if size >= found.size:
            read_short(head, body)
    else:
        found.size = sizeof(Head)
        if size >= found.size:
            memcpy(head, body, sizeof(Head))
    if size >= found.size:
        end = family_at(found) + head.family_size + head.topic_size + head.fields_size
        if head.payload_at == WITHIN_NOTHING:
            end += head.payload_size
        elif <uint64_t> head.payload_at + head.payload_size > head.fields_size:
            raise BadRecord("a payload behind the fields that it is said to be among")
        if head.slots <= SLOTS_INLINE or head.slots == IN_A_SET:
            if size >= end:
                return end
    raise BadRecord(f"a message that does not end within the {size} bytes of its record")


cdef void read_short(Head* head, const char* body) noexcept:
    """What a Head would say."""
    cdef ShortHead short_head
    memcpy(&short_head, body, sizeof(ShortHead))
    head.number, head.expires, head.expiry_hole = short_head.number, 0, -1
    head.payload_size, head.fields_size = short_head.payload_size, short_head.fields_size
    head.payload_at = WITHIN_NOTHING
    if short_head.payload_at < SHORT_MOST:
        head.payload_at = short_head.payload_at
    head.format_data, head.topic_size, head.flags = short_head.format_data, short_head.topic_size, short_head.flags
    head.syntax, head.family_size, head.slots = short_head.syntax, short_head.family_size, short_head.slots


def read_head(bytes body not None):
    """What a MESSAGE record says besides the message. Raises BadRecord."""
    cdef FoundHead found
    cdef Py_ssize_t end = read_into(&found, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body)), i
    cdef const char* slots = PyBytes_AS_STRING(body) + found.size
    cdef uint32_t slot
    places = []
    for i in range(slot_count(&found)):
        memcpy(&slot, slots + i * sizeof(uint32_t), sizeof(uint32_t))
        places.append(slot)
    slot_set = places[0] if found.head.slots == IN_A_SET else 0
    return MessageHead(
        found.head.number, () if slot_set else tuple(places), slot_set, end,
        bytes_held(&found.head), expiry_of(&found.head), came_in(&found, PyBytes_AS_STRING(body)),
    )


cdef int places_of(Places* places, const char* body, Py_ssize_t size) except -1:
    """`read_head`, of a record that is in somebody's buffer. Raises BadRecord."""
    cdef FoundHead found
    read_into(&found, body, size)
    places.number = found.head.number
    places.octets, places.expires = bytes_held(&found.head), expiry_of(&found.head)
    places.slots, places.count = body + found.size, <int> slot_count(&found)
    places.as_set = found.head.slots == IN_A_SET
    places.came = came_in(&found, body)
    return 0


cdef Py_ssize_t bytes_held(Head* head) noexcept:
    """As Message has it."""
    cdef Py_ssize_t own = PAYLOAD_OBJECT + head.payload_size if head.payload_at == WITHIN_NOTHING else 0
    return OBJECTS + head.topic_size + own + head.fields_size


cdef double expiry_of(Head* head) noexcept:
    return head.expires / 1000.0 if head.expires else INFINITY


cdef bytes topic_at(const char* body, Py_ssize_t size, int* syntax):
    """The topic of a message, and the number of its syntax. Raises BadRecord."""
    cdef FoundHead found
    read_into(&found, body, size)
    syntax[0] = found.head.syntax
    return PyBytes_FromStringAndSize(body + family_at(&found) + found.head.family_size, found.head.topic_size)


def read_message(bytes body not None, formats, double wall):
    """The message of a record, of the format of its family. Raises BadRecord.

    wall: seconds of wall-clock time minus `now`
    """
    return message_at(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body), Formats(formats), wall, NULL)


cdef class Formats:
    """Formats by the names of their families."""

    def __cinit__(self, by_family not None):
        self.by_family = by_family

    cdef Format find(self, const char* family, Py_ssize_t size):
        """Raises BadRecord. Most messages are of the same as the one before."""
        if self.last is not None and size == PyBytes_GET_SIZE(self.last_family) \
                and memcmp(family, PyBytes_AS_STRING(self.last_family), size) == 0:
            return self.last
        name = PyUnicode_DecodeUTF8(family, size, b"replace")
        format = self.by_family.get(name)
        if format is None:
            raise BadRecord(f"a message of {name!r}, which this broker does not speak")
        self.last, self.last_family = <Format?> format, family[:size]
        return self.last


cdef Message message_at(const char* body, Py_ssize_t size, Formats formats, double wall, double* came):
    """`read_message`, of a record that is in somebody's buffer.

    came  NULL, or gets when it came in seconds since 1970; 0: its record does not say
    """
    cdef FoundHead found
    cdef Head* head = &found.head
    read_into(&found, body, size)
    cdef Py_ssize_t at = family_at(&found)
    cdef Format format = formats.find(body + at, head.family_size)
    at += head.family_size
    if (head.flags & QOS) > 2 or not -1 <= head.expiry_hole <= <Py_ssize_t> head.fields_size - 4 + \
            (4 if head.expiry_hole == -1 else 0):
        raise BadRecord("a message with impossible flags")
    cdef Message message = Message.__new__(Message)
    message.format = format
    message.syntax, message.qos, message.retain = head.syntax, head.flags & QOS, head.flags & RETAIN != 0
    message.expires_at = INFINITY if head.expires == 0 else head.expires / 1000.0 - wall
    message.expiry_hole, message.format_data = head.expiry_hole, head.format_data
    message.topic_octets = PyBytes_FromStringAndSize(body + at, head.topic_size)
    message.topic_at, message.topic_size = PyBytes_AS_STRING(message.topic_octets), head.topic_size
    at += head.topic_size
    message.fields_octets = PyBytes_FromStringAndSize(body + at, head.fields_size)
    message.fields_at, message.fields_size = PyBytes_AS_STRING(message.fields_octets), head.fields_size
    at += head.fields_size
    message.payload_size = head.payload_size
    if head.payload_at != WITHIN_NOTHING:
        message.payload_at = message.fields_at + head.payload_at    # as it was: it is among the fields
    else:
        message.payload_octets = PyBytes_FromStringAndSize(body + at, head.payload_size)
        message.payload_at = PyBytes_AS_STRING(message.payload_octets)
    if came is not NULL:
        came[0] = came_in(&found, body)
    return message


cdef double came_in(FoundHead* found, const char* body) noexcept:
    """When it came, in seconds since 1970; 0: its record does not say."""
    cdef uint64_t came
    if not found.head.flags & CAME:
        return 0.0
    memcpy(&came, body + family_at(found) - CAME_OCTETS, CAME_OCTETS)
    return came / 1000.0


def came_at(bytes body not None):
    """When a message came, in seconds since 1970; 0: its record does not say. Raises BadRecord."""
    cdef FoundHead found
    read_into(&found, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
    return came_in(&found, PyBytes_AS_STRING(body))


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
    cdef FoundHead found
    cdef Py_ssize_t at = read_into(&found, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
    origin = read_text(body, &at)
    principal = read_text(body, &at)
    return read_message(body, formats, wall), origin, principal


def read_all_retained(list bodies not None, formats, double wall, share_of not None):
    """[(message, share, name of the session that published it or None), ...]. Raises BadRecord.

    share_of  called with a principal, or None: whose share it is
    """
    cdef FoundHead head
    cdef Formats known = Formats(formats)
    cdef bytes body, publisher, last = None
    cdef object share = None, origin = None
    cdef Py_ssize_t at
    cdef list found = []
    for body in bodies:
        at = read_into(&head, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
        publisher = body[at:]
        if publisher != last:    # the same as that of the message before: often
            origin = read_text(body, &at)
            share = share_of(read_text(body, &at))
            last = publisher
        found.append((message_at(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body), known, wall, NULL), share, origin))
    return found


cdef object read_text(bytes body, Py_ssize_t* at):
    """What `text` wrote at this place, which moves behind it."""
    cdef uint16_t size
    cdef Py_ssize_t start = at[0] + <Py_ssize_t> sizeof(size)
    if start <= PyBytes_GET_SIZE(body):
        memcpy(&size, PyBytes_AS_STRING(body) + at[0], sizeof(size))
        at[0] = start
        if size == NO_TEXT_SIZE:
            return None
        at[0] += size
        if at[0] <= PyBytes_GET_SIZE(body):
            return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(body) + start, size, b"surrogateescape")
    raise BadRecord("a retained message without its publisher")
