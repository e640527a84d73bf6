# What acknowledgements from a client do to messages in flight to it (4.3.2, 4.3.3).
#
#   QoS 1   SENT --PUBACK--> ENDED
#   QoS 2   SENT --PUBREC--> TAG_ONLY --PUBCOMP--> ENDED          PUBREC is answered with PUBREL
#
# The tags of the window are packet identifiers. Inline: the lane calls these once for each message.

from fanlight_broker.wire.flight cimport SENT, TAG_ONLY, Flight
from fanlight_broker.wire.window cimport Window

cdef inline bint puback(Window window, int identifier, double now) except -1:
    """PUBACK. False if no QoS 1 message is in flight with this identifier."""
    cdef Flight flight = window.find(identifier)
    if flight is None or flight.state != SENT or flight.qos != 1:
        return False
    window.acknowledged(flight, now)
    return True

cdef inline bint pubrec(Window window, int identifier) except -1:
    """PUBREC: the message has arrived, PUBREL is to be sent. False if no QoS 2 message has this identifier."""
    cdef Flight flight = window.find(identifier)
    if flight is None or (flight.state != TAG_ONLY and (flight.state != SENT or flight.qos != 2)):
        return False    # also if it was not sent yet
    if flight.state == SENT:
        window.give_up_message(flight)
    return True

cdef inline bint pubcomp(Window window, int identifier, double now) except -1:
    """PUBCOMP. False if no message with this identifier waits for it."""
    cdef Flight flight = window.find(identifier)
    if flight is None or flight.state != TAG_ONLY:
        return False
    window.acknowledged(flight, now)
    return True
