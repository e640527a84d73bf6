# Messages that wait far behind in a long queue, packed: each takes about the bytes that it was published in.
#
#   flights {Flight, ...}  <-- read --  [chunk] --> [chunk] --> [chunk]  <-- put --
#   of the queue, 256                    ^ oldest                ^ tail
#
# What is in a chunk: packed_record.pxd. A large message is not copied, but referred to: several queues share it.

cimport cython
from libc.stdint cimport uint32_t

from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.packed_record cimport Kind, RecordReader, RecordWriter

cdef enum:
    MANY = 8    # queues: a place in each and their part of one message are less than a packed message in each

cdef Py_ssize_t queues        # that the message is for which was published last, in this process

cdef inline void note_queues(Py_ssize_t count) noexcept:
    global queues
    queues = count

cdef inline bint is_shared() noexcept:
    return queues >= MANY

cdef struct PackedChunk:
    PackedChunk* next
    char* data
    Py_ssize_t size, capacity     # octets
    Py_ssize_t count              # messages that have not been read
    Py_ssize_t references         # records, read ones as well, that refer to their message
    double came_first             # when the first of them did, or earlier
    double expires_first          # when the first of them does, or earlier
    Py_ssize_t counted            # bytes that they count in their queue
    void* place                   # on the disk: what `Pages.write` returned, owned; then there is no data

# A place in a row.
@cython.final
@cython.no_gc
cdef class Place:
    cdef:
        PackedChunk* chunk
        RecordReader reader

    cdef int begin(self, PackedChunk* chunk) except -1
    cdef Place copy(self)
    cdef Message read(self, list formats)

@cython.final
@cython.no_gc
cdef class PackedRow(Backlog):
    cdef:
        Ledger ledger
        Account account
        list formats              # of the messages: a handful
        PackedChunk* tail
        Place oldest              # the next to be read
        Py_ssize_t chunk_bytes    # of one; the first grows up to it
        readonly Py_ssize_t held  # bytes of the chunks in memory
        Py_ssize_t referred       # of the messages that records refer to, about
        # Chunks beyond `memory_most` bytes go there when they are full, and come back when they are the next: an object
        # with write(octets) -> place or None, read(place, size) -> octets or None, free(place), expect(place).
        readonly object pages
        Py_ssize_t memory_most
        readonly Py_ssize_t paged     # bytes that are there
        Py_ssize_t lost, lost_counted    # messages that could not be read, and what they counted in their queue
        RecordWriter writer       # in the last chunk

    cdef int put(self, Message message, double came, uint32_t attempt, Py_ssize_t counted) except -1
    cdef int page_out(self, PackedChunk* chunk) except -1
    cdef bint load(self, PackedChunk* chunk) except -1
    cdef int free_place(self, PackedChunk* chunk) except -1
    cdef Message read(self, double* came, uint32_t* attempt)
    cdef list take_expired(self, double now, double ttl, Py_ssize_t most)
    cdef list peek(self, Py_ssize_t most)
    cdef PackedChunk* sift(
        self, PackedChunk* before, PackedChunk* chunk, double now, double ttl, list found
    ) except? NULL
    cdef int release(self, PackedChunk* chunk, Message message) except -1
    cdef int taken(self, Place place, Message message) except -1
    cdef char* room(self, Py_ssize_t size) except NULL
    cdef int put_reference(self, Message message) except -1
    cdef bint crowded(self) noexcept
    cdef bint kind_of(self, Message message, Kind* kind) except -1
    cdef int drop_chunk(self, PackedChunk* before, PackedChunk* chunk) except -1
    cdef int charge(self, Py_ssize_t octets) noexcept
