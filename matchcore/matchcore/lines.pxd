# The hash table of the buckets: like table.pxd, from a 32-bit tag to 32-bit references, but a probe that
# finds nothing, the usual one, is one cache line and one branch.
#
#     line, 64 bytes   | tag x 7 | passed | ref x 7 | - |         tag 0: empty
#                        home = tag x lines / 2**32
#     sieve            a bit for each tag, looked at before the line: sieve.pxd
#
# All tags of a line are compared at once. A line that is full sends what does not fit to the next one and
# counts it in `passed`: a search goes on only where that is not 0, so that nothing need be moved on removal.
# Any number of lines will do, so that it grows by half; up to five of seven places are in use.
#
# What ends: an addition, for two places in seven are empty (lines_reserve); a search for what is there, for its
# line is reached from its home (lines_seek). A search for what may not be there ends at a line that passed nothing
# on, or when it is HOME AGAIN: a line keeps its count as long as what it passed on lives, though it may have room
# by now, so with a few lines all counts can be above 0 at once.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from matchcore.heap cimport Heap, heap_give_back, heap_take_zeros, prefetch
from matchcore.sieve cimport Sieve, sieve_free, sieve_make, sieve_put, sieve_size

cdef enum:
    LINE_PLACES = 7
    LINE_FULL = 5       # with six, one line in five passes on; that branch is a guess
    LINES_AT_MOST = 600000000


cdef struct Line:
    uint32_t[LINE_PLACES] tags
    uint32_t passed
    uint32_t[LINE_PLACES] refs
    uint32_t unused


cdef struct Lines:
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

    /* Bit i: place i of the line has this tag. */
    static inline uint32_t matchcore_places_of(const void *line, uint32_t tag) {
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
    static inline int matchcore_first_place(uint32_t places) { return __builtin_ctz(places); }
    """
    uint32_t places_of "matchcore_places_of" (const void* line, uint32_t tag) noexcept nogil
    int first_place "matchcore_first_place" (uint32_t places) noexcept nogil


# 0 says that a place is empty, so no tag is 0.
cdef inline uint32_t line_tag(uint32_t tag) noexcept nogil:
    return tag if tag != 0 else 1


cdef inline uint32_t line_home(const Lines* lines, uint32_t tag) noexcept nogil:
    return <uint32_t> ((<uint64_t> tag * lines.count) >> 32)


cdef inline uint32_t line_after(const Lines* lines, uint32_t line) noexcept nogil:
    line += 1
    return line if line != lines.count else 0


cdef inline void lines_prefetch(const Lines* lines, uint32_t tag) noexcept nogil:
    prefetch(&lines.lines[line_home(lines, tag)])


# Room was made before (lines_reserve), so that this cannot fail.
cdef inline void lines_put(Lines* lines, uint32_t tag, uint32_t ref) noexcept nogil:
    cdef uint32_t at = line_home(lines, tag)
    cdef uint32_t free = places_of(&lines.lines[at], 0)
    while free == 0:
        lines.lines[at].passed += 1
        at = line_after(lines, at)
        free = places_of(&lines.lines[at], 0)
    lines.lines[at].tags[first_place(free)] = tag
    lines.lines[at].refs[first_place(free)] = ref
    lines.used += 1
    sieve_put(&lines.sieve, tag)


cdef inline void lines_free(Heap* heap, Lines* lines) noexcept nogil:
    if lines.block != NULL:
        heap_give_back(heap, lines.block, (<size_t> lines.count + 1) * sizeof(Line))
    sieve_free(heap, &lines.sieve)
    lines.block = NULL
    lines.lines = NULL
    lines.count = lines.used = 0


cdef inline int lines_resize(Heap* heap, Lines* lines, size_t count) noexcept nogil:
    cdef Lines made
    cdef size_t i
    cdef int j
    if count > LINES_AT_MOST:
        return -1
    made.count = <uint32_t> count
    made.used = 0
    made.block = heap_take_zeros(heap, (count + 1) * sizeof(Line))
    if made.block == NULL:
        return -1
    sieve_make(heap, &made.sieve, count * LINE_FULL)
    made.lines = <Line*> ((<size_t> made.block + sizeof(Line) - 1) // sizeof(Line) * sizeof(Line))
    for i in range(lines.count):
        for j in range(LINE_PLACES):
            if lines.lines[i].tags[j] != 0:
                lines_put(&made, lines.lines[i].tags[j], lines.lines[i].refs[j])
    lines_free(heap, lines)
    lines[0] = made
    return 0


# Room for one more.
cdef inline int lines_reserve(Heap* heap, Lines* lines) noexcept nogil:
    if lines.used < <size_t> lines.count * LINE_FULL:
        return 0
    return lines_resize(heap, lines, <size_t> lines.count + lines.count // 2 + 1)


# Which place of its line this tag and reference have; `at` is the line. It is there.
cdef inline int lines_seek(const Lines* lines, uint32_t tag, uint32_t ref, uint32_t* at) noexcept nogil:
    cdef uint32_t found
    at[0] = line_home(lines, tag)
    while True:
        found = places_of(&lines.lines[at[0]], tag)
        while found != 0:
            if lines.lines[at[0]].refs[first_place(found)] == ref:
                return first_place(found)
            found &= found - 1
        at[0] = line_after(lines, at[0])


cdef inline void lines_replace(Lines* lines, uint32_t tag, uint32_t ref, uint32_t by) noexcept nogil:
    cdef uint32_t at
    cdef int place = lines_seek(lines, tag, ref, &at)
    lines.lines[at].refs[place] = by


# The tags that have gone have bits too: when they are as many as there is room for, all bits are made anew.
cdef inline void lines_sift(Lines* lines) noexcept nogil:
    cdef size_t i
    cdef int j
    lines.sieve.gone = 0
    memset(lines.sieve.bits, 0, sieve_size(&lines.sieve))
    for i in range(lines.count):
        for j in range(LINE_PLACES):
            if lines.lines[i].tags[j] != 0:
                sieve_put(&lines.sieve, lines.lines[i].tags[j])


cdef inline void lines_drop(Heap* heap, Lines* lines, uint32_t tag, uint32_t ref) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t i = line_home(lines, tag)
    cdef int place = lines_seek(lines, tag, ref, &at)
    lines.lines[at].tags[place] = 0
    while i != at:
        lines.lines[i].passed -= 1
        i = line_after(lines, i)
    lines.used -= 1
    if lines.used == 0:
        lines_free(heap, lines)
    elif lines.count > 8 and lines.used < lines.count:
        lines_resize(heap, lines, lines.count // 2)  # without memory it stays large
    else:
        lines.sieve.gone += 1
        if lines.sieve.bits != NULL and lines.sieve.gone > <size_t> lines.count * LINE_FULL:
            lines_sift(lines)
