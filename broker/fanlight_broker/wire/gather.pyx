# cython: language_level=3
"""Gathering: the subscriptions that a topic reaches, put apart by how they are delivered to; what a new route is made
of.

There may be a million of them, and this is one step of one turn of the loop: some 20 ns each.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from fanlight_broker.wire.screening cimport FilterScreen
from fanlight_broker.wire.target cimport NOT_OWN, Target
from fanlight_broker.wire.message cimport AS_PUBLISHED


cdef inline bint begins_with(bytes first, bytes filter, unsigned char syntax, const char* separators) noexcept:
    """Is this the very first word of a filter? None is that of all."""
    cdef Py_ssize_t size, length = PyBytes_GET_SIZE(filter)
    cdef const char* at = PyBytes_AS_STRING(filter)
    if first is None:
        return True
    size = PyBytes_GET_SIZE(first)
    return length >= size and memcmp(at, PyBytes_AS_STRING(first), size) == 0 and (
        length == size or at[size] == separators[syntax]
    )


def heard_by_own(list targets not None):
    """Those of them that get what their own client publishes."""
    cdef Target target
    return [target for target in targets if target.echo != NOT_OWN]


def summed_up(list targets not None):
    """What one copy for all of them is: quality, whether any of them keeps the retain flag, identifiers."""
    cdef Target target
    cdef int qos = 0
    cdef bint keeps_retain = False
    cdef list identifiers = []
    for target in targets:
        qos = max(qos, target.variant.qos)
        keeps_retain = keeps_retain or target.variant.retain == AS_PUBLISHED
        if PyBytes_GET_SIZE(target.variant.identifiers):
            identifiers.append(target.variant.identifiers)
    return qos, keeps_retain, b"".join(identifiers)


def gather(list by_id not None, tuple ids not None, bytes first, bytes separators not None):
    """Three lists: targets of connections, queue groups (each once), and a list for each session of its targets.

    first       only those whose filter has this very first word; None: all
    separators  between words, by the syntax's number
    """
    cdef list targets = [], groups = [], sessions = []
    cdef dict known = {}
    cdef Target target
    cdef const char* octets = PyBytes_AS_STRING(separators)    # one for each syntax
    for id in ids:
        found = by_id[id]
        if found is None:
            continue
        target = <Target?> found
        if not begins_with(first, target.filter, target.syntax_number, octets):
            continue
        if target.grouped:
            key = <size_t> <void*> target.extras.group
            if key not in known:
                known[key] = None
                groups.append(target.extras.group)
        elif target.window is not None:
            key = <size_t> <void*> target.window
            of_session = known.get(key)
            if of_session is None:
                of_session = known[key] = []
                sessions.append(of_session)
            (<list> of_session).append(target)
        else:
            targets.append(target)
    return targets, groups, sessions


def apart(list by_id not None, tuple ids not None, bytes first, bytes separators not None):
    """Two lists: screens, and ids of subscriptions. `first` and `separators` as in `gather`."""
    cdef list screens = [], plain = []
    cdef FilterScreen screen
    cdef Target target
    cdef const char* octets = PyBytes_AS_STRING(separators)    # one for each syntax
    for id in ids:
        found = by_id[id]
        if type(found) is FilterScreen:
            screen = <FilterScreen> found
            if begins_with(first, screen.filter, screen.syntax_number, octets):
                screens.append(screen)
        elif found is not None:
            target = <Target?> found
            if begins_with(first, target.filter, target.syntax_number, octets):
                plain.append(id)
    return screens, plain
