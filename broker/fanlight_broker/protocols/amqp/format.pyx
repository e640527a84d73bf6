# cython: language_level=3
"""AMQP's formats: FORMAT keeps and converts messages, a AmqpDeliveryFormat writes those of a queue to one consumer.

What a message's fields are is in fields.py, what they mean to others in convert.py.
"""

from collections import OrderedDict

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.levels cimport PRIORITY_MOST
from fanlight_broker.wire.message cimport Format, Message, Variant, uint32_into

from fanlight_broker.protocols.amqp import convert

cdef uint32_t GETTERS = 1 << 31    # numbers from here on are those of basic.get: options.GETTERS


cdef class ChannelTags:
    """The delivery tags of one channel, and what is not acknowledged.

    settle  called, in the middle of other work, when something is to be acknowledged by the broker itself
    shut    called like that when the consumers together hold `most` messages: it pauses them
    """

    def __cinit__(self, settle not None, shut not None):
        self.deliveries = OrderedDict()
        self.automatic = {}
        self.settle = settle
        self.shut = shut

    cdef uint64_t give(self, uint32_t number, uint64_t tag, bint automatic) except 0:
        self.last += 1
        if not automatic:
            self.deliveries[self.last] = (number, tag)
            if self.most and number < GETTERS:
                self.held += 1
                if self.held >= self.most:
                    self.shut()
            return self.last
        if not self.automatic:
            self.settle()
        self.automatic[number] = tag
        return self.last

    def take_automatic(self):
        """Of each consumer the last tag that is to be acknowledged."""
        found = self.automatic
        self.automatic = {}
        return found


cdef class AmqpFormat(Format):
    """The family's messages: FORMAT. No connection has it for its deliveries."""

    cdef int priority(self, Message message) except -1:
        return min(message.format_data, PRIORITY_MOST)

    def read(self, Message message):
        return convert.read(message)

    def rewritten(self, message, bytes topic not None, headers):
        return convert.rewritten(message, topic, headers)

    def write(self, content):
        return convert.write(FORMAT, content)


cdef class AmqpDeliveryFormat(AmqpFormat):
    """The deliveries to one consumer.

    writer     (message, redelivered) -> (head, place of the tag in it, body)
    automatic  they are acknowledged by being sent
    """

    def __init__(self, ChannelTags tags not None, writer not None, *, bint automatic=False):
        Format.__init__(self, "amqp delivery", "amqp")
        self.tags = tags
        self.writer = writer
        self.automatic = automatic

    def template(self, Message message, Variant variant, bint again, double now):
        head, self.tag_at, body = self.writer(message)
        return head, 0, 0, body

    cdef int address(self, Variant variant, uint32_t number, uint64_t tag, uint32_t attempt) except -1:
        cdef uint64_t own = self.tags.give(number, tag, self.automatic)
        cdef char* at = variant.head + self.tag_at
        uint32_into(at, <uint32_t> (own >> 32))
        uint32_into(at + 4, <uint32_t> (own & 0xFFFFFFFF))
        at[8] = attempt > 1
        return 0


FORMAT = AmqpFormat("amqp")
