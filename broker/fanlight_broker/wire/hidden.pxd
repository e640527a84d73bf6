# What Python's garbage collector does not look at. broker/fanlight_broker/garbage.py measures what is left to it.
#
# A full pass of the collector goes through everything that it tracks, in one step, and a broker keeps millions of
# things. What a table of the broker keeps is no garbage, so there is no need to look at it:
#
#   a table takes it in      hide    the collector skips it; what it refers to counts as in use
#   the table lets it go     show    the collector sees it again, and frees it if it is in a cycle
#
# A thing that is in no cycle needs no `show`: its last reference frees it. For instances of classes, lists, tuples,
# dicts and deques only: CPython frees a method or a function without a look at whether it is tracked, and crashes.

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void* thing)
    void PyObject_GC_Track(void* thing)
    bint PyObject_GC_IsTracked(object thing)
    bint PyObject_IS_GC(object thing)

cdef inline object unseen(object thing):
    """A container that nothing but `hide` and `show` is to know of, such as a list of what the collector ignores."""
    PyObject_GC_UnTrack(<void*> thing)
    return thing
