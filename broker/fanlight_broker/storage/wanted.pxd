# Numbers of messages that are to be read, and their messages once they are.
#
#   asked      7 1007 2007 | 8 1008 | 7 ...     one queue after another
#   numbers    7 8 1007 1008 2007               rising, each once: in this order they are read
#   places     0 2 4 | 1 3 | 0 ...              of each that was asked for, among `numbers`
#   messages   by place
#
# One queue of a thousand asks for numbers that lie far apart: each of its messages is found by its place, not looked
# for.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.message cimport Message

cdef class Wanted:
    cdef:
        readonly Py_ssize_t count       # that were asked for
        readonly Py_ssize_t length      # of `numbers`; 0 before `sort`
        uint64_t* asked
        Py_ssize_t capacity
        uint64_t* numbers
        uint32_t* places
        double* came                    # by place: when it came in seconds since 1970; 0: it is not known
        list messages                   # of Message, or None: it was not read

    cdef uint64_t* room(self, Py_ssize_t more) except NULL
    cdef int sort(self) except -1
    cdef int keep(self, Py_ssize_t place, Message message, double came) except -1
    cdef Py_ssize_t place_of(self, uint64_t number) noexcept
