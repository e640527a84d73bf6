# All subscriptions in force, by id; and the path of an ordinary one, on which no Python runs.
#
#   enter --> checks --> the client's own table      subscriptions.pxd
#                        the filter index, by id  -> by_id [ T | T | None | T ]   which the finder reads, too
#                        changes of routes           routes.pxd
#                        what its principal uses     pot_counts.pxd
#                        the pot of all              ledger.pxd
#   leave --> the same backwards
#
# An ordinary subscription is in no group and has no selector; its filter does not begin with `$` and has one `#` at
# most; no limit refuses it. All others are left to core.Subscribing (`check`, `begin`, `end`) and core.Router, which do
# the same in Python: the tests compare the two.

cimport cython

from fanlight_broker.wire.ledger cimport Pot
from fanlight_broker.wire.pot_counts cimport PotCounts
from fanlight_broker.wire.routes cimport RouteCache
from fanlight_broker.wire.subscriptions cimport Subscriptions
from fanlight_broker.wire.target cimport Target
from fanlight_broker.wire.window cimport Window

@cython.final
cdef class SubscriptionTable:
    cdef:
        readonly list by_id           # None: the id is free
        readonly list free            # ids
        readonly Py_ssize_t in_force  # subscriptions
        object index                  # of the filters
        object insert_filter, remove_filter    # its methods
        tuple syntaxes                # names, by their numbers in a Target
        bytes separators              # an octet for each syntax
        RouteCache routes
        Pot pot                       # what subscriptions and the index take
        Py_ssize_t index_bytes        # of the index, as they are counted there
        # Limits.
        Py_ssize_t most_per_client, most, filter_bytes_max, filter_words_max
        # Bytes of a subscription and, in its principal's share, of its place in the index; without the filter's text.
        Py_ssize_t held_bytes, identified_bytes, placed_bytes
        int counted, counted_bytes    # numbers of the pots of principals

    cdef bint admit(self, Target target, Subscriptions own, PotCounts counts) except -1
    cdef bint ordinary(self, Target target) noexcept
    cdef bint admitted(self, Target target, Subscriptions own, PotCounts counts) noexcept
    cdef Py_ssize_t held(self, Target target) noexcept
    cdef bint has(self, Target target) noexcept
    cdef int put_in(self, Target target) except -1
    cdef int take_out(self, Target target) except -1
    cdef int count_bytes(self, Py_ssize_t octets) except -1

@cython.final
cdef class Entering:
    cdef:
        SubscriptionTable table
        object session, counter    # the core's
        Window window
        Subscriptions own
        PotCounts counts
