# What the poller watches: connections, and the sockets that they are accepted from.
#
#   ListeningSocket --accept4--> Socket
#
#     read   recv into the one receive buffer -> Lane.take -> Python, if it is needed
#     write  a SocketSink does, straight from the outbox; the socket waits with what is left of a frame that the kernel
#            took in part, and says when there is room again

from libc.stdint cimport uint32_t

from fanlight_broker.net.poller cimport Poller, Watched
from fanlight_broker.wire.inbox cimport Inbox
from fanlight_broker.wire.lane cimport Lane
from fanlight_broker.wire.ledger cimport Ledger

cdef class Socket(Watched):
    cdef:
        Poller poller
        object owner                  # net.connection.Connection
        object reader                 # the protocol's side of it
        Inbox inbox
        Lane lane
        Ledger ledger
        bytes rest                    # written, and not taken by the kernel yet, from `rest_at` on; None if there is
                                      # none
        Py_ssize_t rest_at
        int more                      # MSG_MORE: what comes behind `rest` is sent at once, too; else 0
        readonly object address       # the peer's, as text
        readonly int port             # the peer's
        bint full                     # it waits for room, for `rest` or for its owner's outbox
        bint paused                   # its owner wants to read nothing
        bint direct                   # bytes may go to the lane
        readonly bint closing         # it reads nothing any more, and is gone when `rest` is
        bint gone                     # `connection_lost` is on its way

    cdef int look_away(self, uint32_t events) except -1
    cdef int read(self, double now) except -1
    cdef int hand_on(self, Py_ssize_t size, double now) except -1
    cdef int go_on(self) except -1
    cdef int send_rest(self) except -1
    cdef int listen(self) except -1
    cdef int lose(self, error) except -1

cdef class ListeningSocket(Watched):
    cdef:
        Poller poller
        object listening              # the socket, which keeps the descriptor open
        object on_accept, on_trouble
