# The delivery tags of one channel: which delivery of which consumer each is, until it is acknowledged.
#
#   basic.deliver  tag 17, 18, 19, ...             count on the channel
#                       |
#                      row   tag -> number of the consumer, tag of its queue
#                       |
#   basic.ack ----------'--> windows: number -> Window, which has the flight by the queue's tag
#
# An acknowledgement that the windows can do alone is done here. All else, such as one of a delivery of basic.get, or of
# a consumer that has been cancelled, is for consumers.py, which does the same in Python.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.tag_row cimport TagRow

@cython.final
cdef class ChannelTags:
    cdef:
        readonly uint64_t last            # that was given
        public Py_ssize_t held            # by consumers, not acknowledged; while `most` is not 0
        public Py_ssize_t most            # that all consumers together may hold: basic.qos global; 0: without a bound
        readonly dict windows             # number -> Window, of consumers that only acknowledge
        public object shut                # called when `held` reaches `most`; set before `most` is
        TagRow row

    cdef uint64_t give(self, uint32_t number, uint64_t tag, bint kept) except 0
    cdef bint acknowledge(self, uint64_t tag, bint multiple, double now) except -1
    cdef bint acknowledge_up_to(self, uint64_t tag, double now) except -1
