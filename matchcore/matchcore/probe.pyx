# cython: language_level=3, cdivision=True
"""Asking the buckets: rows anded to classes, classes to keys, keys to buckets, records checked.

    words    site  17  floor  2  dev  4711  temp
    rows      &  each used position: the word's row or the free row  ->  classes alive
    keys      {L5: 4711}  {L1: 17, L5: 4711}  {L3: 2, L5: 4711}   ->  tags; cells asked for
    cells     tag found?                                          ->  blocks; asked for
    records   key words, length, `$`, residual literals           ->  slots

All keys of a batch are made before the first cell is looked at, and all cells before the first bucket: at a
million filters each of them is a miss, and so they overlap; those of several topics too, see probe.pxd. For a
first match only, the likely classes are asked first, few at a time.

It reads the index and writes to the topic's scratch, the stack and `found` alone.
"""

from libc.stdint cimport uint64_t

from matchcore.allocator cimport numbers_reserve, prefetch
from matchcore.buckets cimport (
    LEAST_BITS, LEAST_SHIFT, POSITION_SHIFT, RECORD_MANY, RECORD_NO_DOLLAR, RECORD_VERIFY, RESIDUALS, bucket_class,
    bucket_units, record_units,
)
from matchcore.classes cimport Class, Classes, WIDTH_AT_MOST, word_row_bits
from matchcore.hashing cimport load64
from matchcore.line_table cimport (
    LINE_ENTRIES, Line, LineTable, first_entry, line_after, line_home, line_tag, line_table_prefetch, entries_of,
)
from matchcore.positions cimport POSITION_ANY, POSITION_RIGHT, count_positions, length_row, lowest_position
from matchcore.sieve cimport sieve_has
from matchcore.slots cimport slots_expect, slots_expect_text
from matchcore.table cimport NONE
from matchcore.verify cimport tokens_take

cdef enum:
    FEW = 4              # probes at first, when one match is enough; then twice as many each time
    RECORDS_OF_ONE = 128   # no bucket has more
    MANY_EXACT = 16384


# ---- rows -------------------------------------------------------------------------------------------

cdef inline uint32_t _index(uint32_t position, uint32_t count) noexcept nogil:
    """Which word stands at a position; `count` or more: none."""
    return position if position < POSITION_RIGHT else count - 1 - (position - POSITION_RIGHT)


cdef inline uint32_t _word_at(const Topic* topic, uint32_t position) noexcept nogil:
    """The word at a position that the topic is long enough for."""
    return topic.ids[_index(position, topic.count)]


cdef uint32_t _find_anys(Topic* topic) noexcept nogil:
    """The distinct words that are sought anywhere: each is probed once (I5)."""
    cdef uint32_t n = 0
    cdef uint32_t i, j
    for i in range(topic.count):
        if not (topic.positions[i] >> POSITION_ANY) & 1:
            continue
        for j in range(n):
            if topic.ids[topic.anys[j]] == topic.ids[i]:
                break
        else:
            topic.anys[n] = i
            n += 1
    return n


cdef inline uint64_t _alive(const Classes* classes, const Topic* topic, Batch* batch, uint32_t w) noexcept nogil:
    """64 bits of the and of the topic's rows; on the way, the products of the used positions."""
    cdef uint32_t width = classes.width
    cdef uint32_t count = topic.count
    cdef const uint64_t* free_rows = classes.free_rows + w
    cdef const uint32_t* units = classes.rows.units + 2 * w
    cdef uint64_t used = classes.used & ((<uint64_t> 1 << POSITION_ANY) - 1)
    cdef uint64_t alive = classes.lengths[length_row(count) * width + w]
    cdef uint64_t row, positions, bit
    cdef uint32_t i, j
    cdef uint32_t position
    while used != 0:
        if alive == 0:
            return 0
        position = <uint32_t> lowest_position(used)
        used &= used - 1
        row = free_rows[position * width]
        i = _index(position, count)
        if i < count:
            batch.products[position] = classes.multipliers[position] * topic.ids[i]
            positions = topic.positions[i]
            bit = <uint64_t> 1 << position
            if positions & bit:
                row |= load64(&units[topic.rows[i] + 2 * width * <uint32_t> count_positions(positions & (bit - 1))])
        alive &= row
    if alive != 0 and (classes.used >> POSITION_ANY) & 1:
        row = classes.free_rows[POSITION_ANY * width + w]
        for j in range(batch.anys):
            i = topic.anys[j]
            row |= word_row_bits(classes, topic.positions[i], topic.rows[i], POSITION_ANY, w)
        alive &= row
    return alive


# ---- buckets -----------------------------------------------------------------------------------------

