# cython: language_level=3
"""A flight, one message on its way to one subscriber: see flight.pxd."""

cimport cython

STATES = ("queued", "sent", "tag only", "ended")    # by the numbers of FlightState


cdef class Source:
    """Where the message of a flight was taken from."""


@cython.no_gc
@cython.freelist(1024)    # what a client may have in flight by default
cdef class Flight:
    """One message on its way to one subscriber. The message is counted in the ledger as long as the flight has it."""
