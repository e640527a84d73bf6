"""The counters of a load, in memory that all its processes share.

    +--------------------+--------------------+ ... +----------------------+
    | Counters, worker 0 | Counters, worker 1 |     | next number, stream 0 | stream 1 ...
    +--------------------+--------------------+ ... +----------------------+

Each worker writes its own counters and the numbers of the streams that it publishes, and reads those of all workers.
So the window holds over all workers, any worker sees a delivery of what was never published, and the process that
started the load can show its progress. Aligned 64-bit words are read and written whole.
"""

from libc.stdint cimport int64_t, uint64_t

cdef struct Counters:
    uint64_t published              # messages
    uint64_t expected               # deliveries of them
    uint64_t received               # deliveries, right or wrong
    uint64_t unique                 # that came first and rightly
    uint64_t repeated
    uint64_t reordered
    uint64_t misrouted
    uint64_t damaged
    uint64_t requested              # publishes that ask for an acknowledgement
    uint64_t acknowledged           # that have got it
    uint64_t wrong_acknowledgements
    uint64_t refused                # errors from the broker
    uint64_t closed                 # connections that the broker has closed
    uint64_t slow_received          # deliveries to subscribers that are slow on purpose
    uint64_t slow_closed            # of their connections
    uint64_t waiting                # this worker waits for the window; whoever makes room wakes it


cdef class SharedCounters:
    cdef:
        object memory               # held: what the pointers below point into
        readonly int workers
        readonly int streams
        Counters* counters          # of all workers
        volatile uint64_t* sequences    # of all streams: the number of the next message

    cdef inline int64_t outstanding(self) noexcept nogil:
        # Signed: a broker that repeats itself may be ahead of what is expected.
        cdef int64_t sum = 0
        cdef int i
        for i in range(self.workers):
            sum += <int64_t>(self.counters[i].expected - self.counters[i].received)
        return sum
