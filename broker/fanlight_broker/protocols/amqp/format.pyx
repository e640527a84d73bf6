# cython: language_level=3
"""AMQP's formats: FORMAT keeps and converts messages, a AmqpDeliveryFormat writes those of a queue to one consumer.

What a message's fields are is in fields.py, what they mean to others in convert.py.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from fanlight_broker.wire.levels cimport PRIORITY_MOST
from fanlight_broker.wire.message cimport Format, Message, Variant, uint32_into

from fanlight_broker.protocols.amqp.channel_tags cimport ChannelTags
from fanlight_broker.protocols.amqp.plain_content cimport text_in_properties
from fanlight_broker.protocols.amqp.table_octets cimport short_string_size

from fanlight_broker.protocols.amqp import convert

cdef enum:
    METHOD_HEAD = 7      # bytes of a frame before its payload
    OVERHEAD = 8
    TAG_BYTES = 9        # delivery tag and redelivered
    HEADER_FIXED = 12    # of a content header, before the flags
    SMALL_BODY = 4096    # bytes: a larger one is not copied once more
    COMMON_MOST = 8192   # bytes, of which SMALL_BODY are of the body: a larger one is laid out for each consumer
    END = 0xCE


# What all consumers get of one message, which comes behind the tag. Their channels stand in it, and are filled in.
cdef struct CommonPart:
    uint64_t serial          # of the publication; `size` is 0 after the first delivery, which mostly is the only one
    Py_ssize_t size
    Py_ssize_t method_size   # of the METHOD frame, what is in it
    Py_ssize_t channel_at, body_channel_at    # 0: there is no body
    char octets[COMMON_MOST]

cdef CommonPart common


cdef class AmqpFormat(Format):
    """The family's messages: FORMAT. No connection has it for its deliveries."""

    cdef int priority(self, Message message) except -1:
        return min(message.format_data, PRIORITY_MOST)

    cdef bint text_header(
        self, Message message, const char* name, Py_ssize_t name_size, const char** value, Py_ssize_t* size
    ) noexcept:
        """Of the table of headers, as it came: behind exchange and key, see fields.py."""
        cdef const unsigned char* at = <const unsigned char*> message.fields_at
        cdef const unsigned char* end = at + message.fields_size
        cdef Py_ssize_t taken
        cdef int _
        for _ in range(2):
            taken = short_string_size(at, end)
            if taken < 0:
                return False
            at += taken
        return text_in_properties(at, end, name, name_size, value, size)

    def read(self, Message message):
        return convert.read(message)

    def rewritten(self, message, bytes topic not None, headers):
        return convert.rewritten(message, topic, headers)

    def write(self, content):
        return convert.write(FORMAT, content)


