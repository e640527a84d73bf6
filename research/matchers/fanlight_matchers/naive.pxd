# The scan's memory: a line of numbers for each (filter, id), found again by slots.pxd.

from libc.stdint cimport uint32_t

from fanlight_matchers.contender cimport Contender
from fanlight_matchers.interner cimport Interner
from fanlight_matchers.slots cimport Slots

cdef enum:
    ANY_ONE = 0xFFFFFFFE
    ANY_MANY = 0xFFFFFFFF


cdef struct Line:
    uint32_t* words   # NULL: free
    uint32_t first    # words[0], or ANY_MANY if there is none
    uint32_t count
    bint many         # a `#` is among them
    uint32_t least    # words of the shortest topic it matches


# Whether the line matches a topic, by the numbers of its words. Goes back to the last `#` only.
cdef inline bint line_matches(const Line* line, const uint32_t* topic, int count) noexcept nogil:
    cdef uint32_t i = 0, back = 0
    cdef int j = 0, back_topic = -1
    if <int> line.least > count or (not line.many and <int> line.count != count):
        return False
    while j < count:
        if i < line.count and line.words[i] == ANY_MANY:
            i += 1
            back = i
            back_topic = j
        elif i < line.count and (line.words[i] == topic[j] or line.words[i] == ANY_ONE):
            i += 1
            j += 1
        elif back_topic >= 0:
            back_topic += 1
            i = back
            j = back_topic
        else:
            return False
    while i < line.count and line.words[i] == ANY_MANY:
        i += 1
    return i == line.count


cdef class Naive(Contender):
    cdef:
        Interner interner
        Slots slots
        Line* lines       # by number of the slot
        uint32_t room
