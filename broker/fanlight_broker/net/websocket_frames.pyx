# cython: language_level=3
# cython: boundscheck=False, wraparound=False
"""Frames of WebSocket (RFC 6455, 5): see websocket_frames.pxd. The tests have wsproto as the oracle."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef enum:
    FIN = 0x80
    RESERVED = 0x70
    OPCODE = 0x0F
    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    FIRST_CONTROL = 0x8
    LAST_CONTROL = 0xA
    MASKED = 0x80
    LENGTH = 0x7F
    LENGTH_16 = 126              # the length is in the next 2 bytes
    LENGTH_64 = 127              # in the next 8
    KEY_BYTES = 4
    PROTOCOL_ERROR = 1002        # RFC 6455, 7.4.1
    UNSUPPORTED_DATA = 1003
    MESSAGE_TOO_BIG = 1009


cdef void unmask(unsigned char* to, const unsigned char* octets, Py_ssize_t size, const unsigned char* key) noexcept:
    """`key` has 8 bytes: those of the frame's, from the one for octets[0] on, and once more."""
    cdef uint64_t word, mask
    cdef Py_ssize_t at = 0
    memcpy(&mask, key, 8)
    while at + 8 <= size:
        memcpy(&word, octets + at, 8)
        word ^= mask
        memcpy(to + at, &word, 8)
        at += 8
    while at < size:
        to[at] = octets[at] ^ key[at & 7]
        at += 1


