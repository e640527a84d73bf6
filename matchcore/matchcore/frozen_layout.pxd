# The bytes of a FrozenIndex: a header, then sections, each an array that the search reads where it lies.
#
#     0        header           magic, format, sizes, counts, secrets; where each section begins and its size
#     ...      word entries     Word[words]           32 bytes; id 0 first              (words.pxd)
#              long words       units                 their bytes
#              word table       cells                 8 bytes; a power of two of them   (table.pxd)
#              class positions  uint64[classes]       bit 63: in use                    (classes.pxd)
#              free rows        uint64[49 x width]
#              length rows      uint64[26 x width]
#              likely           uint64[width]
#              word rows        units
#              lines            Line[lines]           64 bytes                          (line_table.pxd)
#              buckets          units                 blocks: key, records              (buckets.pxd)
#              slots            Slot[slots]           8 bytes                           (slots.pxd)
#              ids              uint32[slots]
#              lists            Bag[lists]            12 bytes                          (bag.pxd)
#              ids of lists     units
#              texts            units                 size in bytes, bytes
#              exact table      cells                 of the filters without wildcards alone
#              columns          Column[columns]       20 bytes                          (pool.pxd)
#              tokens           units                 of the columns
#              rows             PoolRow[77 + ...]     16 bytes: the 77 fixed ones, then those of words
#              row numbers      uint32[blocks]        which blocks of 512 columns a row has
#              row blocks       Block[blocks]         64 bytes                          (bitmap.pxd)
#              row words        PoolWord[...]         16 bytes: whose rows they are
#              selectors        of format 3           (frozen_selectors.py)
#     size
#
# Units are 32-bit; a block in them is named by its number, as in arena.pxd. Sections begin at multiples of 64
# bytes, and what lies between is zeros. All numbers are little-endian. Nothing is an address: an opened index has
# a handful of pointers into the bytes, and of its own only what is small: the classes spelled out (at most 512),
# and a pointer for each row of the pool.
#
# Format 3 is format 2 with selectors; an index that has none is written in format 2, with zeros in the place of that
# section.
#
# The hash tables are made anew under a secret that the copy draws for itself. docs/frozen-format.md describes
# every byte. A change of a struct needs a new FORMAT and a change of that page.

from libc.stdint cimport uint32_t, uint64_t

from matchcore.hashing cimport MULTIPLIERS
from matchcore.positions cimport DEPTH, LENGTHS

cdef enum:
    FORMAT = 2
    FORMAT_SELECTORS = 3     # with the section of selectors
    BYTE_ORDER = 0x01020304
    ALIGNED = 64             # sections
    LEAST_ALIGNED = 8        # the whole, wherever it lies
    CHECKED_FROM = 32        # the checksum is of all bytes from here on

    CLASS_IN_USE = 63        # the bit of a class that has buckets

    # The rows of the pool that are there whatever the filters
    ROWS_FREE_LEFT = 0
    ROWS_FREE_RIGHT = DEPTH
    ROWS_LENGTHS = 2 * DEPTH
    ROW_FREE_ANY = 2 * DEPTH + LENGTHS
    ROW_NO_DOLLAR = 2 * DEPTH + LENGTHS + 1
    ROW_LIVE = 2 * DEPTH + LENGTHS + 2
    ROWS_FIXED = 2 * DEPTH + LENGTHS + 3

    # Sections, in their order
    WORD_ENTRIES = 0
    LONG_WORDS
    WORD_TABLE
    CLASS_POSITIONS
    FREE_ROWS
    LENGTH_ROWS
    LIKELY
    WORD_ROWS
    LINES
    BUCKETS
    SLOTS
    IDS
    LISTS
    IDS_OF_LISTS
    TEXTS
    EXACT_TABLE
    COLUMNS
    TOKENS
    ROWS
    ROW_NUMBERS
    ROW_BLOCKS
    ROW_WORDS
    SECTIONS


cdef struct Section:
    uint64_t offset          # from the first byte of all
    uint64_t size            # bytes


cdef struct Header:
    char[8] magic            # "mcfrozen"
    uint32_t format
    uint32_t byte_order
    uint64_t size            # of all, in bytes
    uint64_t checksum
    uint64_t version         # FilterIndex.version when it was copied
    uint64_t pairs           # (filter, syntax, id) held
    uint32_t words_most      # the limits: max_words, max_bytes
    uint32_t bytes_most
    uint32_t texts           # (filter, syntax) held
    uint32_t exact           # of them without wildcards
    uint32_t wildcards       # of them with; the pool's and the buckets'
    uint32_t several         # of them with several ids
    uint32_t words           # held in the dictionary
    uint32_t buckets
    uint32_t records         # of the buckets: a filter each
    uint32_t width           # 64-bit words of a row of the class bitmap
    uint32_t left_depth      # of the pool's free rows
    uint32_t right_depth
    uint64_t[4] secret
    uint64_t[MULTIPLIERS] multipliers
    Section[SECTIONS] sections
    uint32_t likely_block    # Pool.likely
    uint32_t unused
    Section selectors        # of format 3; else zeros


cdef struct PoolRow:
    uint32_t first           # of row numbers and row blocks
    uint32_t size            # blocks
    uint32_t bits
    uint32_t unused


cdef struct PoolWord:
    uint64_t positions
    uint32_t word
    uint32_t first           # of rows


cdef inline const void* section_of(const Header* header, int section) noexcept nogil:
    return <const char*> header + header.sections[section].offset


cdef inline size_t section_items(const Header* header, int section, size_t item) noexcept nogil:
    return <size_t> header.sections[section].size // item
