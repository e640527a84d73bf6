# cython: language_level=3
"""What waited or was in flight before a restart, taken in again: of a session, and of a named queue."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from fanlight_broker.wire.consumers cimport EXHAUSTED
from fanlight_broker.wire.flight cimport SENT, Flight
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.named_queue cimport NamedQueue
from fanlight_broker.wire.queue cimport Consumer, Queue, new_flight
from fanlight_broker.wire.window cimport Window


def restore_to_window(Window window not None, Message message not None, Variant variant not None, int64_t tag=0,
                      bint tag_only=False, uint64_t number=0, Queue origin=None):
    """Take in a message of a session that is made anew: in flight with this tag, or 0: waiting.

    tag_only  the message has arrived: there is only the tag
    number    that the journal has for it, in the queue `origin` (None: the session's own); nothing is reported
              then. Without one it is new, and the journal is written anew

    In the order in which they were sent; before the first connection. Raises ValueError if the tag is in use.
    """
    cdef Queue queue = window.queue
    cdef Flight flight = new_flight(message.kept(), variant, queue)
    cdef Consumer consumer
    if window.open:
        raise ValueError("a session that is connected is not restored")
    flight.number = number
    if not tag:
        if number:
            queue.put_restored(flight)
        else:
            queue.put(flight)
        return
    try:
        window.inflight.put(flight, <uint64_t> tag)
    except ValueError:
        flight.message.drop_holder(window.ledger, queue.account)
        raise
    flight.state = SENT
    flight.qos = min(variant.qos, flight.message.qos)
    window.order += 1
    flight.order = window.order
    if origin is not None:
        for consumer in window.consumers:
            if consumer.queue is origin:
                flight.source = consumer
    if number == 0 and queue.journal is not None:
        queue.journal.assigned(flight, queue.journal)
    if tag_only:
        window.become_tag_only(flight)
        if number == 0 and queue.journal is not None:
            queue.journal.given_up(flight, queue.journal)


def restore_to_queue(NamedQueue named not None, Message message not None, uint64_t number, double since,
                     uint32_t attempt, double due, double now):
    """Take in a message that was there before a restart, under its number; in the order of these.

    since    when it came
    attempt  how often it was delivered
    due      when it may be delivered again; 0: at once
    """
    cdef Flight flight
    cdef bint exhausted = named.deliveries_max and attempt >= named.deliveries_max
    if not exhausted and due <= now:
        named.queue.restore(message, None, number, since, attempt)
        return
    flight = new_flight(message.kept(), None, named.queue)
    flight.number, flight.since, flight.attempt, flight.due = number, since, attempt, due
    if exhausted:
        named.queue.lose(flight, EXHAUSTED)
    else:
        named.queue.set_apart(flight)
        named.delay(flight)
