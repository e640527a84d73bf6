# Which messages are traced, decided without Python: decision 0031.
#
#   Lane, its route is `traced` --wants--> False: on it goes, in compiled code
#                                   '----> True:  Python publishes it, with spans
#
# Without tracing no route is `traced`, and a lane asks nothing that it would not ask anyway (`Route.decided`).

cimport cython
from libc.stdint cimport int64_t, uint64_t

from fanlight_broker.wire.message cimport Message

cdef enum Parent:
    NO_PARENT = -1           # no trace context, or none that is valid: the ratio decides
    NOT_SAMPLED = 0
    SAMPLED = 1

@cython.final
cdef class Sampler:
    cdef:
        readonly double ratio             # of the messages without a trace context, 0 to 1
        readonly bint parents             # a trace context decides, not the ratio
        readonly Py_ssize_t per_second    # messages
        readonly uint64_t chosen, limited  # messages that are traced; that were to be, beyond `per_second`
        int64_t skip                      # messages until the ratio chooses one; -1: it never does
        uint64_t state                    # of the random numbers
        double since                      # the second in which there is `room` for more
        Py_ssize_t room

    cdef bint wants(self, Message message, double now) except -1
    cdef int draw(self) noexcept
    cdef double random(self) noexcept

cdef Parent parent_of(Message message) except *
