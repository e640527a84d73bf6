# What selectors look at, of one message, into its Fields. Once a message, however many selectors are asked.
#
#   Message   topic  ---------------------------------------------> $word[n], $words
#             fields --Format.walk_headers--> headers ------------> price, "x-trace"
#                            '--> content type: JSON? msgpack? --.
#             payload  ------------- matchcore.body_reader ------'-> payload.order.urgent
#             qos, retain, ... -----------------------------------> $qos, $retain, $bytes, $client, $user, $time
#
# Only what is asked for is looked at: Attributes has the names. A body that is not sound has no fields at all.

from fanlight_broker.wire.message cimport HeaderWalk, Message
from matchcore.body_reader cimport BodyCounts, BodyReader
from matchcore.fields cimport Attributes, Fields

cdef class FieldReader:
    cdef:
        readonly Attributes attributes
        readonly Fields fields         # of the message that was read last: as long as its octets are there
        readonly BodyCounts bodies
        BodyReader body
        bytes separators

    # format     BodyFormat of its topic by the setting: it counts where the message has no content type
    # publisher  an object with `name` and `user`, texts or None; None without a publisher
    # time       seconds since 1970 at which it came; NaN: not known
    cdef Fields read(self, Message message, int format, object publisher, double time)
    cdef int read_known(self, Message message, object publisher, double time) except -1
    cdef void read_words(self, Message message) noexcept
    cdef void keep_header(self, const HeaderWalk* walk) noexcept nogil
