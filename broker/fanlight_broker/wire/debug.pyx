# cython: language_level=3
"""What a debug build (FANLIGHT_DEBUG=1) has for tests: the number of objects of a class that exist.

`watch` puts counting functions in the place of a type's own allocation and freeing, so that the classes need no code
for it. A debug build has no free lists, which would keep freed objects. In another build `watch` refuses.
"""

from cpython.object cimport PyTypeObject
from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport abort

cdef extern from *:
    """
    #define WATCHED_MOST 32

    static struct { PyTypeObject *type; allocfunc alloc; freefunc free; Py_ssize_t live; } watched[WATCHED_MOST];
    static int n_watched = 0;

    static int watched_index(PyTypeObject *type) {
        int i;
        for (i = 0; i < n_watched; i++)
            if (watched[i].type == type)
                return i;
        return -1;
    }

    static PyObject *watched_alloc(PyTypeObject *type, Py_ssize_t items) {
        int i = watched_index(type);
        PyObject *made = watched[i].alloc(type, items);
        if (made != NULL)
            watched[i].live++;
        return made;
    }

    static void watched_free(void *object) {
        int i = watched_index(Py_TYPE((PyObject *) object));
        watched[i].live--;
        watched[i].free(object);
    }

    static int watch_type(PyTypeObject *type) {
        if (watched_index(type) >= 0)
            return 0;
        if (n_watched == WATCHED_MOST)
            return -1;
        watched[n_watched].type = type;
        watched[n_watched].alloc = type->tp_alloc;
        watched[n_watched].free = type->tp_free;
        watched[n_watched].live = 0;
        type->tp_alloc = watched_alloc;
        type->tp_free = watched_free;
        n_watched++;
        return 0;
    }

    static Py_ssize_t live_of(PyTypeObject *type) {
        int i = watched_index(type);
        return i < 0 ? 0 : watched[i].live;
    }
    """
    int watch_type(PyTypeObject* type)
    Py_ssize_t live_of(PyTypeObject* type)

ENABLED = bool(DEBUG)

fan_outs = 0


cdef void stop(const char* what) noexcept:
    fprintf(stderr, b"fanlight debug: %s\n", what)
    abort()


def watch(*types):
    """Count the objects of these final classes from now on. RuntimeError if this is no debug build."""
    if not DEBUG:
        raise RuntimeError("this is not a debug build: FANLIGHT_DEBUG=1 make setup")
    for type in types:
        if watch_type(<PyTypeObject*> type) < 0:
            raise RuntimeError("too many types to watch")


def live(*types):
    """How many objects of each type there are more than at its `watch`."""
    return {type.__name__: live_of(<PyTypeObject*> type) for type in types}
