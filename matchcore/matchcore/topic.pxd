# A topic as the tiers see it, and the room one match needs: whoever matches brings its own, so that several
# threads may match against one index.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.allocator cimport Allocator, deallocate, allocate
from matchcore.bitmap cimport Row
from matchcore.positions cimport DEPTH
from matchcore.syntax cimport Token
from matchcore.verify cimport Occurrences, occurrences_forget

cdef enum:
    GROUPS = 2 * DEPTH + 2   # constraints of a topic: left and right positions, length, any


# A constraint on the columns of the pool: the or of some rows. Weight: the number of their columns.
cdef struct Group:
    uint32_t first     # into Topic.rows_of_groups
    uint32_t count
    uint64_t weight


cdef struct Topic:
    uint32_t count           # words
    bint dollar              # the first begins with `$`
    uint64_t hash            # of all words, see syntax.pxd
    uint32_t bloom           # the bits of its words
    uint32_t* ids            # OTHER for words that no filter with a wildcard has
    uint64_t* positions      # of each word, and its rows: see words.pxd
    uint32_t* rows
    uint32_t* anys           # words sought anywhere, each once
    Token* tokens
    Group* groups            # the rest is the pool's
    const Row** rows_of_groups
    uint32_t* cursors
    Occurrences* occurrences  # see verify.pxd
    uint32_t words           # for which there is room
    size_t size              # bytes of the one allocation


cdef inline int topic_init(Topic* topic, Allocator* allocator, uint32_t words) noexcept nogil:
    cdef size_t rows = 4 * DEPTH + 2 + <size_t> words  # literal and free for each position; any: one a word
    cdef char* block
    topic.words = words
    topic.size = words * (sizeof(Token) + 8 + 12) + GROUPS * sizeof(Group) + rows * (sizeof(Row*) + 4)
    topic.size += sizeof(Occurrences)
    block = <char*> allocate(allocator, topic.size)
    topic.tokens = NULL
    if block == NULL:
        return -1
    # In the order of their alignment.
    topic.occurrences = <Occurrences*> block
    occurrences_forget(topic.occurrences)
    block += sizeof(Occurrences)
    topic.tokens = <Token*> block
    block += words * sizeof(Token)
    topic.groups = <Group*> block
    block += GROUPS * sizeof(Group)
    topic.rows_of_groups = <const Row**> block
    block += rows * sizeof(Row*)
    topic.positions = <uint64_t*> block
    block += words * sizeof(uint64_t)
    topic.ids = <uint32_t*> block
    topic.rows = topic.ids + words
    topic.anys = topic.rows + words
    topic.cursors = topic.anys + words
    return 0


cdef inline void topic_free(Topic* topic, Allocator* allocator) noexcept nogil:
    deallocate(allocator, topic.occurrences, topic.size)
    topic.occurrences = NULL


# One of 32, as its id has it.
cdef inline uint32_t bloom_bit(uint32_t id) noexcept nogil:
    return <uint32_t> 1 << (id & 31)


# As if no filter had any of its words: for filters that have none.
cdef inline void topic_forget_words(Topic* topic) noexcept nogil:
    cdef uint32_t i
    topic.bloom = 0
    occurrences_forget(topic.occurrences)
    for i in range(topic.count):
        topic.ids[i] = topic.rows[i] = 0
        topic.positions[i] = 0