cdef inline bint _takes(const Batch* batch, const uint32_t* record, uint32_t head) noexcept nogil:
    """All that the key does not say."""
    cdef const Topic* topic = batch.topic
    cdef uint32_t least = (head >> LEAST_SHIFT) & LEAST_BITS
    cdef uint32_t n = head & RESIDUALS
    cdef uint32_t i
    cdef const unsigned char* positions
    if topic.count != least and (topic.count < least or not head & RECORD_MANY):
        return False
    if topic.dollar and head & RECORD_NO_DOLLAR:
        return False
    if n <= 2:
        if head & RECORD_VERIFY:
            return not record[4] & ~topic.bloom and tokens_take(
                &record[5], record[2] & 0xFFFF, record[2] >> 16, record[3], head & RECORD_MANY,
                topic.ids, topic.count, topic.occurrences,
            )
        if n == 0:
            return True
        if _word_at(topic, (head >> POSITION_SHIFT) & 63) != record[2]:
            return False
        return n == 1 or _word_at(topic, head >> (POSITION_SHIFT + 6)) == record[3]
    positions = <const unsigned char*> &record[2]
    record += 2 + (n + 3) // 4
    for i in range(n):
        if _word_at(topic, positions[i]) != record[i]:
            return False
    return True


cdef inline int _search(Batch* batch, const Probe* probe) noexcept nogil:
    """The records of one bucket; 1: found one, and that is enough; -1: no memory."""
    cdef const uint32_t* units = &batch.buckets.arena.units[probe.block]
    cdef const uint32_t* end = units + bucket_units(units[0])
    cdef const Class* entry = &batch.buckets.classes.classes[probe.c]
    cdef uint32_t literals = entry.literals - entry.any
    cdef uint32_t i
    cdef size_t size
    if bucket_class(units[0]) != probe.c:
        return 0
    for i in range(literals):
        if _word_at(batch.topic, entry.position[i]) != units[1 + i]:
            return 0
    if entry.any and units[1 + literals] != probe.any:
        return 0
    units += 1 + entry.literals
    size = batch.found.size
    if batch.found.capacity - size < RECORDS_OF_ONE:
        if numbers_reserve(batch.allocator, batch.found, size + RECORDS_OF_ONE) < 0:
            return -1
    while units < end:
        if _takes(batch, units, units[1]):
            batch.found.items[size] = units[0]
            prefetch(&batch.buckets.slots.ids[units[0]])  # read next, for the ids
            size += 1
            if batch.first_only:
                batch.hit = probe.c
                break
        units += record_units(units)
    batch.found.size = size
    return batch.first_only and batch.hit != NONE


cdef int _flush(Batch* batch) noexcept nogil:
    cdef int status = buckets_locate(batch)
    return buckets_records(batch) if status == 0 else status


cdef int buckets_locate(Batch* batch) noexcept nogil:
    cdef const Buckets* buckets = batch.buckets
    cdef const LineTable* table = &buckets.table
    cdef const uint32_t* units = buckets.arena.units
    cdef const Line* line
    cdef uint32_t size = batch.size
    cdef uint32_t n = 0
    cdef uint32_t i, found
    cdef int status
    cdef Probe* probe
    batch.size = 0
    # Without a branch on what is found: it is as good as random, and a wrong guess costs more than all else.
    for i in range(size):
        probe = &batch.probes[i]
        line = &table.lines[line_home(table, probe.tag)]
        found = entries_of(line, probe.tag)
        if line.passed != 0 or found & (found - 1) != 0:
            status = _search_on(batch, probe, found)
            if status != 0:
                return status
        else:
            batch.probes[n] = probe[0]
            batch.probes[n].block = line.refs[first_entry(found | 1 << LINE_ENTRIES)] if found != 0 else 0
            prefetch(&units[batch.probes[n].block])
            prefetch(&units[batch.probes[n].block + 12])
            n += found != 0
    batch.located = n
    return 0


cdef int buckets_records(Batch* batch) noexcept nogil:
    cdef uint32_t located = batch.located
    cdef uint32_t i
    cdef int status
    batch.located = 0
    slots_expect_text(batch.buckets.slots, batch.expected)
    for i in range(located):
        status = _search(batch, &batch.probes[i])
        if status != 0:
            return status
    return 0


cdef int _search_on(Batch* batch, const Probe* probe, uint32_t found) noexcept nogil:
    """A line that passed something on, or has the tag twice (as two keys do, once in four thousand millions)."""
    cdef const LineTable* table = &batch.buckets.table
    cdef uint32_t home = line_home(table, probe.tag)
    cdef uint32_t at = home
    cdef Probe one = probe[0]
    cdef int status
    while True:
        while found != 0:
            one.block = table.lines[at].refs[first_entry(found)]
            status = _search(batch, &one)
            if status != 0:
                return status
            found &= found - 1
        if table.lines[at].passed == 0:
            return 0
        at = line_after(table, at)
        if at == home:
            return 0  # every line passed something on once: see line_table.pxd
        found = entries_of(&table.lines[at], probe.tag)


