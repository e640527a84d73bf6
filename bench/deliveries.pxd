"""Streams of messages, and what has been seen of them: what a load sends and how its deliveries are checked.

A *stream* is one sequence of messages: one publisher, one topic. Each payload carries its stream, its number in the
stream and the time it was sent:

     0           8          16         20              payload_bytes
     +-----------+----------+----------+----------------+
     | sequence  | sent, ns | stream   | filler a..z    |      integers in the machine's own order
     +-----------+----------+----------+----------------+

so that a delivery that is missing, repeated, out of order, damaged, or that came to the wrong subscription is seen.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from bench.histogram cimport Histogram

cdef enum:
    HEADER = 20                     # of a payload, in bytes
    NO_STREAM = 0xffffffff


cdef struct Stream:
    uint8_t* frame                  # a whole PUBLISH, to be copied and patched
    size_t frame_size
    size_t payload_at
    uint8_t* topic
    uint32_t topic_size
    uint32_t next_of_publisher      # the ring of this publisher's streams
    uint32_t fan_out                # subscriptions it must reach
    uint64_t sequence               # of the next message


cdef struct Cell:                   # what one subscriber has seen of one stream
    uint64_t next                   # the sequence number expected
    uint64_t seen                   # bit i: number next - 1 - i has come
    bint expected


cdef class Deliveries:
    cdef:
        readonly uint32_t payload_bytes
        uint32_t n_subscribers
        Stream* streams
        uint32_t n_streams, fan_out_max
        Cell* cells                 # of stream s and subscriber i: cells[s * n_subscribers + i]
        uint8_t* filler
        Histogram latency
        # Counters, all since the start.
        readonly uint64_t published     # messages
        readonly uint64_t expected      # deliveries of them
        readonly uint64_t received      # deliveries, right or wrong
        readonly uint64_t unique        # that came first and rightly
        readonly uint64_t repeated, reordered, misrouted, damaged

    cdef uint32_t add(self, uint32_t last, bytes topic, bytes frame, size_t payload_at, object subscribers) except? 0

    # Write the next message of a stream, a whole frame, to where there is room for it.
    cdef void write(self, Stream* stream, uint8_t* frame, uint64_t sent) noexcept nogil

    # Book a MESSAGE that came to a subscriber's connection; p is behind the frame's type. now 0: not to be timed.
    cdef void check(
        self, uint32_t subscriber, uint32_t subscription, const uint8_t* p, const uint8_t* end, uint64_t now
    ) noexcept nogil
