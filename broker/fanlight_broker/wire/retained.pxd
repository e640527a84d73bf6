# A retained message in its slot, and the part of the retained store that runs for each message on a known topic.
#
#   Route ----.
#             v
#   RetainedEntry [ message | id | publisher's share, origin | deadline ] <---- core.Retained, by id and by topic
#
# A message on a topic without one gets an entry by `store`, if no limit is near (Python refuses, and says why).
#
# The entry stays while its topic has a retained message; the next message takes the place of the one before. So a route
# that was found in the cache has it at hand, and no topic is looked up. When the topic is cleared the entry is over
# (`id` -1), and routes that still have it ask Python again.

cimport cython
from libc.stdint cimport uint64_t

from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.message cimport Message

# In no cycle: the garbage collector does not look at it.
@cython.final
@cython.no_gc
cdef class RetainedEntry:
    cdef:
        public Message message        # None once it is over
        readonly object key           # of its topic: core.topics.canonical
        readonly Py_ssize_t id        # -1: it is over
        public uint64_t revision      # of the table, when the message was set
        readonly bint own             # the broker's: not counted, not limited
        public object origin          # name of the session that published it, or None
        readonly object share         # core.Share of the principal that published it, or None
        readonly Account account      # of that
        public double deadline        # when its id is looked at for its expiry; NEVER: it is not

    cdef int begin(self, Message message, key, Py_ssize_t id, bint own, origin, share) except -1

cdef class RetainedTable:
    cdef:
        readonly Ledger ledger
        readonly list entries         # by id; None: not in use
        readonly dict by_key          # ids, by key: core.topics.canonical
        readonly list free            # ids
        readonly list indexes         # of topics, a matchcore.NameIndex for PART ids, so that no look-up takes long
        public Py_ssize_t own         # entries of the broker
        tuple syntaxes                # names, by their numbers in a Message
        int canonical                 # whose topics are keys as they are
        object spell                  # the key of a topic in another syntax
        public object journal         # core.retained.RetainedJournal; None: nothing is kept over a restart
        public uint64_t revision      # counts the changes
        # Limits, copied here.
        Py_ssize_t most, bytes_max    # of clients
        double bytes_percent, stored_percent    # of what others leave, that one principal may take
        readonly bint retains         # False: nothing is retained
        int counted                   # number of the pot that a principal's messages are counted in

    cdef bint replace(self, RetainedEntry entry, Message new, share, origin, double now) except -1
    cdef bint shared(self, Account account, Py_ssize_t more) noexcept
    cdef RetainedEntry enter(self, Message new, share, origin, double now)
    cdef RetainedEntry store(self, key, Message new, share, origin, double now)
    cdef object key_of(self, bytes topic, int syntax)
