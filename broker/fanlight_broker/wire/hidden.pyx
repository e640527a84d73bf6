# cython: language_level=3
"""Hiding from the garbage collector what a table of the broker keeps: see hidden.pxd."""


def hide(*things):
    """The collector skips these until `show`. A dict is seen again once something is put in: hide it after that."""
    for thing in things:
        if PyObject_IS_GC(thing):
            PyObject_GC_UnTrack(<void*> thing)


def show(*things):
    """The collector looks at these again."""
    for thing in things:
        if PyObject_IS_GC(thing) and not PyObject_GC_IsTracked(thing):
            PyObject_GC_Track(<void*> thing)
