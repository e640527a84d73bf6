# cython: language_level=3
"""Rows of a record index: sets of record numbers in few bytes, and the programs that combine them.

A section is rows in one piece of memory, which may be a mapped file; integers are little endian:

    u32 rows | u32 ends of the rows, from here on ... | row | row | ...

    row, by its first byte      LIST          differences of its ascending numbers, each less one, as LEB128 (7 bits a
                                              byte, the lowest first); the first is the number itself
                                CONTAINERS    of 2^16 numbers each, by ascending key, as in Roaring bitmaps (Lemire et
                                              al., "Roaring Bitmaps: Implementation of an Optimized Software Library")
    container                   u16 key | u8 kind | u16 n - 1 | ARRAY: n u16 | BITS: 8 KiB | RUNS: n of (u16 first,
                                u16 length - 1)

A program combines rows in registers of 2^16 bits, 8 KiB, chunk by chunk: whatever it asks for, it works in the first
cache, and a row is read once, from its beginning to its end. No row is made into another row.

Every read is checked against the end of its row, and each number against the number of records: damaged bytes are a
ValueError, or another set of existing records, and never a read outside.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import numpy

__all__ = ["RowSection", "answer"]

# What a program does: (operation, register, register or row or number of steps)
cdef enum:
    OP_ZERO = 0
    OP_ONES = 1
    OP_AND = 2
    OP_OR = 3
    OP_COPY = 4
    OP_OR_ROW = 5
    OP_AND_ROW = 6
    OP_SKIP_IF_EMPTY = 7
    OP_AND_NOT = 8

ZERO, ONES, AND, OR, COPY, OR_ROW, AND_ROW, SKIP_IF_EMPTY, AND_NOT = range(9)

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* With the widest instructions there are, chosen by the first call, as in wide.pxd. */
    #if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) \\
        && !defined(__SANITIZE_ADDRESS__)
    #define RECORD_ROWS_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define RECORD_ROWS_WIDE
    #endif

    typedef uint64_t record_rows_block __attribute__((vector_size(64), aligned(1), may_alias));

    /* Registers and bits are 128 blocks of 64 bytes. */
    RECORD_ROWS_WIDE static void record_rows_or(void *to, const void *bits) {
        record_rows_block *a = (record_rows_block *) to;
        const record_rows_block *b = (const record_rows_block *) bits;
        for (int i = 0; i < 128; i++) a[i] |= b[i];
    }
    RECORD_ROWS_WIDE static void record_rows_and(void *to, const void *bits) {
        record_rows_block *a = (record_rows_block *) to;
        const record_rows_block *b = (const record_rows_block *) bits;
        for (int i = 0; i < 128; i++) a[i] &= b[i];
    }
    RECORD_ROWS_WIDE static void record_rows_and_not(void *to, const void *bits) {
        record_rows_block *a = (record_rows_block *) to;
        const record_rows_block *b = (const record_rows_block *) bits;
        for (int i = 0; i < 128; i++) a[i] &= ~b[i];
    }
    RECORD_ROWS_WIDE static int record_rows_is_empty(const void *bits) {
        const record_rows_block *b = (const record_rows_block *) bits;
        record_rows_block any = {0};
        for (int i = 0; i < 128; i++) any |= b[i];
        return !(any[0] | any[1] | any[2] | any[3] | any[4] | any[5] | any[6] | any[7]);
    }
    /* Bits that both have, without the instruction that counts them: not every processor has it for vectors. */
    RECORD_ROWS_WIDE static uint64_t record_rows_count(const void *one, const void *other) {
        const record_rows_block *a = (const record_rows_block *) one, *b = (const record_rows_block *) other;
        record_rows_block total = {0};
        for (int i = 0; i < 128; i++) {
            record_rows_block w = a[i] & b[i];
            w -= (w >> 1) & 0x5555555555555555ull;
            w = (w & 0x3333333333333333ull) + ((w >> 2) & 0x3333333333333333ull);
            w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0full;
            w += w >> 8;
            w += w >> 16;
            w += w >> 32;
            total += w & 0x7f;
        }
        return total[0] + total[1] + total[2] + total[3] + total[4] + total[5] + total[6] + total[7];
    }
    static inline int record_rows_lowest(uint64_t w) { return __builtin_ctzll(w); }
    """
    uint64_t count_both "record_rows_count"(const void* one, const void* other) noexcept nogil
    void or_bits "record_rows_or"(void* to, const void* bits) noexcept nogil
    void and_bits "record_rows_and"(void* to, const void* bits) noexcept nogil
    void and_not_bits "record_rows_and_not"(void* to, const void* bits) noexcept nogil
    bint is_empty "record_rows_is_empty"(const void* bits) noexcept nogil
    int lowest "record_rows_lowest"(uint64_t word) noexcept nogil


