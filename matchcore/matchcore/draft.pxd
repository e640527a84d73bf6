# A selector on its way from a tree, or from a text, to a program: in arrays, without Python objects.
#
#     region IN ('eu', 'us') AND NOT price > 100
#
#     nodes     [ IN region, values 0 and 1 | COMPARE price > value 2 | NOT of 1 | ALL of 0, 2 ]      root 3
#     values    [ 'eu' | 'us' | 100 ]
#     octets    the names of the attributes, the texts
#
#     normals   [ IN | COMPARE, negated | ALL of both ]      the same without NOT and constants (normal_form.py)
#
# compilation.pyx makes a program of the normals, cover.pyx access keys, glance.pyx a glance. One SelectorDraft is used
# for many selectors, by one caller at a time: `draft_of` takes the spare one, `draft_done` gives it back.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from matchcore.fields cimport FIELD_FLOAT, FIELD_INTEGER, FIELD_TEXT, Field
from matchcore.values cimport is_whole

cdef enum:
    # DraftNode.kind; the first three also of a NormalNode
    DRAFT_ALL = 0
    DRAFT_ANY
    DRAFT_HITS             # count: how many make it true
    DRAFT_COMPARE          # mask: the orders for which it is true (program.pxd)
    DRAFT_BETWEEN          # two values
    DRAFT_IN               # count: of values
    DRAFT_LIKE             # values: the compiled pattern, the pattern as it was written
    DRAFT_MATCHES          # mask: IN_MQTT; values: the filter, what its texts begin and end with, as a compiled pattern
    DRAFT_PRESENT
    DRAFT_NOT
    DRAFT_CONSTANT         # mask: 1 true, 0 false

cdef enum:
    DRAFT_NONE = 0xFFFFFFFF
    NORMAL_ALWAYS = 0xFFFFFFFE     # in place of a normal node
    NORMAL_NEVER = 0xFFFFFFFD
    EMITTED_AT_MOST = 512          # steps: four a test, one for each part of an AT LEAST and one for each of these


cdef struct DraftNode:
    uint8_t kind
    uint8_t mask
    uint32_t next          # of the same join; DRAFT_NONE: it is the last
    uint32_t first         # of the parts, or of the values
    uint32_t count
    uint32_t attribute     # where in `octets`: the root, how many names, then the size and the bytes of each


cdef struct DraftValue:
    uint32_t kind          # FIELD_BOOLEAN, FIELD_INTEGER, FIELD_FLOAT, FIELD_TEXT
    uint32_t size          # of a text
    int64_t bits           # the integer, the boolean, the float's bits, or where the text is in `octets`


cdef struct NormalNode:
    uint8_t kind
    bint negated           # of a test
    bint is_chosen         # of a test: it has an access key
    uint32_t next
    uint32_t first
    uint32_t parts
    uint32_t count         # of HITS
    uint32_t cost          # what comes first in a program
    uint32_t test          # the DraftNode
    uint32_t number        # of the attribute
    int label              # of its first step


# A key of a cover, before it is decided for.
cdef struct KeyChoice:
    uint16_t kind          # as of an AccessEntry
    uint32_t tag           # of an affix
    uint32_t size
    uint32_t leaf          # the test that it is; DRAFT_NONE: no single one
    uint32_t low           # of a range: the tests that have its ends, or DRAFT_NONE
    uint32_t high


# A step before all are known.
cdef struct EmittedStep:
    uint8_t code
    uint8_t mask
    uint16_t attribute
    int on_true            # numbers of emitted steps, or -1 and -2 for the two ends
    int on_false
    uint32_t test          # of IN: the DraftNode
    uint32_t size          # of a text
    int64_t bits           # the operand; of a text where it is in `octets`


cdef class SelectorDraft:
    cdef:
        DraftNode* nodes
        DraftValue* values
        char* octets
        NormalNode* normals
        KeyChoice* choices
        uint32_t* program      # what is made, with the entries behind it: see program.pxd
        Field* sorted          # the values of an IN
        EmittedStep* emitted   # EMITTED_AT_MOST of them
        size_t node_count, node_room, value_count, value_room, octet_count, octet_room
        size_t normal_count, normal_room, choice_count, choice_room, program_room, sorted_room
        uint32_t root          # of the nodes
        uint32_t normal        # of the normals, or NORMAL_ALWAYS, NORMAL_NEVER
        uint32_t tests         # of the normals that the root leads to
        int emitted_count
        uint32_t counters      # of AT LEAST
        bint is_keyed          # the choices are a cheap cover
        bint is_counted        # the tests are, in the columns of an Access

    cdef void clear(self) noexcept
    cdef int reserve_octets(self, size_t more) except -1

    # Their numbers.
    cdef uint32_t add_node(self, int kind, int mask) except? DRAFT_NONE
    cdef uint32_t add_value(self, uint32_t kind, int64_t bits) except? DRAFT_NONE
    cdef uint32_t add_float(self, double real) except? DRAFT_NONE
    cdef uint32_t add_text(self, const char* text, size_t size) except? DRAFT_NONE
    cdef uint32_t add_pattern(
        self, const char* text, size_t size, const char* escape, size_t escape_size
    ) except? DRAFT_NONE

    # An attribute is begun, then its names are added.
    cdef uint32_t begin_attribute(self, uint32_t root) except? DRAFT_NONE
    cdef int add_name(self, uint32_t attribute, const char* name, size_t size) except -1


# The value as programs have it: a float that is an integer as that. A text is borrowed from the draft.
cdef inline void draft_constant(SelectorDraft draft, uint32_t value, Field* made) noexcept:
    cdef const DraftValue* found = &draft.values[value]
    cdef int64_t whole
    made.kind = <uint8_t> found.kind
    made.size = found.size
    if made.kind == FIELD_TEXT:
        made.text = draft.octets + found.bits
    elif made.kind != FIELD_FLOAT:
        made.integer = found.bits
    else:
        memcpy(&made.real, &found.bits, 8)
        if is_whole(made.real, &whole):
            made.kind = FIELD_INTEGER
            made.integer = whole


# Integers and floats are compared with each other.
cdef inline uint32_t type_of(uint32_t kind) noexcept:
    return FIELD_FLOAT if kind == FIELD_INTEGER else kind


# An array with room for that many items of `size` bytes. Raises MemoryError.
cdef void* grown(void* items, size_t* room, size_t wanted, size_t size) except NULL

# A draft of a selector's tree. Raises TypeError of what is none, ValueError of values that no attribute can have and of
# more than 200 conditions inside each other. Python code may run here, and nowhere later.
cdef SelectorDraft draft_of(object selector)
cdef SelectorDraft take_draft()
cdef void draft_done(SelectorDraft draft) noexcept
