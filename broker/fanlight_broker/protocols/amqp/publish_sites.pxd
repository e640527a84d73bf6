# What the lane knows of a basic.publish before it has seen its content, so that it needs no Python for it.
#
#   basic.publish  reserved | exchange | key | bits     the octets of these arguments are the key of a table
#        '--> PublishSite    where it leads to, what its messages are named, who may publish here
#
# One table for a vhost. A site is right as long as the answer of the exchanges is, and its queues have not ended. Of a
# key that comes for the first time to a topic exchange the site is made here, by its ExchangeRoutes; sites that nobody
# has used for a while make room: `known` becomes `before`, and what was there before is forgotten.

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.protocols.amqp.channel_tags cimport ChannelTags
from fanlight_broker.protocols.amqp.exchange_routes cimport ExchangeRoutes, RouteRoom
from fanlight_broker.protocols.amqp.exchanges.kept_answer cimport KeptAnswer
from fanlight_broker.wire.badge cimport Badge
from fanlight_broker.wire.route cimport Route

# Not seen by the garbage collector, which keys that never repeat would otherwise run every 700 of them: the table lets
# them go when its vhost is closed.
@cython.final
@cython.no_gc
cdef class PublishSite:
    cdef:
        readonly bytes topic              # of its messages
        readonly bytes names              # exchange and key, as short strings
        readonly Route route              # of the queues; None: of each message alone, or that of the topic, in the
                                          # route cache
        readonly ExchangeRoutes by_headers    # of a headers exchange: who finds the route of each message; or None
        readonly Route onward             # of amq.topic: the queues behind exchanges that are bound to it; or None
        Route joined                      # these, and the topic's own subscriptions, as long as they are the same:
        list targets, groups
        readonly KeptAnswer answer        # None: it is of the default exchange, and depends on its queue alone
        uint64_t seen_live                # queues that had ended when its own were last seen to be there
        Badge publishes, asks             # the class that was last found to be permitted to publish, to ask for answers

    cdef bint usable(self) noexcept
    cdef Route joined_with(self, Route route)

@cython.final
cdef class PublishSites:
    cdef:
        dict known, before
        dict exchanges                    # names, as short strings -> ExchangeRoutes
        readonly RouteRoom room           # theirs
        readonly Py_ssize_t most
        object resolve                    # (octets) -> PublishSite, or None: Python decides on each message

    cdef PublishSite find(self, const unsigned char* octets, Py_ssize_t size)
    cdef PublishSite by_exchange(self, const unsigned char* octets, Py_ssize_t size)
    cdef int keep(self, bytes arguments, PublishSite site) except -1

# One channel as the lane knows it: what a basic.publish and a basic.ack on it need.
@cython.final
cdef class LaneChannel:
    cdef:
        readonly int number
        readonly int serial               # of the channels of its connection: a number may be used again
        public bint under_way             # the content of a basic.publish is on its way through Python
        public bint plain                 # all of it goes through Python: it has been made transactional
        public bint confirming
        public uint64_t published         # since confirm.select
        public ChannelTags tags           # of its deliveries; None: it has had no consumer

# What all lanes count together: options.AmqpCounts, which has what Python counts, is one.
cdef class PublishCounts:
    cdef public uint64_t confirms, confirm_refusals, discarded
