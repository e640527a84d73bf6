# cython: language_level=3, annotation_typing=False
"""The values of fields as Python's: for tests, and for those who explain."""

from libc.stdint cimport uint32_t

from matchcore.fields cimport (
    FIELD_BOOLEAN, FIELD_FLOAT, FIELD_INTEGER, FIELD_OTHER, FIELD_TEXT, FIELD_UNTYPED, Field, Fields,
)

from matchcore.kleene import Untyped

__all__ = ["values_of"]


def values_of(Fields fields not None):
    """Number -> value, of all that are set and not absent; b"" for what has no value that is compared."""
    cdef Field* field
    cdef uint32_t i
    found = {}
    for i in range(fields.count):
        field = &fields.at[fields.numbers[i]]
        if field.kind == FIELD_BOOLEAN:
            found[fields.numbers[i]] = field.integer != 0
        elif field.kind == FIELD_INTEGER:
            found[fields.numbers[i]] = field.integer
        elif field.kind == FIELD_FLOAT:
            found[fields.numbers[i]] = field.real
        elif field.kind == FIELD_TEXT:
            found[fields.numbers[i]] = field.text[:field.size].decode()
        elif field.kind == FIELD_UNTYPED:
            found[fields.numbers[i]] = Untyped(field.text[:field.size].decode())
        elif field.kind == FIELD_OTHER:
            found[fields.numbers[i]] = b""
    return found
