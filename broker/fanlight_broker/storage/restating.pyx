# cython: language_level=3
"""What waits in queues and is in flight, written once more: see checkpoint.py. Numbers only: the log has the messages.

    WAITING     all that waits in a queue, in memory or not; or more of it, that is not there but on loan
    IN_FLIGHT   all that is in flight in a window, in order

The caller has called `QueueRecords.flush` in this turn.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.live_numbers cimport LiveNumbers
from fanlight_broker.storage.number_list cimport NumberList, Runs, begin_runs, next_run
from fanlight_broker.storage.records cimport (
    IN_FLIGHT, TRIED, VARINT_MOST, WAITING, Growing, make_room, put_varint, zigzag,
)
from fanlight_broker.storage.stored_backlog cimport StoredBacklog
from fanlight_broker.storage.stored_queue cimport QueueRecords, StoredQueueJournal
from fanlight_broker.wire.allocator cimport deallocate
from fanlight_broker.wire.due_table cimport DueTable
from fanlight_broker.wire.flight cimport TAG_ONLY, Flight
from fanlight_broker.wire.journal cimport QueueJournal
from fanlight_broker.wire.named_queue cimport NamedQueue
from fanlight_broker.wire.queue cimport Queue
from fanlight_broker.wire.window cimport Window


def number_of(Flight flight):
    return flight.number


cdef NumberList listed(StoredQueueJournal journal, list flights, double ttl=INFINITY):
    """The numbers of flights, in order."""
    cdef NumberList found = NumberList()
    cdef Flight flight
    flights.sort(key=number_of)
    for flight in flights:
        if flight.number and flight.message is not None:
            found.add(
                flight.number, journal.slot_of(flight.variant), flight.message.bytes_held(),
                min(flight.message.expires_at, flight.since + ttl),
            )
    return found


def restate_waiting(QueueRecords records not None, Queue queue not None):
    """All that waits in a queue that is kept."""
    cdef StoredQueueJournal journal = <StoredQueueJournal?> queue.journal
    cdef NumberList head = listed(journal, list(queue.flights), queue.ttl), backlog = NumberList()
    if queue.backlog is not None:
        backlog = (<StoredBacklog?> queue.backlog).numbers
    # A message of the head that came back may be younger than the oldest of the backlog.
    if backlog.length and head.last_number() > backlog.blocks[backlog.head].first:
        write_waiting(records, journal, backlog, NumberList(), False)
        write_waiting(records, journal, head, NumberList(), True)
    else:
        write_waiting(records, journal, head, backlog, False)


def restate_on_loan(QueueRecords records not None, StoredQueueJournal journal not None, list flights not None):
    """What is in flight somewhere that does not survive: it waits, for a restart. After its `restate_waiting`."""
    write_waiting(records, journal, listed(journal, list(flights)), NumberList(), True)


cdef int write_waiting(QueueRecords records, StoredQueueJournal journal, NumberList first, NumberList others,
                       bint more) except -1:
    cdef Growing octets
    octets.data, octets.size, octets.capacity = NULL, 0, 0
    try:
        make_room(&octets, VARINT_MOST)
        put_varint(&octets, journal.id << 1 | more)
        first.dump(&octets, records.wall)
        others.dump(&octets, records.wall)
        records.restate_octets(WAITING, &octets)
    except Exception as error:
        records.failed(error)
    finally:
        deallocate(octets.data)
    return 0


def restate_flights(QueueRecords records not None, Window window not None):
    """All that is in flight to a session that is kept."""
    cdef StoredQueueJournal own = <StoredQueueJournal?> window.queue.journal
    cdef uint64_t last = 0
    cdef Growing octets
    cdef Flight flight
    octets.data, octets.size, octets.capacity = NULL, 0, 0
    try:
        make_room(&octets, VARINT_MOST)
        put_varint(&octets, own.id)
        for flight in window.flights():
            if flight.number == 0:
                continue
            make_room(&octets, 4 * VARINT_MOST)
            put_varint(&octets, (<StoredQueueJournal?> window.origin(flight)).id)
            put_varint(&octets, zigzag(flight.number, last))
            put_varint(&octets, own.slot_of(flight.variant))
            put_varint(&octets, flight.tag << 1 | (flight.state == TAG_ONLY))
            last = flight.number
        records.restate_octets(IN_FLIGHT, &octets)
    except Exception as error:
        records.failed(error)
    finally:
        deallocate(octets.data)


def restate_named(QueueRecords records not None, NamedQueue named not None):
    """All that is in a named queue: what is in flight, delayed or to be buried waits, too, as far as the log says."""
    cdef StoredQueueJournal journal = <StoredQueueJournal?> named.queue.journal
    cdef list flights = [flight for _, _, flight in named.delayed] + [grave for grave, _ in named.graves]
    cdef set apart = {flight.number for _, _, flight in named.delayed}
    cdef Window window
    cdef Flight flight
    for window in named.windows:
        flights += window.flights()
    restate_waiting(records, named.queue)
    write_waiting(records, journal, listed(journal, list(flights), named.queue.ttl), NumberList(), True)
    for flight in [*named.queue.flights, *flights]:
        if flight.number and flight.attempt:
            records.move(
                TRIED, journal.id, flight.number, flight.attempt,
                records.in_ms(flight.due) if flight.number in apart else 0,
            )
    for number, deliveries in (journal.tried or {}).items():
        records.move(TRIED, journal.id, number, deliveries, 0)
    records.flush()


def on_loan(Window window not None):
    """{journal: flights} of what a window that is not kept has of groups that are."""
    cdef dict found = {}
    cdef Flight flight
    cdef QueueJournal origin
    for flight in window.flights():
        if flight.number and flight.message is not None:
            origin = window.origin(flight)
            if origin is not None:
                found.setdefault(origin, []).append(flight)
    return found


def mark_waiting(LiveNumbers live not None, Queue queue not None):
    """Mark what waits in a queue."""
    cdef Flight flight
    cdef NumberList numbers
    cdef Py_ssize_t i
    cdef uint64_t number
    cdef Runs runs
    for flight in queue.flights:
        live.mark(flight.number)
    if queue.backlog is None:
        return
    numbers = (<StoredBacklog?> queue.backlog).numbers
    for i in range(numbers.head, numbers.n):
        if numbers.blocks[i].first >= live.end:
            break
        if numbers.blocks[i].run_last < live.first:
            continue
        begin_runs(&runs, &numbers.blocks[i])
        while next_run(&runs):
            for number in range(max(runs.first, live.first), min(runs.last + 1, live.end)):
                live.mark(number)


def mark_flights(LiveNumbers live not None, Window window not None):
    """Mark what is in flight in a window, whosever it is."""
    cdef Flight flight
    for flight in window.flights():
        live.mark(flight.number)


def mark_due(LiveNumbers live not None, DueTable delayed not None, uint32_t first, uint32_t count):
    """Mark the delayed messages at so many places of their table."""
    cdef uint32_t place
    for place in range(first, min(first + count, delayed.places)):
        live.mark(delayed.entries[place].id)


def mark_named(LiveNumbers live not None, NamedQueue named not None):
    """Mark all that is in a named queue."""
    cdef Flight flight
    cdef Window window
    mark_waiting(live, named.queue)
    for window in named.windows:
        mark_flights(live, window)
    for _, _, flight in named.delayed:
        live.mark(flight.number)
    for flight, _ in named.graves:
        live.mark(flight.number)
