"""A scan of all filters: what every other matcher has to beat, and the simplest thing that is right.

The honest kind: words are interned, so that a filter is a line of numbers, a topic is cut and looked up once,
and most lines are refused by their length or first number. Several `#` are matched by going back to the last
one only, which is enough and never exponential.
"""

from libc.stdint cimport uint32_t

from fanlight_matchers.contender cimport DONE, NO_MEMORY, UNKNOWN, Found, emit
from fanlight_matchers.interner cimport (
    interner_find, interner_free, interner_hold, interner_init, interner_release,
)
from fanlight_matchers.memory cimport enlarge, give_back, take
from fanlight_matchers.slots cimport slots_drop, slots_find, slots_free, slots_init, slots_put
from fanlight_matchers.text cimport LITERAL, MOST_WORDS, ONE, Word


cdef class Naive(Contender):
    """A contender that scans."""

    def __cinit__(self, str syntax="amqp"):
        interner_init(&self.interner, &self.taken)
        slots_init(&self.slots, &self.taken)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(1, self.slots.top):
            give_back(&self.taken, self.lines[i].words, (self.lines[i].count + 1) * sizeof(uint32_t))
        give_back(&self.taken, self.lines, self.room * sizeof(Line))
        slots_free(&self.slots)
        interner_free(&self.interner)

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t number, i
        cdef Line line = Line(NULL, ANY_MANY, count, False, 0)
        cdef void* larger
        if slots_find(&self.slots, words, count, id) != 0:
            return UNKNOWN
        line.words = <uint32_t*> take(&self.taken, (count + 1) * sizeof(uint32_t))
        if line.words == NULL:
            return NO_MEMORY
        for i in range(<uint32_t> count):
            if words[i].kind == LITERAL:
                line.words[i] = interner_hold(&self.interner, &words[i])
                if line.words[i] == 0:
                    return NO_MEMORY
            else:
                line.words[i] = ANY_ONE if words[i].kind == ONE else ANY_MANY
                line.many |= words[i].kind != ONE
            line.least += line.words[i] != ANY_MANY
        if count != 0:
            line.first = line.words[0]
        number = slots_put(&self.slots, words, count, id)
        if number == 0:
            return NO_MEMORY
        if self.room < self.slots.room:
            larger = enlarge(&self.taken, self.lines, self.room * sizeof(Line), self.slots.room * sizeof(Line))
            if larger == NULL:
                return NO_MEMORY
            self.lines = <Line*> larger
            self.room = self.slots.room
        self.lines[number] = line
        return DONE

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t number = slots_find(&self.slots, words, count, id), i
        cdef Line* line
        if number == 0:
            return UNKNOWN
        line = &self.lines[number]
        for i in range(line.count):
            if line.words[i] < ANY_ONE:
                interner_release(&self.interner, line.words[i])
        give_back(&self.taken, line.words, (line.count + 1) * sizeof(uint32_t))
        line.words = NULL
        line.count = 0
        slots_drop(&self.slots, words, count, id, number)
        return DONE

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef uint32_t ids[MOST_WORDS]
        cdef int count = self.cut_topic(topic, size, words), i
        cdef bint dollar = self.mqtt and size > 0 and topic[0] == b"$"
        cdef const Line* line = self.lines + 1
        cdef const Line* end = self.lines + self.slots.top
        for i in range(count):
            ids[i] = interner_find(&self.interner, &words[i])
        if count < 0:
            return
        while line < end:
            # A topic's word that no filter holds is 0, which no filter's is.
            if line.first >= ANY_ONE or (count != 0 and line.first == ids[0]):
                if line.words != NULL and not (dollar and line.first >= ANY_ONE) and line_matches(line, ids, count):
                    emit(found, self.slots.slots[line - self.lines].id)
            line += 1
