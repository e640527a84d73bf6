# The compiled half of an AMQP connection: finds the frames in what arrived, and takes each plain publish to the queues.
#
#   Inbox.data   [ AMQP 0 0 9 1 ][ METHOD ][ METHOD HEADER BODY ][ METHOD ][ HEADER ][ BODY ][ BODY ][ HEARTBEAT ][ ..
#                  |               |         |                     |         '---------+------ content: PUBLISH for the
#                  |               |         |                     |                  loop, so that the last frame of a
#                  |               |         |                     |                  message stays at hand while that
#                  |               |         |                     |                  is held back
#                  |               |         |                     '-- basic.publish that Python decides on
#                  |               |         '-- basic.publish, all of it there, to a known site: fan_out, basic.ack
#                  |               '-------------------------- FRAME
#                  '------------------------------------------ FRAME, while `greeted` is False
#
# It is the sender of the messages that Python makes of the contents, too: `offer`, then `forward` by Publishing.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.lane cimport Lane
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.route cimport Route

from fanlight_broker.protocols.amqp.plain_content cimport PlainContent
from fanlight_broker.protocols.amqp.publish_sites cimport LaneChannel, PublishCounts, PublishSite, PublishSites

@cython.final
cdef class AmqpLane(Lane):
    cdef:
        public bint greeted               # the protocol header has come: what follows are frames
        readonly int kind                 # of the frame at hand: its type
        readonly int channel              # and its channel
        public PublishSites sites         # of its vhost; None: every basic.publish is for Python
        public bytes login                # of its client: the user-id that its messages may have; None: none
        public uint64_t body_max          # bytes of a body that is not for Python
        public PublishCounts counts
        dict channels                     # number -> LaneChannel, of those that are open
        LaneChannel last_channel          # that was looked up, or None
        int channels_opened
        Py_ssize_t work                   # that the message at hand is, in copies
        Message own                       # a message that points into the inbox
        bytes last_arguments              # of basic.publish, and where they lead to
        PublishSite last_site
        char* fields                      # of the message at hand: names and properties
        Py_ssize_t fields_capacity

    cdef LaneChannel open_channel_of(self, int number)
    cdef int acknowledge_deliveries(self, const unsigned char* at, double now) except -1
    cdef int forward_publish(self, const unsigned char* at, Py_ssize_t rest) except -1
    cdef bint is_login(self, const unsigned char* user, Py_ssize_t size) noexcept
    cdef Py_ssize_t content_size(self, const unsigned char* at, Py_ssize_t rest, PlainContent* content) noexcept
    cdef PublishSite site_of(self, const unsigned char* octets, Py_ssize_t size)
    cdef bint may_publish(self, PublishSite site, Route route, bint replies) except -1
    cdef int point(self, PublishSite site, PlainContent* content, const unsigned char* frame) except -1
    cdef int answer_publish(self, LaneChannel channel, Route route) except -1
    cdef bint extend_ack(self, int channel, uint64_t number) noexcept
