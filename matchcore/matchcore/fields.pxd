# The fields of a message: what selectors look at, by number.
#
#     Attributes   headers   "price" -> 0     "x-trace" -> 4          payload   "order" -> .
#                  message   $qos -> 1        $word[2] -> 5                        "urgent" -> 2
#
#     Fields       at   [ INTEGER 120 | BOOLEAN 1 | ABSENT | ... ]    by number
#                  present   bits          set   [ 1 | 0 ]            what to clear
#
# A name gets a number when a first selector asks for it, and loses it with the last one: numbers are dense and used
# again, and what a decoder finds that nobody asks for costs one look-up. The names of payloads are a tree, so that a
# decoder that walks down a body knows at each map whether anybody asks for something below.
#
# Who fills in a Field: null and NaN are FIELD_ABSENT; text is borrowed from the frame. Call `set` first, then write
# `kind` and the value: field_* below do. The number that a text without a type may be is kept beside it (values.pxd).
#
# The tables may be read without the GIL; while somebody does, nobody may acquire or release.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from matchcore.allocator cimport Allocator, Numbers
from matchcore.arena cimport Arena
from matchcore.table cimport Table

cdef enum:
    FIELD_ABSENT = 0
    FIELD_BOOLEAN
    FIELD_INTEGER
    FIELD_FLOAT
    FIELD_TEXT
    FIELD_UNTYPED          # text that is a number or a boolean where it is compared with one
    FIELD_OTHER            # bytes, a list, a map: present, and no more

cdef enum:
    # Attributes.message
    MESSAGE_WORDS = 0
    MESSAGE_BYTES
    MESSAGE_QOS
    MESSAGE_RETAIN
    MESSAGE_CONTENT_TYPE
    MESSAGE_CLIENT
    MESSAGE_USER
    MESSAGE_TIME
    MESSAGE_NAMES          # how many there are

cdef enum:
    HEADERS_ROOT = 0
    PAYLOAD_ROOT = 1
    MESSAGE_ROOT = 2
    WORDS_AT_MOST = 128    # $word[1] to $word[128]
    ATTRIBUTES_AT_MOST = 65_535

cdef extern from *:
    """
    #include <stdint.h>

    typedef struct {
        uint8_t kind;
        uint8_t number;        /* of FIELD_UNTYPED: 0 not looked at yet, else what the text is as a number */
        uint32_t size;         /* of the text, bytes of UTF-8 */
        union {
            int64_t integer;   /* INTEGER; BOOLEAN: 0 or 1; UNTYPED that is an integer */
            double real;       /* FLOAT; UNTYPED that is a float */
        };
        const char *text;      /* TEXT, UNTYPED: borrowed */
    } matchcore_field;
    """
    ctypedef struct Field "matchcore_field":
        uint8_t kind
        uint8_t number
        uint32_t size
        int64_t integer
        double real
        const char* text


cdef inline void field_boolean(Field* field, bint value) noexcept nogil:
    field.kind = FIELD_BOOLEAN
    field.integer = value


cdef inline void field_integer(Field* field, int64_t value) noexcept nogil:
    field.kind = FIELD_INTEGER
    field.integer = value


cdef inline void field_float(Field* field, double value) noexcept nogil:
    field.kind = FIELD_FLOAT if value == value else FIELD_ABSENT
    field.real = value


# `kind`: FIELD_TEXT or FIELD_UNTYPED.
cdef inline void field_text(Field* field, uint8_t kind, const char* text, uint32_t size) noexcept nogil:
    field.kind = kind
    field.number = 0
    field.text = text
    field.size = size


# What a field is to a glance at a selector (glance.pxd): 16 bits of its value. All bits set: absent.
cdef struct FieldView:
    uint16_t value
    uint16_t mask          # 0: it may be anything


# A name that is asked for, or that is on the way to one: a node of a tree below each of the three roots.
cdef struct Place:
    uint32_t parent        # of a free one: the next free place, 0 none
    uint32_t name          # block in the arena: the size in bytes, then the bytes
    uint32_t tag           # of the hash of parent and name
    uint32_t below         # places below it
    int32_t number         # of the attribute that ends here, or -1
    uint32_t holders       # of the attribute
    bint is_used           # not free


cdef class Attributes:
    cdef:
        Allocator allocator
        Arena names
        Table table            # parent and name -> place
        Place* places
        uint32_t place_count   # ever used; the first three are the roots
        uint32_t place_capacity
        uint32_t free_place    # 0 none
        Numbers ends           # by number: its place; of a free number the next free one
        uint32_t free_number   # NONE: none
        uint32_t capacity      # numbers for which each Fields has room
        int32_t[MESSAGE_NAMES] known
        int32_t[WORDS_AT_MOST + 1] words
        void* fields           # the first Fields made for these; each is linked to the next
        uint32_t[3] asked      # attributes below each root
        uint64_t changes       # times that a number was given or taken back: what was looked up before is void
        readonly uint32_t count   # numbers in use
        readonly uint32_t room    # highest number ever used + 1

    cdef uint32_t _find(self, uint32_t parent, const char* name, size_t size) noexcept nogil
    cdef uint32_t _path(self, object attribute) except? 0xFFFFFFFF
    cdef void _pack(self) noexcept nogil
    cdef int _make_room(self) except -1
    cdef uint32_t _end(self, uint32_t number) noexcept nogil
    cdef int _number(self, uint32_t place) except -1
    cdef void _number_known(self, uint32_t place, int32_t number) noexcept nogil
    cdef void _count(self, uint32_t place, int change) noexcept nogil

    # As `acquire`, of an attribute as a Draft spells it (draft.pxd): the root, how many names, each with its size.
    cdef int acquire_spelled(self, const char* spelled) except -1

    # One holder more of a number that has one.
    cdef void hold(self, uint32_t number) noexcept nogil
    cdef void drop(self, uint32_t number) noexcept nogil

    # The number of a header's name, -1: nobody asks for it.
    cdef int header(self, const char* name, size_t size) noexcept nogil

    # The node of a name below a node of the payload's tree (PAYLOAD_ROOT is the body), -1: nobody asks for it, nor for
    # anything below it. number_of a node: of the attribute that it is, -1: it is only on the way to others.
    cdef int child(self, int node, const char* name, size_t size) noexcept nogil
    cdef int number_of(self, int node) noexcept nogil
    cdef bint has_below(self, int node) noexcept nogil

    # The number of $qos and the like (MESSAGE_QOS, ...), and of $word[n], n from 1; -1: nobody asks for it.
    cdef int message(self, int which) noexcept nogil
    cdef int word(self, int n) noexcept nogil


cdef class Fields:
    cdef:
        readonly Attributes attributes
        Allocator allocator
        Field* at              # by number, `capacity` of them
        uint64_t* present      # a bit for each number that was set
        uint32_t* numbers      # those that were set
        uint32_t count         # of them
        uint32_t capacity
        FieldView* views       # by number; of what is set only once `is_viewed`
        bint is_viewed
        list texts             # that `load` made: `at` points into them
        void* before           # the neighbours in the list of Attributes.fields
        void* after

    cdef int _resize(self, uint32_t capacity) noexcept nogil
    cdef int _load(self, uint32_t number, object value) except -1

    # All absent again; takes time in proportion to what was set.
    cdef void clear(self) noexcept nogil

    # The field of that number, marked as set, FIELD_ABSENT so far. Valid until an attribute is acquired.
    cdef Field* set(self, int number) noexcept nogil
    cdef bint has(self, int number) noexcept nogil
