# cython: language_level=3
"""What has expired leaves its queue by the clock, also if nobody takes from it.

A queue `in_order` drops its oldest, as long as these have expired. Another one drops what has expired at any place, as
far as that is known without a look at each message: of those in memory, and what its backlog knows of its own.
"""

from sys import maxsize

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from fanlight_broker.wire.consumers cimport EXPIRED
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.levels cimport Levels
from fanlight_broker.wire.packed_row cimport PackedRow
from fanlight_broker.wire.queue cimport Queue

cdef enum:
    SIFTED_AT_ONCE = 65_536    # messages that are looked at, some 10 ns each


cpdef Py_ssize_t expire(Queue queue, double now, Py_ssize_t most=maxsize) except -1:
    """Drop expired messages, so many at most, or a few more. Returns how many.

    While there may be more `sifted` is not 0, or so many were dropped.
    """
    cdef uint64_t before = queue.expired
    if queue.in_order:
        expire_oldest(queue, now, most)
        return queue.expired - before
    if queue.backlog is not None and queue.backlog.length:
        if queue.backlog.at_hand:
            expire_packed(queue, now, most)
        else:
            expire_backlog(queue, now, most)
    if queue.mortal or (queue.priorities and queue.ttl != INFINITY and len(queue.flights) > 0):
        sift(queue, now, most - <Py_ssize_t> (queue.expired - before))
    else:    # they are in the order in which they came, or none expires
        queue.sifted = 0    # what was left to be sifted was what did
        while queue.ttl != INFINITY and queue.expired - before < <uint64_t> most and len(queue.flights) > 0 \
                and queue.outlived(<Flight> queue.flights[0], now):
            outlive(queue, queue.flights.popleft())
    if len(queue.flights) == 0 and queue.backlog is not None and queue.backlog.at_hand:
        queue.fetch(now)
    return queue.expired - before


cdef int expire_oldest(Queue queue, double now, Py_ssize_t most) except -1:
    cdef uint64_t end = queue.expired + <uint64_t> most
    if len(queue.flights) > 0:
        expire_heads(queue, now, most)
    if queue.backlog is None or queue.backlog.length == 0 or len(queue.flights) > 0:
        return 0
    if queue.backlog.at_hand:
        while queue.backlog.length and len(queue.flights) == 0:
            queue.fetch(now)
            expire_heads(queue, now, <Py_ssize_t> (end - queue.expired))
        return 0
    expire_backlog(queue, now, <Py_ssize_t> (end - queue.expired))
    if queue.length and queue.ledger.stored < queue.ledger.stored_limit // 4:
        queue.backlog.fetch()    # it knows when the last of some expires, and not when the oldest does
    return 0


cdef int expire_backlog(Queue queue, double now, Py_ssize_t most) except -1:
    cdef Py_ssize_t messages, octets
    messages, octets = queue.backlog.expire(now, most)
    queue.length -= messages
    queue.nbytes -= octets
    queue.expired += messages
    queue.ledger.expired += messages
    if queue.group is not None and messages:
        queue.group.discarded_unread(messages)
    return 0


cdef int expire_packed(Queue queue, double now, Py_ssize_t most) except -1:
    """Chunks of which all have expired."""
    for message, came, attempt in (<PackedRow> queue.backlog).take_expired(now, queue.ttl, most):
        queue.unpacked(message, came, attempt, now)
    return queue.settle_losses()


cdef int expire_heads(Queue queue, double now, Py_ssize_t most) except -1:
    """Drop the oldest of each priority, as long as they have expired, and so many at most."""
    for row in (<Levels> queue.flights).rows if queue.priorities else [queue.flights]:
        while most > 0 and row and queue.outlived(<Flight> row[0], now):
            most -= 1
            if queue.priorities:
                (<Levels> queue.flights).length -= 1
            outlive(queue, row.popleft())
    return 0


cdef int sift(Queue queue, double now, Py_ssize_t most) except -1:
    """Look at what is in memory, behind what was looked at last, and drop so many that have expired."""
    cdef Py_ssize_t at = queue.sifted, seen = 0, left = SIFTED_AT_ONCE, rest
    cdef Flight flight
    for row in (<Levels> queue.flights).rows if queue.priorities else [queue.flights]:
        rest = len(row) - at
        if rest <= 0:
            at = -rest
            seen += len(row)
            continue
        row.rotate(-at)    # so that the first is the next to be looked at
        seen += at
        while rest and left and most:
            rest -= 1
            left -= 1
            flight = row.popleft()
            if not queue.outlived(flight, now):
                row.append(flight)
                at += 1
                seen += 1
                continue
            if queue.priorities:
                (<Levels> queue.flights).length -= 1
            outlive(queue, flight)
            most -= 1
        row.rotate(at)
        if rest:
            queue.sifted = seen
            return 0
        at = 0
    queue.sifted = 0
    return 0


cdef int outlive(Queue queue, Flight flight) except -1:
    """A message was taken out, and has expired."""
    queue.entered(flight, -1)
    queue.lose(flight, EXPIRED)
    queue.expired += 1
    queue.ledger.expired += 1
    return 0
