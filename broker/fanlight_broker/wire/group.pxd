# A queue group: subscriptions of which each message goes to one.
#
#   give --> the member with the least pending --> Target.deliver
#        '-> queue, if those who acknowledge have no room --> whichever has room next: its window is a Consumer

cimport cython

from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState
from fanlight_broker.wire.queue cimport Queue
from fanlight_broker.wire.target cimport Members, Target
from fanlight_broker.wire.window cimport Window

# It, its queue and its consumers are in no cycle without a Target, so the garbage collector does not see them either.
@cython.final
@cython.no_gc
cdef class QueueGroup(Members):
    cdef:
        readonly list members
        readonly Py_ssize_t turn
        readonly Queue queue              # what no member can take now; None if no member has a window

    cdef int forget_consumers(self, Window window) except -1
    cdef Target pick(self, Outbox publisher, int qos, bint* waits)
    cdef bint give(self, Outbox publisher, FanoutState* publication) except -1
    cdef Outbox blocker(self, Outbox publisher)
