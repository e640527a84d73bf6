# Objects of JSON as columns of Arrow: a JsonKey for each column, which is found by its name.
#
#   slots   hash of a name -> number of its key, from 1; open addressing, a quarter full at most
#   keys    [ symbol TEXT | close REAL | volume INTEGER | venue PRESENCE ]
#               valid    bits, as Arrow has them
#               integers, reals, bits, present      of the rows that are read; whose arrays `read` gives away

from libc.stdint cimport int64_t, uint8_t, uint16_t

cdef struct JsonKey:
    const char* name
    Py_ssize_t size
    int64_t row            # in which it was last
    uint8_t kind
    uint8_t* valid         # bits
    uint8_t* bits          # of BOOLEAN
    int64_t* integers      # of INTEGER; of TEXT two: where it begins, and its size, below 0 if it has escapes
    double* reals
    uint8_t* present


cdef class JsonColumns:
    cdef:
        JsonKey* keys
        uint16_t* slots        # numbers of keys from 1, by their hashes
        int count
        tuple names            # which own their octets

    cdef tuple _room(self, int number, Py_ssize_t rows)
    cdef bint _row(self, const uint8_t* text, int64_t start, int64_t stop, int64_t row) noexcept nogil
    cdef tuple _texts(self, int number, tuple room, const uint8_t* text, uint8_t[::1] odd)
