"""What the generator knows of a protocol: how to find the next frame, and what to answer to it.

A protocol fills in a Dialect with two C functions and a number; the generator calls them and knows no protocol. What
is done once per connection (handshake, subscriptions, the frames to publish) is Python: load/speaker.py.
"""

from libc.stdint cimport uint8_t, uint32_t


cdef enum Kind:
    OTHER                       # of no interest
    DELIVERY                    # a message to a subscriber
    ACKNOWLEDGEMENT             # the last word to a publish: RECEIPT, PUBACK, PUBCOMP
    RECEIVED                    # PUBREC
    RELEASE                     # PUBREL
    PING                        # wants an answer
    WELCOME                     # of the handshake: WELCOME, CONNACK, INFO
    GRANTED                     # to a subscription: OK, SUBACK, PONG
    REFUSAL                     # an error, or goodbye


cdef struct Frame:
    # Pointers into the receive buffer. Only the fields of its kind are set, and kind and size.
    int kind
    size_t size                 # of the whole frame, in bytes
    const uint8_t* topic        # of a delivery, as all down to qos
    uint32_t topic_size
    uint32_t alias              # MQTT 5: topic alias, 0 if there is none
    const uint8_t* payload
    uint32_t payload_size
    const uint8_t* properties   # MQTT 5
    uint32_t properties_size
    uint32_t subscription       # that it names; 0 if the protocol names none
    int qos
    uint32_t number             # packet identifier, or request
    uint32_t routed             # of a native acknowledgement: subscriptions reached
    bint up_to                  # AMQP: the acknowledgement is for all numbers up to this one
    const uint8_t* reply        # NATS: the subject that a delivery is answered on, as reply_size
    uint32_t reply_size         # 0: there is none


cdef enum:
    WHOLE = 1
    CUT_OFF = 0                 # its end has not come yet
    DAMAGED = -1                # not a frame of this protocol: nothing behind it can be understood
    ANSWER_BYTES_MAX = 192      # that `answer` writes
    FRAME_BYTES_MAX = 268435460  # of a frame; a longer one is damage, not data


# The frame that begins at p: WHOLE, CUT_OFF or DAMAGED.
ctypedef int (*Next)(const uint8_t* p, const uint8_t* end, Frame* frame) noexcept nogil

# Write what a frame wants as its answer; its size in bytes, 0 if it wants none. p is where the frame begins.
ctypedef size_t (*Answer)(const Frame* frame, const uint8_t* p, uint8_t* out) noexcept nogil


cdef class Dialect:
    cdef:
        readonly str name
        Next next
        Answer answer
        readonly uint32_t number_bytes      # of a packet identifier or request in a PUBLISH; big-endian
        readonly bint counts                # an acknowledgement says how many subscriptions it went to
        readonly uint32_t number_max        # after which they begin at 1 again


cdef Dialect new_dialect(str name, Next next, Answer answer, uint32_t number_bytes, uint32_t number_max, bint counts)
