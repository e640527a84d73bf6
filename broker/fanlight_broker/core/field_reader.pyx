# cython: language_level=3
"""The fields of a message that selectors ask for. Drawn in field_reader.pxd; bodies: matchcore.bodies.

    price                    a header, a user property: the first of its name; a user property is text without a type
    payload.a.b              of a body that is a map, in the format that its content type names
    $word[1], $words         words of the topic, their number
    $bytes, $qos, $retain    of the payload; of the message as published
    $content_type, $client, $user      absent where it is not known
    $time                    seconds since 1970, a float

A content type of another format means that the body has no fields, whatever the setting says.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t, uint32_t

from fanlight_broker.wire.message cimport HeaderWalk, Message
from matchcore.bodies cimport BodyFault, is_text, is_wanted
from matchcore.body_reader cimport BODY_UNKNOWN, BodyCounts, BodyReader, format_of
from matchcore.fields cimport (
    FIELD_ABSENT, FIELD_OTHER, FIELD_TEXT, FIELD_UNTYPED, HEADERS_ROOT, MESSAGE_BYTES, MESSAGE_CLIENT,
    MESSAGE_CONTENT_TYPE, MESSAGE_QOS, MESSAGE_RETAIN, MESSAGE_ROOT, MESSAGE_TIME, MESSAGE_USER, MESSAGE_WORDS,
    PAYLOAD_ROOT, Attributes, Field, Fields, field_boolean, field_float, field_integer, field_text,
)
from matchcore.msgpack_body cimport take_value

from fanlight_broker.core.topics import SEPARATORS, SYNTAXES
from matchcore.field_values import values_of

__all__ = ["FieldReader"]


cdef class FieldReader:
    """attributes  that its selectors ask for
    bodies         where bodies are counted; None: apart
    """

    def __cinit__(self, Attributes attributes not None, BodyCounts bodies=None):
        self.attributes = attributes
        self.bodies = BodyCounts() if bodies is None else bodies
        self.fields = Fields(attributes)
        self.separators = b"".join([SEPARATORS[syntax] for syntax in SYNTAXES])
        self.body = BodyReader(attributes, self.bodies)

    def read_fields(self, Message message not None, int format=BODY_UNKNOWN, publisher=None, double time=0):
        """`read` for Python. What it returns is the reader's own: the next message overwrites it."""
        return self.read(message, format, publisher, time)

    cdef Fields read(self, Message message, int format, object publisher, double time):
        cdef Attributes attributes = self.attributes
        cdef Fields fields = self.fields
        cdef HeaderWalk walk
        cdef bint headers = attributes.has_below(HEADERS_ROOT), body = attributes.has_below(PAYLOAD_ROOT)
        cdef int content_type = attributes.message(MESSAGE_CONTENT_TYPE)
        fields.clear()
        if attributes.has_below(MESSAGE_ROOT):
            self.read_known(message, publisher, time)
        if headers or body or content_type >= 0:
            message.format.walk_headers(message, &walk)
            while message.format.next_header(&walk):
                if headers:
                    self.keep_header(&walk)
            if walk.content_type is not NULL:
                format = format_of(walk.content_type, walk.content_type_size)
                if content_type >= 0:
                    field_text(
                        fields.set(content_type), FIELD_TEXT, walk.content_type, <uint32_t> walk.content_type_size
                    )
        if body and format != BODY_UNKNOWN:
            self.body.read(fields, <const uint8_t*> message.payload_at, message.payload_size, format)
        return fields

    cdef int read_known(self, Message message, object publisher, double time) except -1:
        """What is neither in the headers nor in the body, but for the content type."""
        cdef Attributes attributes = self.attributes
        cdef Fields fields = self.fields
        cdef int number = attributes.message(MESSAGE_BYTES)
        if number >= 0:
            field_integer(fields.set(number), message.payload_size)
        number = attributes.message(MESSAGE_QOS)
        if number >= 0:
            field_integer(fields.set(number), message.qos)
        number = attributes.message(MESSAGE_RETAIN)
        if number >= 0:
            field_boolean(fields.set(number), message.retain)
        number = attributes.message(MESSAGE_TIME)
        if number >= 0:
            field_float(fields.set(number), time)
        if publisher is not None:
            number = attributes.message(MESSAGE_CLIENT)
            if number >= 0:
                keep_name(fields, number, publisher.name)
            number = attributes.message(MESSAGE_USER)
            if number >= 0:
                keep_name(fields, number, publisher.user)
        self.read_words(message)
        return 0

    cdef void read_words(self, Message message) noexcept:
        """As many as the topic has, the empty ones, too; the empty topic has none."""
        cdef char separator = PyBytes_AS_STRING(self.separators)[message.syntax]
        cdef const char* word = message.topic_at
        cdef Py_ssize_t i
        cdef int words = 0, number
        if message.topic_size:
            for i in range(message.topic_size + 1):
                if i == message.topic_size or message.topic_at[i] == separator:
                    words += 1
                    number = self.attributes.word(words)
                    if number >= 0:
                        keep_word(self.fields.set(number), word, message.topic_at + i - word)
                    word = message.topic_at + i + 1
        number = self.attributes.message(MESSAGE_WORDS)
        if number >= 0:
            field_integer(self.fields.set(number), words)

    cdef void keep_header(self, const HeaderWalk* walk) noexcept nogil:
        """Keep the value of the header at hand, if somebody asks for it and it is the first of its name."""
        cdef const uint8_t* value
        cdef Field found
        cdef BodyFault fault
        cdef int number = self.attributes.header(walk.name, walk.name_size)
        if not is_wanted(self.fields, number):
            return
        if not walk.encoded:
            field_text(self.fields.set(number), FIELD_UNTYPED, walk.value, <uint32_t> walk.value_size)
            return
        value = <const uint8_t*> walk.value
        if take_value(value, value + walk.value_size, 1, &found, &fault) is not NULL and found.kind != FIELD_ABSENT:
            self.fields.set(number)[0] = found

    def values(self):
        """Number -> value, of what the message that was read last has (matchcore.field_values)."""
        return values_of(self.fields)


cdef void keep_word(Field* field, const char* word, Py_ssize_t size) noexcept nogil:
    """A word of a topic. Not all protocols ask that a topic is text."""
    if is_text(<const uint8_t*> word, size):
        field_text(field, FIELD_TEXT, word, <uint32_t> size)
    else:
        field.kind = FIELD_OTHER


cdef int keep_name(Fields fields, int number, object name) except -1:
    """A name that the publisher keeps while the fields are looked at; empty, or None where it is not known."""
    cdef Py_ssize_t size = 0
    cdef const char* text
    if name:
        text = PyUnicode_AsUTF8AndSize(name, &size)
        field_text(fields.set(number), FIELD_TEXT, text, <uint32_t> size)
    return 0
