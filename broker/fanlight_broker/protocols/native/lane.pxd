# The compiled half of a native connection: finds the frames in what arrived, and takes each PUBLISH to the outboxes.
#
#   Inbox.data   [ frame ][ PUBLISH ][ PUBLISH ][ SUBSCRIBE ][ PUB..
#                  |        |  route known: fan_out, here and now
#                  |        |  route unknown, reply topic, mark or options: Python looks at it, then calls `forward`
#                  |     ACK of a delivery: the next one of its queue follows, here and now
#                  +--------+----------------------> everything else: Python decodes and decides
#
# A PUBLISH becomes a MESSAGE by a new head; the tail (topic, payload, headers, syntax, reply) is copied as it came:
#
#   PUBLISH   N | 9x 03 | request        | topic payload headers syntax reply | mark, options, unknown fields
#   MESSAGE   N | 9x 04 | ce number(u32) | topic payload headers syntax reply |

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.lane cimport Lane
from fanlight_broker.wire.msgpack cimport MsgpackCursor, Fault

cdef struct PublishFields:
    bint wants_receipt
    uint32_t request
    uint64_t syntax
    const unsigned char* topic
    Py_ssize_t topic_size
    const unsigned char* payload
    Py_ssize_t payload_size
    const unsigned char* reply      # NULL: none
    Py_ssize_t reply_size
    const unsigned char* producer   # of its mark, NULL if it has none
    Py_ssize_t producer_size
    uint64_t batch, sequence        # of its mark
    int special                     # not 0: it has a reply topic, a mark or options; Python looks at it
    const unsigned char* options    # if `special` says so: its options, a map
    Py_ssize_t options_size
    const unsigned char* tail       # from the topic's header to the end of the last field that is passed on
    Py_ssize_t tail_size
    uint32_t fields                 # of the array, type included, those behind reply not
    uint32_t at                     # the field that is being looked at: the one at fault, if one is

@cython.final
cdef class NativeLane(Lane):
    cdef:
        readonly object fault_request     # the request of the PUBLISH that is wrong, if it came so far
        public dict consumers             # subscription -> Window, of those that take from named queues; None: none
        PublishFields publish

    cdef int check_frame(self) except -1
    cdef bint acknowledged(self, double now) except -1
    cdef int report_publish(self, int fault) except -1
    cdef Fault parse_publish(self, MsgpackCursor* cursor) noexcept
    cdef int set_message(self) noexcept
