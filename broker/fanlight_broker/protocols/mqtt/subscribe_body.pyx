# cython: language_level=3
"""The bodies of SUBSCRIBE and UNSUBSCRIBE, in C.

Accepts what codec.decode accepts, and nothing that it does not accept. The tests compare the two for mutated packets.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memchr, memcmp

from fanlight_broker.wire.msgpack cimport is_utf8

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    SUBSCRIPTION_IDENTIFIER = 0x0B    # 2.2.2.2
    USER_PROPERTY = 0x26
    LONGEST_INTEGER = 4               # octets of a Variable Byte Integer (1.5.5)
    # Subscription Options (3.8.3.1)
    QOS = 0x03
    NO_LOCAL = 0x04
    RETAIN_HANDLING = 0x30
    SHARE_SIZE = 7
    WHERE_SIZE = 5

cdef const char* SHARE = b"$share/"
cdef const char* WHERE = b"where"


cdef bint is_text(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    return memchr(at, 0, size) == NULL and is_utf8(at, size)


cdef Py_ssize_t integer(const unsigned char* octets, Py_ssize_t* at, Py_ssize_t end) noexcept nogil:
    """A Variable Byte Integer, in as few octets as it takes (1.5.5); `at` is behind it then. -1: there is none."""
    cdef Py_ssize_t value = 0
    cdef int i
    for i in range(min(<Py_ssize_t> LONGEST_INTEGER, end - at[0])):
        value |= <Py_ssize_t> (octets[at[0]] & 0x7F) << (7 * i)
        at[0] += 1
        if octets[at[0] - 1] < 0x80:
            return -1 if i and not octets[at[0] - 1] else value
    return -1


cdef Py_ssize_t text(const unsigned char* octets, Py_ssize_t* at, Py_ssize_t end) noexcept nogil:
    """How many octets a UTF-8 Encoded String has (1.5.4); `at` is behind it then. -1: there is none."""
    cdef Py_ssize_t size
    if end - at[0] < 2:
        return -1
    size = octets[at[0]] << 8 | octets[at[0] + 1]
    at[0] += 2 + size
    return size if at[0] <= end and is_text(octets + at[0] - size, size) else -1


cdef bint is_filter(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """A Topic Filter (4.7.1), UTF-8 without U+0000: `#` alone in the last level, `+` alone in any."""
    cdef Py_ssize_t i
    cdef unsigned char octet
    cdef bint ascii = True
    for i in range(size):
        octet = at[i]
        if octet >= 0x80:
            ascii = False
        elif octet == 0:
            return False
        elif octet == c"+":
            if (i and at[i - 1] != c"/") or (i + 1 < size and at[i + 1] != c"/"):
                return False
        elif octet == c"#":
            if (i and at[i - 1] != c"/") or i + 1 < size:
                return False
    return size > 0 and (ascii or is_utf8(at, size))


cdef bint is_share_name(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """At least a character, no wildcard [MQTT-4.8.2-1], [MQTT-4.8.2-2]; `size` is up to the slash."""
    cdef Py_ssize_t i
    for i in range(size):
        if at[i] == 0 or at[i] == c"+" or at[i] == c"#":
            return False
    return size > 0 and is_utf8(at, size)


cdef inline bint is_shared(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    return size >= SHARE_SIZE and memcmp(at, SHARE, SHARE_SIZE) == 0


cdef bint is_sound(const unsigned char* at, Py_ssize_t size, bint shared) noexcept nogil:
    cdef Py_ssize_t slash = SHARE_SIZE
    if not shared:
        # $share alone: the codec says what is wrong with it
        return is_filter(at, size) and not (size == SHARE_SIZE - 1 and memcmp(at, SHARE, SHARE_SIZE - 1) == 0)
    while slash < size and at[slash] != c"/":
        slash += 1
    return slash < size and is_share_name(at + SHARE_SIZE, slash - SHARE_SIZE) \
        and is_filter(at + slash + 1, size - slash - 1)


cdef class Filters:
    """Each filter, with the octet of its options (0 in an UNSUBSCRIBE); in their order, once."""

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t size
        cdef bytes filter
        if self.at >= self.end:
            raise StopIteration
        size = self.octets[self.at] << 8 | self.octets[self.at + 1]
        filter = PyBytes_FromStringAndSize(<const char*> self.octets + self.at + 2, size)
        self.at += 2 + size
        if not self.has_options:
            return filter, 0
        self.at += 1
        return filter, self.octets[self.at - 1]

    cdef bint take_properties(self, Py_ssize_t* at, Py_ssize_t most) except -1:
        """A Subscription Identifier, if it is a SUBSCRIBE, and User Properties (3.8.2.1, 3.10.2.1); `at` is behind.

        False: what is there is something else, or too much. Of the User Properties those named `where` are kept.
        """
        cdef const unsigned char* octets = self.octets
        cdef Py_ssize_t size = integer(octets, at, self.end), end = at[0] + size, begin, name, pairs = 0
        if size < 0 or end > self.end:
            return False
        while at[0] < end:
            begin = at[0]
            at[0] += 1
            if octets[begin] == SUBSCRIPTION_IDENTIFIER:
                if not self.has_options or self.identifier or integer(octets, at, end) <= 0:
                    return False
                self.identifier = octets[begin:at[0]]
            elif octets[begin] == USER_PROPERTY:
                pairs += 1
                name = text(octets, at, end)
                if name < 0 or pairs > max(most, 1):    # the codec has always let in one
                    return False
                size = text(octets, at, end)
                if size < 0:
                    return False
                if name == WHERE_SIZE and memcmp(octets + begin + 3, WHERE, WHERE_SIZE) == 0:
                    self.wheres.append(PyUnicode_DecodeUTF8(<const char*> octets + at[0] - size, size, NULL))
            else:
                return False
        return True

    cdef bint check(self, bint has_properties, Py_ssize_t user_properties_max) except -1:
        """Is all of it sound? Leaves `at` at the first filter."""
        cdef const unsigned char* octets = self.octets
        cdef Py_ssize_t at = 2, size, part
        cdef const unsigned char* mark
        cdef unsigned char options
        cdef bint shared
        if self.end < 2:
            return False
        self.packet_id = octets[0] << 8 | octets[1]
        if self.packet_id == 0:
            return False
        if has_properties and not self.take_properties(&at, user_properties_max):
            return False
        self.at = at
        while at < self.end:
            if self.end - at < 2:
                return False
            size = octets[at] << 8 | octets[at + 1]
            at += 2
            if self.end - at < size + self.has_options:
                return False
            mark = <const unsigned char*> memchr(octets + at, c"?", size) if self.has_suffixes else NULL
            part = size if mark == NULL else mark - (octets + at)
            shared = is_shared(octets + at, part)
            if not is_sound(octets + at, part, shared) or not is_text(octets + at + part, size - part):
                return False
            at += size
            self.count += 1
            if self.has_options:
                options = octets[at]
                at += 1
                if options & (0xC0 if has_properties else 0xFC) or options & QOS == QOS \
                        or options & RETAIN_HANDLING == RETAIN_HANDLING or (shared and options & NO_LOCAL):
                    return False
        return at > self.at


def filters_of(
    bytes body not None, *, bint subscribe, bint has_properties, bint filter_suffix=False,
    Py_ssize_t user_properties_max=PY_SSIZE_T_MAX
):
    """What a SUBSCRIBE (or UNSUBSCRIBE) wants, of 5.0 if it has properties. None: the codec is to look at it.

    filter_suffix        a filter ends at its first `?`; it is given whole
    user_properties_max  that the packet may have
    """
    cdef Filters made = Filters.__new__(Filters)
    made.body = body
    made.octets = <const unsigned char*> PyBytes_AS_STRING(body)
    made.end = PyBytes_GET_SIZE(body)
    made.has_options = subscribe
    made.has_suffixes = filter_suffix
    made.identifier = b""
    made.wheres = []
    return made if made.check(has_properties, user_properties_max) else None
