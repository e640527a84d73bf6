# A message that goes to a consumer without waiting in its queue: see handover.pyx.

from fanlight_broker.wire.publication cimport FanoutState
from fanlight_broker.wire.queue cimport Queue
from fanlight_broker.wire.window cimport Window

cdef bint passes(Queue queue, FanoutState* publication) except -1
cdef bint write_through(Window window, FanoutState* publication) except -1
cdef bint hand_over(Window window, FanoutState* publication) except -1
