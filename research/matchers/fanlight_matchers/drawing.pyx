# cython: language_level=3
"""The rows of a FilterIndex as they are in memory, for drawings such as those of docs/matching.md.

Read only, from the structures that a match reads (matchcore/matchcore/pool.pxd, classes.pxd), so that what is drawn is
what is asked. For small indexes: every row is walked. Not for several threads.
"""

from libc.stdint cimport uint32_t, uint64_t

from matchcore.bitmap cimport BLOCK_COLUMNS, BLOCK_WORDS, Row
from matchcore.classes cimport Class, Classes, word_row_bits
from matchcore.filters cimport FilterIndex
from matchcore.pool cimport Pool, word_row
from matchcore.positions cimport LENGTHS, POSITION_ANY, POSITION_RIGHT, POSITIONS
from matchcore.table cimport NONE
from matchcore.words cimport Word, Words, word_size, word_start


def _position(int position):
    if position == POSITION_ANY:
        return "any"
    return f"left {position}" if position < POSITION_RIGHT else f"right {position - POSITION_RIGHT}"


cdef set _columns(const Row* row):
    cdef set found = set()
    cdef uint32_t i, w
    cdef int bit
    if row == NULL:
        return found
    for i in range(row.size):
        for w in range(<uint32_t> BLOCK_WORDS):
            for bit in range(64):
                if row.blocks[i].words[w] >> bit & 1:
                    found.add(row.numbers[i] * BLOCK_COLUMNS + 64 * w + bit)
    return found


cdef list _words(const Words* words):
    """(id, word) of all that are held; ids begin at 1."""
    cdef uint32_t id
    return [
        (id, word_start(words, &words.entries[id])[:word_size(&words.entries[id])])
        for id in range(1, words.count)
        if words.entries[id].refs != 0
    ]


def pool_rows(FilterIndex index):
    """(the filter of each column, [(position, word or None for the free row, the columns in it)]).

    Rows that are empty are left out; the position is "left 0", "right 0", "any", "length 2" or "$" (the columns that
    refuse a first word that begins with it).
    """
    cdef const Pool* pool = &index.tiers.pool
    cdef uint32_t i, id
    cdef int position
    columns = [
        None if pool.columns[i].tokens == NONE else index._triples(pool.columns[i].slot)[0][0]
        for i in range(pool.count)
    ]
    rows = []
    for position in range(POSITIONS):
        of_words = [
            (_position(position), word, _columns(word_row(pool, id, position)))
            for id, word in _words(&index.tiers.words)
        ]
        if not any(row[2] for row in of_words):
            continue
        if position == POSITION_ANY:
            free = _columns(&pool.free_any)
        else:
            free = _columns(
                &pool.free_left[position] if position < POSITION_RIGHT else &pool.free_right[position - POSITION_RIGHT]
            )
        rows += [*of_words, (_position(position), None, free)]
    rows += [(f"length {i}", None, _columns(&pool.lengths[i])) for i in range(LENGTHS)]
    rows.append(("$", None, _columns(&pool.no_dollar)))
    return columns, [row for row in rows if row[2]]


cdef set _bits(const uint64_t* row, uint32_t width):
    cdef uint32_t w
    cdef int bit
    return {64 * w + bit for w in range(width) for bit in range(64) if row[w] >> bit & 1}


def class_rows(FilterIndex index):
    """(key positions of each class, [(position, word or None for the free row, the classes in it)]), as pool_rows."""
    cdef const Classes* classes = &index.tiers.classes
    cdef const Word* entry
    cdef uint32_t c, id, w
    cdef int position, i
    if classes.count == 0:  # no rows either
        return [], []
    keys = []
    for c in range(classes.count):
        keys.append([_position(classes.classes[c].position[i]) for i in range(classes.classes[c].literals)])
    rows = []
    for position in range(POSITIONS):
        if not classes.used >> position & 1:
            continue
        for id, word in _words(&index.tiers.words):
            entry = &index.tiers.words.entries[id]
            found = set()
            for w in range(classes.width):
                bits = word_row_bits(classes, entry.positions, entry.rows, position, w)
                found |= {64 * w + i for i in range(64) if bits >> i & 1}
            rows.append((_position(position), word, found))
        rows.append((_position(position), None, _bits(&classes.free_rows[position * classes.width], classes.width)))
    for i in range(LENGTHS):
        rows.append((f"length {i}", None, _bits(&classes.lengths[i * classes.width], classes.width)))
    return keys, [row for row in rows if row[2]]
