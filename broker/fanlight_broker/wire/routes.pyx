# cython: language_level=3
"""The route cache: routes by topic, found without making a Python object. Drawn in routes.pxd.

Bounded, in number and in bytes (a route is as long as its topic and its list of subscriptions). When it has more than
a few, a topic is kept at its second sighting; when it is full, in the place of a route that was not used since the
clock's hand passed it last, if there is one.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from fanlight_broker.wire.allocator cimport allocate_zeros, deallocate
from fanlight_broker.wire.batcher cimport Batcher
from fanlight_broker.wire.changes cimport ADDED, CHANGES, MEMBERS, OTHER, REMOVED, RouteChange, RouteChanges
from fanlight_broker.wire.doorkeeper cimport Doorkeeper
from fanlight_broker.wire.finder cimport Finder
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.ledger cimport Ledger
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.route cimport Route
from fanlight_broker.wire.screening cimport RouteScreens
from fanlight_broker.wire.target cimport Target

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030E0000
    /* CPython's header has it no more since 3.13; 3.14 has it under a public name. */
    PyAPI_FUNC(Py_hash_t) _Py_HashBytes(const void *, Py_ssize_t);
    #define Py_HashBuffer _Py_HashBytes
    #endif
    """
    Py_ssize_t Py_HashBuffer(const void* octets, Py_ssize_t size) nogil
    Py_ssize_t Py_REFCNT(PyObject* thing)

cdef enum:
    FIRST_SLOTS = 64
    MATCHED_COPIES = 512     # what matching a topic counts as: after eight of them the clock is looked at
    ASKED_COPIES = 64        # and a selector that is asked
    MOVED_AT_ONCE = 32       # slots of a table that grows, for each route that is added
    FIRST_COME = 4_096       # routes that are kept at the first sighting of their topics
    LOOKED_AT = 8            # routes, for one to remove; were all used lately, the new topic is not kept
    PATIENCE = 16            # topics that ask for room move the hand as far as one message that finds its route
    LARGE = 1 << 20          # bytes of a route for which others have to go, used or not
    REMEMBERED = 2_048       # topics, twice
    REMEMBERED_BYTES = 1_024   # longer topics start from 0 again: 4 MiB at most are remembered
    BORROWED = 2             # references to `scratch`: its own, and that of the function that looks


cdef inline Py_ssize_t hash_of(unsigned char syntax, const char* topic, Py_ssize_t size) noexcept nogil:
    # The same words in two syntaxes are two keys, which must not always share a chain: the syntax is part of the hash.
    return Py_HashBuffer(topic, size) ^ (<Py_ssize_t> syntax * 0x3779FB9)


