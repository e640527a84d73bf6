# Frames of WebSocket (RFC 6455, 5): what a server reads of binary messages, and how it writes one.
#
#    FrameReader   a client's bytes --> the payload of its binary messages, as a stream
#                                   --> its control frames, whole and as they came, for wsproto
#                                   --> what is wrong with a frame
#
# A frame's payload is passed on as it arrives, so nothing is held but an unfinished head or control frame.

from libc.stdint cimport uint64_t

cdef enum:
    HEAD_BYTES_MAX = 14          # 2, the length in 8 more, the key in 4
    CONTROL_BYTES_MAX = 125      # of a control frame's payload

cdef class FrameReader:
    cdef:
        public bytes control             # the control frame that ended the last `read`; None: something else did
        public object error              # code and text of what is wrong where it ended; None: nothing
        bytes data                       # fed, and not read from `at` on; None: nothing
        Py_ssize_t at
        unsigned char[HEAD_BYTES_MAX + CONTROL_BYTES_MAX] head    # of the frame that begins; all of a control frame
        Py_ssize_t head_size
        unsigned char[8] key             # the frame's, twice, from the byte for the next octet on
        uint64_t left                    # of the payload of the frame at hand
        uint64_t message_size, message_bytes_max
        bint open                        # the frame at hand is not the last of its message
        bint broken                      # nothing more can be read

    cdef void skip(self, Py_ssize_t octets) noexcept
    cdef int fail(self, int code, text) except -1
    cdef Py_ssize_t read_head(self, const unsigned char* data, Py_ssize_t size) except -1
    cdef Py_ssize_t head_lacks(self) except -1
    cdef int check(self, int first, int second) except -1
    cdef int begin_frame(self) except -1
