# Ids between Python and C: the argument of insert and remove, an int within 0..2**32-1; and the answer of a
# match, a tuple of them.

from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <limits.h>

    /* From a signed long where all ids fit: CPython makes that in fewer steps. */
    #if LONG_MAX > 0xFFFFFFFF
    #define matchcore_int(id) PyLong_FromLong((long) (id))
    #else
    #define matchcore_int(id) PyLong_FromUnsignedLong(id)
    #endif

    static inline PyObject *matchcore_tuple(const uint32_t *ids, size_t count) {
        PyObject *made = PyTuple_New((Py_ssize_t) count);
        size_t i;
        if (made == NULL)
            return NULL;
        for (i = 0; i < count; i++) {
            PyObject *id = matchcore_int(ids[i]);
            if (id == NULL) {
                Py_DECREF(made);
                return NULL;
            }
            PyTuple_SET_ITEM(made, (Py_ssize_t) i, id);
        }
        return made;
    }
    """
    # Python may run meanwhile (a garbage collection, in 3.11): the ids must be out of its reach.
    tuple tuple_of_ids "matchcore_tuple" (const uint32_t* ids, size_t count)

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


# Read in C from the digits: what a subclass of int says of itself changes nothing.
cdef inline uint32_t take_id(object id) except? 0xFFFFFFFF:
    cdef int overflow = 0
    cdef long long value
    if not isinstance(id, int):
        if not PyIndex_Check(id):
            raise TypeError(f"an id must be an int, not {type(id).__name__}")
        id = PyNumber_Index(id)
    value = PyLong_AsLongLongAndOverflow(id, &overflow)
    if overflow != 0 or value < 0 or value > 0xFFFFFFFF:
        raise ValueError(
            f"an id must be within 0..2**32-1, not {value if overflow == 0 else 'beyond 64 bits'}"
        )
    return <uint32_t> value
