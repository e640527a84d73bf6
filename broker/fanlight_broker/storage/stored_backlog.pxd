# The backlog of a durable queue: numbers in memory, messages in the log. See stored_backlog.pyx.

cimport cython

from fanlight_broker.storage.number_list cimport NumberList
from fanlight_broker.storage.stored_queue cimport StoredQueueJournal
from fanlight_broker.wire.backlog cimport Backlog
from fanlight_broker.wire.flight cimport Flight

@cython.final
cdef class StoredBacklog(Backlog):
    cdef:
        StoredQueueJournal journal
        object pager
        readonly NumberList numbers
        readonly bint asked         # the pager is to read the first

    cdef int counted(self) noexcept