cdef class RouteCache:
    """At most `most` routes, which take about `most_bytes` bytes; one, however large it is."""

    def __cinit__(self, Py_ssize_t most, Py_ssize_t most_bytes=256 * 1024 * 1024):
        if most < 1:
            raise ValueError(f"a cache of {most} routes; it holds at least one")
        self.most = most
        self.most_bytes = most_bytes
        self.credit = most
        self.batcher = Batcher()
        self.doorkeeper = Doorkeeper()
        self.kept = unseen([])
        self.remembered, self.remembered_before = {}, {}
        self.slots = <Slot*> allocate_zeros(FIRST_SLOTS, sizeof(Slot))
        if self.slots is NULL:
            raise MemoryError()
        self.mask = FIRST_SLOTS - 1

    def __dealloc__(self):
        deallocate(self.slots)
        deallocate(self.old)

    def __len__(self):
        return len(self.kept)

    def work_out_with(self, Finder finder not None, RouteChanges changes not None, Ledger ledger not None):
        """Work out the routes of topics that are not kept, and keep them in step with the subscriptions."""
        self.finder, self.changes, self.ledger = finder, changes, ledger

    @staticmethod
    def key_of(int syntax, bytes topic not None):
        """The key of a topic: the octet of its syntax, then its own."""
        return bytes((syntax,)) + topic

    # -- look-up ----------------------------------------------------------------------------------------------------

    def get(self, bytes key not None):
        """The route that is kept for a key, up to date, or None. It is not counted."""
        cdef const char* at = PyBytes_AS_STRING(key)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(key) - 1
        cdef unsigned char syntax = <unsigned char> at[0]
        cdef PyObject* found = self.seek(hash_of(syntax, at + 1, size), syntax, at + 1, size)
        cdef Route route = <Route> found if found is not NULL else None
        return None if route is None or not self.renew(route) else route

    def routes(self):
        """All routes that are kept, in no order (a copy); some may still be behind the subscriptions."""
        return list(self.kept)

    def lookup(self, int syntax, bytes topic not None):
        """The route of a topic, kept or worked out; None if it is invalid, or nobody works out routes."""
        cdef const char* at = PyBytes_AS_STRING(topic)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(topic), hash = hash_of(syntax, at, size)
        cdef PyObject* found = self.latest(syntax, at, size)
        cdef Route route
        if found is not NULL:
            self.hits += 1
            return <Route> found
        found = self.seek(hash, syntax, at, size)
        if found is not NULL:
            route = <Route> found
            if self.renew(route):
                self.hits += 1
                return route
        self.misses += 1
        return self.work_out(hash, syntax, at, size)

    cdef Route find(self, unsigned char syntax, const char* topic, Py_ssize_t size):
        """The route of a topic that a client publishes on; None: Python says what is wrong with it.

        One whose `key` is empty is valid until the next one is looked for.
        """
        cdef Py_ssize_t hash
        cdef PyObject* found = self.latest(syntax, topic, size)
        cdef Route route
        if found is NULL:
            hash = hash_of(syntax, topic, size)
            found = self.seek(hash, syntax, topic, size)
            if found is NULL:
                return self.missed(hash, syntax, topic, size)
            if (<Route> found).generation != self.generation:
                route = <Route> found  # it may be dropped
                if not self.renew(route):
                    return self.missed(hash, syntax, topic, size)
        self.hits += 1
        return <Route> found

    cdef Route missed(self, Py_ssize_t hash, unsigned char syntax, const char* topic, Py_ssize_t size):
        self.misses += 1
        if self.finder is None or self.finder.is_own(topic, size):
            return None
        return self.work_out(hash, syntax, topic, size)

    cdef Route work_out(self, Py_ssize_t hash, unsigned char syntax, const char* topic, Py_ssize_t size):
        """The route of a topic that is not kept. It is kept from now on, or not."""
        cdef Route route
        cdef Finder finder = self.finder
        cdef list targets, groups
        cdef RouteScreens screens
        cdef bytes key
        cdef bint taps
        if finder is None or not finder.find(syntax, topic, size):
            return None
        targets, groups = finder.targets, finder.groups if finder.groups is not None else unseen([])
        screens = finder.screens
        self.ledger.copies += MATCHED_COPIES
        taps = finder.selects is not None and finder.selects(PyBytes_FromStringAndSize(topic, size), syntax)
        if PyList_GET_SIZE(self.kept) < min(self.most, FIRST_COME) or self.doorkeeper.passes(hash):
            key = PyBytes_FromStringAndSize(NULL, size + 1)
            PyBytes_AS_STRING(key)[0] = syntax
            memcpy(PyBytes_AS_STRING(key) + 1, topic, size)
            route = Route(key, targets, groups, screens)
            self.take(route)
        else:
            route = self.scratch
            if route is None or Py_REFCNT(<PyObject*> route) > BORROWED:
                route = self.scratch = Route(b"", [], [])
            route.targets, route.groups, route.screens, route.retained = targets, groups, screens, None
            route.forget_permits()
        route.tap = finder.tap if taps else None
        route.decided = finder.decisions(syntax, topic, size)
        return route

    # -- selectors --------------------------------------------------------------------------------------------------

    cdef Route screened(self, Route route, Message message, object owner):
        """The route of one message, of a topic that has selectors: with those whose selector is true of it.

        Valid until the next message is looked at. owner: of its publisher's outbox, or None
        """
        cdef Finder finder = self.finder
        cdef list targets, groups
        cdef Route made
        cdef Py_ssize_t found
        self.ledger.copies += MATCHED_COPIES + ASKED_COPIES * route.screens.subscriptions()
        found = finder.choose(route.screens, message, owner)
        targets, groups = finder.targets, finder.groups if finder.groups is not None else unseen([])
        self.count_screened()
        if PyBytes_GET_SIZE(route.key):
            self.batcher.last = route
        made = self.for_one
        if made is None or Py_REFCNT(<PyObject*> made) > BORROWED:
            made = self.for_one = Route(b"", [], [])
        made.targets, made.groups, made.tap, made.filtered = targets, groups, route.tap, found == 0
        made.hits = 0
        self.screened_of = route if PyBytes_GET_SIZE(route.key) else None
        return made

    cdef int count_screened(self) except -1:
        """Count on its route the message that passed on the one made for it."""
        if self.screened_of is not None:
            self.screened_of.hits += self.for_one.hits
            self.screened_of = None
        return 0

    def for_message(self, Route route not None, Message message not None, owner):
        """`screened`, for Python; the route itself if its topic has no selectors."""
        return route if route.screens is None else self.screened(route, message, owner)

    # -- changes of subscriptions -----------------------------------------------------------------------------------

    def added(self, Target target not None):
        """A subscription that is no member of a group is in force."""
        self.note(ADDED, target.filter, target.syntax_number, target)

    def removed(self, Target target not None):
        """It is no more."""
        self.note(REMOVED, target.filter, target.syntax_number, target)
        self.unswept = True

    def left_screen(self):
        """A subscription with a selector has ended, and mostly no route changes. The finder's lists may still have it.
        """
        self.count_screened()
        self.for_one = None
        self.batcher.forget()
        self.unswept = True

    def altered(self, bytes filter not None, int syntax, *, bint members=False):
        """Something else about a filter has changed: its topics are to be matched again. For members of a group that
        stays, only routes with screens are: these have their ids, and others the group itself."""
        self.note(MEMBERS if members else OTHER, filter, syntax, None)
        self.unswept = True

    cdef int note(self, int kind, bytes filter, unsigned char syntax, Target target) except -1:
        self.batcher.forget()
        if self.changes is not None and self.changes.note(kind, filter, syntax, target):
            self.generation = self.changes.generation
        return 0

    def sweep(self, Py_ssize_t most):
        """Bring `most` routes up to date that may refer to subscriptions that are gone. True: there are more.

        Who is removed would else be kept in memory by each route that nobody uses any more.
        """
        cdef Route route
        cdef Py_ssize_t done = 0
        if self.finder is None:
            return False
        if not self.to_sweep and not self.finder.to_purge and self.unswept:
            self.unswept = False
            self.swept = self.generation
            self.to_sweep = PyList_GET_SIZE(self.kept)
            self.finder.to_purge = PyList_GET_SIZE(self.finder.interned)
        self.to_sweep = min(self.to_sweep, PyList_GET_SIZE(self.kept))
        while self.to_sweep and done < most:
            self.to_sweep -= 1    # downwards: what takes the place of one that is dropped was looked at
            done += 1
            route = <Route> PyList_GET_ITEM(self.kept, self.to_sweep)
            if route.generation < self.swept and not self.patch(route):
                self.drop(route)
        if self.finder.purge(4 * most) or self.to_sweep:
            return True
        self.changes.forget(self.swept)
        return self.unswept

    cdef bint renew(self, Route route) except -1:
        """Bring a route up to date. False: it cannot be, and is dropped."""
        if route.generation == self.generation or self.patch(route) or self.rematch(route):
            return True
        self.drop(route)
        return False

    cdef bint patch(self, Route route) except -1:
        """Apply the changes since it was up to date. False: it is as it was, and must be matched again."""
        cdef unsigned char syntax = <unsigned char> PyBytes_AS_STRING(route.key)[0]
        cdef const char* topic = PyBytes_AS_STRING(route.key) + 1
        cdef Py_ssize_t size = PyBytes_GET_SIZE(route.key) - 1, before = route.nbytes
        cdef uint64_t generation
        cdef RouteChange change
        cdef list targets = route.targets, patched
        if self.generation - route.generation > CHANGES:
            self.invalidated += 1
            return False
        generation = route.generation
        while generation < self.generation:
            generation += 1
            change = self.changes.since(generation)
            if change is None or change.undone or (change.kind == REMOVED and change.added > route.generation) \
                    or (change.kind == MEMBERS and route.screens is None) \
                    or not self.changes.reaches(change, syntax, topic, size):
                continue
            patched = None
            if change.kind < OTHER and route.screens is None and not (size and topic[0] == c"$"):
                patched = self.finder.patched(targets, change)
            if patched is None:
                self.invalidated += 1
                return False
            targets = patched
        if targets is not route.targets:
            self.invalidated += 1
            route.set_targets(targets, route.groups, None)
            self.nbytes += route.nbytes - before
        route.generation = self.generation
        return True

    cdef bint rematch(self, Route route) except -1:
        """Find its targets again. False: its topic is beyond a limit now."""
        cdef Py_ssize_t before = route.nbytes
        cdef Finder finder = self.finder
        cdef const char* key = PyBytes_AS_STRING(route.key)
        if not finder.find(<unsigned char> key[0], key + 1, PyBytes_GET_SIZE(route.key) - 1):
            return False
        self.ledger.copies += MATCHED_COPIES
        route.forget_permits()
        route.set_targets(
            finder.targets, finder.groups if finder.groups is not None else unseen([]), finder.screens
        )
        self.nbytes += route.nbytes - before
        route.decided = finder.decisions(<unsigned char> key[0], key + 1, PyBytes_GET_SIZE(route.key) - 1)
        route.generation = self.generation
        return True

    # -- what is kept -----------------------------------------------------------------------------------------------

    def add(self, Route route not None):
        """Keep a route whose key is not kept yet. False: there is no room, because all others are in use."""
        cdef const char* key = PyBytes_AS_STRING(route.key)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(route.key) - 1
        route.hash = hash_of(<unsigned char> key[0], key + 1, size)
        if self.seek(route.hash, <unsigned char> key[0], key + 1, size) is not NULL:
            raise ValueError(f"a route for {route.key!r} is kept already")
        return self.take(route)

    def discard(self, Route route not None):
        """Forget a route. True if it was kept."""
        if route.place < 0 or route.place >= PyList_GET_SIZE(self.kept) \
                or PyList_GET_ITEM(self.kept, route.place) != <PyObject*> route:
            return False
        self.drop(route)
        return True

    cdef bint take(self, Route route) except -1:
        cdef const char* key = PyBytes_AS_STRING(route.key)
        cdef Py_ssize_t count
        if not self.make_room(route):
            return False
        count = PyList_GET_SIZE(self.kept)
        if self.old is not NULL:
            self.move(MOVED_AT_ONCE)
        elif 2 * (count + 1) > self.mask + 1:
            self.grow()
        if self.changes is not None:
            self.changes.know(<unsigned char> key[0], key + 1, PyBytes_GET_SIZE(route.key) - 1)
        self.kept.append(route)
        route.hash = hash_of(<unsigned char> key[0], key + 1, PyBytes_GET_SIZE(route.key) - 1)
        route.place = count
        route.generation = self.generation
        self.nbytes += route.nbytes
        self.place(route.hash, <void*> route)
        if self.remembered or self.remembered_before:
            route.hits += self.remembered.pop(route.key, 0) + self.remembered_before.pop(route.key, 0)
        route.hits_seen = route.hits
        return True

    cdef bint make_room(self, Route route) except -1:
        """Remove routes that were not used since the hand passed. False: those that it looked at all were.

        The hand goes round about as fast as routes are used: else it would come back before they are used again, and
        where more topics take turns than there is room for, no message would find its route.
        """
        cdef Route other
        cdef Py_ssize_t looked_at = 0, count
        cdef bint large = route.nbytes >= LARGE
        self.credit = min(self.credit + (self.hits - self.hits_credited) + 1.0 / PATIENCE, <double> self.most)
        self.hits_credited = self.hits
        while True:
            count = PyList_GET_SIZE(self.kept)
            if count == 0 or (count < self.most and self.nbytes + route.nbytes <= self.most_bytes):
                return True
            if looked_at >= LOOKED_AT and not large:
                return False
            looked_at += 1
            if self.hand >= count:
                self.hand = 0
                self.credit = min(self.credit, <double> count)
            if self.credit < 1 and not large:
                return False
            self.credit -= 1
            other = <Route> PyList_GET_ITEM(self.kept, self.hand)
            if other.hits != other.hits_seen and not large:
                other.hits_seen = other.hits
                self.hand += 1
                continue
            self.drop(other)    # the last one takes its place
            self.hand += 1
            self.evicted += 1

    cdef int drop(self, Route route) except -1:
        """Remove a route that is kept."""
        cdef list kept = self.kept
        cdef Route last = <Route> PyList_GET_ITEM(kept, PyList_GET_SIZE(kept) - 1)
        self.unplace(route)
        kept[route.place] = last
        last.place = route.place
        route.place = -1
        self.nbytes -= route.nbytes
        if self.batcher.last is route:
            self.batcher.last = None
        self.remember(route)
        kept.pop()
        return 0

    cdef int remember(self, Route route) except -1:
        """Keep the count of messages on a topic, so that it goes on where it was; the oldest ones make room."""
        if route.hits < 2 or PyBytes_GET_SIZE(route.key) > REMEMBERED_BYTES:
            return 0
        if len(self.remembered) >= REMEMBERED:
            self.remembered, self.remembered_before = {}, self.remembered
        self.remembered[route.key] = self.remembered.get(route.key, 0) + route.hits
        return 0

    def messages(self):
        """Messages so far by a route's key: of those that are kept, and of those that were removed last."""
        cdef Route route
        cdef dict found = dict(self.remembered_before)
        self.count_screened()
        found.update(self.remembered)
        for route in self.kept:
            found[route.key] = route.hits
        return found

    cdef int place(self, Py_ssize_t hash, void* route) noexcept:
        cdef Py_ssize_t at = hash & self.mask
        while self.slots[at].route is not NULL:
            at = (at + 1) & self.mask
        self.slots[at].hash = hash
        self.slots[at].route = route
        return 0

    cdef int grow(self) except -1:
        """Begin a table of twice the size."""
        cdef Py_ssize_t capacity = 2 * (self.mask + 1)
        cdef Slot* slots = <Slot*> allocate_zeros(capacity, sizeof(Slot))
        if slots is NULL:
            raise MemoryError()
        self.old, self.old_mask, self.moved = self.slots, self.mask, 0
        self.slots = slots
        self.mask = capacity - 1
        return self.move(MOVED_AT_ONCE)

    cdef int move(self, Py_ssize_t slots) noexcept:
        """Move so many slots of the old table: all of it, long before the new one is half full."""
        cdef Py_ssize_t end = min(self.moved + slots, self.old_mask + 1)
        cdef Slot* slot
        while self.moved < end:
            slot = &self.old[self.moved]
            if <uintptr_t> slot.route > MOVED:
                self.place(slot.hash, slot.route)
                slot.route = <void*> MOVED
            self.moved += 1
        if self.moved > self.old_mask:
            deallocate(self.old)
            self.old = NULL
        return 0

    cdef int unplace(self, Route route) noexcept:
        cdef Py_ssize_t at = route.hash & self.mask, hole, home
        while self.slots[at].route is not NULL and self.slots[at].route != <void*> route:
            at = (at + 1) & self.mask
        if self.slots[at].route is NULL:    # it is still in the old table
            at = route.hash & self.old_mask
            while self.old[at].route != <void*> route:
                at = (at + 1) & self.old_mask
            self.old[at].route = <void*> MOVED
            return 0
        # Backward shift (Knuth 6.4, algorithm R): close the hole so that no probe stops short, without tombstones.
        hole = at
        while True:
            at = (at + 1) & self.mask
            if self.slots[at].route is NULL:
                break
            home = self.slots[at].hash & self.mask
            if ((at - home) & self.mask) >= ((at - hole) & self.mask):
                self.slots[hole] = self.slots[at]
                hole = at
        self.slots[hole].route = NULL
        return 0