cdef class FrameReader:
    """What a client sends after the handshake.

    message_bytes_max  of a message; it is counted, never held

    Feed it, then read until nothing is `pending`. After each `read`, `control` is the control frame that ended it, and
    `error` the code and text of what is wrong there. An error PROTOCOL_ERROR is the end: what follows means nothing.
    """

    def __cinit__(self, message_bytes_max):
        self.message_bytes_max = message_bytes_max

    @property
    def pending(self):
        """Is there something to read, or to be done with what was read?"""
        return self.data is not None or self.control is not None or self.error is not None

    def feed(self, bytes octets not None):
        """Take what has come."""
        if octets:
            self.data = octets if self.data is None else self.data[self.at:] + octets
            self.at = 0

    def read(self):
        """The payload of binary messages up to the next control frame, the next error, or the end of what has come."""
        cdef bytes part
        cdef list parts = []
        cdef const unsigned char* data
        cdef Py_ssize_t size, n
        self.control = self.error = None
        if self.data is None or self.broken:
            return b""
        data = <const unsigned char*> PyBytes_AS_STRING(self.data)
        size = PyBytes_GET_SIZE(self.data)
        while self.at < size and self.control is None and self.error is None:
            if self.left == 0:
                self.at += self.read_head(data + self.at, size - self.at)
                continue
            n = <Py_ssize_t> min(self.left, <uint64_t> (size - self.at))
            self.message_size += n
            if self.message_size > self.message_bytes_max:
                self.fail(MESSAGE_TOO_BIG, f"a message of more than {self.message_bytes_max} bytes")
                self.message_bytes_max = <uint64_t> -1    # once is enough
                self.skip(n)
                continue
            part = PyBytes_FromStringAndSize(NULL, n)
            unmask(<unsigned char*> PyBytes_AS_STRING(part), data + self.at, n, self.key)
            parts.append(part)
            self.skip(n)
        if self.at == size or self.broken:
            self.data = None
            self.at = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    cdef void skip(self, Py_ssize_t octets) noexcept:
        """So many bytes of the frame's payload have been read."""
        cdef unsigned char[8] before
        cdef Py_ssize_t i
        self.at += octets
        self.left -= octets
        if self.left:
            memcpy(before, self.key, 8)
            for i in range(8):
                self.key[i] = before[(i + octets) & 3]
        elif not self.open:
            self.message_size = 0

    cdef int fail(self, int code, text) except -1:
        self.error = (code, text)
        if code == PROTOCOL_ERROR:
            self.broken = True
        return 0

    cdef Py_ssize_t read_head(self, const unsigned char* data, Py_ssize_t size) except -1:
        """Read what is here of the head of a frame, or of a whole control frame. Returns how many bytes that is."""
        cdef Py_ssize_t n, taken = 0
        while not self.broken and (n := self.head_lacks()) > 0:
            n = min(n, size - taken)
            if n == 0:
                return taken
            memcpy(self.head + self.head_size, data + taken, n)
            self.head_size += n
            taken += n
        if not self.broken:
            self.begin_frame()
            self.head_size = 0
        return taken

    cdef Py_ssize_t head_lacks(self) except -1:
        """How many bytes are certainly missing of the head, as far as it is there. 0: it is whole."""
        cdef Py_ssize_t size = self.head_size, whole = 2
        cdef int first = self.head[0], second = self.head[1], opcode = first & OPCODE, length
        if size < 2:
            return 2 - size
        if size == 2:
            self.check(first, second)
        length = second & LENGTH
        if length == LENGTH_16:
            whole += 2
        elif length == LENGTH_64:
            whole += 8
        whole += KEY_BYTES
        if opcode >= FIRST_CONTROL:
            whole += length
        return whole - size

    cdef int check(self, int first, int second) except -1:
        """Its first two bytes."""
        cdef int opcode = first & OPCODE
        if first & RESERVED:
            self.fail(PROTOCOL_ERROR, "a frame with a reserved bit")
        elif not second & MASKED:
            self.fail(PROTOCOL_ERROR, "a frame that is not masked")
        elif opcode >= FIRST_CONTROL:
            if opcode > LAST_CONTROL:
                self.fail(PROTOCOL_ERROR, f"opcode {opcode:#x}")
            elif not first & FIN:
                self.fail(PROTOCOL_ERROR, "a control frame in fragments")
            elif second & LENGTH > CONTROL_BYTES_MAX:
                self.fail(PROTOCOL_ERROR, f"a control frame of more than {CONTROL_BYTES_MAX} bytes")
        elif opcode > BINARY:
            self.fail(PROTOCOL_ERROR, f"opcode {opcode:#x}")
        elif opcode == CONTINUATION and not self.open:
            self.fail(PROTOCOL_ERROR, "a fragment of no message")
        elif opcode != CONTINUATION and self.open:
            self.fail(PROTOCOL_ERROR, "a message inside another")
        return 0

    cdef int begin_frame(self) except -1:
        """The head is whole, or all of a control frame."""
        cdef int opcode = self.head[0] & OPCODE, length = self.head[1] & LENGTH
        cdef Py_ssize_t i, bytes_of_length = 0
        cdef uint64_t left = length
        if opcode >= FIRST_CONTROL:
            self.control = PyBytes_FromStringAndSize(<const char*> self.head, self.head_size)
            return 0
        if length >= LENGTH_16:
            bytes_of_length = 2 if length == LENGTH_16 else 8
            left = 0
            for i in range(bytes_of_length):
                left = left << 8 | self.head[2 + i]
            if left >> 63:
                return self.fail(PROTOCOL_ERROR, "a length of more than 63 bits")
            if left <= (CONTROL_BYTES_MAX if length == LENGTH_16 else 0xFFFF):
                return self.fail(PROTOCOL_ERROR, f"a length of {left} in {bytes_of_length} bytes")
        for i in range(8):
            self.key[i] = self.head[2 + bytes_of_length + (i & 3)]
        self.open = not self.head[0] & FIN
        self.left = left
        if left == 0 and not self.open:
            self.message_size = 0
        if opcode == TEXT:
            self.fail(UNSUPPORTED_DATA, "text; only binary messages are accepted")
        return 0


def binary_frame(bytes payload not None):
    """A server's frame, not masked, that is a whole binary message."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(payload), head = 2, i
    if size >= LENGTH_16:
        head += 2 if size <= 0xFFFF else 8
    cdef bytes frame = PyBytes_FromStringAndSize(NULL, head + size)
    cdef unsigned char* to = <unsigned char*> PyBytes_AS_STRING(frame)
    to[0] = FIN | BINARY
    to[1] = <unsigned char> size if head == 2 else LENGTH_16 if head == 4 else LENGTH_64
    for i in range(head - 2):
        to[head - 1 - i] = <unsigned char> (size >> (8 * i))
    memcpy(to + head, PyBytes_AS_STRING(payload), size)
    return frame
