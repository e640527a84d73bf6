# cython: language_level=3
"""All subscriptions in force, and how an ordinary one begins and ends. Drawn in subscription_table.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint32_t

from fanlight_broker.wire.changes cimport ADDED
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.message cimport Variant


cdef class SubscriptionTable:
    """index     of the filters, a matchcore.FilterIndex
    routes       are notified of what changes
    pot          of the bytes of subscriptions and the index
    syntaxes     names, by number; separators: an octet for each
    sizes        bytes: of a subscription, of its variant if that has an identifier, of its place in the index
    pots         numbers of two pots of principals: subscriptions, and their bytes
    """

    def __cinit__(self, index not None, RouteCache routes not None, Pot pot not None, *, tuple syntaxes not None,
                  bytes separators not None, tuple sizes not None, tuple pots not None):
        self.index = index
        self.insert_filter, self.remove_filter = index.insert, index.remove
        self.routes, self.pot = routes, pot
        self.syntaxes, self.separators = syntaxes, separators
        self.held_bytes, self.identified_bytes, self.placed_bytes = sizes
        self.counted, self.counted_bytes = pots
        if len(separators) != len(syntaxes):
            raise ValueError(f"{len(separators)} separators for {len(syntaxes)} syntaxes")
        self.by_id = unseen([])    # as its items, which the collector does not look at
        self.free = unseen([])

    def bound(self, Py_ssize_t most_per_client, Py_ssize_t most, Py_ssize_t filter_bytes_max,
              Py_ssize_t filter_words_max):
        """Apply limits. Nothing that is in force ends."""
        self.most_per_client, self.most = most_per_client, most
        self.filter_bytes_max, self.filter_words_max = filter_bytes_max, filter_words_max

    # -- an ordinary subscription -----------------------------------------------------------------------------------

    def enter(self, Target target not None, Subscriptions own not None, PotCounts counts not None):
        """Put an ordinary subscription in force. False, and nothing is changed: it is not, or a limit refuses it.

        own     its client's
        counts  of its principal
        """
        return self.admit(target, own, counts)

    cdef bint admit(self, Target target, Subscriptions own, PotCounts counts) except -1:
        cdef Py_ssize_t octets = self.held(target), size = PyBytes_GET_SIZE(target.filter)
        if not self.ordinary(target) or not self.admitted(target, own, counts):
            return False
        if (own.find(target.filter, None) if own.by_filter else own.numbered(target.number)) is not None:
            return False
        try:
            self.put_in(target)
        except ValueError:
            return False    # an invalid filter, of which nothing is left: the caller finds out what is wrong with it
        try:
            own.enter(target)
        except BaseException:
            self.take_out(target)
            raise
        self.routes.note(ADDED, target.filter, target.syntax_number, target)
        self.count_bytes(octets)
        counts.count(self.counted, 1)
        counts.count(self.counted_bytes, self.held_bytes + self.placed_bytes + 2 * size)
        return True

    def leave(self, Target target not None, Subscriptions own not None, PotCounts counts not None):
        """Take an ordinary subscription out of force. False, and nothing is changed: it is not, or not here."""
        cdef Py_ssize_t octets = self.held(target), size = PyBytes_GET_SIZE(target.filter)
        if not self.ordinary(target) or not self.has(target) or not own.take_out(target):
            return False
        self.take_out(target)
        self.routes.removed(target)
        self.count_bytes(-octets)
        counts.count(self.counted, -1)
        counts.count(self.counted_bytes, -(self.held_bytes + self.placed_bytes + 2 * size))
        return True

    cdef bint ordinary(self, Target target) noexcept:
        cdef const char* text = PyBytes_AS_STRING(target.filter)
        cdef Py_ssize_t i, size = PyBytes_GET_SIZE(target.filter)
        cdef int hashes = 0
        if target.grouped or (target.extras is not None and target.extras.condition is not None):
            return False
        if target.partly or (size and text[0] == c"$"):
            return False
        for i in range(size):
            hashes += text[i] == c"#"
        return hashes < 2

    cdef bint admitted(self, Target target, Subscriptions own, PotCounts counts) noexcept:
        """Has everything room for it? Nothing is counted of what has not."""
        cdef const char* text = PyBytes_AS_STRING(target.filter)
        cdef char separator = PyBytes_AS_STRING(self.separators)[target.syntax_number]
        cdef Py_ssize_t i, size = PyBytes_GET_SIZE(target.filter), words = 1
        if not counts.kept or own.count >= self.most_per_client or self.in_force >= self.most \
                or size > self.filter_bytes_max or self.pot.used + self.held_bytes + size > self.pot.limit:
            return False
        if size >= self.filter_words_max - 1:    # else it cannot have too many
            for i in range(size):
                words += text[i] == separator
            if words > self.filter_words_max:
                return False
        return counts.fits(self.counted) \
            and counts.within(self.counted_bytes, self.held_bytes + 2 * size) \
            and counts.totals.room(self.counted_bytes, counts.used[self.counted_bytes], self.pot.used,
                                   self.held_bytes + self.placed_bytes + 2 * size)

    cdef Py_ssize_t held(self, Target target) noexcept:
        """Bytes that it takes, beside its place in the index."""
        cdef Py_ssize_t octets = self.held_bytes + PyBytes_GET_SIZE(target.filter)
        return octets + self.identified_bytes if PyBytes_GET_SIZE(target.variant.identifiers) else octets

    # -- each subscription, for core.Router -------------------------------------------------------------------------

    def insert(self, Target target not None):
        """Enter it in the index, under an id of its own. Raises what the index raises, with nothing changed."""
        self.put_in(target)

    def remove(self, Target target not None):
        """Take it out of the index; its id is free. KeyError if it is not here."""
        if not self.has(target):
            raise KeyError(target.id)
        self.take_out(target)

    def extend(self, list targets not None):
        """Enter many, under the ids that follow, while none is free. Raises what the index raises."""
        cdef Target target
        if self.free:
            raise ValueError(f"{len(self.free)} ids are free")
        for target in targets:
            self.put_in(target)

    def count(self, Py_ssize_t octets):
        """Count what subscriptions use more, or less, and what the index has grown by since it was counted last."""
        self.count_bytes(octets)

    cdef bint has(self, Target target) noexcept:
        return target.id < PyList_GET_SIZE(self.by_id) \
            and <void*> PyList_GET_ITEM(self.by_id, target.id) == <void*> target

    cdef int put_in(self, Target target) except -1:
        cdef Py_ssize_t places = PyList_GET_SIZE(self.by_id)
        cdef object id
        if self.free:
            id = self.free[-1]
            self.insert_filter(target.filter, id, syntax=self.syntaxes[target.syntax_number])
            self.free.pop()
            self.by_id[id] = target
        else:
            id = places
            self.by_id.append(None)
            try:
                self.insert_filter(target.filter, id, syntax=self.syntaxes[target.syntax_number])
            except BaseException:
                del self.by_id[places]
                raise
            self.by_id[places] = target
        target.id = id
        self.in_force += 1
        return 0

    cdef int take_out(self, Target target) except -1:
        self.remove_filter(target.filter, target.id, syntax=self.syntaxes[target.syntax_number])
        self.by_id[target.id] = None
        self.free.append(target.id)
        self.in_force -= 1
        return 0

    cdef int count_bytes(self, Py_ssize_t octets) except -1:
        cdef Py_ssize_t now = self.index.nbytes
        self.pot.force(octets + now - self.index_bytes)
        self.index_bytes = now
        return 0


cdef class Entering:
    """Puts many ordinary subscriptions of a session in force, as core.Sessions.subscribe does for one.

    It is for one turn: what it was made by may change after that. counter: `core.Subscribing`, which counts and reports
    them.
    """

    def __cinit__(self, SubscriptionTable table not None, session not None, counter not None):
        subscriber = session.subscriber
        self.table, self.session, self.counter = table, session, counter
        self.window, self.own, self.counts = session.window, subscriber.subscriptions, subscriber.share.counts

    def enter(self, Variant variant not None, bytes filter not None, unsigned char syntax, bint no_echo):
        """The subscription, in force; None if it is not ordinary, or a limit refuses it."""
        cdef uint32_t number = self.session.numbers + 1
        cdef Target target = Target(self.window, variant, number, filter, syntax, no_echo)
        if not self.table.admit(target, self.own, self.counts):
            return None
        self.session.numbers = number
        self.counter.begun += 1
        self.counter.subscribed(target)
        return target
