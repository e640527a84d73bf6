"""A connection of a generator's: its buffers, sending what is in them, and receiving."""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport malloc, realloc
from libc.string cimport memcpy, memmove, memset

from fanlight_bench.load.carrier cimport Carried, receive_carried, send_carried
from fanlight_bench.sockets cimport EPOLLIN, EPOLLOUT, MSG_NOSIGNAL, epoll_ctl, epoll_event, recv, send

cdef enum:
    OVER = -1                       # what `receive` finds: the connection is at its end
    OUT_OF_MEMORY = -2
    NOBODY = 0xffffffff             # the index of a connection that is no subscriber
    COMPACT_BYTES = 65536           # that were sent, at least, before what is unsent is moved to the front


cdef struct Endpoint:
    int fd
    Carried* carried                # NULL: a plain socket
    bint watching_out               # EPOLLOUT is asked for
    bint closed
    bint slow                       # on purpose: read by the clock, not when there is something
    uint32_t index                  # among the subscribers
    uint32_t stream                 # of a publisher: the next one to publish on, in a ring
    uint32_t acknowledged_stream    # the one whose acknowledgement is next
    uint64_t requested              # publishes so far that are to be acknowledged
    uint64_t acknowledged           # that are
    uint8_t* tail                   # the beginning of a frame whose end has not come yet
    size_t tail_size
    size_t tail_room
    uint8_t* out                    # bytes the kernel has not taken yet: out[out_start:out_end]
    size_t out_start
    size_t out_end
    size_t out_room


cdef inline bint reserve(uint8_t** buffer, size_t* room, size_t wanted) noexcept nogil:
    """Make a buffer hold at least `wanted` bytes and keep its contents. False: no memory."""
    cdef size_t more = room[0] if room[0] else 4096
    cdef uint8_t* grown
    if wanted <= room[0]:
        return True
    while more < wanted:
        more *= 2
    grown = <uint8_t*>realloc(buffer[0], more)
    if grown == NULL:
        return False
    buffer[0] = grown
    room[0] = more
    return True


cdef inline bint send_out(Endpoint* endpoint) noexcept nogil:
    """Send what the kernel takes. False when the connection is broken."""
    cdef ssize_t n
    if endpoint.carried != NULL:
        while endpoint.out_start < endpoint.out_end:
            n = send_carried(
                endpoint.carried, endpoint.out + endpoint.out_start, endpoint.out_end - endpoint.out_start
            )
            if n < 0:
                return False
            if n == 0:
                break
            endpoint.out_start += <size_t>n
    elif endpoint.out_start < endpoint.out_end:
        n = send(endpoint.fd, endpoint.out + endpoint.out_start, endpoint.out_end - endpoint.out_start, MSG_NOSIGNAL)
        if n > 0:
            endpoint.out_start += <size_t>n
        elif n < 0 and errno != EAGAIN and errno != EINTR:
            return False
    if endpoint.out_start == endpoint.out_end:
        endpoint.out_start = endpoint.out_end = 0
    # Otherwise the buffer of a slow reader would grow without a bound.
    elif endpoint.out_start > COMPACT_BYTES and endpoint.out_start > endpoint.out_end // 2:
        endpoint.out_end -= endpoint.out_start
        memmove(endpoint.out, endpoint.out + endpoint.out_start, endpoint.out_end)
        endpoint.out_start = 0
    return True


cdef inline ssize_t receive(Endpoint* endpoint, uint8_t** buffer, size_t* room, size_t most) noexcept nogil:
    """Read the kept tail and up to `most` bytes more into the buffer. Their number; 0: nothing arrived."""
    cdef ssize_t n
    if not reserve(buffer, room, endpoint.tail_size + most):
        return OUT_OF_MEMORY
    if endpoint.carried != NULL:
        n = receive_carried(endpoint.carried, buffer[0] + endpoint.tail_size, most)
        if n <= 0:
            return OVER if n < 0 else 0
    else:
        n = recv(endpoint.fd, buffer[0] + endpoint.tail_size, most, 0)
    if n <= 0:
        return OVER if n == 0 or (errno != EAGAIN and errno != EINTR) else 0
    if endpoint.tail_size:
        memcpy(buffer[0], endpoint.tail, endpoint.tail_size)
    return <ssize_t>endpoint.tail_size + n


cdef inline bint keep_tail(Endpoint* endpoint, const uint8_t* data, size_t size) noexcept nogil:
    """Keep the beginning of a frame until the rest comes. False when memory is out."""
    endpoint.tail_size = size
    if size:
        if not reserve(&endpoint.tail, &endpoint.tail_room, size):
            return False
        memcpy(endpoint.tail, data, size)
    return True


cdef inline Endpoint* add_endpoint(
    Endpoint** endpoints, uint32_t* count, int fd, uint32_t index, bytes rest
) except NULL:
    """One more behind `count` others, which may move; rest: what was read behind the handshake. Raises MemoryError."""
    cdef Endpoint* grown = <Endpoint*>realloc(endpoints[0], (count[0] + 1) * sizeof(Endpoint))
    if grown == NULL:
        raise MemoryError
    endpoints[0] = grown
    cdef Endpoint* endpoint = &grown[count[0]]
    memset(endpoint, 0, sizeof(Endpoint))
    endpoint.fd = fd
    endpoint.index = index
    count[0] += 1
    if not keep_tail(endpoint, <const uint8_t*><const char*>rest, len(rest)):
        raise MemoryError
    return endpoint


cdef inline void watch(int epoll, Endpoint* endpoint, int what) noexcept nogil:
    """What `epoll_ctl` does with it (EPOLL_CTL_ADD, EPOLL_CTL_MOD); its event has a pointer to the endpoint."""
    cdef epoll_event event
    event.events = (0 if endpoint.slow else EPOLLIN) | (EPOLLOUT if endpoint.watching_out else 0)
    event.data.ptr = endpoint
    epoll_ctl(epoll, what, endpoint.fd, &event)


cdef inline uint8_t* copied(bytes data) except NULL:
    """A copy of its own, to be freed. Raises MemoryError."""
    cdef uint8_t* copy = <uint8_t*>malloc(len(data) + 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, <const char*>data, len(data))
    return copy
