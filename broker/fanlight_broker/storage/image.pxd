# What the records of a log amount to, while it is read. See image.pyx.

from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.storage.message_records cimport Places
from fanlight_broker.storage.stored_state cimport StoredFlight, StoredQueue
from fanlight_broker.wire.due_table cimport DueTable

cdef class Image:
    cdef:
        # By the number of the queue: StoredSession, GroupFact, QueueFact; and StoredQueue of all three.
        readonly dict sessions, groups, named, queues
        readonly dict slots       # StoredSlot, by number
        readonly dict retained    # topic, in either syntax, or (namespace, topic) -> RETAINED record
        readonly dict marks       # (user, producer) -> MarkFact; the one used last stands at the end
        readonly dict declarations    # (owner, key) -> DeclarationFact, in the order in which they were first made
        readonly DueTable delayed     # times are wall-clock times
        readonly dict delayed_publishers    # the fields of DelayedFact behind `nbytes` -> number
        readonly uint64_t last_number, last_queue, last_slot, last_set    # that were given
        readonly uint64_t applied    # records
        readonly double share     # of the log that was read, 0 to 1
        dict windows              # (queue, number) of copies in flight -> the StoredQueue whose window has it
        dict sets                 # number -> slots, uint32_t each

    cdef int take_in(self, int type, const char* at, Py_ssize_t size) except -1
    cdef int take_in_rare(self, int type, bytes body) except -1
    cdef int message(self, const char* body, Py_ssize_t size) except -1
    cdef int put(self, uint32_t slot, Places* places) except -1
    cdef StoredQueue owner(self, uint32_t number)
    cdef int moves(self, bytes body) except -1
    cdef int try_once(self, uint64_t id, uint64_t number, uint32_t deliveries, uint64_t due) except -1
    cdef int give_up(self, tuple copy) except -1
    cdef int put_again(self, uint64_t id, uint64_t number) except -1
    cdef int ended(self, bytes body) except -1
    cdef int take(self, uint64_t id, uint64_t number) except -1
    cdef int send(self, StoredQueue window, tuple copy, StoredFlight flight) except -1
    cdef int waiting(self, bytes body) except -1
    cdef int in_flight(self, bytes body) except -1
    cdef int round(self, bytes body) except -1
    cdef int slot(self, const char* body, Py_ssize_t size) except -1
    cdef int slot_set(self, bytes body) except -1
    cdef int retain(self, bytes body) except -1
    cdef int retain_in(self, bytes body) except -1
    cdef object key(self, bytes topic, int syntax)
    cdef int cleared(self, bytes body) except -1
    cdef int mark(self, bytes body) except -1
    cdef int declare(self, bytes body, bint begins) except -1
    cdef int delay(self, bytes body, bint begins) except -1
    cdef int session(self, bytes body) except -1
    cdef int session_ended(self, bytes body) except -1
    cdef int drop_queue(self, uint64_t id) except -1
    cdef int subscribed(self, bytes body) except -1
    cdef int unsubscribed(self, bytes body) except -1
    cdef int identifier(self, bytes body, bint received) except -1
    cdef StoredQueue begin_queue(self, uint64_t id)
    cdef int queue(self, bytes body) except -1
    cdef int queue_ended(self, bytes body) except -1
    cdef int group(self, bytes body) except -1
    cdef int group_ended(self, bytes body) except -1
