# The backlog of a queue: what waits in it behind its flights. Of a durable queue it is not in memory, but in a store;
# of others it is packed (packed_row.pxd).
#
#   Queue.put --> flights {Flight, Flight, ...}        the oldest, in memory: as many as a consumer takes soon
#             '-> backlog                              the others, by number
#   Queue.pop --> flights; few are left: Backlog.fetch --- later: Queue.fetched --> flights
#
# A fetch takes its time. What is put meanwhile goes to the backlog, too, so the order is kept.

from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message, Variant

cdef class Backlog:
    cdef:
        readonly Py_ssize_t length    # messages, those being fetched included
        readonly Py_ssize_t nbytes    # that they count in their queue
        readonly bint at_hand         # it is a PackedRow (packed_row.pxd): its oldest can be read at once
        public Py_ssize_t head        # messages of the queue in memory; at a quarter of it more are fetched

    cdef int take(self, uint64_t number, Message message, Variant variant, Py_ssize_t octets) except -1
    cpdef add(self, Flight flight, Py_ssize_t octets)
    cpdef Py_ssize_t drop_first(self) except -1
    cpdef fetch(self)
    cpdef expire(self, double now, Py_ssize_t most)
    cpdef since(self)
