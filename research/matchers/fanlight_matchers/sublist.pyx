"""NATS: the usual trie behind a cache of results (server/sublist.go of nats-server).

The trie is trie_string.pyx; the cache holds what a topic found. Here it is 16,384 entries, each topic having
one place, and a change makes all of them stale at once by a generation number, as gnatsd's first versions
did; today's server has 1,024 entries, looks through all of them on every insert of a wildcard filter (which
is dearer) and throws a part out when it is full. Results of more than 1,024 ids and topics of more than 256
bytes are not kept, which bounds it to some 80 MB. Queue groups are left out. Behind its lock (`share`) a cached
result is read beside other readers; another one is looked up and cached alone. NATS has `>` at the
end only; ours has `#` as the trie has.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from fanlight_matchers.contender cimport Found, emit
from fanlight_matchers.memory cimport give_back, take, take_zeros
from fanlight_matchers.text cimport Word, hash_bytes
from fanlight_matchers.trie_string cimport StringTrie

cdef enum:
    ENTRIES = 16_384
    MOST_IDS = 1_024
    MOST_BYTES = 256


cdef struct CacheEntry:
    uint64_t hash
    uint64_t generation   # of the trie when it was looked up; 0: empty
    uint32_t* ids
    uint32_t count
    uint32_t room
    uint32_t size
    unsigned char* topic


cdef class Sublist(StringTrie):
    """trie-S and a result cache."""

    cdef:
        CacheEntry* entries
        uint64_t generation

    def __cinit__(self, str syntax="amqp"):
        self.generation = 1
        self.entries = <CacheEntry*> take_zeros(&self.taken, ENTRIES * sizeof(CacheEntry))
        if self.entries == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int i
        if self.entries != NULL:
            for i in range(ENTRIES):
                self._forget(&self.entries[i])
            give_back(&self.taken, self.entries, ENTRIES * sizeof(CacheEntry))

    def forget(self):
        self.generation += 1

    cdef void _forget(self, CacheEntry* entry) noexcept nogil:
        give_back(&self.taken, entry.ids, entry.room * sizeof(uint32_t))
        give_back(&self.taken, entry.topic, entry.size)
        entry.ids = NULL
        entry.topic = NULL
        entry.generation = entry.room = entry.size = 0

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        self.generation += 1
        return StringTrie.add(self, words, count, id)

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        self.generation += 1
        return StringTrie.drop(self, words, count, id)

    cdef bint _remembered(
        self, const CacheEntry* entry, uint64_t hash, const unsigned char* topic, size_t size, Found* found
    ) noexcept nogil:
        cdef uint32_t i
        if (
            entry.generation != self.generation or entry.hash != hash or entry.size != size
            or memcmp(entry.topic, topic, size) != 0
        ):
            return False
        for i in range(entry.count):
            emit(found, entry.ids[i])
        return True

    cdef bint find_among_readers(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef uint64_t hash
        if size > MOST_BYTES or size == 0:
            StringTrie.find(self, topic, size, found)
            return True
        hash = hash_bytes(topic, <uint32_t> size, 1)
        return self._remembered(&self.entries[hash % ENTRIES], hash, topic, size, found)

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef uint64_t hash
        cdef CacheEntry* entry
        cdef size_t start = found.count
        if size > MOST_BYTES or size == 0:
            StringTrie.find(self, topic, size, found)
            return
        hash = hash_bytes(topic, <uint32_t> size, 1)
        entry = &self.entries[hash % ENTRIES]
        if self._remembered(entry, hash, topic, size, found):
            return
        StringTrie.find(self, topic, size, found)
        if found.count - start <= MOST_IDS and not found.lost:
            self._remember(entry, hash, topic, <uint32_t> size, found.ids + start, <uint32_t> (found.count - start))

    cdef void _remember(
        self, CacheEntry* entry, uint64_t hash, const unsigned char* topic, uint32_t size, const uint32_t* ids,
        uint32_t count,
    ) noexcept nogil:
        """Without memory the entry stays empty."""
        if entry.size != size or entry.room < count:
            self._forget(entry)
            entry.topic = <unsigned char*> take(&self.taken, size)
            entry.ids = <uint32_t*> take(&self.taken, (count + 1) * sizeof(uint32_t))
            if entry.topic == NULL or entry.ids == NULL:
                if entry.topic != NULL:
                    entry.size = size
                if entry.ids != NULL:
                    entry.room = count + 1
                self._forget(entry)
                return
            entry.size = size
            entry.room = count + 1
        memcpy(entry.topic, topic, size)
        if count:
            memcpy(entry.ids, ids, count * sizeof(uint32_t))
        entry.count = count
        entry.hash = hash
        entry.generation = self.generation
