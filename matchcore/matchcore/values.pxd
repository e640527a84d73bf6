# How the value of a field is compared, and its keyed hash.
#
#     INTEGER  FLOAT      one order: exact, also where a float cannot hold each integer (beyond 2^53)
#     TEXT                by its bytes
#     BOOLEAN             FALSE below TRUE
#     UNTYPED             as what it is compared with: text as it is, a number that is spelled in it, "true" and "false"
#
# Values that are equal have one hash: 1 and 1.0, 0.0 and -0.0. The meaning is that of kleene.py.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from matchcore.fields cimport (
    FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_OTHER, FIELD_TEXT, FIELD_UNTYPED, Field,
)
from matchcore.hashing cimport hash_add, hash_word

cdef enum:
    UNKNOWN = 2        # beside -1, 0, 1 for below, equal, above: the two cannot be compared


# What the text of an UNTYPED field is as a number: FIELD_INTEGER or FIELD_FLOAT, and the number is in the field;
# FIELD_OTHER: none. Looked at once.
cdef uint8_t read_number(Field* field) noexcept nogil


cdef inline uint8_t number_kind(Field* field) noexcept nogil:
    if field.kind != FIELD_UNTYPED:
        return field.kind
    return field.number if field.number != 0 else read_number(field)


cdef inline int order_of_integers(int64_t one, int64_t other) noexcept nogil:
    return (one > other) - (one < other)


cdef inline int order_of_floats(double one, double other) noexcept nogil:
    return (one > other) - (one < other)


# `other` is no NaN.
cdef inline int order_of_integer_and_float(int64_t one, double other) noexcept nogil:
    cdef int64_t whole
    if other >= 9223372036854775808.0:
        return -1
    if other < -9223372036854775808.0:
        return 1
    whole = <int64_t> other  # towards zero; what is cut off decides where the rest is equal
    if one != whole:
        return 1 if one > whole else -1
    return order_of_floats(<double> whole, other)


cdef inline int order_of_texts(const char* one, size_t size, const char* other, size_t other_size) noexcept nogil:
    cdef int order = memcmp(one, other, size if size < other_size else other_size)
    if order == 0:
        return (size > other_size) - (size < other_size)
    return 1 if order > 0 else -1


cdef inline int order_to_integer(Field* field, int64_t value) noexcept nogil:
    cdef uint8_t kind = number_kind(field)
    if kind == FIELD_INTEGER:
        return order_of_integers(field.integer, value)
    return -order_of_integer_and_float(value, field.real) if kind == FIELD_FLOAT else UNKNOWN


cdef inline int order_to_float(Field* field, double value) noexcept nogil:
    cdef uint8_t kind = number_kind(field)
    if kind == FIELD_FLOAT:
        return order_of_floats(field.real, value)
    return order_of_integer_and_float(field.integer, value) if kind == FIELD_INTEGER else UNKNOWN


cdef inline bint is_text(const Field* field) noexcept nogil:
    return field.kind == FIELD_TEXT or field.kind == FIELD_UNTYPED


cdef inline int order_to_text(const Field* field, const char* text, size_t size) noexcept nogil:
    return order_of_texts(field.text, field.size, text, size) if is_text(field) else UNKNOWN


# 0 or 1; UNKNOWN: no boolean.
cdef inline int as_boolean(const Field* field) noexcept nogil:
    if field.kind == FIELD_BOOLEAN:
        return <int> field.integer
    if field.kind != FIELD_UNTYPED:
        return UNKNOWN
    if field.size == 4 and memcmp(field.text, b"true", 4) == 0:
        return 1
    return 0 if field.size == 5 and memcmp(field.text, b"false", 5) == 0 else UNKNOWN


cdef inline int order_to_boolean(const Field* field, int value) noexcept nogil:
    cdef int found = as_boolean(field)
    return found if found == UNKNOWN else found - value


# A float that is an integer of 64 bits, as this integer.
cdef inline bint is_whole(double value, int64_t* whole) noexcept nogil:
    if not -9223372036854775808.0 <= value < 9223372036854775808.0:
        return False
    whole[0] = <int64_t> value
    return <double> whole[0] == value


# Keyed hashes of a value of the attribute of this number; `secret` is hash_secret().
cdef inline uint64_t hash_of(const uint64_t* secret, uint32_t attribute, uint8_t kind, uint64_t value) noexcept nogil:
    return hash_add(secret, hash_add(secret, secret[2] ^ <uint64_t> attribute << 8 ^ kind, value), secret[1])


cdef inline uint64_t hash_integer(const uint64_t* secret, uint32_t attribute, int64_t value) noexcept nogil:
    return hash_of(secret, attribute, FIELD_INTEGER, <uint64_t> value)


cdef inline uint64_t hash_float(const uint64_t* secret, uint32_t attribute, double value) noexcept nogil:
    cdef int64_t whole
    cdef uint64_t bits
    if is_whole(value, &whole):
        return hash_integer(secret, attribute, whole)
    memcpy(&bits, &value, 8)
    return hash_of(secret, attribute, FIELD_FLOAT, bits)


cdef inline uint64_t hash_boolean(const uint64_t* secret, uint32_t attribute, bint value) noexcept nogil:
    return hash_of(secret, attribute, FIELD_BOOLEAN, value)


cdef inline uint64_t hash_text(
    const uint64_t* secret, uint32_t attribute, const char* text, size_t size
) noexcept nogil:
    return hash_of(secret, attribute, FIELD_TEXT, hash_word(secret, text, size))


# The hashes of all values that are equal to the field's: one, or up to two of an untyped text. Their number.
cdef inline int hash_field(const uint64_t* secret, uint32_t attribute, Field* field, uint64_t* hashes) noexcept nogil:
    cdef int count = 0
    cdef int boolean
    cdef uint8_t kind
    if field.kind == FIELD_INTEGER:
        hashes[0] = hash_integer(secret, attribute, field.integer)
        return 1
    if field.kind == FIELD_FLOAT:
        hashes[0] = hash_float(secret, attribute, field.real)
        return 1
    if field.kind == FIELD_BOOLEAN:
        hashes[0] = hash_boolean(secret, attribute, field.integer)
        return 1
    if not is_text(field):
        return 0
    hashes[0] = hash_text(secret, attribute, field.text, field.size)
    if field.kind == FIELD_TEXT:
        return 1
    count = 1
    kind = number_kind(field)
    boolean = as_boolean(field)
    if kind == FIELD_INTEGER:
        hashes[1] = hash_integer(secret, attribute, field.integer)
    elif kind == FIELD_FLOAT:
        hashes[1] = hash_float(secret, attribute, field.real)
    elif boolean != UNKNOWN:
        hashes[1] = hash_boolean(secret, attribute, boolean)
    else:
        return count
    return count + 1


# A number that grows with the field's, if it is a number or a text: (`*kind` FIELD_FLOAT or FIELD_TEXT). Values that
# differ may have one. False: it is neither.
cdef inline uint64_t ordered_float(double value) noexcept nogil:
    cdef uint64_t bits
    if value == 0:
        value = 0  # -0.0 is 0.0
    memcpy(&bits, &value, 8)
    return ~bits if bits >> 63 else bits | <uint64_t> 1 << 63


# The first eight bytes, the first the highest.
cdef inline uint64_t ordered_text(const char* text, size_t size) noexcept nogil:
    cdef uint64_t made = 0
    cdef size_t i
    for i in range(8):
        made = made << 8 | (<uint8_t> text[i] if i < size else 0)
    return made