cdef struct Container:
    const uint8_t* data
    uint32_t n
    uint8_t kind


cdef inline uint16_t u16(const uint8_t* at) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, at, 2)
    return value


cdef inline uint32_t u32(const uint8_t* at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


cdef class RowSection:
    """Rows in bytes that are lent: their owner must not change them. `len` of it: how many rows.

    ValueError: the bytes are no section.
    """

    def __init__(self, data):
        self.data = data
        if self.data.shape[0] < 4:
            raise ValueError("a section of less than 4 bytes")
        self.count = u32(&self.data[0])
        if 4 + 4 * <uint64_t> self.count > <uint64_t> self.data.shape[0]:
            raise ValueError(f"a section of {self.data.shape[0]} bytes says that it has {self.count} rows")

    def __len__(self):
        return self.count

    cdef int open(self, uint32_t row, RowCursor* cursor) except -1:
        cdef uint64_t first, end, base
        if row >= self.count:
            raise ValueError(f"row {row} of a section of {self.count}")
        base = 4 + 4 * <uint64_t> self.count
        first = u32(&self.data[4 * row]) if row else 0
        end = u32(&self.data[4 + 4 * row])
        if first >= end or end > <uint64_t> self.data.shape[0] - base:
            raise ValueError(f"row {row} is outside its section")
        cursor.at = &self.data[0] + base + first
        cursor.end = &self.data[0] + base + end
        cursor.form = cursor.at[0]
        if cursor.form > CONTAINERS:
            raise ValueError(f"row {row} begins with {cursor.form}")
        cursor.at += 1
        cursor.has_next = False
        cursor.next = 0
        cursor.key = -1
        return 0


# -- reading -----------------------------------------------------------------------------------------------------------

# 1: `found` is the row's container of the chunk; 0: it has none; -1: damaged.
cdef int seek(RowCursor* cursor, uint32_t chunk, Container* found) noexcept nogil:
    cdef uint32_t key, n
    cdef uint64_t size
    cdef uint8_t kind
    while cursor.at < cursor.end:
        if cursor.end - cursor.at < HEAD:
            return -1
        key, kind, n = u16(cursor.at), cursor.at[2], <uint32_t> u16(cursor.at + 3) + 1
        if kind == ARRAY:
            size = 2 * n
        elif kind == RUNS:
            size = 4 * n
        elif kind == BITS:
            size = BITS_BYTES
        else:
            return -1
        if size > <uint64_t> (cursor.end - cursor.at - HEAD):
            return -1
        if key > chunk:
            return 0
        if key == chunk:
            found.data, found.n, found.kind = cursor.at + HEAD, n, kind
            return 1
        if <int32_t> key <= cursor.key:
            return -1
        cursor.key = <int32_t> key
        cursor.at += HEAD + size
    return 0


# 1: the next number of a list, -> cursor.next; 0: there is no other; -1: damaged.
cdef int advance(RowCursor* cursor) noexcept nogil:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t octet
    if cursor.at >= cursor.end:
        return 0
    while True:
        if cursor.at >= cursor.end or shift > 28:
            return -1
        octet = cursor.at[0]
        cursor.at += 1
        value |= <uint64_t> (octet & 0x7F) << shift
        if octet < 0x80:
            break
        shift += 7
    cursor.next = value if cursor.key < 0 else cursor.next + value + 1
    cursor.key = 0  # there was a first one
    return 1


cdef void fill(uint64_t* register, uint32_t first, uint32_t last) noexcept nogil:
    """Set the bits from `first` to `last`."""
    cdef uint32_t word = first >> 6, end = last >> 6
    cdef uint64_t low = <uint64_t> -1 << (first & 63), high = <uint64_t> -1 >> (63 - (last & 63))
    if word == end:
        register[word] |= low & high
        return
    register[word] |= low
    word += 1
    while word < end:
        register[word] = <uint64_t> -1
        word += 1
    register[end] |= high


# 0, or -1: damaged.
cdef int or_row(RowCursor* cursor, uint32_t chunk, uint64_t* register) noexcept nogil:
    cdef Container found
    cdef uint32_t i, value, length
    cdef int got
    if cursor.form == LIST:
        while True:
            if not cursor.has_next:
                got = advance(cursor)
                if got <= 0:
                    return got
                cursor.has_next = True
            if cursor.next >> 16 > chunk:
                return 0
            if cursor.next >> 16 == chunk:
                register[(cursor.next & 0xFFFF) >> 6] |= <uint64_t> 1 << (cursor.next & 63)
            cursor.has_next = False
    got = seek(cursor, chunk, &found)
    if got <= 0:
        return got
    if found.kind == BITS:
        or_bits(register, found.data)
    elif found.kind == ARRAY:
        for i in range(found.n):
            value = u16(found.data + 2 * i)
            register[value >> 6] |= <uint64_t> 1 << (value & 63)
    else:
        for i in range(found.n):
            value, length = u16(found.data + 4 * i), u16(found.data + 4 * i + 2)
            if value + length >= CHUNK:
                return -1
            fill(register, value, value + length)
    return 0


cdef int and_row(RowCursor* cursor, uint32_t chunk, uint64_t* register, uint64_t* spare) noexcept nogil:
    cdef Container found
    cdef int got
    if cursor.form == CONTAINERS:
        got = seek(cursor, chunk, &found)
        if got < 0:
            return -1
        if got == 0:
            memset(register, 0, BITS_BYTES)
            return 0
        if found.kind == BITS:
            and_bits(register, found.data)
            return 0
    memset(spare, 0, BITS_BYTES)
    if or_row(cursor, chunk, spare) < 0:
        return -1
    and_bits(register, spare)
    return 0


# How many numbers the row and the register have in common; -1: damaged.
cdef int64_t count_row(RowCursor* cursor, uint32_t chunk, const uint64_t* register, uint64_t* spare) noexcept nogil:
    cdef Container found
    cdef uint32_t i, value
    cdef int64_t total = 0
    cdef int got
    if cursor.form == CONTAINERS:
        got = seek(cursor, chunk, &found)
        if got <= 0:
            return got
        if found.kind == BITS:
            return <int64_t> count_both(register, found.data)
        if found.kind == ARRAY:
            for i in range(found.n):
                value = u16(found.data + 2 * i)
                total += (register[value >> 6] >> (value & 63)) & 1
            return total
        memset(spare, 0, BITS_BYTES)
        if or_row(cursor, chunk, spare) < 0:
            return -1
        return <int64_t> count_both(register, spare)
    while True:
        if not cursor.has_next:
            got = advance(cursor)
            if got <= 0:
                return total if got == 0 else -1
            cursor.has_next = True
        if cursor.next >> 16 > chunk:
            return total
        if cursor.next >> 16 == chunk:
            total += (register[(cursor.next & 0xFFFF) >> 6] >> (cursor.next & 63)) & 1
        cursor.has_next = False


# The result is in register 0. 0, or -1: damaged.
cdef int run(
    const int32_t* program, size_t steps, RowCursor* cursors, uint64_t* registers, uint64_t* spare,
    const uint64_t* valid,
    uint32_t chunk,
) noexcept nogil:
    cdef size_t step = 0
    cdef int32_t operation, a, b
    cdef uint64_t* to
    cdef const uint64_t* other
    while step < steps:
        operation, a, b = program[3 * step], program[3 * step + 1], program[3 * step + 2]
        step += 1
        to = registers + WORDS * a
        if operation == OP_OR_ROW:
            if or_row(&cursors[b], chunk, to) < 0:
                return -1
        elif operation == OP_AND_ROW:
            if and_row(&cursors[b], chunk, to, spare) < 0:
                return -1
        elif operation == OP_ZERO:
            memset(to, 0, BITS_BYTES)
        elif operation == OP_ONES:
            memset(to, 0xFF, BITS_BYTES)
        elif operation == OP_SKIP_IF_EMPTY:
            if is_empty(to):
                step += b
        else:
            other = registers + WORDS * b
            if operation == OP_AND:
                and_bits(to, other)
            elif operation == OP_OR:
                or_bits(to, other)
            elif operation == OP_AND_NOT:
                and_not_bits(to, other)
            else:
                memcpy(to, other, BITS_BYTES)
    and_bits(registers, valid)
    return 0


def _checked(const int32_t[:, ::1] program, size_t rows):
    """How many registers a program needs. ValueError: it leaves its registers, its rows or its steps."""
    cdef size_t step
    cdef int32_t most = 0, operation, a, b
    for step in range(<size_t> program.shape[0]):
        operation, a, b = program[step, 0], program[step, 1], program[step, 2]
        most = max(most, a, b if operation in (OP_AND, OP_OR, OP_COPY, OP_AND_NOT) else 0)
        if operation < 0 or operation > OP_AND_NOT or a < 0 or b < 0 or most > 255:
            raise ValueError(f"step {step} of a program: {operation} {a} {b}")
        if operation in (OP_OR_ROW, OP_AND_ROW) and <size_t> b >= rows:
            raise ValueError(f"step {step} of a program reads row {b} of {rows}")
    return most + 1


def answer(uint64_t records, program, list rows, list each=None, bint want_ids=False):
    """What a program finds among `records` records.

    program   (steps, 3) int32: an operation, a register, and a register, a row or a number of steps
    rows      (RowSection, number of the row in it), by their place here; each is read once, from its beginning
    each      rows whose share in what is found is counted
    Returns how many are found; with want_ids their numbers, uint32; with `each` a count for each, int64.
    ValueError: damaged rows.
    """
    cdef const int32_t[:, ::1] code = numpy.ascontiguousarray(program, dtype=numpy.int32).reshape(-1, 3)
    cdef size_t steps = code.shape[0], row_count = len(rows), each_count = len(each) if each is not None else 0
    cdef size_t row, chunks = <size_t> ((records + CHUNK - 1) // CHUNK), all_rows = row_count + each_count
    cdef uint32_t chunk
    cdef uint64_t total = 0, word
    cdef int64_t part
    cdef int i, register_count = _checked(code, row_count)
    cdef RowSection section
    cdef uint32_t[::1] ids
    cdef int64_t[::1] counts
    cdef bint damaged = False
    cdef const int32_t* first = &code[0, 0] if steps else NULL
    found = numpy.empty(records if want_ids else 0, numpy.uint32)
    counted = numpy.zeros(each_count, numpy.int64)
    ids, counts = found, counted
    cdef RowCursor* cursors = <RowCursor*> calloc(all_rows + 1, sizeof(RowCursor))
    cdef uint64_t* memory = <uint64_t*> malloc((register_count + 2) * BITS_BYTES)
    cdef uint64_t* spare = memory + WORDS * register_count
    cdef uint64_t* valid = spare + WORDS
    try:
        if cursors == NULL or memory == NULL:
            raise MemoryError
        for row, (section, number) in enumerate([*rows, *(each or ())]):
            section.open(number, &cursors[row])
        memset(memory, 0, register_count * BITS_BYTES)
        with nogil:
            memset(valid, 0xFF, BITS_BYTES)
            for chunk in range(<uint32_t> chunks):
                if chunk == chunks - 1 and records % CHUNK:
                    memset(valid, 0, BITS_BYTES)
                    fill(valid, 0, <uint32_t> (records % CHUNK) - 1)
                if run(first, steps, cursors, memory, spare, valid, chunk) < 0:
                    damaged = True
                    break
                if each_count:
                    if is_empty(memory):
                        continue
                    for row in range(each_count):
                        part = count_row(&cursors[row_count + row], chunk, memory, spare)
                        if part < 0:
                            damaged = True
                            break
                        counts[row] += part
                    if damaged:
                        break
                elif want_ids:
                    for i in range(WORDS):
                        word = memory[i]
                        while word:
                            ids[total] = chunk * CHUNK + 64 * i + lowest(word)
                            total += 1
                            word &= word - 1
                else:
                    total += count_both(memory, memory)
        if damaged:
            raise ValueError("a row is not what a row can be")
    finally:
        free(cursors)
        free(memory)
    if each is not None:
        return counted
    return found[:total].copy() if want_ids else total
