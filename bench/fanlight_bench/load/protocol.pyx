# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A dialect's face for Python: the handshake reads its answers with it, and tests feed it bytes. See protocol.pxd."""

from libc.stdint cimport uint8_t

# Kinds of frames, for Python.
_KINDS = {
    "OTHER": OTHER, "DELIVERY": DELIVERY, "ACKNOWLEDGEMENT": ACKNOWLEDGEMENT, "RECEIVED": RECEIVED,
    "RELEASE": RELEASE, "PING": PING, "WELCOME": WELCOME, "GRANTED": GRANTED, "REFUSAL": REFUSAL,
}
globals().update(_KINDS)


class Damaged(Exception):
    """Bytes that are no frame of this protocol."""


cdef class Dialect:
    """How one protocol is read. Made by the protocol's own module only."""

    def frames(self, data, *, bint deliveries=True):
        """All whole frames in data, as (kind, frame), and the number of bytes that they take.

        deliveries: False leaves them out, for who reads very many and looks at none. Raises Damaged.
        """
        cdef bytes copy = bytes(data)
        cdef const uint8_t* start = <const uint8_t*><const char*>copy
        cdef const uint8_t* p = start
        cdef const uint8_t* end = start + len(copy)
        cdef Frame frame
        cdef int state
        found = []
        while p < end:
            state = self.next(p, end, &frame)
            if state == CUT_OFF:
                break
            if state == DAMAGED:
                raise Damaged(f"no frame of {self.name}: {copy[p - start:p - start + 40]!r}")
            if deliveries or frame.kind != DELIVERY:
                found.append((frame.kind, copy[p - start:p - start + frame.size]))
            p += frame.size
        return found, p - start

    def delivery(self, bytes data):
        """What a whole frame that is a delivery or an acknowledgement says."""
        cdef const uint8_t* p = <const uint8_t*><const char*>data
        cdef Frame frame
        if self.next(p, p + len(data), &frame) != WHOLE:
            raise Damaged(f"no whole frame of {self.name}")
        if frame.kind != DELIVERY:
            said = {"number": frame.number}
            if frame.kind == ACKNOWLEDGEMENT and self.counts:
                said["routed"] = frame.routed
            return said
        return {
            "topic": (<const char*>frame.topic)[:frame.topic_size],
            "alias": frame.alias,
            "payload": (<const char*>frame.payload)[:frame.payload_size],
            "properties": (<const char*>frame.properties)[:frame.properties_size],
            "subscription": frame.subscription,
            "qos": frame.qos,
            "number": frame.number,
        }

    def reply(self, bytes data):
        """What is answered to a whole frame; empty if nothing is."""
        cdef const uint8_t* p = <const uint8_t*><const char*>data
        cdef uint8_t[ANSWER_BYTES_MAX] out
        cdef Frame frame
        if self.next(p, p + len(data), &frame) != WHOLE:
            raise Damaged(f"no whole frame of {self.name}")
        return (<const char*>&out[0])[:self.answer(&frame, p, out)]


cdef Dialect new_dialect(str name, Next next, Answer answer, uint32_t number_bytes, uint32_t number_max, bint counts):
    """For a protocol's module: see the fields of Dialect."""
    cdef Dialect dialect = Dialect.__new__(Dialect)
    dialect.name = name
    dialect.next = next
    dialect.answer = answer
    dialect.number_bytes = number_bytes
    dialect.number_max = number_max
    dialect.counts = counts
    return dialect