cdef class AmqpDeliveryFormat(AmqpFormat):
    """The deliveries to one consumer.

    writer     message -> (head, place of the tag in it, body). One with `before` writes basic.deliver: messages with
               small bodies are written here then, all of them into the head
    automatic  nobody acknowledges them: no tag is kept
    counted    the writer returns one more: the place of a header that says how often it was delivered before
    """

    def __init__(self, ChannelTags tags not None, writer not None, *, bint automatic=False, bint counted=False):
        Format.__init__(self, "amqp delivery", "amqp")
        self.tags = tags
        self.writer = writer
        self.automatic = automatic
        self.counted = counted
        self.before = getattr(writer, "before", None)
        self.body_max = -1
        if self.before is not None:
            self.before_at, self.before_size = PyBytes_AS_STRING(self.before), PyBytes_GET_SIZE(self.before)
            self.body_max = min(SMALL_BODY, writer.frame_max - OVERHEAD)

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        if message.payload_size > self.body_max:
            return AmqpFormat.encode(self, message, variant, again, now)
        self.lay_out(message, variant.reserve(self.delivery_size(message)))
        self.tag_at = self.before_size
        variant.hole = variant.hole_size = 0
        variant.body, variant.body_size = b"", 0
        return True

    cdef Py_ssize_t delivery_size(self, Message message) noexcept:
        cdef Py_ssize_t payload = message.payload_size
        if payload > self.body_max:
            return -1
        return self.before_size - METHOD_HEAD + TAG_BYTES + OVERHEAD + HEADER_FIXED \
            + message.fields_size + OVERHEAD + (payload + OVERHEAD if payload else 0)

    cdef int write_delivery(self, Message message, char* at, uint32_t number, uint64_t serial) except -1:
        cdef uint64_t own = self.tags.last + 1
        self.tags.last = own
        if serial == 0 or serial != common.serial:
            self.lay_out(message, at)
            common.serial = serial
            common.size = 0
        elif common.size or self.keep_common(message):
            self.copy_common(at)
        else:
            self.lay_out(message, at)
        at += self.before_size
        uint32_into(at, <uint32_t> (own >> 32))
        uint32_into(at + 4, <uint32_t> own)
        at[8] = 0
        return 0

    cdef void lay_out(self, Message message, char* at) noexcept:
        """All frames of a delivery, without its tag and its flag."""
        cdef Py_ssize_t payload = message.payload_size, before, names, encoded, method, header
        cdef const unsigned char* fields = <const unsigned char*> message.fields_at
        cdef const char* channel
        before = self.before_size
        channel = self.before_at + 1
        names = 2 + fields[0]
        names += fields[names - 1]
        encoded = message.fields_size - names
        method = before - METHOD_HEAD + TAG_BYTES + names
        header = HEADER_FIXED + encoded
        memcpy(at, self.before_at, before)
        uint32_into(at + 3, <uint32_t> method)
        at += before + TAG_BYTES
        memcpy(at, fields, names)
        at += names
        at[0] = <char> END
        at[1] = 2
        memcpy(at + 2, channel, 2)
        uint32_into(at + 4, <uint32_t> header)
        memcpy(at + 8, b"\x00\x3c\x00\x00\x00\x00\x00\x00", 8)
        uint32_into(at + 16, <uint32_t> payload)
        memcpy(at + 20, fields + names, encoded)
        at += 20 + encoded
        at[0] = <char> END
        if payload:
            at[1] = 3
            memcpy(at + 2, channel, 2)
            uint32_into(at + 4, <uint32_t> payload)
            memcpy(at + 8, message.payload_at, payload)
            at[8 + payload] = <char> END

    cdef bint keep_common(self, Message message) noexcept:
        """Keep what is alike for all consumers of a message. False: it is too long for that."""
        cdef Py_ssize_t before = self.before_size + TAG_BYTES, payload = message.payload_size
        cdef Py_ssize_t size = self.delivery_size(message) - before
        cdef const unsigned char* fields = <const unsigned char*> message.fields_at
        if size + before > COMMON_MOST:
            return False
        self.lay_out(message, common.octets)
        memmove(common.octets, common.octets + before, size)
        common.size = size
        common.method_size = 2 + fields[0]
        common.method_size += fields[common.method_size - 1]
        common.channel_at = common.method_size + 2
        common.body_channel_at = size - OVERHEAD - payload + 1 if payload else 0
        return True

    cdef void copy_common(self, char* at) noexcept:
        """`lay_out` of the message whose part that is alike is kept."""
        cdef Py_ssize_t before = self.before_size
        cdef const char* octets = self.before_at
        memcpy(at, octets, before)
        uint32_into(at + 3, <uint32_t> (before - METHOD_HEAD + TAG_BYTES + common.method_size))
        at += before + TAG_BYTES
        memcpy(at, common.octets, common.size)
        memcpy(at + common.channel_at, octets + 1, 2)
        if common.body_channel_at:
            memcpy(at + common.body_channel_at, octets + 1, 2)

    def template(self, Message message, Variant variant, bint again, double now):
        if self.counted:
            head, self.tag_at, body, self.count_at = self.writer(message)
        else:
            head, self.tag_at, body = self.writer(message)
        return head, 0, 0, body

    cdef int address(self, Variant variant, uint32_t number, uint64_t tag, uint32_t attempt) except -1:
        cdef uint64_t own
        if tag:
            own = self.tags.give(number, tag, not self.automatic)
        else:    # without a flight: there is nothing to be acknowledged
            own = self.tags.last = self.tags.last + 1
        cdef char* at = variant.head + self.tag_at
        uint32_into(at, <uint32_t> (own >> 32))
        uint32_into(at + 4, <uint32_t> own)    # `own & 0xFFFFFFFF` would be Python's: 400 instructions
        at[8] = attempt > 1
        if self.counted:
            uint32_into(variant.head + self.count_at, 0)
            uint32_into(variant.head + self.count_at + 4, attempt - 1)
        return 0


FORMAT = AmqpFormat("amqp")
