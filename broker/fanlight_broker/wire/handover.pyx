# cython: language_level=3
"""What a consumer of a named queue gets directly: if all it is sent is acknowledged by that, and nothing waits.

Such a message needs no flight, no tag of the queue and no copy of its own: it is encoded where it lies, into the
outbox. The counts are those of a message that came, was delivered and was acknowledged. Without room in the outbox it
takes the ordinary way. So does a message with a time to live, one for a queue with such a time or without room, and all
of a queue with a journal: what is to become of these is the queue's to decide.
"""

from libc.math cimport INFINITY

from fanlight_broker.wire.debug cimport check
from fanlight_broker.wire.frames cimport FIRM, MESSAGE
from fanlight_broker.wire.message cimport Message, Variant
from fanlight_broker.wire.publication cimport FanoutState, prepare
from fanlight_broker.wire.queue cimport Queue
from fanlight_broker.wire.window cimport Window


cdef bint passes(Queue queue, FanoutState* publication) except -1:
    """Would a message leave the queue as it came, and at once, if a consumer had room?"""
    cdef Message message = <Message> publication.message
    return queue.length == 0 and queue.journal is None and queue.ttl == INFINITY and message.expires_at == INFINITY \
        and queue.fits(queue.size_of(message))


cdef bint hand_over(Window window, FanoutState* publication) except -1:
    """Send a message to a consumer with `automatic`. False: nothing was done, it is to be queued. window: or None."""
    cdef Message message = <Message> publication.message
    cdef Variant variant
    cdef Py_ssize_t size
    if window is None or not window.automatic:
        return False
    variant = window.variant
    if message.format.family is not variant.format.family or not prepare(publication, variant) \
            or variant.shared is not NULL:
        return False
    size = variant.head_size + variant.body_size
    if size > window.box.frame_max or not window.box.admits(size):
        return False
    check(variant.serial == publication.serial, b"a template of another publication is copied")
    variant.format.address(variant, window.number, 0, 1)
    window.box.put(variant.head, variant.head_size, variant.body, variant.body_size, 0, MESSAGE | FIRM)
    window.delivered += 1
    window.hub.deliveries += 1
    window.count_acknowledged(1)
    window.ledger.payload_out += message.payload_size
    return True
