# The rows of a selector pool (selector_pool.pxd): what a message's value of one attribute rules out.
#
#     price    default           whatever has no row of its own: here all that is not a number
#              cell 0 .. cell 31  numbers, between 31 bounds; the other numbers' rows
#     region   default
#              texts             texts that are not listed
#              'eu', 'us', ...   texts that selectors compare with, up to 64
#     note     default           whatever is present
#              absent
#
# A row has a bit for each selector: 1 if one of its tests of this attribute cannot be true of such a value. So the
# selectors without a test of it have 0 everywhere, a range sets bits in the cells that it does not meet, and a message
# has one row of each attribute, whatever is tested: its value's, or the one that stands for it (`fallback`).
#
# A kind of values gets a row when a first selector lets some of them through; before, its fallback says the same. The
# rows are numbered for the whole pool, a fallback before those that fall back to it.
#
# What a row says of a selector may be exact, so that nothing is left to verify, or not: a cell that a range ends in
# (MIXED). The bounds are quantiles of the ends that the first selectors have, so common ends are bounds.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator
from matchcore.fields cimport Field, FieldView
from matchcore.program cimport Program, Step, ValueList

cdef enum:
    # ConditionRow.kind
    ROW_DEFAULT = 0
    ROW_ABSENT
    ROW_FALSE
    ROW_TRUE
    ROW_TEXTS
    ROW_NUMBERS            # where there are no cells
    ROW_KINDS
    ROW_VALUE = ROW_KINDS  # a listed text
    ROW_CELL

cdef enum:
    ROWS_AT_MOST = 1024    # 64 bytes each for 512 selectors
    ATTRIBUTES_OF_POOL = 64
    VALUES_LISTED = 64     # of an attribute
    VALUE_AT_MOST = 64     # bytes of a listed text
    POOL_CELLS = 32        # of an attribute
    LISTED_IN_ONE = 16     # texts of one IN that get rows

cdef enum:
    # types of what a test compares with; where two tests of one attribute differ, one of them has no rows
    OF_ANY = 0
    OF_NUMBER
    OF_BOOLEAN
    OF_TEXT
    OF_SEVERAL
    OF_NO_ROWS             # a test that rows cannot stand for


cdef struct ConditionRow:
    uint16_t fallback      # 0: rules nothing out
    uint16_t next          # of this attribute; 0: the last one
    uint16_t view          # of a ROW_VALUE (glance.pxd)
    uint8_t kind
    uint8_t cell
    uint32_t size
    char* text             # of a ROW_VALUE; NULL: free, and as the other texts


cdef struct PoolAttribute:
    uint32_t attribute
    uint16_t[ROW_KINDS] kinds  # their rows; 0: none
    uint16_t first         # of all rows
    uint16_t first_cell    # those behind are the others; 0: none
    uint16_t cells
    uint16_t values        # listed
    uint16_t* table        # view -> row, open addressing; NULL: no text is listed
    uint64_t* bounds       # cells - 1, ascending; what is equal to one is in the cell above


cdef struct ConditionRows:
    Allocator* allocator
    ConditionRow* rows     # 0 is no row of an attribute
    uint32_t row_count
    uint32_t row_capacity
    PoolAttribute* attributes
    uint32_t attribute_count
    uint32_t attribute_capacity


# The rows that a message has of one attribute: what all of them rule out is ruled out. More than one for text without a
# type. `marked`: the row that may be MIXED for other reasons than its value, 0: none.
cdef struct RowsOfValue:
    uint16_t[3] rows
    uint16_t[3] marked
    uint32_t count


cdef int condition_rows_init(ConditionRows* rows, Allocator* allocator) noexcept nogil
cdef void condition_rows_free(ConditionRows* rows) noexcept nogil

# The index of an attribute, made if need be and if there is room. -1: no room, or none; -2: no memory.
cdef int rows_seek(const ConditionRows* rows, uint32_t attribute) noexcept nogil
cdef int rows_attribute(ConditionRows* rows, uint32_t attribute) noexcept nogil

# Cells between bounds of these ends, ascending, for an attribute that has no rows of numbers. -1: no memory.
cdef int rows_make_cells(ConditionRows* rows, uint32_t at, const uint64_t* ends, uint32_t count) noexcept nogil

# Of what type the values are that a test compares with. `sharp`: it may rule out more than values of other types.
cdef int type_of_test(const Program* program, const Step* step, bint* sharp) noexcept nogil

# The lists of an IN, behind their sizes.
cdef const uint32_t* list_of_test(const Program* program, const Step* step, ValueList* sizes) noexcept nogil

# Makes the rows that a test needs, and lists its texts as far as there is room. 1: no room, and rows cannot stand for
# this test; -1: no memory.
cdef int rows_prepare(ConditionRows* rows, uint32_t at, const Program* program, const Step* step) noexcept nogil

# The row of a listed text; 0: it is not listed. The cell of a number: how many bounds are not above it.
cdef uint32_t row_of_text(
    const ConditionRows* rows, const PoolAttribute* one, uint16_t view, const char* text, size_t size
) noexcept nogil
cdef uint32_t cell_of(const PoolAttribute* one, uint64_t ordered) noexcept nogil

# No room for another text, unless one is unlisted: whose row says of all selectors what that of the other texts says.
cdef bint rows_are_full(const ConditionRows* rows, uint32_t at) noexcept nogil
cdef void rows_unlist(ConditionRows* rows, uint32_t at, uint32_t row) noexcept nogil

cdef void rows_of_value(
    const ConditionRows* rows, const PoolAttribute* one, Field* field, const FieldView* view, RowsOfValue* found
) noexcept nogil
