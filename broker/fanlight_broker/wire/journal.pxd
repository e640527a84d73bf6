# The journal of one durable queue, and of the window that is its consumer: each change, as it happens.
#
#   enqueued   a message is in the queue, behind the others
#   returned   it was in flight, and waits again: in its place
#   removed    it does not wait any more: dropped, expired, or the queue has ended
#   assigned   it is in flight with a tag
#   given_up   of a message in flight there is only the tag
#   ended      the tag is free
#
# A queue is ordered by the numbers of its flights. The journal gives them: when a message is enqueued, or when it is
# assigned and has never waited. A message in flight was taken from its own session's queue or from a group's: `origin`
# is the journal of that queue, in which the number is.
#
# What a session without a journal takes from a group's queue that has one, and may arrive twice (QoS 1), is still
# waiting there, as far as the journal is concerned: it is removed when it is acknowledged, and until then a restart
# returns it to the group.
#
# Who keeps nothing has no journal: a queue and its window test one pointer for each change. What was taken out of a
# queue and is put back because there was no room has not changed, and is not reported.
#
# What raises JournalPosition.appended, because something is sent only when it is synced: `enqueued`; `assigned`, with
# QoS 2 or from no queue; `given_up`. Nothing waits for `returned`, `removed` and `ended`.
#
# A journal does not raise, for it is called in the middle of changes: it keeps an error for its next sync.
#
# Where the journal of the whole broker is, sessions and retained messages included, is in one JournalPosition:
#
#   change 1 | 2 | 3 | 4 | 5 | 6 | 7
#                      ^           ^
#                      synced      appended    an acknowledgement of change 6 waits, one of change 4 does not

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.flight cimport Flight
from fanlight_broker.wire.message cimport Message, Variant

# How durable a change must be before an acknowledgement of it is sent. A listener may ask for more or less than the
# broker does.

cdef enum:
    AS_BROKER = 0       # what `durability` of the broker says
    IN_MEMORY = 1
    WRITTEN = 2         # the operating system has it
    ON_DISK = 3

@cython.final
cdef class JournalPosition:
    cdef:
        public uint64_t appended    # changes reported so far that an acknowledgement may have to wait for
        public uint64_t synced      # all up to it are as durable as the broker promises; without a journal it stays 0
        public uint64_t written     # the same for WRITTEN
        public uint64_t on_disk     # and for ON_DISK
        public bint full            # the store takes no more for now: publishers that need it are held back
        public bint refusing        # the disk is full or broken: publishers that need the store are refused
        list windows                # with messages that are sent when their tags are synced (window.pyx)

    cdef inline uint64_t reached(self, int durability) noexcept:
        if durability == AS_BROKER:
            return self.synced
        if durability == IN_MEMORY:
            return self.appended
        return self.written if durability == WRITTEN else self.on_disk

cdef class QueueJournal:
    cdef uint64_t entered(self, Message message, Variant variant) noexcept
    cpdef enqueued(self, Flight flight)
    cpdef returned(self, Flight flight)
    cpdef removed(self, Flight flight)
    cpdef assigned(self, Flight flight, QueueJournal origin)
    cpdef given_up(self, Flight flight, QueueJournal origin)
    cpdef ended(self, Flight flight, QueueJournal origin)
