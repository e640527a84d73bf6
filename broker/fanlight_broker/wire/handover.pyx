# cython: language_level=3
"""What a consumer of a named queue gets directly, if nothing waits: the message does not go through the queue.

    acknowledged by being sent    no flight, no tag of the queue and no copy of the message: it is encoded where it
                                  lies, into the outbox, and counts as come, delivered and acknowledged. Not from a
                                  queue with a journal
    else                          a flight of its window, as if it had been put into the queue and taken

Without room in the outbox it takes the ordinary way. So does a message with a time to live, and one for a queue with
such a time or without room: what is to become of these is the queue's to decide.
"""

from libc.math cimport INFINITY

from fanlight_broker.wire.debug cimport check
from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.frames cimport FIRM, MESSAGE
from fanlight_broker.wire.message cimport Format, Message, Variant
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport EncodeOwn, FanoutState, encode_own, kept, raised
from fanlight_broker.wire.queue cimport Queue, new_flight
from fanlight_broker.wire.window cimport Window


cdef bint passes(Queue queue, FanoutState* publication) except -1:
    """Would a message leave the queue as it came, and at once, if it came into it and a consumer had room?"""
    cdef Message message = <Message> publication.message
    return queue.length == 0 and queue.ttl == INFINITY and message.expires_at == INFINITY


cdef bint write_through(Window window, FanoutState* publication) except -1:
    """`hand_over` to the only consumer of a queue, if nobody acknowledges and nothing is special: most copies of a
    message for many queues. The delivery is written where it is sent from. False: nothing was done; it may still be
    for `hand_over`.
    """
    # Pointers, because a variable would count its reference: a fifth of all that is done here.
    cdef void* message = publication.message
    cdef void* queue = <void*> window.queue
    cdef void* box = <void*> window.box
    cdef void* format
    cdef Py_ssize_t size
    if not (window.automatic and window.open) or (<Queue> queue).length or (<Queue> queue).ttl != INFINITY \
            or (<Queue> queue).journal is not None or (<Message> message).expires_at != INFINITY \
            or window.sent >= window.inflight_max or (<Outbox> box).closed \
            or ((<Outbox> box).refill and (<Outbox> box).size):
        return False
    format = <void*> window.format
    if (<Message> message).format.family is not (<Format> format).family \
            or not (<Queue> queue).bounds_admit(<Message> message):
        return False
    size = (<Format> format).delivery_size(<Message> message)
    if size < 0 or size > (<Outbox> box).frame_max or not (<Outbox> box).admits(size):
        return False
    (<Format> format).write_delivery(
        <Message> message, (<Outbox> box).place_for(size), window.number, publication.serial
    )
    (<Outbox> box).placed(size, 0, MESSAGE | FIRM)
    count_delivery(window, <Message> message)
    return True


cdef bint hand_over(Window window, FanoutState* publication) except -1:
    """Send a message to a consumer with room. False: nothing was done, it is to be queued."""
    cdef Message message = <Message> publication.message
    if window.automatic and write_through(window, publication):
        return True
    if message.format.family is not window.format.family:
        return False
    if window.automatic:
        return window.queue.journal is None and window.queue.bounds_admit(message) \
            and copy_template(window, publication)
    return window.queue.fits(window.queue.size_of(message)) and copy_template(window, publication)


cdef inline int count_delivery(Window window, Message message) except -1:
    window.delivered += 1
    window.hub.deliveries += 1
    window.count_acknowledged(1)
    window.ledger.payload_out += message.payload_size
    return 0


cdef bint copy_template(Window window, FanoutState* publication) except -1:
    """`hand_over` of what has a template: what is acknowledged, a large body, what Python has written."""
    cdef Message message = <Message> publication.message
    cdef Variant variant = window.variant
    cdef Py_ssize_t size
    cdef int written
    written = variant.written
    if variant.serial != publication.serial:
        written = (<EncodeOwn> encode_own)(publication, variant, message, False, 0)
    if written < 0:
        pass_over_fault()
    if written <= 0 or variant.shared is not NULL:
        return False
    size = variant.head_size + variant.body_size
    if size > window.box.frame_max or not window.box.admits(size):
        return False
    check(variant.serial == publication.serial, b"a template of another publication is copied")
    if not window.automatic:
        return begin_flight(window, publication)
    variant.format.address(variant, window.number, 0, 1)
    window.box.put(variant.head, variant.head_size, variant.body, variant.body_size, 0, MESSAGE | FIRM)
    count_delivery(window, message)
    return True


cdef bint begin_flight(Window window, FanoutState* publication) except -1:
    cdef Queue queue = window.queue
    cdef Flight flight = new_flight(kept(publication), window.variant, queue)
    flight.since = window.ledger.now
    if queue.journal is not None:
        queue.journal.enqueued(flight)
    window.assign(flight)
    window.launch(flight)
    return True


cdef int pass_over_fault() except -1:
    """The message cannot be written for this consumer: `Window.send`, which is next, finds it again and reports it."""
    try:
        raised()
    except Exception:
        return 0
