# How a message is written that waits packed, and where one is read again: the records of the chunks of packed_row.pxd.
#
# A record is what its message says otherwise than the one before; the first of a chunk says all of it:
#
#   flags | kind | topic size, topic | fields size, fields | expires at | came at | attempt | payload
#           `---------------- each only if its flag is set -------------------------------'
#
#   payload  its own            size, octets: the model of those behind it
#            like the model     size, octets at its beginning that are the model's, octets at its end that are, the rest
#            inside the fields  where, size
#            of a message that is referred to: the reference, for all of it
#
# Sizes are varints, the rest is as in memory.

cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fanlight_broker.wire.message cimport Format, Message

cdef enum:                    # flags of a record
    KIND = 1
    TOPIC = 2
    FIELDS = 4
    EXPIRES = 8               # else it never does
    CAME = 16
    ATTEMPT = 32              # else it was never delivered
    PAYLOAD = 192             # these bits say where it is: else it is its own
    INSIDE = 64
    REFERENCE = 128
    ALIKE = 192

cdef enum:
    OVERHEAD = 112            # of a record, without its texts: above what it can take
    ALIKE_LEAST = 8           # octets that a payload has in common with the model, or it is the next model

# What the messages of one publisher mostly have in common.
cdef struct Kind:
    uint32_t format               # its place in `formats`
    uint32_t format_data
    int32_t expiry_hole
    unsigned char syntax, qos, retain, unused

# Where the next record of a chunk is, and what the ones before it said. It does not keep the chunk.
@cython.final
@cython.no_gc
cdef class RecordReader:
    cdef:
        Kind kind
        Format format
        bytes topic, fields
        Py_ssize_t at, model_at, model_size    # in the chunk
        double came
        uint32_t attempt
        bint referred             # the record refers to its message

    cdef RecordReader copy(self)
    cdef Message read(self, const char* chunk, list formats)

# What the last record of a chunk said; its texts by their places there.
cdef struct RecordWriter:
    Kind kind
    Py_ssize_t topic_at, topic_size, fields_at, fields_size, model_at, model_size
    double came

cdef int begin_chunk(RecordWriter* writer) noexcept
cdef char* write_record(
    RecordWriter* writer, char* chunk, char* at, Message message, Kind* kind, double came, uint32_t attempt
) noexcept

cdef inline bint is_inside(Message message) noexcept:
    """Is the payload a part of the fields?"""
    cdef Py_ssize_t at = message.payload_at - message.fields_at
    return 0 <= at and at + message.payload_size <= message.fields_size
