# cython: language_level=3
"""The exchanges of QoS 1 and 2 towards a client, for Python: see qos2.pxd.

What a client sends with QoS 2 is remembered by `core.Session.unreleased`, which outlives connections.
"""

from fanlight_broker.wire.flight cimport QUEUED, SENT, Flight
from fanlight_broker.wire.window cimport Window


def awaited(Window window not None, int identifier):
    """The acknowledgement that the message in flight with this identifier waits for; None if none is in flight."""
    cdef Flight flight = window.find(identifier)
    if flight is None or flight.state == QUEUED:
        return None
    if flight.state != SENT:
        return "PUBCOMP"
    return "PUBACK" if flight.qos == 1 else "PUBREC"


def acknowledge(Window window not None, int identifier, double now):
    """`puback`."""
    return puback(window, identifier, now)


def receive(Window window not None, int identifier):
    """`pubrec`."""
    return pubrec(window, identifier)


def complete(Window window not None, int identifier, double now):
    """`pubcomp`."""
    return pubcomp(window, identifier, now)


def refuse(Window window not None, int identifier, double now):
    """PUBACK or PUBREC with a reason code of 0x80 or more: the message is discarded, for a queue group too (4.8.2)."""
    cdef Flight flight = window.find(identifier)
    if flight is None or flight.state != SENT:
        return False
    window.refused(flight, now)
    return True
