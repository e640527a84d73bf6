# A flat hash table from a 32-bit tag to a number that is not 0: one for all edges of a trie, or all rows of a
# bitmap. What the number stands for knows its key, so a cell is 8 bytes; at most half of them are used.
#
#     cells   [ 0 | tag,number | 0 | tag,number | tag,number ]     home = tag & mask, then the next one

from libc.stdint cimport uint32_t, uint64_t

from fanlight_matchers.memory cimport give_back, take_zeros
from fanlight_matchers.text cimport hash_pair


cdef struct Edges:
    uint64_t* cells
    uint32_t mask
    uint32_t used
    size_t* taken


cdef inline uint32_t edge_tag(uint32_t a, uint32_t b) noexcept nogil:
    return <uint32_t> hash_pair(<uint64_t> a << 32 | b, 0)


cdef inline void edges_init(Edges* self, size_t* taken) noexcept nogil:
    self.cells = NULL
    self.mask = self.used = 0
    self.taken = taken


cdef inline void edges_free(Edges* self) noexcept nogil:
    if self.cells != NULL:
        give_back(self.taken, self.cells, (<size_t> self.mask + 1) * sizeof(uint64_t))
    self.cells = NULL
    self.mask = self.used = 0


# The numbers under `tag`, one a call; 0: no more. `at` begins as edges_home(tag).
cdef inline uint32_t edges_home(const Edges* self, uint32_t tag) noexcept nogil:
    return tag & self.mask


cdef inline uint32_t edges_next(const Edges* self, uint32_t tag, uint32_t* at) noexcept nogil:
    cdef uint64_t cell
    if self.cells == NULL:
        return 0
    while True:
        cell = self.cells[at[0]]
        if cell == 0:
            return 0
        at[0] = (at[0] + 1) & self.mask
        if <uint32_t> (cell >> 32) == tag:
            return <uint32_t> cell


cdef inline int edges_put(Edges* self, uint32_t tag, uint32_t number) noexcept nogil:
    cdef uint64_t* old = self.cells
    cdef size_t size = <size_t> self.mask + 1 if old != NULL else 0
    cdef size_t i
    cdef uint32_t j
    if 2 * (<size_t> self.used + 1) > size:
        self.cells = <uint64_t*> take_zeros(self.taken, (2 * size if size else 16) * sizeof(uint64_t))
        if self.cells == NULL:
            self.cells = old
            return -1
        self.mask = <uint32_t> (2 * size if size else 16) - 1
        for i in range(size):
            if old[i] != 0:
                j = <uint32_t> (old[i] >> 32) & self.mask
                while self.cells[j] != 0:
                    j = (j + 1) & self.mask
                self.cells[j] = old[i]
        give_back(self.taken, old, size * sizeof(uint64_t))
    j = tag & self.mask
    while self.cells[j] != 0:
        j = (j + 1) & self.mask
    self.cells[j] = <uint64_t> tag << 32 | number
    self.used += 1
    return 0


cdef inline void edges_drop(Edges* self, uint32_t tag, uint32_t number) noexcept nogil:
    cdef uint64_t wanted = <uint64_t> tag << 32 | number
    cdef uint32_t hole = tag & self.mask, i, home
    while self.cells[hole] != wanted:
        hole = (hole + 1) & self.mask
    i = hole
    while True:
        i = (i + 1) & self.mask
        if self.cells[i] == 0:
            break
        home = <uint32_t> (self.cells[i] >> 32) & self.mask
        if ((i - home) & self.mask) >= ((i - hole) & self.mask):
            self.cells[hole] = self.cells[i]
            hole = i
    self.cells[hole] = 0
    self.used -= 1
