# How a queue's messages are written to AMQP consumers: basic.deliver or basic.get-ok, content header, body frames.
#
#   head   METHOD ( .. | tag(8) | redelivered(1) | .. ) HEADER ( .. )  first BODY's head
#   body   the payload, cut by the head of each further BODY frame; frame end
#
# `template` makes both, once for a message and a consumer; `address` fills in the tag and the flag. The tag counts on
# the channel: `ChannelTags` has which delivery of which consumer it is, until that is acknowledged.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.message cimport Format, Message, Variant

@cython.final
cdef class ChannelTags:
    cdef:
        readonly uint64_t last            # that was given
        readonly object deliveries        # OrderedDict: tag of the channel -> (number of the consumer, the queue's tag)
        readonly dict automatic           # number of a consumer -> its last tag, where the broker itself acknowledges
        public Py_ssize_t held            # of `deliveries`, those to consumers; while `most` is not 0
        public Py_ssize_t most            # that all consumers together may hold: basic.qos global; 0: without a bound
        object settle                     # called when `automatic` is not empty any more
        object shut                       # called when `held` reaches `most`

    cdef uint64_t give(self, uint32_t number, uint64_t tag, bint automatic) except 0

cdef class AmqpFormat(Format):
    pass

@cython.final
cdef class AmqpDeliveryFormat(AmqpFormat):
    cdef:
        ChannelTags tags
        readonly object writer            # makes head, place of the tag and body of a message: content_frames
        readonly bint automatic           # what is sent is acknowledged by that
        readonly bint counted             # a header says how often it was delivered before: 8 octets at `count_at`
        readonly Py_ssize_t count_at
        readonly Py_ssize_t tag_at        # in the head of the message that was written last
        readonly bytes before             # of basic.deliver, all that stands before the tag; None: `writer` writes all
        readonly Py_ssize_t body_max      # bytes of a body that is written here
