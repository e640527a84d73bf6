# cython: language_level=3
"""What waits in a queue with priorities: see levels.pxd."""

cimport cython

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.flight_row cimport FlightRow
from fanlight_broker.wire.hidden cimport unseen

PRIORITIES_MAX = PRIORITY_MOST + 1


@cython.no_gc
cdef class Levels:
    """Flights by priority, and in each in order. The lowest priority is 0; a flight's is one of those there are."""

    def __cinit__(self, int priorities):
        if not 1 <= priorities <= PRIORITY_MOST + 1:
            raise ValueError(f"{priorities} priorities; there are 1 to {PRIORITY_MOST + 1}")
        self.rows = unseen([FlightRow() for _ in range(priorities)])

    def __len__(self):
        return self.length

    def __iter__(self):
        """In the order in which they are taken; so not in the order of their numbers."""
        return iter([flight for row in reversed(self.rows) for flight in row])

    cpdef int append(self, Flight flight) except -1:
        """Behind those of its priority."""
        (<FlightRow> self.rows[flight.priority]).append(flight)
        self.length += 1
        return 0

    cpdef appendleft(self, Flight flight):
        """Before those of its priority."""
        self.rows[flight.priority].appendleft(flight)
        self.length += 1

    cpdef Flight popleft(self):
        """The next. Raises IndexError if nothing waits."""
        for row in reversed(self.rows):
            if row:
                self.length -= 1
                return row.popleft()
        raise IndexError("nothing waits")

    cdef Flight pop_lowest(self):
        """The oldest of the lowest priority. Raises IndexError if nothing waits."""
        self.length -= 1
        return self.rows[self.lowest()].popleft()

    cdef int lowest(self) except -1:
        """The lowest priority of which something waits. Raises IndexError if nothing does."""
        cdef int priority
        for priority in range(len(self.rows)):
            if self.rows[priority]:
                return priority
        raise IndexError("nothing waits")

    cdef Flight oldest(self):
        """That which came first, of whatever priority; None if nothing waits."""
        cdef Flight flight, found = None
        for row in self.rows:
            if row:
                flight = <Flight> row[0]
                if found is None or flight.since < found.since:
                    found = flight
        return found
