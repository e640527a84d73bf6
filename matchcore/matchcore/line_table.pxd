# The hash table of the buckets: like table.pxd, from a 32-bit tag to 32-bit references, but a probe
# that finds nothing, the usual case, costs one cache line and one branch.
#
#     line, 64 bytes   | tag x 7 | passed | ref x 7 | - |         tag 0: empty
#                        home = tag x lines / 2**32
#     sieve            a bit for each tag, looked at before the line: sieve.pxd
#
# All tags of a line are compared at once. A line that is full sends what does not fit to the next one and
# counts it in `passed`: a search goes on only where that is not 0, so that a removal moves nothing.
# The number of lines is arbitrary, so that the table grows by half; up to five of seven entries are in use.
#
# Termination. An addition ends because two entries in seven are empty (line_table_reserve). A search for an existing
# entry ends because its line is reached from its home (line_table_seek). Any other search ends at a line that passed
# nothing on, or when it is HOME AGAIN: a line keeps its count as long as what it passed on exists, though it may have
# room by now, so with few lines all counts can be above 0 at once.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from matchcore.allocator cimport Allocator, deallocate, allocate_zeros, prefetch
from matchcore.sieve cimport Sieve, sieve_free, sieve_make, sieve_put, sieve_size

cdef enum:
    LINE_ENTRIES = 7
    LINE_FULL = 5       # with six, one line in five passes on; that branch is a guess
    LINES_AT_MOST = 600000000


cdef struct Line:
    uint32_t[LINE_ENTRIES] tags
    uint32_t passed
    uint32_t[LINE_ENTRIES] refs
    uint32_t unused


cdef struct LineTable:
    Line* lines            # from the first multiple of 64 bytes in `block`
    void* block
    uint32_t count
    uint32_t used
    Sieve sieve            # none in a frozen copy


cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    /* Bit i: entry i of the line has this tag. */
    static inline uint32_t matchcore_entries_of(const void *line, uint32_t tag) {
    #if defined(__SSE2__)
        const __m128i wanted = _mm_set1_epi32((int) tag);
        __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *) line), wanted);
        __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *) line + 1), wanted);
        return (uint32_t) _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128())) & 0x7F;
    #else
        const uint32_t *tags = (const uint32_t *) line;
        uint32_t found = 0;
        int i;
        for (i = 0; i < 7; i++)
            found |= (uint32_t) (tags[i] == tag) << i;
        return found;
    #endif
    }
    static inline int matchcore_first_entry(uint32_t entries) { return __builtin_ctz(entries); }
    """
    uint32_t entries_of "matchcore_entries_of" (const void* line, uint32_t tag) noexcept nogil
    int first_entry "matchcore_first_entry" (uint32_t entries) noexcept nogil


# 0 says that an entry is empty, so no tag is 0.
cdef inline uint32_t line_tag(uint32_t tag) noexcept nogil:
    return tag if tag != 0 else 1


cdef inline uint32_t line_home(const LineTable* table, uint32_t tag) noexcept nogil:
    return <uint32_t> ((<uint64_t> tag * table.count) >> 32)


cdef inline uint32_t line_after(const LineTable* table, uint32_t line) noexcept nogil:
    line += 1
    return line if line != table.count else 0


cdef inline void line_table_prefetch(const LineTable* table, uint32_t tag) noexcept nogil:
    prefetch(&table.lines[line_home(table, tag)])


# Room was made before (line_table_reserve), so that this cannot fail.
cdef inline void line_table_put(LineTable* table, uint32_t tag, uint32_t ref) noexcept nogil:
    cdef uint32_t at = line_home(table, tag)
    cdef uint32_t free = entries_of(&table.lines[at], 0)
    while free == 0:
        table.lines[at].passed += 1
        at = line_after(table, at)
        free = entries_of(&table.lines[at], 0)
    table.lines[at].tags[first_entry(free)] = tag
    table.lines[at].refs[first_entry(free)] = ref
    table.used += 1
    sieve_put(&table.sieve, tag)


cdef inline void line_table_free(Allocator* allocator, LineTable* table) noexcept nogil:
    if table.block != NULL:
        deallocate(allocator, table.block, (<size_t> table.count + 1) * sizeof(Line))
    sieve_free(allocator, &table.sieve)
    table.block = NULL
    table.lines = NULL
    table.count = table.used = 0


cdef inline int line_table_resize(Allocator* allocator, LineTable* table, size_t count) noexcept nogil:
    cdef LineTable made
    cdef size_t i
    cdef int j
    if count > LINES_AT_MOST:
        return -1
    made.count = <uint32_t> count
    made.used = 0
    made.block = allocate_zeros(allocator, (count + 1) * sizeof(Line))
    if made.block == NULL:
        return -1
    sieve_make(allocator, &made.sieve, count * LINE_FULL)
    made.lines = <Line*> ((<size_t> made.block + sizeof(Line) - 1) // sizeof(Line) * sizeof(Line))
    for i in range(table.count):
        for j in range(LINE_ENTRIES):
            if table.lines[i].tags[j] != 0:
                line_table_put(&made, table.lines[i].tags[j], table.lines[i].refs[j])
    line_table_free(allocator, table)
    table[0] = made
    return 0


# Room for one more.
cdef inline int line_table_reserve(Allocator* allocator, LineTable* table) noexcept nogil:
    if table.used < <size_t> table.count * LINE_FULL:
        return 0
    return line_table_resize(allocator, table, <size_t> table.count + table.count // 2 + 1)


# Which entry of its line this tag and reference have; `at` is the line. It is there.
cdef inline int line_table_seek(const LineTable* table, uint32_t tag, uint32_t ref, uint32_t* at) noexcept nogil:
    cdef uint32_t found
    at[0] = line_home(table, tag)
    while True:
        found = entries_of(&table.lines[at[0]], tag)
        while found != 0:
            if table.lines[at[0]].refs[first_entry(found)] == ref:
                return first_entry(found)
            found &= found - 1
        at[0] = line_after(table, at[0])


cdef inline void line_table_replace(LineTable* table, uint32_t tag, uint32_t ref, uint32_t by) noexcept nogil:
    cdef uint32_t at
    cdef int entry = line_table_seek(table, tag, ref, &at)
    table.lines[at].refs[entry] = by


# The tags that have gone have bits too: when they are as many as there is room for, all bits are made anew.
cdef inline void line_table_sift(LineTable* table) noexcept nogil:
    cdef size_t i
    cdef int j
    table.sieve.gone = 0
    memset(table.sieve.bits, 0, sieve_size(&table.sieve))
    for i in range(table.count):
        for j in range(LINE_ENTRIES):
            if table.lines[i].tags[j] != 0:
                sieve_put(&table.sieve, table.lines[i].tags[j])


cdef inline void line_table_drop(Allocator* allocator, LineTable* table, uint32_t tag, uint32_t ref) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t i = line_home(table, tag)
    cdef int entry = line_table_seek(table, tag, ref, &at)
    table.lines[at].tags[entry] = 0
    while i != at:
        table.lines[i].passed -= 1
        i = line_after(table, i)
    table.used -= 1
    if table.used == 0:
        line_table_free(allocator, table)
    elif table.count > 8 and table.used < table.count:
        line_table_resize(allocator, table, table.count // 2)  # without memory it stays large
    else:
        table.sieve.gone += 1
        if table.sieve.bits != NULL and table.sieve.gone > <size_t> table.count * LINE_FULL:
            line_table_sift(table)
