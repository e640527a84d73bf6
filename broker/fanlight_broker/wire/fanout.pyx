# cython: language_level=3
"""Fan-out: one message, encoded once, copied into the outbox of each subscription that gets it.

Python decides which targets are on a route, once; this file runs for each message and each copy. Both lanes of a
publish, the compiled one and the one through Python, end here, so that both have the same order.
"""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint64_t

from fanlight_broker.wire.debug cimport check, enter_fan_out, leave_fan_out
from fanlight_broker.wire.frames cimport MESSAGE
from fanlight_broker.wire.ledger cimport CONVERSION, Ledger
from fanlight_broker.wire.message cimport Message, Variant, uint32_into
from fanlight_broker.wire.packed_row cimport note_queues
from fanlight_broker.wire.outbox cimport Outbox, count_published, uncount_published
from fanlight_broker.wire.publication cimport FanoutState, begin, converted, finish, prepare
from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.target cimport UNLIMITED_CREDIT, Members, Target


cdef inline bint pass_on(Target target, FanoutState* publication) except -1:
    """`deliver` for the copies of which there are most, those with nothing special. False for the others."""
    cdef Variant variant = target.variant
    cdef Outbox outbox = target.direct
    cdef Py_ssize_t size
    if outbox is None:
        if not target.window.open or (publication.qos and variant.qos):
            return False
        outbox = target.window.box
    if target.credit != UNLIMITED_CREDIT or not prepare(publication, variant) or not variant.plain:
        return False
    size = variant.head_size + variant.body_size
    if size > outbox.frame_max or not outbox.admits(size):
        return False
    if variant.hole_size == 4:
        uint32_into(variant.head + variant.hole, target.number)
    check(variant.serial == publication.serial, b"a template of another publication is copied")
    outbox.put(variant.head, variant.head_size, variant.body, variant.body_size, target.number, MESSAGE)
    if target.remaining > 0:
        target.count()
    else:
        target.delivered_more(1)
    return True


cdef inline int give_copy(Target target, FanoutState* publication) except -1:
    """One copy. 1 if its payload is still to be counted, else 0."""
    if pass_on(target, publication):
        return 1
    target.deliver(publication, target.variant)
    return 0


cdef Py_ssize_t fan_out(Route route, Ledger ledger, Outbox publisher, Message message) except -1:
    """Give one message to all who get it. Returns the number of subscriptions, a queue group counting once."""
    cdef list targets = route.targets, groups = route.groups    # a nested publish may replace them
    cdef Py_ssize_t i, routed = 0, passed = 0, n = PyList_GET_SIZE(targets)
    cdef int given
    cdef Target target
    cdef Members group
    cdef FanoutState publication
    if ledger.pending is not None:
        ledger.pending.flush_batch()
    route.hits += 1
    note_queues(PyList_GET_SIZE(groups))
    ledger.messages_in += 1
    count_published(ledger, publisher, message.topic_size + message.payload_size)
    ledger.payload_in += message.payload_size
    cdef uint64_t turned_away = ledger.turned_away
    check(route.screens is None, b"a message that its route's selectors were not asked about")
    enter_fan_out()
    begin(&publication, message)
    try:
        if route.tap is not None:
            route.tap.record(ledger, publisher, &publication)
        for i in range(n):
            target = <Target> PyList_GET_ITEM(targets, i)
            if target.listens(publisher):
                given = (<Give> give_copy)(target, &publication)
                if given < 0:
                    target.failed()
                else:
                    passed += given
                    routed += 1
        ledger.payload_out += passed * message.payload_size
        for i in range(PyList_GET_SIZE(groups)):
            group = <Members> PyList_GET_ITEM(groups, i)
            routed += group.give(publisher, &publication)
        ledger.copies += n + PyList_GET_SIZE(groups)
        if converted(&publication):
            ledger.copies += CONVERSION
    finally:
        finish(&publication)
        leave_fan_out()
    ledger.unkept = ledger.turned_away - turned_away == <uint64_t> routed and routed > 0 and route.tap is None
    if routed == 0:
        ledger.unroutable += not route.filtered
        ledger.filtered += route.filtered
    ledger.count_recipients(routed, 1)
    return routed


def publish(Route route not None, Ledger ledger not None, Outbox publisher, Message message not None, *,
            bint own=False):
    """`fan_out` for Python. publisher: its outbox, for subscriptions that exclude their own messages.

    own  the broker's own message, or a copy that a rule has made: it counts neither as received nor as without a
         subscriber
    """
    cdef Py_ssize_t routed = fan_out(route, ledger, publisher, message)
    if own:
        uncount_published(ledger, publisher, message.topic_size + message.payload_size)
        ledger.messages_in -= 1
        ledger.count_recipients(routed, -1)
        ledger.payload_in -= message.payload_size
        if routed == 0:
            ledger.unroutable -= not route.filtered
            ledger.filtered -= route.filtered
    return routed


def receive(Ledger ledger not None, Outbox publisher, Message message not None):
    """Count a message as received that goes nowhere, because a rule drops it."""
    ledger.messages_in += 1
    count_published(ledger, publisher, message.topic_size + message.payload_size)
    ledger.payload_in += message.payload_size
