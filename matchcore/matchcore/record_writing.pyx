# cython: language_level=3
"""Writing the rows of a record index: each row in the form that takes the fewest bytes (forms: record_rows.pyx)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from matchcore.positions cimport count_positions, lowest_position
from matchcore.record_rows cimport ARRAY, BITS, BITS_BYTES, CONTAINERS, HEAD, LIST, LIST_AT_MOST, RUNS, WORDS

import numpy

__all__ = ["encode_bits", "encode_rows", "encode_slices"]

cdef class Output:
    def __cinit__(self):
        self.data = bytearray(4_096)
        self.size = 0

    # Where `more` bytes may be written; they count at once.
    cdef uint8_t* take(self, size_t more) except NULL:
        cdef size_t room = len(self.data)
        if self.size + more > room:
            PyByteArray_Resize(self.data, max(2 * room, self.size + more))
        self.size += more
        return <uint8_t*> PyByteArray_AS_STRING(self.data) + self.size - more

    cdef object whole(self, list ends):
        """A section of the rows that end there."""
        if self.size >= 1 << 32:
            raise ValueError("the rows of a section take more than 4 GiB")
        head = numpy.array([len(ends), *ends], dtype="<u4").tobytes()
        return head + bytes(memoryview(self.data)[:self.size])


cdef inline size_t width(uint32_t value) noexcept nogil:
    """Bytes of its LEB128."""
    cdef size_t size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef int write_head(Output out, uint32_t key, uint8_t kind, uint32_t n) except -1:
    cdef uint8_t* at = out.take(HEAD)
    cdef uint16_t less = <uint16_t> (n - 1), short_key = <uint16_t> key
    memcpy(at, &short_key, 2)
    at[2] = kind
    memcpy(at + 3, &less, 2)
    return 0


cdef int write_runs(Output out, const uint32_t* ids, size_t n) except -1:
    cdef size_t i = 0, j
    cdef uint16_t[2] run_of
    while i < n:
        j = i + 1
        while j < n and ids[j] == ids[j - 1] + 1:
            j += 1
        run_of[0], run_of[1] = <uint16_t> ids[i], <uint16_t> (ids[j - 1] - ids[i])
        memcpy(out.take(4), run_of, 4)
        i = j
    return 0


cdef int write_container(Output out, const uint32_t* ids, size_t n, size_t runs, uint64_t* spare) except -1:
    cdef size_t i
    cdef uint16_t low
    cdef uint8_t* at
    if 4 * runs <= min(2 * n, BITS_BYTES):
        write_head(out, ids[0] >> 16, RUNS, <uint32_t> runs)
        write_runs(out, ids, n)
    elif 2 * n < BITS_BYTES:
        write_head(out, ids[0] >> 16, ARRAY, <uint32_t> n)
        at = out.take(2 * n)
        for i in range(n):
            low = <uint16_t> ids[i]
            memcpy(at + 2 * i, &low, 2)
    else:
        memset(spare, 0, BITS_BYTES)
        for i in range(n):
            spare[(ids[i] & 0xFFFF) >> 6] |= <uint64_t> 1 << (ids[i] & 63)
        write_head(out, ids[0] >> 16, BITS, <uint32_t> n)
        memcpy(out.take(BITS_BYTES), spare, BITS_BYTES)
    return 0


cdef int write_row(Output out, const uint32_t* ids, size_t n, uint64_t* spare) except -1:
    cdef size_t i, first, runs, listed = 0, contained = 0
    cdef uint32_t value
    cdef uint8_t* at
    for i in range(n):
        listed += width(ids[i] - ids[i - 1] - 1 if i else ids[0])
    i = 0
    while i < n:
        first, runs = i, 1
        i += 1
        while i < n and ids[i] >> 16 == ids[first] >> 16:
            runs += ids[i] != ids[i - 1] + 1
            i += 1
        contained += HEAD + min(2 * (i - first), 4 * runs, <size_t> BITS_BYTES)
    if n <= LIST_AT_MOST and listed <= contained:
        at = out.take(1 + listed)
        at[0] = LIST
        at += 1
        for i in range(n):
            value = ids[i] - ids[i - 1] - 1 if i else ids[0]
            while value >= 0x80:
                at[0] = <uint8_t> (value & 0x7F | 0x80)
                at += 1
                value >>= 7
            at[0] = <uint8_t> value
            at += 1
        return 0
    out.take(1)[0] = CONTAINERS
    i = 0
    while i < n:
        first, runs = i, 1
        i += 1
        while i < n and ids[i] >> 16 == ids[first] >> 16:
            runs += ids[i] != ids[i - 1] + 1
            i += 1
        write_container(out, ids + first, i - first, runs, spare)
    return 0


def encode_rows(const uint32_t[::1] ids, const int64_t[::1] bounds):
    """A section: row i has the ascending numbers ids[bounds[i]:bounds[i + 1]]."""
    cdef Output out = Output()
    cdef uint64_t[WORDS] spare
    cdef Py_ssize_t row
    ends = []
    for row in range(bounds.shape[0] - 1):
        if not 0 <= bounds[row] <= bounds[row + 1] <= ids.shape[0]:
            raise ValueError("bounds outside of ids")
        write_row(out, &ids[0] + bounds[row] if ids.shape[0] else NULL, <size_t> (bounds[row + 1] - bounds[row]), spare)
        ends.append(out.size)
    return out.whole(ends)


def encode_slices(const uint8_t[::1] known, list digits, list basis):
    """A section of range-encoded slices: the records that are known; then of each digit, for each value but the
    highest, those known records whose digit is at most that.

    digits   uint32 arrays with a number for each record, the lowest digit first; basis: the radix of each
    (O'Neil and Quass, "Improved query performance with variant indexes"; Chan and Ioannidis, "Bitmap index design and
    evaluation".)
    """
    cdef Output out = Output()
    cdef uint64_t[WORDS] spare
    cdef uint32_t* buffer = <uint32_t*> malloc((<size_t> known.shape[0] + 1) * sizeof(uint32_t))
    cdef const uint32_t[::1] digit
    cdef size_t n, i, records = <size_t> known.shape[0]
    cdef uint32_t at_most
    ends = []
    try:
        if buffer == NULL:
            raise MemoryError
        n = 0
        for i in range(records):
            buffer[n] = <uint32_t> i
            n += known[i] != 0
        write_row(out, buffer, n, spare)
        ends.append(out.size)
        for column, radix in zip(digits, basis, strict=True):
            digit = column
            if <size_t> digit.shape[0] != records:
                raise ValueError("a digit for each record")
            for at_most in range(<uint32_t> radix - 1):
                n = 0
                for i in range(records):
                    buffer[n] = <uint32_t> i
                    n += known[i] != 0 and digit[i] <= at_most
                write_row(out, buffer, n, spare)
                ends.append(out.size)
    finally:
        free(buffer)
    return out.whole(ends)


cdef size_t numbers_in(const uint64_t* words, size_t count, uint32_t first, uint32_t* ids) noexcept nogil:
    """The numbers of the bits, ascending; how many."""
    cdef size_t i, n = 0
    cdef uint64_t word
    for i in range(count):
        word = words[i]
        while word:
            ids[n] = first + <uint32_t> (64 * i) + lowest_position(word)
            n += 1
            word &= word - 1
    return n


cdef int write_bits(Output out, const uint64_t* words, size_t chunks, uint32_t* ids, uint64_t* spare) except -1:
    """As write_row, of a row that is bits: `chunks` times WORDS."""
    cdef size_t chunk, i, n, runs, total = 0
    cdef const uint64_t* at
    cdef uint64_t before
    for i in range(chunks * WORDS):
        total += count_positions(words[i])
    if total <= LIST_AT_MOST:
        return write_row(out, ids, numbers_in(words, chunks * WORDS, 0, ids), spare)
    out.take(1)[0] = CONTAINERS
    for chunk in range(chunks):
        at = words + chunk * WORDS
        n, runs, before = 0, 0, 0
        for i in range(WORDS):
            n += count_positions(at[i])
            runs += count_positions(at[i] & ~(at[i] << 1 | before))  # each run by its first number
            before = at[i] >> 63
        if n == 0:
            continue
        if 2 * n >= BITS_BYTES and 4 * runs > BITS_BYTES:
            write_head(out, <uint32_t> chunk, BITS, <uint32_t> n)
            memcpy(out.take(BITS_BYTES), at, BITS_BYTES)
        else:
            numbers_in(at, WORDS, <uint32_t> chunk << 16, ids)
            write_container(out, ids, n, runs, spare)
    return 0


def encode_bits(const uint8_t[::1] known, const uint64_t[::1] codes, uint32_t bits):
    """The section of encode_slices for codes in basis 2, bit by bit: several times as quick."""
    cdef Output out = Output()
    cdef uint64_t[WORDS] spare
    cdef size_t records = <size_t> known.shape[0], chunks = (records + 65_535) // 65_536, i, j, end
    cdef uint64_t word
    cdef uint32_t bit
    cdef uint64_t* words
    cdef uint32_t* ids
    if <size_t> codes.shape[0] != records:
        raise ValueError("a code for each record")
    ends = []
    words = <uint64_t*> malloc((chunks + 1) * BITS_BYTES)
    ids = <uint32_t*> malloc((records + 1) * sizeof(uint32_t))
    try:
        if words == NULL or ids == NULL:
            raise MemoryError
        for bit in range(bits + 1):  # 0: the row of those that are known
            memset(words, 0, chunks * BITS_BYTES)
            for i in range((records + 63) // 64):
                end = min(<size_t> 64, records - 64 * i)
                word = 0
                for j in range(end):
                    if bit == 0:
                        word |= <uint64_t> (known[64 * i + j] != 0) << j
                    else:
                        word |= (~codes[64 * i + j] >> (bit - 1) & (known[64 * i + j] != 0)) << j
                words[i] = word
            write_bits(out, words, chunks, ids, spare)
            ends.append(out.size)
    finally:
        free(words)
        free(ids)
    return out.whole(ends)
