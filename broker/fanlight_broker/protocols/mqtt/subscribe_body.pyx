# cython: language_level=3
"""The bodies of SUBSCRIBE and UNSUBSCRIBE, in C.

Accepts what codec.decode accepts, but for one with other properties than a Subscription Identifier, which are rare; and
nothing that it does not accept. The tests compare the two for mutated packets.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr, memcmp

from fanlight_broker.wire.msgpack cimport is_utf8

cdef enum:
    SUBSCRIPTION_IDENTIFIER = 0x0B    # 2.2.2.2
    # Subscription Options (3.8.3.1)
    QOS = 0x03
    NO_LOCAL = 0x04
    RETAIN_HANDLING = 0x30
    SHARE_SIZE = 7

cdef const char* SHARE = b"$share/"


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


cdef bint is_text(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    return memchr(at, 0, size) == NULL and is_utf8(at, size)


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

    cdef bint check(self, bint has_properties) noexcept:
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
        if has_properties:
            if self.end < 3:
                return False
            size = octets[2]
            at = 3
            if size:
                # One Subscription Identifier, of up to four octets, and no others.
                if size > 5 or self.end < 3 + size or not self.has_options or not is_identifier(octets + 3, size):
                    return False
                at += size
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
            if self.has_options:
                options = octets[at]
                at += 1
                if options & (0xC0 if has_properties else 0xFC) or options & QOS == QOS \
                        or options & RETAIN_HANDLING == RETAIN_HANDLING or (shared and options & NO_LOCAL):
                    return False
        return at > self.at


cdef bint is_identifier(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """The property, and nothing more: a Variable Byte Integer that is not 0, in as few octets as it takes."""
    cdef Py_ssize_t i
    if at[0] != SUBSCRIPTION_IDENTIFIER or size < 2 or at[size - 1] >= 0x80 or at[size - 1] == 0:
        return False
    for i in range(1, size - 1):
        if at[i] < 0x80:
            return False
    return True


def filters_of(bytes body not None, *, bint subscribe, bint has_properties, bint filter_suffix=False):
    """What a SUBSCRIBE (or UNSUBSCRIBE) wants, of 5.0 if it has properties. None: the codec is to look at it.

    filter_suffix  a filter ends at its first `?`; it is given whole
    """
    cdef Filters made = Filters.__new__(Filters)
    made.body = body
    made.octets = <const unsigned char*> PyBytes_AS_STRING(body)
    made.end = PyBytes_GET_SIZE(body)
    made.has_options = subscribe
    made.has_suffixes = filter_suffix
    made.identifier = b""
    if not made.check(has_properties):
        return None
    if has_properties and made.octets[2]:
        made.identifier = body[3:made.at]
    return made
