"""Streams of messages and what has been received of them: what a load sends, and how deliveries are checked.

A *stream* is one sequence of messages: one publisher, one topic. Each payload carries its stream, its number in the
stream and when it was sent, or due:

     0           8          16         20           payload_bytes - 1
     +-----------+----------+----------+----------------+------+
     | sequence  | time, ns | stream   | filler a..z    | last |     integers in the machine's own order;
     +-----------+----------+----------+----------------+------+     last: the low octet of the sequence

so that a delivery that is missing, repeated, out of order, damaged, or that came to the wrong subscriber is seen.

A topic may have ten digits in it that are the message's number: then each is used once.

What one subscriber has seen of one stream is a Cell. A subscriber has a hash table of the cells of the streams that it
must get, so that the memory of many subscribers and many streams is in proportion to the expected deliveries.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fanlight_bench.load.histogram cimport Histogram
from fanlight_bench.load.protocol cimport Frame
from fanlight_bench.load.shared_counters cimport Counters, SharedCounters

cdef enum:
    HEADER = 20                     # of a payload, in bytes
    DIGITS = 10                     # of a message's number in a topic
    NO_STREAM = 0xffffffff


cdef struct Template:               # a whole frame, to be copied and patched; offsets in it
    uint8_t* bytes
    size_t size
    size_t payload_at
    size_t number_at                # of packet identifier or request; 0: there is none
    size_t digits_at                # 0: there are none


cdef struct Stream:
    Template frame                  # of a stream that is published here
    Template later                  # from the second message on (topic aliases); bytes NULL: as the first
    uint8_t* topic
    uint32_t topic_size
    int64_t digits_at               # in the topic; -1: there are none
    uint8_t* properties             # MQTT 5: that deliveries must have
    uint32_t properties_size
    uint32_t next_of_publisher      # the ring of this publisher's streams
    uint32_t fan_out                # deliveries of a message, to all workers, which must come
    uint32_t reach                  # with those to subscribers that are slow on purpose


cdef struct Cell:                   # what one subscriber has seen of one stream
    uint32_t stream                 # NO_STREAM: a free slot
    uint32_t subscription           # that a delivery must name, 0: any
    uint32_t next                   # the sequence number expected, so the first 2^32 of a stream are distinct
    uint32_t seen                   # bit i: number next - 1 - i has come


cdef struct Subscriber:
    Cell* cells
    uint32_t mask                   # their number - 1, which is a power of two
    uint32_t used
    bint slow                       # on purpose: what it misses is no fault
    uint8_t** aliases               # MQTT 5: topics that the broker has given numbers; each: size, octets
    uint32_t n_aliases


cdef class Streams:
    cdef:
        readonly SharedCounters shared
        readonly Histogram latency
        Counters* own
        readonly uint32_t payload_bytes
        Stream* streams
        uint32_t n_streams
        Subscriber* subscribers
        uint32_t n_subscribers
        uint8_t* filler
        bint timed

    cdef int _fill(self, Template* made, uint32_t stream, tuple given) except -1

    # Write the next message of a stream, a whole frame, to where there is room for it.
    cdef void write(self, uint32_t number, uint8_t* frame, uint64_t sent) noexcept nogil

    # Book a delivery that came to a subscriber; now 0: not to be timed.
    cdef void check(self, uint32_t subscriber, const Frame* frame, uint64_t now) noexcept nogil


cdef inline Template* template(Stream* stream, uint64_t sequence) noexcept nogil:
    """What the message of this number is written from."""
    return &stream.later if sequence and stream.later.bytes != NULL else &stream.frame
