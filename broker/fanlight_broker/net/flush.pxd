# The way out: an outbox's bytes into its socket, once per turn of the loop.
#
#   Outbox --gather--> writev(fd) --consume--> what the socket did not take of the frame it broke off in
#                                                  |
#                                                  v   the transport finishes that one frame and says when it is through
#                                              transport.write
#
# Only the transport waits for the socket; while it does, frames stay in the outbox, where the slow policy reaches them.

from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.outbox cimport Outbox, Sink

cdef class SocketSink(Sink):
    cdef:
        readonly Outbox outbox
        readonly object transport
        object on_drained
        readonly int fd                # -1: everything through the transport (TLS, or not a socket)
        bint waits                     # the transport waits for room with nothing to send, too
        readonly bint full             # the transport has bytes that the socket would not take
        readonly bint closing          # end the stream when everything is out
        bint linger                    # with half of it only
        bint behind                    # more than half of the outbox's limit was left by the last flush
        readonly bint ended            # everything is out, and the stream ended
        readonly bint broken           # nothing more can be sent: ended, or the socket is gone
        object fault                   # the exception that a flush outside of a turn raised: for the Flusher

    cdef int flush(self) except -1
    cdef int send(self, Py_ssize_t most) except -1
    cdef int send_paced(self) except -1
    cdef int sit_out(self) except -1
    cdef int end(self) except -1
    cdef int through_transport(self, bytes octets) except -1

cdef class Flusher:
    cdef:
        Ledger ledger
        object on_fault
        bint expected                  # who runs this turn flushes at its end, and often
        list ending                    # functions to call before that flush
        readonly unsigned long long turns, writes

    cpdef flush(self)
    cdef int end_turn(self) except -1
    cdef int flush_oldest(self, Py_ssize_t count, Py_ssize_t few) except -1
    cdef int empty(self, list outboxes) except -1
