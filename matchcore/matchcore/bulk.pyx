# cython: language_level=3, cdivision=True
"""Many filters into an index that its builder alone has, without the GIL.

An insertion may double a table, and touch memory that is new to the process: some milliseconds in one step, in which no
other thread runs if the GIL is held. Whoever builds an index in a thread, to put it in the place of another one when it
is whole, inserts here.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint32_t, uint64_t

from matchcore.filters cimport FilterIndex
from matchcore.hashing cimport hash_secret
from matchcore.ids cimport take_id
from matchcore.scan cimport hash_text
from matchcore.syntax cimport Fault, View, filter_error, scan_filter, separator_of, syntax_of

__all__ = ["insert_many"]


cdef struct Given:
    View view
    uint32_t id


cdef enum:
    DONE = 0
    WRONG = -1
    NO_ROOM = -2


def insert_many(FilterIndex index not None, list filters not None, list ids not None, str syntax not None):
    """Insert filters (bytes), each with the id in its place. No other thread may use the index meanwhile.

    Raises InvalidFilter and MemoryError as `insert` does; then those before it are inserted. ValueError: the index has
    selectors, or there are not as many ids.
    """
    cdef uint32_t number = syntax_of(syntax)
    cdef size_t count = len(filters), i, at = 0
    cdef Given* given
    cdef Fault fault
    cdef int status
    if <size_t> len(ids) != count:
        raise ValueError("each filter has an id")
    if index.selecting is not None:
        raise ValueError("the index has selectors")
    index._to_change()
    kept = tuple(filters)  # whatever becomes of the list
    given = <Given*> PyMem_Malloc((count + 1) * sizeof(Given))
    if given == NULL:
        raise MemoryError()
    try:
        for i in range(count):
            filter = kept[i]
            if not isinstance(filter, bytes):
                raise TypeError("filters are bytes")
            given[i].view.start = PyBytes_AS_STRING(filter)
            given[i].view.size = <size_t> PyBytes_GET_SIZE(filter)
            given[i].view.is_str = False
            given[i].id = take_id(ids[i])
        with nogil:
            status = put_all(index, given, count, number, &at, &fault)
        if status == WRONG:
            raise filter_error(&given[at].view, number, &index.limits, &fault)
        if status == NO_ROOM:
            raise MemoryError()
    finally:
        PyMem_Free(given)


cdef int put_all(
    FilterIndex index, const Given* given, size_t count, uint32_t number, size_t* at, Fault* fault
) noexcept nogil:
    cdef const uint64_t* secret = hash_secret()
    cdef const View* view
    cdef int words
    for at[0] in range(count):
        view = &given[at[0]].view
        words = scan_filter(view.start, view.size, number, &index.limits, index.topic.tokens, fault)
        if words < 0:
            return WRONG
        if index._put(view, hash_text(view.start, view.size, separator_of(number), secret), words, given[at[0]].id,
                      number) < 0:
            return NO_ROOM
    return DONE
