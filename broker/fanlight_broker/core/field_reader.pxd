# What selectors look at, of one message, into its Fields. Once a message, however many selectors are asked.
#
#   Message   topic  ---------------------------------------------> $word[n], $words
#             fields --Format.walk_headers--> headers ------------> price, "x-trace"
#                            '--> content type: JSON? msgpack? --.
#             payload  ------------- msgpack_body, json_body ----'-> payload.order.urgent
#             qos, retain, ... -----------------------------------> $qos, $retain, $bytes, $client, $user, $time
#
# Only what is asked for is looked at: Attributes has the names. A body that is not sound has no fields at all.

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fanlight_broker.core.bodies cimport Guesses, Scratch
from fanlight_broker.wire.message cimport HeaderWalk, Message
from matchcore.fields cimport Attributes, Fields

cdef enum BodyFormat:
    BODY_UNKNOWN = 0           # nothing is read
    BODY_MSGPACK = 1
    BODY_JSON = 2

# Of all readers of a broker.
@cython.final
cdef class BodyCounts:
    cdef:
        readonly uint64_t decoded      # bodies from which the fields were read
        readonly uint64_t malformed    # bodies that are not what their content type or payload_format says, or no map
        readonly uint64_t too_large    # bodies of more than 64 KiB, or deeper than 8 levels

cdef class FieldReader:
    cdef:
        readonly Attributes attributes
        readonly Fields fields         # of the message that was read last: as long as its octets are there
        readonly BodyCounts bodies
        bytes separators
        Scratch scratch
        Guesses guesses

    # format     BodyFormat of its topic by the setting: it counts where the message has no content type
    # publisher  an object with `name` and `user`, texts or None; None without a publisher
    # time       seconds since 1970 at which it came; NaN: not known
    cdef Fields read(self, Message message, int format, object publisher, double time)
    cdef int read_known(self, Message message, object publisher, double time) except -1
    cdef void read_words(self, Message message) noexcept
    cdef void keep_header(self, const HeaderWalk* walk) noexcept nogil
    cdef void read_body(self, Fields fields, const uint8_t* body, Py_ssize_t size, int format) noexcept nogil

cdef int format_of(const char* content_type, Py_ssize_t size) noexcept nogil
