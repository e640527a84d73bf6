# How a queue's messages are written to AMQP consumers: basic.deliver or basic.get-ok, content header, body frames.
#
#   head   METHOD ( .. | tag(8) | redelivered(1) | .. ) HEADER ( .. )  first BODY's head
#   body   the payload, cut by the head of each further BODY frame; frame end
#
# `template` makes both, once for a message and a consumer; `address` fills in the tag and the flag. The tag is
# one of the channel (channel_tags.pxd). `write_delivery` makes no template: it writes the first delivery of a small
# message, which nobody acknowledges, where it is sent from. What is behind the tag is the same for all consumers of a
# message but for the channel: from the second one on it is copied.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.message cimport Format, Message, Variant

from fanlight_broker.protocols.amqp.channel_tags cimport ChannelTags

cdef class AmqpFormat(Format):
    pass

@cython.final
cdef class AmqpDeliveryFormat(AmqpFormat):
    cdef:
        ChannelTags tags
        const char* before_at             # where `before` is
        Py_ssize_t before_size
        readonly Py_ssize_t body_max      # bytes of a body that is written here; -1: none is
        readonly bytes before             # of basic.deliver, all that stands before the tag; None: `writer` writes all
        readonly object writer            # makes head, place of the tag and body of a message: content_frames
        readonly bint automatic           # nobody acknowledges its messages
        readonly bint counted             # a header says how often it was delivered before: 8 octets at `count_at`
        readonly Py_ssize_t count_at
        readonly Py_ssize_t tag_at        # in the head of the message that was written last

    cdef void lay_out(self, Message message, char* at) noexcept
    cdef bint keep_common(self, Message message) noexcept
    cdef void copy_common(self, char* at) noexcept
