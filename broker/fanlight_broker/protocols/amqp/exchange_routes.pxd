# The routes of one exchange by the destinations that its bindings give: for a topic exchange by the key, for a headers
# exchange by the headers of each message.
#
#   key      --ask--> matchcore.FilterIndex --.
#                                             +--> numbers of destinations --routes--> Route
#   headers  --find--> ConditionIndex --------'
#
# So what never repeats, a key or a value in a header, costs a search in compiled code, and Python is asked once for
# each set of destinations. It is right as long as it is `valid`. Numbers alone do not decide on messages that reach an
# exchange, or nothing where there is an alternate exchange: None, and Python does.

cimport cython

from libc.stdint cimport uint32_t

from fanlight_broker.protocols.amqp.exchanges.conditions cimport ConditionIndex
from fanlight_broker.protocols.amqp.exchanges.kept_answer cimport KeptAnswer
from fanlight_broker.wire.finder cimport FindIds
from fanlight_broker.wire.route cimport Route

# Of all exchanges of a vhost together: places are 8 for a route, and one for each queue in it.
@cython.final
cdef class RouteRoom:
    cdef public Py_ssize_t most
    cdef readonly Py_ssize_t taken
    cdef public object full           # called when there is no room: it is to drop what takes it
    cdef object later                 # does a piece of work in a later turn; None: what is dropped is freed at once
    cdef list dropped                 # dictionaries that nobody uses any more, of sites or routes
    cdef readonly Py_ssize_t unfreed  # what is in them

    cdef int drop(self, dict what) except -1

cdef bint queues_live(Route route) noexcept

@cython.final
cdef class ExchangeRoutes(KeptAnswer):
    cdef:
        readonly bytes prefix             # of the topics of its messages
        readonly ConditionIndex conditions    # of a headers exchange; else None
        object filters                    # FilterIndex of a topic exchange; kept for `ask`
        FindIds ask
        dict routes                       # numbers, as octets -> Route, or None
        object resolve                    # (numbers) -> Route, or None
        RouteRoom room

    cdef Route by_key(self, const char* key, Py_ssize_t size)
    cdef Route by_headers(self, const unsigned char* entries, Py_ssize_t size)
    cdef Route of(self, const uint32_t* numbers, size_t count)
    cdef Route make(self, bytes octets)
