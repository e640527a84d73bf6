# Words to numbers: 1, 2, 3... for those that filters hold, 0 for any other.
#
#     entries  [ 0 | low,high,hash,size,id | ... ]   32 bytes each, open addressing, at most half of them used
#     hashes   by id: where to look for an entry     refs  by id: how many filters hold it
#
# A word of up to 16 bytes is in its entry; `low` of a longer one points to its bytes.

from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

from fanlight_matchers.memory cimport enlarge, give_back, take, take_zeros
from fanlight_matchers.text cimport Word, prefetch


cdef struct Entry:
    uint64_t low
    uint64_t high
    uint64_t hash
    uint32_t size
    uint32_t id


cdef struct Interner:
    Entry* entries
    uint32_t mask
    uint32_t used
    uint64_t* hashes
    uint32_t* refs      # of a free id: the next free one
    uint32_t room       # ids there is room for
    uint32_t top        # ids ever given out, and 1
    uint32_t free
    size_t* taken


cdef inline void interner_init(Interner* self, size_t* taken) noexcept nogil:
    self.entries = NULL
    self.hashes = NULL
    self.refs = NULL
    self.mask = self.used = self.room = self.free = 0
    self.top = 1
    self.taken = taken


cdef inline void interner_free(Interner* self) noexcept nogil:
    cdef uint32_t i
    if self.entries != NULL:
        for i in range(self.mask + 1):
            if self.entries[i].id != 0 and self.entries[i].size > 16:
                give_back(self.taken, <void*> <uintptr_t> self.entries[i].low, self.entries[i].size)
        give_back(self.taken, self.entries, (<size_t> self.mask + 1) * sizeof(Entry))
    give_back(self.taken, self.hashes, self.room * sizeof(uint64_t))
    give_back(self.taken, self.refs, self.room * sizeof(uint32_t))


cdef inline bint interner_is(const Entry* entry, const Word* word) noexcept nogil:
    if entry.hash != word.hash or entry.size != word.size:
        return False
    if word.size <= 16:
        return entry.low == word.low and entry.high == word.high
    return memcmp(<const void*> <uintptr_t> entry.low, word.text, word.size) == 0


cdef inline void interner_prefetch(const Interner* self, const Word* word) noexcept nogil:
    if self.entries != NULL:
        prefetch(&self.entries[<uint32_t> word.hash & self.mask])


cdef inline uint32_t interner_find(const Interner* self, const Word* word) noexcept nogil:
    cdef const Entry* entry
    cdef uint32_t i = <uint32_t> word.hash & self.mask
    if self.entries == NULL:
        return 0
    while True:
        entry = &self.entries[i]
        if entry.id == 0 or interner_is(entry, word):
            return entry.id
        i = (i + 1) & self.mask


cdef inline int interner_grow(Interner* self) noexcept nogil:
    cdef size_t size = 2 * (<size_t> self.mask + 1) if self.entries != NULL else 16
    cdef Entry* entries = <Entry*> take_zeros(self.taken, size * sizeof(Entry))
    cdef uint32_t i, j
    if entries == NULL:
        return -1
    if self.entries != NULL:
        for i in range(self.mask + 1):
            if self.entries[i].id != 0:
                j = <uint32_t> (self.entries[i].hash & (size - 1))
                while entries[j].id != 0:
                    j = <uint32_t> ((j + 1) & (size - 1))
                entries[j] = self.entries[i]
        give_back(self.taken, self.entries, (<size_t> self.mask + 1) * sizeof(Entry))
    self.entries = entries
    self.mask = <uint32_t> (size - 1)
    return 0


# A new id; 0: no memory.
cdef inline uint32_t interner_number(Interner* self) noexcept nogil:
    cdef uint32_t id = self.free, room
    cdef void* larger
    if id != 0:
        self.free = self.refs[id]
        return id
    if self.top >= self.room:
        room = 2 * self.room if self.room else 16
        larger = enlarge(self.taken, self.hashes, self.room * sizeof(uint64_t), room * sizeof(uint64_t))
        if larger == NULL:
            return 0
        self.hashes = <uint64_t*> larger
        larger = enlarge(self.taken, self.refs, self.room * sizeof(uint32_t), room * sizeof(uint32_t))
        if larger == NULL:
            return 0
        self.refs = <uint32_t*> larger
        self.room = room
    self.top += 1
    return self.top - 1


# The word's id, held once more; 0: no memory.
cdef inline uint32_t interner_hold(Interner* self, const Word* word) noexcept nogil:
    cdef uint32_t id = interner_find(self, word), i
    cdef void* copy = NULL
    if id != 0:
        self.refs[id] += 1
        return id
    if (self.entries == NULL or 2 * (<size_t> self.used + 1) > <size_t> self.mask + 1) and interner_grow(self) < 0:
        return 0
    if word.size > 16:
        copy = take(self.taken, word.size)
        if copy == NULL:
            return 0
        memcpy(copy, word.text, word.size)
    id = interner_number(self)
    if id == 0:
        give_back(self.taken, copy, word.size)
        return 0
    i = <uint32_t> word.hash & self.mask
    while self.entries[i].id != 0:
        i = (i + 1) & self.mask
    self.entries[i] = Entry(word.low, word.high, word.hash, word.size, id)
    if copy != NULL:
        self.entries[i].low = <uintptr_t> copy
    self.hashes[id] = word.hash
    self.refs[id] = 1
    self.used += 1
    return id


# Held once less; forgotten when nobody holds it.
cdef inline void interner_release(Interner* self, uint32_t id) noexcept nogil:
    cdef uint32_t hole, i, home
    self.refs[id] -= 1
    if self.refs[id] != 0:
        return
    hole = <uint32_t> self.hashes[id] & self.mask
    while self.entries[hole].id != id:
        hole = (hole + 1) & self.mask
    if self.entries[hole].size > 16:
        give_back(self.taken, <void*> <uintptr_t> self.entries[hole].low, self.entries[hole].size)
    i = hole
    while True:
        i = (i + 1) & self.mask
        if self.entries[i].id == 0:
            break
        home = <uint32_t> self.entries[i].hash & self.mask
        if ((i - home) & self.mask) >= ((i - hole) & self.mask):
            self.entries[hole] = self.entries[i]
            hole = i
    self.entries[hole].id = 0
    self.used -= 1
    self.refs[id] = self.free
    self.free = id
