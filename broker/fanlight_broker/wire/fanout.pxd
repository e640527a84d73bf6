# Fan-out: one message to all who get it.
#
#   Route --> each Target --> pass_on: the ordinary copy, inline       a head with a hole, and the body (message.pxd)
#                         '-> Target.deliver: anything special          credit, tags, a full outbox, a large body
#         --> each QueueGroup
#
# An exception while one target is served is that target's fault (`Target.fault`): the publisher does not see it, and
# all other targets are served.

from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.outbox cimport Outbox
from fanlight_broker.wire.publication cimport FanoutState
from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.target cimport Target

ctypedef int (*Give)(Target, FanoutState*) noexcept    # what is called unchecked: see publication.pxd

cdef inline int deliver_to(Target target, FanoutState* publication) except -1:
    return target.deliver(publication, target.variant)

cdef Py_ssize_t fan_out(Route route, Ledger ledger, Outbox publisher, Message message) except -1
