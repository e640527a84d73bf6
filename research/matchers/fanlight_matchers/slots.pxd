# (filter text, id) to a small number, and back: for contenders that give each subscription a column or a line.
# Numbers are reused; 0 means none, so the first is 1.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from fanlight_matchers.edges cimport Edges, edges_drop, edges_free, edges_home, edges_init, edges_next, edges_put
from fanlight_matchers.memory cimport enlarge, give_back, take
from fanlight_matchers.text cimport Word, hash_pair


cdef struct Slot:
    unsigned char* text   # NULL: free
    uint32_t size
    uint32_t id           # of a free one: the next free one


cdef struct Slots:
    Slot* slots
    uint32_t room
    uint32_t top          # one more than the largest number in use
    uint32_t free
    Edges numbers
    size_t* taken


cdef inline void slots_init(Slots* self, size_t* taken) noexcept nogil:
    self.slots = NULL
    self.room = self.free = 0
    self.top = 1
    self.taken = taken
    edges_init(&self.numbers, taken)


cdef inline void slots_free(Slots* self) noexcept nogil:
    cdef uint32_t i
    for i in range(1, self.top):
        give_back(self.taken, self.slots[i].text, self.slots[i].size + 1)
    give_back(self.taken, self.slots, self.room * sizeof(Slot))
    edges_free(&self.numbers)


cdef inline uint32_t slots_size(const Word* words, int count) noexcept nogil:
    # The words are cut from one text.
    return <uint32_t> (words[count - 1].text + words[count - 1].size - words[0].text) if count else 0


cdef inline uint32_t slots_tag(const Word* words, int count, uint32_t id) noexcept nogil:
    cdef uint64_t hash = hash_pair(id, count)
    cdef int i
    for i in range(count):
        hash = hash_pair(hash, words[i].hash)
    return <uint32_t> hash


# The number; 0: there is none.
cdef inline uint32_t slots_find(Slots* self, const Word* words, int count, uint32_t id) noexcept nogil:
    cdef uint32_t tag = slots_tag(words, count, id)
    cdef uint32_t at = edges_home(&self.numbers, tag)
    cdef uint32_t number = edges_next(&self.numbers, tag, &at)
    cdef uint32_t size = slots_size(words, count)
    cdef Slot* slot
    while number != 0:
        slot = &self.slots[number]
        if slot.id == id and slot.size == size and (size == 0 or memcmp(slot.text, words[0].text, size) == 0):
            return number
        number = edges_next(&self.numbers, tag, &at)
    return 0


# Assigns a number; 0: no memory.
cdef inline uint32_t slots_put(Slots* self, const Word* words, int count, uint32_t id) noexcept nogil:
    cdef uint32_t size = slots_size(words, count), number = self.free, room
    cdef unsigned char* text = <unsigned char*> take(self.taken, size + 1)
    cdef void* larger
    if text == NULL:
        return 0
    if number == 0 and self.top >= self.room:
        room = 2 * self.room if self.room else 16
        larger = enlarge(self.taken, self.slots, self.room * sizeof(Slot), room * sizeof(Slot))
        if larger == NULL:
            give_back(self.taken, text, size + 1)
            return 0
        self.slots = <Slot*> larger
        self.room = room
    if edges_put(&self.numbers, slots_tag(words, count, id), number if number else self.top) < 0:
        give_back(self.taken, text, size + 1)
        return 0
    if number != 0:
        self.free = self.slots[number].id
    else:
        number = self.top
        self.top += 1
    if size:
        memcpy(text, words[0].text, size)
    self.slots[number] = Slot(text, size, id)
    return number


cdef inline void slots_drop(Slots* self, const Word* words, int count, uint32_t id, uint32_t number) noexcept nogil:
    edges_drop(&self.numbers, slots_tag(words, count, id), number)
    give_back(self.taken, self.slots[number].text, self.slots[number].size + 1)
    self.slots[number] = Slot(NULL, 0, self.free)
    self.free = number
