# The compiled way in and out for TCP, plain and with TLS: an epoll instance of its own, which the loop watches as one
# more descriptor.
#
#   loop: epoll_wait --.-- timers, WebSocket, HTTP: the loop's own transports
#                      '-- Poller.turn:  epoll_wait(0) -> Watched.attend, each -> flush -.
#                                            ^-------- while there is something, and time -'
#
# What is watched (tcp.pxd) is kept in a list by its descriptor. What was reported and not attended to when the time of
# a turn is over is attended to first in the next, so that those at the end of the list have their turn, too. Meanwhile
# a descriptor may be closed and be another socket's: it then looks for something that is not there, and finds nothing.

from libc.stdint cimport uint32_t

from fanlight_broker.net.flush cimport Flusher

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        int fd
    struct epoll_event:
        uint32_t events
        epoll_data_t data

cdef enum:
    AT_ONCE = 256         # sockets looked at in one round, before a flush
    READABLE = 0x001      # EPOLLIN
    WRITABLE = 0x004      # EPOLLOUT
    GONE = 0x2018         # EPOLLRDHUP, EPOLLHUP, EPOLLERR: the peer has closed its half, or reset the connection
    LEAVES = 0x2000       # EPOLLRDHUP, the one of them that has to be asked for

cdef double monotonic() noexcept nogil

cdef class Watched:
    cdef:
        readonly int fd               # -1: closed
        uint32_t wanted               # events that epoll is asked for; 0: it is not asked
        bint listed                   # among those that are behind

    cdef int attend(self, uint32_t events, double now) except -1
    cdef int fault(self) except -1
    cdef int lost(self, object error) except -1

cdef class Poller:
    cdef:
        object loop
        Flusher flusher
        readonly int fd
        epoll_event[AT_ONCE] events   # reported: those from `at` on are still to be attended to
        int at, n
        list watched                  # by file descriptor; None where there is none
        list behind                   # those that have received more than they handed on: one has its turn each round
        bint called                   # the loop will call `catch_up`
        object ending                 # a deque of those that are over, each with its error or None: to be ended
        bint ends                     # the loop will call `end_some`, or it is at work
        readonly Py_ssize_t count
        readonly unsigned long long turns, rounds
        double cpu_read_at, used        # when the processor time was last asked for, and what it was

    cdef int attend_to(self, Watched it, uint32_t events, double now) except -1
    cdef int come_back_to(self, Watched it) except -1
    cdef int call(self) except -1
    cdef int end_later(self, Watched it, object error) except -1
    cdef int watch(self, Watched it, uint32_t events) except -1
    cdef int forget(self, Watched it) except -1
    cdef int note(self, double begun) except -1
    cdef double read_cpu(self, double now) noexcept
