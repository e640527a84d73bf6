# What has arrived from one connection and is not parsed yet.
#
#   ReceiveBuffer (one per loop)      [##########............................]   read into by every connection in turn
#   Inbox.part    (only if partial)   [####......]                               what the last parse left over
#
# Between reads a connection holds exactly its unparsed bytes, so an idle one holds none. A small rest is moved to the
# front of the shared buffer before the next read; a large one (a big frame on its way) keeps a buffer of its own, which
# doubles, so that memory follows the bytes that really came and not the length that a peer announced.
#
# All inboxes together have a bound (`Ledger.inboxes`). Half way to it every read is a small one, and past it a frame
# that needs more than a small rest is given up, `over` says so: the newest that grows has to go, so others get ready.
# A client that is not admitted yet has a few KiB in that bound; what is above them is in a bound that all such share.

from fanlight_broker.wire.ledger cimport Ledger, Meter, Pot

cdef class ReceiveBuffer:
    cdef:
        char* data
        readonly Py_ssize_t capacity
        char* view                        # what the next __getbuffer__ exposes
        Py_ssize_t view_size

cdef class Inbox:
    cdef:
        ReceiveBuffer shared
        Ledger ledger
        Pot pot, handshakes               # the ledger's: where its bytes are counted
        public Meter meter                # of the port that accepted the connection
        char* part                        # the rest of the last parse; NULL if none
        Py_ssize_t part_size, part_capacity
        bint in_shared                    # the bytes to parse now lie in `shared`, not in `part`
        char* data                        # the bytes to parse now: data[pos:end]
        Py_ssize_t pos, end
        readonly Py_ssize_t wanted        # size of the frame that the parser waits for, 0 if unknown
        public Py_ssize_t read_max        # bytes to hold at most before they are parsed, 0: as the buffer allows
        Py_ssize_t outside                # bytes kept elsewhere for this connection, on the way to here or from here
        Py_ssize_t counted                # bytes entered in `pot`
        Py_ssize_t excess                 # bytes entered in `handshakes`
        readonly Py_ssize_t stranger_max  # bytes that a stranger has for itself; -1: no stranger

    cdef int open_space(self) except -1
    cdef int add_read(self, Py_ssize_t octets) noexcept
    cdef int keep_rest(self) except -1
    cdef int grow(self, Py_ssize_t capacity) except -1
    cdef void count(self) noexcept
    cdef bint over(self) noexcept
