# cython: language_level=3, cdivision=True
"""The access keys that a message has. Drawn in message_keys.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from matchcore.access cimport (
    KEY_PREFIX, KEY_PRESENT, KEY_RANGE, KEY_SUFFIX, KEY_VALUE, AccessColumn, access_cell, access_column, tag_of_affix,
    tag_of_cell, tag_of_hash, tag_of_presence,
)
from matchcore.allocator cimport numbers_push
from matchcore.fields cimport FIELD_ABSENT, FIELD_FLOAT, FIELD_INTEGER, Field
from matchcore.hashing cimport hash_secret
from matchcore.values cimport hash_field, is_text, number_kind, ordered_float


cdef int _text_keys(
    const AccessColumn* column, const Field* field, Allocator* allocator, Numbers* tags
) noexcept nogil:
    """Of its beginnings and ends."""
    cdef uint32_t size
    cdef int done = 0
    for size in range(1, min(field.size, <uint32_t> 63) + 1):
        if column.prefixes >> size & 1:
            done |= numbers_push(allocator, tags, tag_of_affix(column.attribute, KEY_PREFIX, field.text, size))
        if column.suffixes >> size & 1:
            done |= numbers_push(
                allocator, tags, tag_of_affix(column.attribute, KEY_SUFFIX, field.text + field.size - size, size)
            )
    return done


cdef int _column_keys(const AccessColumn* column, Field* field, Allocator* allocator, Numbers* tags) noexcept nogil:
    """All keys that the value of one attribute has."""
    cdef uint64_t[2] hashes
    cdef uint64_t ordered
    cdef int count, i
    cdef int done = 0
    cdef uint8_t kind
    if column.keys[KEY_VALUE] != 0:
        count = hash_field(hash_secret(), column.attribute, field, hashes)
        for i in range(count):
            done |= numbers_push(allocator, tags, tag_of_hash(hashes[i]))
    if column.keys[KEY_PRESENT] != 0:
        done |= numbers_push(allocator, tags, tag_of_presence(column.attribute))
    if column.keys[KEY_RANGE] != 0:
        kind = number_kind(field)
        if kind == FIELD_INTEGER or kind == FIELD_FLOAT:
            ordered = ordered_float(<double> field.integer if kind == FIELD_INTEGER else field.real)
            done |= numbers_push(allocator, tags, tag_of_cell(column.attribute, access_cell(column, ordered)))
    if column.prefixes | column.suffixes and is_text(field):
        done |= _text_keys(column, field, allocator, tags)
    return done


cdef int keys_of_message(const Access* access, Fields fields, Allocator* allocator, Numbers* tags) noexcept nogil:
    # Of the message's fields, or, where these are fewer, the attributes that have keys.
    cdef const AccessColumn* column
    cdef Field* field
    cdef uint32_t i
    cdef int done = 0
    if access.column_count <= fields.count:
        for i in range(access.column_count):
            column = &access.columns[i]
            field = &fields.at[column.attribute]
            if field.kind != FIELD_ABSENT:
                done |= _column_keys(column, field, allocator, tags)
        return done
    for i in range(fields.count):
        field = &fields.at[fields.numbers[i]]
        if field.kind != FIELD_ABSENT:
            column = access_column(access, fields.numbers[i])
            if column != NULL:
                done |= _column_keys(column, field, allocator, tags)
    return done
