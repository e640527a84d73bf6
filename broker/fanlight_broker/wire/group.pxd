# A queue group: subscriptions of which each message goes to one.
#
#   give --> the member with the least pending --> Target.deliver
#        '-> queue, if those who acknowledge have no room --> whichever has room next: its window is a Consumer

cimport cython

from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.target cimport Members, Target
from fanlight_broker.wire.window cimport Window

# It, its queue and its consumers are in no cycle without a Target, so the garbage collector does not see them either.
@cython.final
@cython.no_gc
cdef class QueueGroup(Members):
    cdef readonly Py_ssize_t turn

    cdef Py_ssize_t place_of(self, Target target) except -1
    cdef Target heir(self)
    cdef int forget_consumers(self, Window window) except -1
    cdef Target pick(self, Outbox publisher, int qos, bint* waits)
