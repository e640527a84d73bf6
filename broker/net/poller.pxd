# The compiled way in and out for plain TCP: an epoll instance of its own, which the loop watches as one more descriptor.
#
#   loop: epoll_wait --.-- timers, TLS, WebSocket, HTTP: the loop's own transports
#                      '-- Poller.turn:  epoll_wait(0) -> Watched.attend, each -> flush -.
#                                            ^-------- while there is something, and time -'
#
# What is watched (tcp.pxd) is kept in a list by its descriptor, which is closed only outside of a turn: so no event is
# for another socket than it was reported of.

from libc.stdint cimport uint32_t

from broker.net.flush cimport Flusher

cdef enum:
    READABLE = 0x001      # EPOLLIN
    WRITABLE = 0x004      # EPOLLOUT

cdef double monotonic() noexcept nogil

cdef class Watched:
    cdef:
        readonly int fd               # -1: closed
        uint32_t wanted               # events that epoll is asked for; 0: it is not asked

    cdef int attend(self, uint32_t events, double now) except -1
    cdef int fault(self) except -1

cdef class Poller:
    cdef:
        object loop
        Flusher flusher
        readonly int fd
        list watched                  # by file descriptor; None where there is none
        readonly Py_ssize_t count
        readonly unsigned long long turns, rounds

    cdef int watch(self, Watched it, uint32_t events) except -1
    cdef int forget(self, Watched it) except -1
