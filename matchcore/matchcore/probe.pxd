# Asking the buckets: which filters match a topic, in three steps. Each step prefetches the memory of the next one.
#
#     buckets_ask       rows -> classes -> keys           the keys' cells are on their way
#     buckets_locate    keys -> cells -> blocks           the blocks are on their way
#     buckets_records   blocks -> records -> slots        their ids are on their way
#
# Of one topic, one after the other. Of several topics in turn, a step of all before the next step of any, where memory
# is what a match waits for: a topic's misses pass while the others are worked on.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.buckets cimport Buckets
from matchcore.positions cimport POSITION_ANY, POSITIONS
from matchcore.topic cimport Topic

cdef enum:
    FEW_CLASSES = 4
    BATCH = 64           # probes at most; those of a topic that makes more are answered meanwhile


cdef struct Probe:
    uint32_t tag
    uint32_t c
    uint32_t any         # the word at the position any, if the class has it
    uint32_t block


cdef struct Batch:
    const Buckets* buckets
    Topic* topic
    Numbers* found
    Allocator* allocator
    uint64_t[POSITIONS] products
    uint32_t anys
    uint32_t size        # probes asked
    uint32_t located     # probes whose block is known
    uint32_t limit
    bint first_only
    uint32_t hit         # with `first_only` the class of what was found, else NONE
    uint32_t expected    # slot of the exact tier whose text is asked for, or NONE
    Probe[BATCH] probes


# Whatever matches is pushed to `found`; with `first_only` at most one. 1: found one, and that is enough; -1: no memory.
cdef int buckets_ask(
    const Buckets* buckets, Topic* topic, bint first_only, Numbers* found, Allocator* allocator, Batch* batch
) noexcept nogil

# The same for few classes, without words sought anywhere: each of them is asked that the topic is long enough for,
# whatever its rows say, so that these are not waited for.
cdef inline bint buckets_have_few(const Buckets* buckets) noexcept nogil:
    return buckets.classes.count <= FEW_CLASSES and not (buckets.classes.used >> POSITION_ANY) & 1


cdef int buckets_ask_all(
    const Buckets* buckets, Topic* topic, Numbers* found, Allocator* allocator, Batch* batch
) noexcept nogil

cdef int buckets_locate(Batch* batch) noexcept nogil
cdef int buckets_records(Batch* batch) noexcept nogil
