# cython: language_level=3
"""What an operator does with the messages that wait in a queue: looks at them, and moves them one by one.

    lift --> flight --'put elsewhere'--> carry_off
                '----- not taken ------> put_down

Nothing else happens to the queue between `lift` and what follows it.
"""

from itertools import islice

from fanlight_broker.wire.flight cimport ENDED, Flight
from fanlight_broker.wire.flight_row cimport FlightRow
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.named_queue cimport NamedQueue
from fanlight_broker.wire.packed_row cimport PackedRow
from fanlight_broker.wire.queue cimport Queue


def in_memory(Queue queue not None):
    """Messages that wait, and are not in the backlog of a store."""
    return queue.length if queue.backlog is not None and queue.backlog.at_hand else len(queue.flights)


def peek(Queue queue not None, Py_ssize_t most):
    """The next messages of those that wait and are in memory: (message, attempt, since)."""
    cdef Flight flight
    cdef FlightRow row = <FlightRow> queue.flights if isinstance(queue.flights, FlightRow) else None
    cdef Py_ssize_t nth
    # Iterating over a row makes a list of all of it first.
    waiting = islice(queue.flights, most) if row is None else [row[nth] for nth in range(min(most, row.count))]
    cdef list found = []
    for flight in waiting:
        found.append((flight.message, flight.attempt, flight.since))
    if row is not None and queue.backlog is not None and queue.backlog.at_hand:
        found += (<PackedRow> queue.backlog).peek(most - len(found))
        queue.settle_losses()
    return found


def read_soon(NamedQueue named not None, then not None):
    """Call `then` when more may be in memory than now, or the queue has ended: the backlog is asked for its oldest.

    It is called in the middle of changes, and must only arrange for what is to be done.
    """
    named.readers.append(then)
    named.queue.backlog.fetch()


def lift(NamedQueue named not None, double now):
    """Take out the oldest that waits. None: there is none in memory."""
    return named.queue.pop(now)


def put_down(NamedQueue named not None, Flight flight not None):
    """What was lifted is the oldest again."""
    named.queue.put_back(flight)


def carry_off(NamedQueue named not None, Flight flight not None):
    """What was lifted is elsewhere now."""
    cdef Queue queue = named.queue
    if queue.journal is not None and flight.number:
        queue.journal.removed(flight)
    flight.message.drop_holder(queue.ledger, queue.account)
    flight.state = ENDED


def put_in(NamedQueue named not None, Message message not None):
    """Take in a message of another queue. False, and nothing has changed, if there is no room; a stream has none."""
    if named.recorder is not None or not named.queue.has_room(named.queue.size_of(message)):
        return False
    named.enter(message)
    return True
