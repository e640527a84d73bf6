"""What is between a connection of a generator's and its socket, if anything is: TLS, or the frames of WebSocket.

A connection without one is a plain socket (endpoint.pxd). TLS is OpenSSL, which openssl.py finds: here are only
pointers to its functions, so that nothing is linked. Of WebSocket there is what a load needs: each write is one masked
binary message, of what is received only the payload of binary messages is kept, a ping is not answered, and anything
else ends the connection.
"""

from libc.stdint cimport uint8_t, uint64_t

ctypedef int (*SslRead)(void* ssl, void* buffer, int size) noexcept nogil
ctypedef int (*SslWrite)(void* ssl, const void* data, int size) noexcept nogil
ctypedef int (*SslError)(const void* ssl, int result) noexcept nogil
ctypedef int (*SslPending)(const void* ssl) noexcept nogil
ctypedef void (*SslFree)(void* ssl) noexcept nogil

cdef enum:
    HEAD_BYTES_MAX = 14         # of a frame (RFC 6455, 5.2)


cdef struct Carried:
    int fd
    void* ssl                   # NULL: not encrypted
    SslRead ssl_read
    SslWrite ssl_write
    SslError ssl_error
    SslPending ssl_pending
    SslFree ssl_free
    bint framed                 # in frames of WebSocket
    bint dry                    # all that the socket had is read
    uint8_t* out                # the frame that is being sent: out[out_start:out_end]
    size_t out_start
    size_t out_end
    size_t out_room
    size_t covers               # bytes of its payload
    uint8_t[HEAD_BYTES_MAX] head  # the beginning of the head of the frame that is received
    size_t head_size
    uint64_t left               # of its payload
    bint skipped                # it is a ping or a pong


# Send what the kernel takes of `data`, which begins with what did not go the last time. How many bytes of it need not
# be given again; -1: the connection is broken.
cdef ssize_t send_carried(Carried* carried, const uint8_t* data, size_t size) noexcept nogil

# Receive up to `size` bytes; 0: nothing for us has come, -1: the connection is at its end. To be repeated until `dry`.
cdef ssize_t receive_carried(Carried* carried, uint8_t* buffer, size_t size) noexcept nogil


cdef class Carrier:
    cdef Carried carried
