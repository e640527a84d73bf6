# Expiry by the clock: see expiry.pyx.

from fanlight_broker.wire.queue cimport Queue

cpdef Py_ssize_t expire(Queue queue, double now, Py_ssize_t most=*) except -1
