"""The optimised inverted bitmap, per constituent, as OpenAMQ and later WSO2 published it.

iMatix's second table (OpenAMQ's; "Message matching" by Sústrik), WSO2 Message Broker's BitMapHandler, and
Treat's OptimizedInvertedBitmap. A table for each position, a row for each word seen there, a bit for each
subscription; a topic is the AND of one row a position:

    row of word w at p   subscriptions with w at p, or a wildcard there
    other[p]             those with a wildcard at p: the row of every word not in the table
    null[p]              those a topic of p words or fewer can still match: they end before p, or in a `#`
    beyond               those that end in `#`: what a topic longer than all tables can match

In the first form, which is iMatix's and `OptimisedBitmap` here, a filter with a wildcard at p writes into every row
of table p, and a new row begins as a copy of other[p]: a subscription costs more, the more words there are. In the
second, `OrBitmap` here, a literal row has nothing but its literals, and is ORed with other[p] when a topic is looked
up: this is Treat's OptimizedInvertedBitmap, and WSO2's. Of the nulls that follow a topic's last word only the first
is looked at, the one optimisation that iMatix names: a filter that may end at p may end behind it, so null[p] is part
of null[p + 1], and one long filter makes no short topic slower. The AND goes in blocks of 512 bits and leaves a block
as soon as nothing is left of it. WSO2 forgot to clear a removed subscription's bits in some rows; here they are
cleared. `#` is held at the end only, as there. Left out: Treat's compressed (roaring) rows, which were slower here.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_matchers.contender cimport DONE, NO_MEMORY, UNABLE, UNKNOWN, Contender, Found, emit, found_room
from fanlight_matchers.edges cimport (
    Edges, edge_tag, edges_drop, edges_free, edges_home, edges_init, edges_next, edges_put,
)
from fanlight_matchers.interner cimport (
    Interner, interner_find, interner_free, interner_hold, interner_init, interner_release,
)
from fanlight_matchers.memory cimport enlarge, give_back, take_zeros
from fanlight_matchers.slots cimport Slots, slots_drop, slots_find, slots_free, slots_init, slots_put
from fanlight_matchers.text cimport LITERAL, MANY, MOST_WORDS, Word

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
    #define MATCHERS_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define MATCHERS_WIDE
    #endif

    /* Rows of `blocks` times 512 bits: writes the number of each column that is in all of them, and not in
       `without` unless that is NULL, to `columns`, of which there is room for all; how many. */
    MATCHERS_WIDE
    static size_t matchers_and(
        const uint64_t *const *rows, int count, const uint64_t *without, size_t blocks, uint32_t *columns
    ) {
        size_t found = 0;
        for (size_t block = 0; block < blocks; block++) {
            uint64_t alive[8], any = 0;
            for (int i = 0; i < 8; i++)
                alive[i] = without != NULL ? ~without[8 * block + i] : ~(uint64_t) 0;
            for (int row = 0; row < count; row++) {
                const uint64_t *bits = rows[row] + 8 * block;
                any = 0;
                for (int i = 0; i < 8; i++) {
                    alive[i] &= bits[i];
                    any |= alive[i];
                }
                if (any == 0)
                    break;
            }
            if (any == 0)
                continue;
            for (int i = 0; i < 8; i++)
                for (uint64_t rest = alive[i]; rest != 0; rest &= rest - 1)
                    columns[found++] = (uint32_t) (512 * block + 64 * i + (uint32_t) __builtin_ctzll(rest));
        }
        return found;
    }

    /* The same for rows that are each ORed with another one, which may be the same. */
    MATCHERS_WIDE
    static size_t matchers_and_of_ors(
        const uint64_t *const *rows, const uint64_t *const *others, int count, const uint64_t *without,
        size_t blocks, uint32_t *columns
    ) {
        size_t found = 0;
        for (size_t block = 0; block < blocks; block++) {
            uint64_t alive[8], any = 0;
            for (int i = 0; i < 8; i++)
                alive[i] = without != NULL ? ~without[8 * block + i] : ~(uint64_t) 0;
            for (int row = 0; row < count; row++) {
                const uint64_t *bits = rows[row] + 8 * block, *wild = others[row] + 8 * block;
                any = 0;
                for (int i = 0; i < 8; i++) {
                    alive[i] &= bits[i] | wild[i];
                    any |= alive[i];
                }
                if (any == 0)
                    break;
            }
            if (any == 0)
                continue;
            for (int i = 0; i < 8; i++)
                for (uint64_t rest = alive[i]; rest != 0; rest &= rest - 1)
                    columns[found++] = (uint32_t) (512 * block + 64 * i + (uint32_t) __builtin_ctzll(rest));
        }
        return found;
    }
    """
    size_t all_of_ors "matchers_and_of_ors" (
        const uint64_t* const* rows, const uint64_t* const* others, int count, const uint64_t* without,
        size_t blocks, uint32_t* columns
    ) noexcept nogil
    size_t all_of "matchers_and" (
        const uint64_t* const* rows, int count, const uint64_t* without, size_t blocks, uint32_t* columns
    ) noexcept nogil


