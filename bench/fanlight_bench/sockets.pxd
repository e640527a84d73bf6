"""What the load generator and the null broker need of the operating system, and nothing more.

Linux only, because of epoll: that is why these extensions are optional in pyproject.toml. Everything here is
callable without the interpreter lock.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "<sys/epoll.h>" nogil:
    enum:
        EPOLLIN
        EPOLLOUT
        EPOLLERR
        EPOLLHUP
        EPOLL_CTL_ADD
        EPOLL_CTL_MOD
        EPOLL_CTL_DEL

    ctypedef union epoll_data_t:
        void* ptr
        int fd
        uint32_t u32

    struct epoll_event:
        uint32_t events
        epoll_data_t data

    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event)
    int epoll_wait(int epfd, epoll_event* events, int maxevents, int timeout)


cdef extern from "<sys/socket.h>" nogil:
    enum:
        MSG_NOSIGNAL
    ssize_t recv(int fd, void* buffer, size_t size, int flags)
    ssize_t send(int fd, const void* buffer, size_t size, int flags)


cdef extern from "<unistd.h>" nogil:
    int close(int fd)
    ssize_t read(int fd, void* buffer, size_t size)
    ssize_t write(int fd, const void* buffer, size_t size)


cdef extern from "<time.h>" nogil:
    enum:
        CLOCK_MONOTONIC

    struct timespec:
        int64_t tv_sec
        long tv_nsec

    struct itimerspec:
        timespec it_interval
        timespec it_value

    int clock_gettime(int clock, timespec* now)


cdef extern from "<sys/timerfd.h>" nogil:
    enum:
        TFD_NONBLOCK
        TFD_TIMER_ABSTIME
    int timerfd_create(int clock, int flags)
    int timerfd_settime(int fd, int flags, const itimerspec* new_value, itimerspec* old_value)


cdef inline uint64_t now_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <uint64_t>now.tv_sec * 1000000000u + <uint64_t>now.tv_nsec


# Integers on the wire are big-endian and not aligned.

cdef inline uint32_t load_u32(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | p[3]


cdef inline void store_u32(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 24)
    p[1] = <uint8_t>(value >> 16)
    p[2] = <uint8_t>(value >> 8)
    p[3] = <uint8_t>value


cdef struct Text:
    # A msgpack str or bin in a receive buffer; bytes is NULL if there is none, or it is cut off.
    const uint8_t* bytes
    uint32_t size


cdef inline Text load_text(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The str or bin that begins at `p` and ends by `end`."""
    cdef Text text
    cdef uint32_t head
    text.bytes = NULL
    text.size = 0
    if p >= end:
        return text
    if p[0] & 0xe0 == 0xa0:                                   # fixstr
        head = 1
        text.size = p[0] & 31
    elif (p[0] == 0xd9 or p[0] == 0xc4) and end - p >= 2:     # str 8, bin 8
        head = 2
        text.size = p[1]
    elif (p[0] == 0xda or p[0] == 0xc5) and end - p >= 3:     # str 16, bin 16
        head = 3
        text.size = (<uint32_t>p[1] << 8) | p[2]
    elif (p[0] == 0xdb or p[0] == 0xc6) and end - p >= 5:     # str 32, bin 32
        head = 5
        text.size = load_u32(p + 1)
    else:
        return text
    if <uint64_t>(end - p) >= <uint64_t>head + text.size:
        text.bytes = p + head
    return text


cdef struct Number:
    uint32_t value
    uint32_t size       # of its encoding, in bytes; 0 if there is none


cdef inline Number load_number(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """The unsigned integer of up to 32 bits that begins at `p`."""
    cdef Number number
    number.value = 0
    number.size = 0
    if p >= end:
        return number
    if p[0] < 0x80:
        number.value = p[0]
        number.size = 1
    elif p[0] == 0xcc and end - p >= 2:
        number.value = p[1]
        number.size = 2
    elif p[0] == 0xcd and end - p >= 3:
        number.value = (<uint32_t>p[1] << 8) | p[2]
        number.size = 3
    elif p[0] == 0xce and end - p >= 5:
        number.value = load_u32(p + 1)
        number.size = 5
    return number
