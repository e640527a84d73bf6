# cython: language_level=3
"""The sampler: which messages are traced. Drawn in sampler.pxd.

A message with a trace context (W3C Trace Context, 3.2: the header `traceparent`) is traced if its publisher's trace is;
of the others a share is, by chance: the distance to the next one is drawn, so that most messages cost one subtraction.
Both together are bounded per second, because anybody may send a header.
"""

cimport cython
from libc.math cimport INFINITY, floor, log
from libc.stdint cimport int64_t, uint64_t

from fanlight_broker.wire.message cimport Message

cdef enum:
    SIZE = 55                # of a traceparent: version, trace, parent and flags, with three dashes
    SAMPLED_FLAG = 1

cdef const char* TRACEPARENT = b"traceparent"


cdef inline int digit(char octet) noexcept:
    """Of a hexadecimal digit in lower case; -1 for what is none."""
    if c"0" <= octet <= c"9":
        return octet - c"0"
    return octet - c"a" + 10 if c"a" <= octet <= c"f" else -1


cdef bint is_number(const char* at, Py_ssize_t size) noexcept:
    """Are these hexadecimal digits, of which one is not 0?"""
    cdef Py_ssize_t i
    cdef bint some = False
    for i in range(size):
        if digit(at[i]) < 0:
            return False
        some = some or at[i] != c"0"
    return some


cdef Parent flag_of(const char* at, Py_ssize_t size) noexcept:
    """What a `traceparent` says (3.2.2). A version that is not known may be longer (3.2.4)."""
    cdef bint first_version
    if size < SIZE or at[2] != c"-" or at[35] != c"-" or at[52] != c"-":
        return NO_PARENT
    first_version = at[0] == c"0" and at[1] == c"0"
    if digit(at[0]) < 0 or digit(at[1]) < 0 or (at[0] == c"f" and at[1] == c"f"):
        return NO_PARENT
    if size > SIZE and (first_version or at[SIZE] != c"-"):
        return NO_PARENT
    if not is_number(at + 3, 32) or not is_number(at + 36, 16) or digit(at[53]) < 0 or digit(at[54]) < 0:
        return NO_PARENT
    return SAMPLED if digit(at[54]) & SAMPLED_FLAG else NOT_SAMPLED


cdef Parent parent_of(Message message) except *:
    cdef const char* value = NULL
    cdef Py_ssize_t size = 0
    if not message.format.text_header(message, TRACEPARENT, 11, &value, &size):
        return NO_PARENT
    return flag_of(value, size)


@cython.final
cdef class Sampler:
    """ratio, parents, per_second: see sampler.pxd. seed: of the random numbers, not 0"""

    def __cinit__(self, double ratio, *, bint parents, Py_ssize_t per_second, uint64_t seed):
        self.state = seed or 1
        self.since = -INFINITY
        self.use(ratio, parents, per_second)

    def use(self, double ratio, bint parents, Py_ssize_t per_second):
        """Choose by other settings from now on."""
        self.ratio, self.parents, self.per_second = ratio, parents, per_second
        self.since = -INFINITY
        self.draw()

    def chooses(self, Message message not None, double now):
        """`wants` for Python."""
        return self.wants(message, now)

    def parent(self, Message message not None):
        """The message's `traceparent`, as text, if it is valid and counts here; else None."""
        cdef const char* value = NULL
        cdef Py_ssize_t size = 0
        if not self.parents or not message.format.text_header(message, TRACEPARENT, 11, &value, &size) \
                or flag_of(value, size) == NO_PARENT:
            return None
        return value[:size].decode("ascii", "replace")

    def take(self, bint by_ratio):
        """A message is traced: another one is chosen. by_ratio: no trace context had it chosen."""
        self.chosen += 1
        self.room -= 1
        if by_ratio:
            self.draw()

    cdef bint wants(self, Message message, double now) except -1:
        """Is this message to be traced? It stays chosen until `take`, since it may have to wait and be asked about
        again. One that is not chosen, and comes to Python for another reason, is asked about once more, as a new one.
        """
        cdef Parent parent = parent_of(message) if self.parents else NO_PARENT
        if parent == NOT_SAMPLED:
            return False
        if parent == NO_PARENT and self.skip:
            if self.skip > 0:
                self.skip -= 1
            return False
        if not self.since <= now < self.since + 1:
            self.since, self.room = now, self.per_second
        if self.room > 0:
            return True
        self.limited += 1
        if parent == NO_PARENT:
            self.draw()
        return False

    cdef int draw(self) noexcept:
        """How many messages are passed over: geometric, as if each were decided on by itself."""
        if self.ratio <= 0:
            self.skip = -1
        elif self.ratio >= 1:
            self.skip = 0
        else:
            self.skip = <int64_t> min(floor(log(self.random()) / log(1 - self.ratio)), 1e15)
        return 0

    cdef double random(self) noexcept:
        """Above 0 and up to 1: xorshift64*, which is good enough to choose messages by."""
        self.state ^= self.state >> 12
        self.state ^= self.state << 25
        self.state ^= self.state >> 27
        return (((self.state * <uint64_t> 0x2545F4914F6CDD1D) >> 11) + 1) / 9007199254740993.
