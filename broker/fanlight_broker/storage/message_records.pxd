# Messages as records of the log: see message_records.pyx.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.message cimport Format, Message

cdef Py_ssize_t message_size(Message message, Py_ssize_t slots) except -1
cdef char* write_message(char* at, Message message, uint64_t number, double wall, const uint32_t* slots,
                         Py_ssize_t count, bint as_set, uint64_t came=*) except NULL

# What a MESSAGE record says besides the message.
cdef struct Places:
    uint64_t number
    const char* slots    # uint32_t each, not aligned
    int count
    bint as_set          # `slots` is the number of one set
    uint64_t octets      # that the message takes while it is kept
    double expires       # wall-clock time; inf: never
    double came          # the same; 0: its record does not say

cdef class Formats:
    cdef:
        object by_family        # a Mapping
        Format last             # that was found, or None
        bytes last_family

    cdef Format find(self, const char* family, Py_ssize_t size)

cdef int places_of(Places* places, const char* body, Py_ssize_t size) except -1
cdef bytes topic_at(const char* body, Py_ssize_t size, int* syntax)
cdef Message message_at(const char* body, Py_ssize_t size, Formats formats, double wall, double* came)

cdef inline uint64_t number_of(const char* body, Py_ssize_t size) noexcept:
    """The number of a MESSAGE record; 0 if it is too short to have one."""
    cdef uint64_t number = 0
    if size >= <Py_ssize_t> sizeof(number):
        memcpy(&number, body, sizeof(number))
    return number
