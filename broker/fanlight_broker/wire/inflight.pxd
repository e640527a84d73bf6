# Messages in flight by their tag: the number by which the receiver acknowledges each.
#
#   ReusedTags     1 to 65,535; a tag is free again when its flight ends
#   CountingTags   1, 2, 3, ... of 64 bits, none twice; an acknowledgement may be for all up to a tag
#
#   CountingTags.row   in tag_row.pxd
#   ReusedTags.slots   [ . | 17 | . | . | 20 | 5 | . | . ]      a Flight at tag & mask
#
# A tag is chosen so that its slot is free, so a look-up is one comparison; and when the table doubles, flights that had
# different slots have different slots again.

cimport cython
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.ledger cimport Pot
from fanlight_broker.wire.tag_row cimport TagRow

@cython.no_gc
cdef class Inflight:
    cdef:
        readonly Py_ssize_t count     # tags in use
        readonly Py_ssize_t most      # that may be in use at once
        readonly Py_ssize_t nbytes    # entered in the pot: what the table takes above its first size
        Pot pot

    cdef int assign(self, Flight flight) except -1
    cdef int put(self, Flight flight, uint64_t tag) except -1
    cdef Flight find(self, uint64_t tag)
    cdef int remove(self, Flight flight) except -1
    cdef list flights(self)
    cdef int clear(self) except -1
    cdef int charge(self, Py_ssize_t octets) except -1

# `look_up` is `find`, inline: the window calls it once for each acknowledgement.
@cython.final
@cython.no_gc
cdef class ReusedTags(Inflight):
    cdef:
        list slots
        Py_ssize_t mask
        uint64_t last                 # tag given

    cdef inline Py_ssize_t at(self, uint64_t tag) noexcept:
        return <Py_ssize_t> (tag & <uint64_t> self.mask)

    cdef inline Flight look_up(self, uint64_t tag):
        cdef Flight flight = <Flight> PyList_GET_ITEM(self.slots, self.at(tag))
        return flight if flight is not None and flight.tag == tag else None

    cdef int grow(self) except -1

# The last tag that was given in several tables, so that no two of them have the same.
@cython.final
@cython.no_gc
cdef class TagCounter:
    cdef public uint64_t last

@cython.final
@cython.no_gc
cdef class CountingTags(Inflight):
    cdef:
        TagRow row                    # Flight, owned
        TagCounter counter

    cdef Flight oldest(self)
    cdef list first(self, Py_ssize_t most)
    cdef int charge_slots(self) except -1
    cdef int drop_flights(self) noexcept
