# What is behind the fixed header of a PUBLISH (section 3.3), taken apart where it lies.
#
#   | topic | packet identifier | property length, properties | payload |
#
# Sound or not, that is all: what is wrong with one that is not, the codec says, in plain Python.

from libc.stdint cimport uint32_t

from fanlight_broker.wire.route cimport Route

cdef enum:
    # More than a packet has room for: so the one comparison with what is allowed finds both.
    WITH_DELAY = 1 << 28

cdef struct PublishBody:
    const char* topic
    Py_ssize_t topic_size           # 0: the alias says which
    bint again                      # it is the topic of `last`
    const char* payload
    Py_ssize_t payload_size
    uint32_t packet_id              # 0 with QoS 0
    const char* properties          # those of the packet before are looked at again: see `parse_body`
    Py_ssize_t properties_size
    uint32_t alias                  # 0: none
    Py_ssize_t alias_at             # where in the properties it stands
    uint32_t expiry                 # seconds
    Py_ssize_t expiry_at            # where in the properties its value stands; -1: it never expires
    Py_ssize_t user_properties      # how many; and WITH_DELAY, if one of them delays the message
    bint is_text                    # the payload format indicator is 1
    bint has_response               # a Response Topic

cdef bint parse_body(const unsigned char* at, Py_ssize_t size, int qos, bint has_properties, Route last,
                     PublishBody* body) noexcept