cdef struct Row:
    uint64_t* bits
    uint32_t position  # of a free row: the next free one
    uint32_t word      # 0: free
    uint32_t literals  # subscriptions that have the word there
    uint32_t place     # among the rows of its table


cdef struct Table:
    uint32_t* rows     # the numbers of its literal rows
    uint32_t count
    uint32_t room
    uint64_t* other
    uint64_t* null


cdef inline void set_bit(uint64_t* bits, uint32_t column, bint on) noexcept nogil:
    if on:
        bits[column >> 6] |= <uint64_t> 1 << (column & 63)
    else:
        bits[column >> 6] &= ~(<uint64_t> 1 << (column & 63))


cdef class OptimisedBitmap(Contender):
    """The bitmap per constituent; `#` at the end only."""

    cdef:
        Interner interner
        Slots slots           # a subscription's number is its column
        Edges numbers         # (position, word) -> row
        Row* rows             # 0 is no row
        uint32_t rows_room
        uint32_t rows_top
        uint32_t rows_free
        Table tables[MOST_WORDS]
        int depth             # tables in use
        uint64_t* beyond
        uint64_t* wild_first
        size_t blocks         # of a row
        bint pure             # literal rows have no wildcards: OrBitmap

    def __cinit__(self, str syntax="amqp"):
        interner_init(&self.interner, &self.taken)
        slots_init(&self.slots, &self.taken)
        edges_init(&self.numbers, &self.taken)
        self.rows_top = 1
        if not self._widen():
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        cdef int position
        for i in range(1, self.rows_top):
            give_back(&self.taken, self.rows[i].bits, self.blocks * 64)
        for position in range(self.depth):
            give_back(&self.taken, self.tables[position].other, self.blocks * 64)
            give_back(&self.taken, self.tables[position].null, self.blocks * 64)
            give_back(&self.taken, self.tables[position].rows, self.tables[position].room * sizeof(uint32_t))
        give_back(&self.taken, self.beyond, self.blocks * 64)
        give_back(&self.taken, self.wild_first, self.blocks * 64)
        give_back(&self.taken, self.rows, self.rows_room * sizeof(Row))
        edges_free(&self.numbers)
        slots_free(&self.slots)
        interner_free(&self.interner)

    cdef bint _wider(self, uint64_t** bits, size_t blocks) noexcept nogil:
        cdef uint64_t* wider = <uint64_t*> take_zeros(&self.taken, blocks * 64)
        if wider == NULL:
            return False
        if bits[0] != NULL:
            memcpy(wider, bits[0], self.blocks * 64)
            give_back(&self.taken, bits[0], self.blocks * 64)
        bits[0] = wider
        return True

    cdef bint _widen(self) noexcept nogil:
        """Twice the columns, in every row."""
        cdef size_t blocks = 2 * self.blocks if self.blocks else 1
        cdef uint32_t i
        cdef int position
        cdef bint fine = self._wider(&self.beyond, blocks) and self._wider(&self.wild_first, blocks)
        for i in range(1, self.rows_top):
            fine = fine and (self.rows[i].word == 0 or self._wider(&self.rows[i].bits, blocks))
        for position in range(self.depth):
            fine = fine and self._wider(&self.tables[position].other, blocks)
            fine = fine and self._wider(&self.tables[position].null, blocks)
        self.blocks = blocks
        return fine

    cdef uint32_t _find(self, uint32_t position, uint32_t word) noexcept nogil:
        cdef uint32_t tag = edge_tag(position, word)
        cdef uint32_t at = edges_home(&self.numbers, tag)
        cdef uint32_t row = edges_next(&self.numbers, tag, &at)
        while row != 0 and (self.rows[row].position != position or self.rows[row].word != word):
            row = edges_next(&self.numbers, tag, &at)
        return row

    cdef uint32_t _row(self, uint32_t position, uint32_t word) noexcept nogil:
        """A new row: a copy of other[position], or an empty one; 0: no memory."""
        cdef Table* table = &self.tables[position]
        cdef uint32_t row = self.rows_free, room
        cdef void* larger
        cdef uint64_t* bits
        if row == 0 and self.rows_top >= self.rows_room:
            room = 2 * self.rows_room if self.rows_room else 16
            larger = enlarge(&self.taken, self.rows, self.rows_room * sizeof(Row), room * sizeof(Row))
            if larger == NULL:
                return 0
            self.rows = <Row*> larger
            self.rows_room = room
        if table.count == table.room:
            room = 2 * table.room if table.room else 8
            larger = enlarge(&self.taken, table.rows, table.room * sizeof(uint32_t), room * sizeof(uint32_t))
            if larger == NULL:
                return 0
            table.rows = <uint32_t*> larger
            table.room = room
        bits = <uint64_t*> take_zeros(&self.taken, self.blocks * 64)
        if bits == NULL:
            return 0
        if not self.pure:
            memcpy(bits, table.other, self.blocks * 64)
        if row != 0:
            self.rows_free = self.rows[row].position
        else:
            row = self.rows_top
            self.rows_top += 1
        self.rows[row] = Row(bits, position, word, 0, table.count)
        table.rows[table.count] = row
        table.count += 1
        return row if edges_put(&self.numbers, edge_tag(position, word), row) == 0 else 0

    cdef void _forget(self, uint32_t number) noexcept nogil:
        cdef Row* row = &self.rows[number]
        cdef Table* table = &self.tables[row.position]
        edges_drop(&self.numbers, edge_tag(row.position, row.word), number)
        table.count -= 1
        table.rows[row.place] = table.rows[table.count]
        self.rows[table.rows[row.place]].place = row.place
        give_back(&self.taken, row.bits, self.blocks * 64)
        row.bits = NULL
        row.word = 0
        row.position = self.rows_free
        self.rows_free = number

    cdef void _write(self, uint32_t column, int count, const Word* words, bint on) noexcept nogil:
        """The bits of a subscription that literal rows do not hold on their own account."""
        cdef bint many = count > 0 and words[count - 1].kind == MANY
        cdef int fixed = count - many, position
        cdef Table* table
        cdef uint32_t i
        for position in range(self.depth):
            table = &self.tables[position]
            if position < fixed and words[position].kind == LITERAL:
                continue
            if position >= fixed:
                set_bit(table.null, column, on)
                if not many:
                    continue
            set_bit(table.other, column, on)
            if self.pure:
                continue
            for i in range(table.count):
                set_bit(self.rows[table.rows[i]].bits, column, on)
        if many:
            set_bit(self.beyond, column, on)
        if count > 0 and words[0].kind != LITERAL:
            set_bit(self.wild_first, column, on)

    cdef bint _deepen(self, int depth) noexcept nogil:
        cdef Table* table
        while self.depth < depth:
            table = &self.tables[self.depth]
            if table.other == NULL and not (
                self._wider(&table.other, self.blocks) and self._wider(&table.null, self.blocks)
            ):
                return False
            # Whoever ends in `#` goes on here; whoever does not, ended before: all of them.
            memcpy(table.other, self.beyond, self.blocks * 64)
            self._all_present(table.null)
            self.depth += 1
        return True

    cdef void _all_present(self, uint64_t* bits) noexcept nogil:
        cdef uint32_t number
        for number in range(1, self.slots.top):
            if self.slots.slots[number].text != NULL:
                set_bit(bits, number, True)

    cdef int add(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t column, row, word
        cdef int position
        for position in range(count - 1):
            if words[position].kind == MANY:
                return UNABLE
        if slots_find(&self.slots, words, count, id) != 0:
            return UNKNOWN
        if not self._deepen(count):
            return NO_MEMORY
        column = slots_put(&self.slots, words, count, id)
        if column == 0:
            return NO_MEMORY
        while column >= self.blocks * 512:
            if not self._widen():
                return NO_MEMORY
        for position in range(count):
            if words[position].kind != LITERAL:
                continue
            word = interner_hold(&self.interner, &words[position])
            if word == 0:
                return NO_MEMORY
            row = self._find(position, word)
            if row == 0:
                row = self._row(position, word)
                if row == 0:
                    return NO_MEMORY
            self.rows[row].literals += 1
            set_bit(self.rows[row].bits, column, True)
        self._write(column, count, words, True)
        return DONE

    cdef int drop(self, const Word* words, int count, uint32_t id) noexcept nogil:
        cdef uint32_t column = slots_find(&self.slots, words, count, id), row, word
        cdef int position
        if column == 0:
            return UNKNOWN
        self._write(column, count, words, False)
        for position in range(count):
            if words[position].kind != LITERAL:
                continue
            word = interner_find(&self.interner, &words[position])
            row = self._find(position, word)
            set_bit(self.rows[row].bits, column, False)
            self.rows[row].literals -= 1
            if self.rows[row].literals == 0:
                self._forget(row)
            interner_release(&self.interner, word)
        slots_drop(&self.slots, words, count, id, column)
        return DONE

    cdef void find(self, const unsigned char* topic, size_t size, Found* found) noexcept nogil:
        cdef Word words[MOST_WORDS]
        cdef const uint64_t* rows[MOST_WORDS + 1]
        cdef const uint64_t* others[MOST_WORDS + 1]
        cdef int count = self.cut_topic(topic, size, words), used = 0, position
        cdef uint32_t word, row
        cdef size_t columns, i
        cdef uint32_t* here
        cdef bint dollar = self.mqtt and size > 0 and topic[0] == b"$"
        if count < 0:
            return
        for position in range(min(count, self.depth)):
            word = interner_find(&self.interner, &words[position])
            row = self._find(position, word) if word != 0 else 0
            others[used] = self.tables[position].other
            rows[used] = self.rows[row].bits if row != 0 else others[used]
            used += 1
        if count != self.depth:
            # The first null says it all: those that follow have the same bits, and more.
            rows[used] = others[used] = self.beyond if count > self.depth else self.tables[count].null
            used += 1
        if used == 0:  # no tables: there is nothing, or the empty filter alone
            for i in range(1, self.slots.top):
                if self.slots.slots[i].text != NULL:
                    emit(found, self.slots.slots[i].id)
            return
        if not found_room(found, self.blocks * 512):
            return
        here = found.ids + found.count  # columns first, then their ids
        if self.pure:
            columns = all_of_ors(rows, others, used, self.wild_first if dollar else NULL, self.blocks, here)
        else:
            columns = all_of(rows, used, self.wild_first if dollar else NULL, self.blocks, here)
        for i in range(columns):
            here[i] = self.slots.slots[here[i]].id
        found.count += columns


cdef class OrBitmap(OptimisedBitmap):
    """The same with pure literal rows: a subscription writes a row for each of its words and wildcards, and no more."""

    def __cinit__(self, str syntax="amqp"):
        self.pure = True
