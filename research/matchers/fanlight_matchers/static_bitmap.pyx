"""The static inverted bitmap: OpenAMQ's first table, for topics that are known.

iMatix's first idea ("Message matching", Sústrik): when a subscription comes, it is matched with every known topic,
and its bit set in the row of each that it matches; to route a message is to look its topic up and to read the
row. Treat calls it the inverted bitmap. Here, as OpenAMQ did it, a topic becomes known when it is first asked
about, by a scan of all subscriptions (naive.pyx, which also keeps them). So what is measured is a look-up for a
topic asked before, a scan for another, and a subscription that costs a match with every topic known.
Bounded: 65,536 topics and 256 MB of rows; a topic beyond that is scanned for and not remembered.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from fanlight_matchers.contender cimport DONE, Found, emit
from fanlight_matchers.edges cimport Edges, edges_free, edges_home, edges_init, edges_next, edges_put
from fanlight_matchers.interner cimport interner_find
from fanlight_matchers.memory cimport enlarge, give_back, take, take_zeros
from fanlight_matchers.naive cimport ANY_ONE, Line, Naive, line_matches
from fanlight_matchers.slots cimport slots_find
from fanlight_matchers.text cimport MOST_WORDS, Word, hash_bytes

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define matchers_lowest(bits) ((uint32_t) __builtin_ctzll(bits))
    #else
    static uint32_t matchers_lowest(uint64_t bits) {
        uint32_t at = 0;
        for (; !(bits & 1); bits >>= 1)
            at++;
        return at;
    }
    #endif
    """
    uint32_t lowest_bit "matchers_lowest" (uint64_t bits) noexcept nogil

cdef enum:
    MOST_TOPICS = 65_536
    MOST_BYTES = 1 << 28


cdef struct Known:
    unsigned char* topic
    size_t size
    uint64_t* bits
    uint32_t width       # of the row, in 64 bits


cdef class StaticBitmap(Naive):
    """A row of subscriptions for each known topic."""

    cdef:
        Known* known     # from 1 on
        uint32_t known_room
        uint32_t known_top
        Edges by_topic

    def __cinit__(self, str syntax="amqp"):
        edges_init(&self.by_topic, &self.taken)
        self.known_top = 1

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(1, self.known_top):
            give_back(&self.taken, self.known[i].topic, self.known[i].size + 1)
            give_back(&self.taken, self.known[i].bits, self.known[i].width * sizeof(uint64_t))
        give_back(&self.taken, self.known, self.known_room * sizeof(Known))
        edges_free(&self.by_topic)

    cdef bint _set(self, Known* known, uint32_t number) noexcept nogil:
        cdef uint32_t width = known.width if known.width else 4
        cdef uint64_t* wider
        while width * 64 <= number:
            width *= 2
        if width > known.width:
            wider = <uint64_t*> take_zeros(&self.taken, width * sizeof(uint64_t))
            if wider == NULL:
                return False
            if known.bits != NULL:
                memcpy(wider, known.bits, known.width * sizeof(uint64_t))
                give_back(&self.taken, known.bits, known.width * sizeof(uint64_t))
            known.bits = wider
            known.width = width
        known.bits[number >> 6] |= <uint64_t> 1 << (number & 63)
        return True

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef int outcome = Naive.add(self, words, count, id), length
        cdef Word topic[MOST_WORDS]
        cdef uint32_t ids[MOST_WORDS]
        cdef uint32_t number, i
        cdef int level
        cdef Known* known
        cdef const Line* line
        if outcome != DONE:
            return outcome
        number = slots_find(&self.slots, words, count, id)
        line = &self.lines[number]
        for i in range(1, self.known_top):
            known = &self.known[i]
            if self.mqtt and known.topic[0] == b"$" and line.first >= ANY_ONE:
                continue
            length = self.cut_topic(known.topic, known.size, topic)
            for level in range(length):
                ids[level] = interner_find(&self.interner, &topic[level])
            if line_matches(line, ids, length) and not self._set(known, number):
                return -1
        return outcome

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t number = slots_find(&self.slots, words, count, id), i
        cdef Known* known
        if number != 0:
            for i in range(1, self.known_top):
                known = &self.known[i]
                if known.width * 64 > number:
                    known.bits[number >> 6] &= ~(<uint64_t> 1 << (number & 63))
        return Naive.drop(self, words, count, id)

    cdef bint _learn(
        self, const unsigned char* topic, size_t size, uint32_t tag, const Word* words, int count
    ) noexcept nogil:
        """The topic among the known ones; False: there is no room for it."""
        cdef uint32_t ids[MOST_WORDS]
        cdef uint32_t room, number
        cdef int level
        cdef void* larger
        cdef Known* known
        if self.known_top >= MOST_TOPICS or self.taken > MOST_BYTES:
            return False
        if self.known_top >= self.known_room:
            room = 2 * self.known_room if self.known_room else 16
            larger = enlarge(&self.taken, self.known, self.known_room * sizeof(Known), room * sizeof(Known))
            if larger == NULL:
                return False
            self.known = <Known*> larger
            self.known_room = room
        known = &self.known[self.known_top]
        known[0] = Known(<unsigned char*> take(&self.taken, size + 1), size, NULL, 0)
        if known.topic == NULL or edges_put(&self.by_topic, tag, self.known_top) < 0:
            give_back(&self.taken, known.topic, size + 1)
            return False
        memcpy(known.topic, topic, size)
        self.known_top += 1
        for level in range(count):
            ids[level] = interner_find(&self.interner, &words[level])
        for number in range(1, self.slots.top):
            if self.lines[number].words == NULL or (
                self.mqtt and size > 0 and topic[0] == b"$" and self.lines[number].first >= ANY_ONE
            ):
                continue
            if line_matches(&self.lines[number], ids, count) and not self._set(known, number):
                return False
        return True

    cdef uint32_t _number(self, uint32_t tag, const unsigned char* topic, size_t size) noexcept nogil:
        """Of a known topic; 0: it is not known."""
        cdef uint32_t at = edges_home(&self.by_topic, tag)
        cdef uint32_t number = edges_next(&self.by_topic, tag, &at)
        while number != 0 and (
            self.known[number].size != size or memcmp(self.known[number].topic, topic, size) != 0
        ):
            number = edges_next(&self.by_topic, tag, &at)
        return number

    cdef bint find_among_readers(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef uint32_t number = self._number(<uint32_t> hash_bytes(topic, <uint32_t> size, 1), topic, size)
        if number == 0:
            return False
        self._read(&self.known[number], found)
        return True

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef uint32_t tag = <uint32_t> hash_bytes(topic, <uint32_t> size, 1)
        cdef uint32_t number = self._number(tag, topic, size)
        cdef int count
        if number == 0:
            count = self.cut_topic(topic, size, words)
            if count < 0:
                return
            if not self._learn(topic, size, tag, words, count):
                Naive.find(self, topic, size, found)
                return
            number = self.known_top - 1
        self._read(&self.known[number], found)

    cdef void _read(self, const Known* known, Found* found) noexcept nogil:
        cdef uint64_t rest
        cdef uint32_t i
        for i in range(known.width):
            rest = known.bits[i]
            while rest != 0:
                emit(found, self.slots.slots[64 * i + lowest_bit(rest)].id)
                rest &= rest - 1