cdef inline int _ask(Batch* batch, uint32_t c, uint64_t sum, uint32_t any) noexcept nogil:
    cdef Probe* probe = &batch.probes[batch.size]
    probe.tag = line_tag(<uint32_t> (sum >> 32))
    probe.c = c
    probe.any = any
    # Without a branch: whether it is there is as good as random.
    line_table_prefetch(&batch.buckets.table, probe.tag)
    batch.size += sieve_has(&batch.buckets.table.sieve, probe.tag)
    if batch.size != batch.limit:
        return 0
    batch.limit = min(2 * batch.limit, <uint32_t> BATCH)
    return _flush(batch)


cdef inline int _ask_class(Batch* batch, uint32_t c) noexcept nogil:
    """The key of a class; of one with an any-position, a key for each word that may stand there."""
    cdef const Classes* classes = batch.buckets.classes
    cdef const Class* entry = &classes.classes[c]
    cdef Topic* topic = batch.topic
    cdef uint64_t sum = 0
    cdef uint32_t literals = entry.literals - entry.any
    cdef uint32_t i, j
    cdef int status
    for i in range(literals):
        sum += batch.products[entry.position[i]]
    if not entry.any:
        return _ask(batch, c, sum, 0)
    for j in range(batch.anys):
        i = topic.anys[j]
        if (word_row_bits(classes, topic.positions[i], topic.rows[i], POSITION_ANY, c // 64) >> (c % 64)) & 1:
            status = _ask(batch, c, sum + classes.multipliers[POSITION_ANY] * topic.ids[i], topic.ids[i])
            if status != 0:
                return status
    return 0


cdef inline int _ask_classes(Batch* batch, uint64_t alive, uint32_t w) noexcept nogil:
    cdef int status
    while alive != 0:
        status = _ask_class(batch, w * 64 + <uint32_t> lowest_position(alive))
        if status != 0:
            return status
        alive &= alive - 1
    return 0


cdef inline void _begin(
    Batch* batch, const Buckets* buckets, Topic* topic, bint first_only, Numbers* found, Allocator* allocator
) noexcept nogil:
    batch.buckets = buckets
    batch.topic = topic
    batch.found = found
    batch.allocator = allocator
    batch.anys = batch.size = batch.located = 0
    batch.limit = FEW if first_only else BATCH
    batch.first_only = first_only
    batch.hit = batch.expected = NONE


cdef int buckets_ask(
    const Buckets* buckets, Topic* topic, bint first_only, Numbers* found, Allocator* allocator, Batch* batch
) noexcept nogil:
    cdef const Classes* classes = buckets.classes
    cdef uint64_t[WIDTH_AT_MOST] alive
    cdef uint32_t w
    cdef int status = 0
    _begin(batch, buckets, topic, first_only, found, allocator)
    if (classes.used >> POSITION_ANY) & 1:
        batch.anys = _find_anys(topic)
    for w in range(classes.width):
        alive[w] = _alive(classes, topic, batch, w)
    if not first_only and buckets.slots.exact >= MANY_EXACT:
        # Whose text is asked for meanwhile: the exact tier is next. Fewer of them are in the processor's caches.
        batch.expected = slots_expect(buckets.slots, topic.hash)
    if first_only:
        for w in range(classes.width):
            if status == 0:
                status = _ask_classes(batch, alive[w] & classes.likely[w], w)
                alive[w] &= ~classes.likely[w]
    for w in range(classes.width):
        if status == 0:
            status = _ask_classes(batch, alive[w], w)
    return status


cdef int buckets_ask_all(
    const Buckets* buckets, Topic* topic, Numbers* found, Allocator* allocator, Batch* batch
) noexcept nogil:
    cdef const Classes* classes = buckets.classes
    cdef const Class* entry
    cdef uint64_t sum
    cdef uint32_t c, i, j
    _begin(batch, buckets, topic, False, found, allocator)
    for c in range(classes.count):
        entry = &classes.classes[c]
        sum = 0
        for i in range(entry.literals):
            j = _index(entry.position[i], topic.count)
            if j >= topic.count:
                break
            sum += classes.multipliers[entry.position[i]] * topic.ids[j]
        else:
            if entry.buckets != 0 and _ask(batch, c, sum, 0) < 0:
                return -1
    return 0
