# cython: language_level=3
"""Who gets a topic, worked out in compiled code. Drawn in finder.pxd.

`core.Router._build` does the same in Python, and is what the tests compare with.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF, PyObject
from libc.string cimport memchr, memcmp

from array import array

from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.changes cimport ADDED, RouteChange
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.message cimport Message
from fanlight_broker.wire.route cimport LED_ON, RULED, TRACED
from fanlight_broker.wire.screening cimport RouteScreens
from fanlight_broker.wire.target cimport Target

from fanlight_broker.wire.gather import apart, gather

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void* at) noexcept nogil
    void Py_SET_SIZE(object thing, Py_ssize_t size)

cdef enum:
    CACHE_LINE = 64          # bytes
    OUTBOX_BYTES = 256       # of an outbox, that a delivery reads
    LISTS = 1024             # places for lists that are shared
    SHARED_MOST = 256        # targets of a list that is: to compare longer ones costs more than it saves

cdef uint64_t FACTOR = 0x9E3779B97F4A7C15


cdef inline void prefetch_outbox(Target target) noexcept:
    cdef char* box = <char*> <void*> target.direct if target.window is None else <char*> <void*> target.window.box
    cdef Py_ssize_t at
    for at in range(0, OUTBOX_BYTES, CACHE_LINE):
        prefetch(box + at)


cdef class Finder:
    """index   of the filters; find_ids: its capsule
    by_id      subscriptions by their ids: the router's own list
    separators an octet for each syntax; roots and reserved: first words
    merge      the subscriptions of one session -> the targets that stand for them
    """

    def __cinit__(self, index not None, find_ids not None, list by_id not None, *, bytes separators not None,
                  tuple roots not None, tuple reserved not None, merge not None):
        self.index = index
        self.ask = <FindIds> PyCapsule_GetPointer(find_ids, "matchcore.find_ids")
        self.by_id = by_id
        self.separators = separators
        self.roots, self.reserved = roots, reserved
        self.merge = merge
        self.interned = unseen([None] * LISTS)

    def __dealloc__(self):
        deallocate(self.chosen)

    cdef bint find(self, unsigned char syntax, const char* topic, Py_ssize_t size) except -1:
        """Set `targets`, `groups`, `screens`, which nobody changes. False: the topic is invalid, or beyond a limit."""
        cdef const uint32_t* ids = NULL
        cdef size_t count = 0
        cdef uint64_t asked
        cdef bytes first
        if size > self.topic_bytes_max or (size >= self.topic_words_max - 1 and self.too_many_words(
                PyBytes_AS_STRING(self.separators)[syntax], topic, size)):
            return False
        while True:
            self.asked += 1
            asked = self.asked
            if self.ask(<void*> self.index, topic, size, syntax, &ids, &count) != FOUND:
                return False
            first = self.reserved_word(syntax, topic, size) if size and topic[0] == c"$" else None
            self.groups = self.screens = None
            self.targets = self.list_of(ids, count) if first is None and not self.has_partly(ids, count) else None
            # To make an object may run the garbage collector, which may run anything: were the ids overwritten?
            if self.asked == asked and (self.targets is not None or self.gather_all(
                    ids, count, first, True, topic, size, syntax)):
                if self.screens is not None and self.body_formats is not None:
                    self.screens.format = self.body_formats(PyBytes_FromStringAndSize(topic, size), syntax)
                self.built += 1
                return True

    cdef int decisions(self, unsigned char syntax, const char* topic, Py_ssize_t size) except -1:
        """What decides on the messages of a topic beside its route: see `Route.decided`."""
        cdef int found = TRACED if self.sampler is not None else 0
        if self.rules is not None and self.rules(PyBytes_FromStringAndSize(topic, size), syntax):
            found |= RULED
        if self.onward is not None and self.onward(PyBytes_FromStringAndSize(topic, size), syntax):
            found |= LED_ON
        return found

    cdef bint too_many_words(self, char separator, const char* topic, Py_ssize_t size) noexcept:
        cdef Py_ssize_t i, words = 1
        for i in range(size):
            words += topic[i] == separator
        return words > self.topic_words_max

    cdef bint is_own(self, const char* topic, Py_ssize_t size) except -1:
        """Is it one of the broker's own topics, or does it look like one in another syntax?"""
        cdef Py_ssize_t length
        cdef bytes root
        if size == 0 or topic[0] != c"$":
            return False
        for root in self.roots:
            length = PyBytes_GET_SIZE(root)
            if size >= length and memcmp(topic, PyBytes_AS_STRING(root), length) == 0 and (size == length or memchr(
                    PyBytes_AS_STRING(self.separators), topic[length], PyBytes_GET_SIZE(self.separators)) is not NULL):
                return True
        return False

    cdef bytes reserved_word(self, unsigned char syntax, const char* topic, Py_ssize_t size):
        """Its first word, if that is reserved; else None."""
        cdef const void* end = memchr(topic, PyBytes_AS_STRING(self.separators)[syntax], size)
        cdef bytes word = PyBytes_FromStringAndSize(topic, <const char*> end - topic if end is not NULL else size)
        return word if word in self.reserved else None

    @cython.boundscheck(False)
    cdef list list_of(self, const uint32_t* ids, Py_ssize_t count):
        """The subscriptions with these ids, and `groups`; None if it takes more than that to deliver to them."""
        cdef uint64_t hash = count
        cdef Py_ssize_t i
        cdef list found
        for i in range(count):
            hash = (hash ^ ids[i]) * FACTOR
        found = <list> PyList_GET_ITEM(self.interned, hash >> 54)
        if found is not None and self.are_of(found, ids, count):
            return found
        found = self.new_list(ids, count)
        if found is not None and self.groups is None and count <= SHARED_MOST:
            self.interned[hash >> 54] = found
        return found

    cdef list list_of_one(self, const uint32_t* ids, Py_ssize_t count):
        """The same for one message: a list that only the next one may have, too.

        Messages differ, and so do those who want them. Lists that are kept would rarely be found again, and to drop one
        reads all that it refers to.
        """
        cdef list found = self.of_one
        if found is not None and self.are_of(found, ids, count):
            return found
        found = self.new_list(ids, count)
        self.of_one = found if self.groups is None else None
        return found

    cdef bint are_of(self, list found, const uint32_t* ids, Py_ssize_t count) noexcept:
        """Are these the subscriptions with these ids?"""
        cdef Py_ssize_t i
        cdef list by_id = self.by_id
        if PyList_GET_SIZE(found) != count:
            return False
        for i in range(count):
            if PyList_GET_ITEM(found, i) != PyList_GET_ITEM(by_id, ids[i]):
                return False
        return True

    cdef list new_list(self, const uint32_t* ids, Py_ssize_t count):
        """The subscriptions with these ids, and `groups`. None: two are of one session, or not all are subscriptions.

        Subscriptions are all over the memory. So a first walk asks for all of them at once, and the second for their
        outboxes, which the fan-out needs next.
        """
        cdef uint64_t asked = self.asked
        cdef Py_ssize_t i, size = 0
        cdef PyObject* each
        cdef Target target
        cdef list by_id = self.by_id, found = unseen(PyList_New(count))
        cdef list groups = self.spare if self.spare is not None else unseen([])
        self.spare = None
        # From here on no object is made, so nothing else runs.
        if asked != self.asked:
            return None    # somebody else has asked meanwhile, and `ids` are not ours any more
        for i in range(count):
            each = <PyObject*> PyList_GET_ITEM(by_id, ids[i])
            prefetch(each)
            prefetch(<char*> each + CACHE_LINE)
        self.serial += 1
        for i in range(count):
            each = <PyObject*> PyList_GET_ITEM(by_id, ids[i])
            if type(<object> each) is not Target:
                return None
            target = <Target> each
            if target.grouped:
                if target.extras.group.gathered != self.serial:
                    target.extras.group.gathered = self.serial
                    groups.append(target.extras.group)
                continue
            if target.window is not None:
                if target.window.gathered == self.serial:
                    return None
                target.window.gathered = self.serial
            prefetch_outbox(target)
            Py_INCREF(target)
            PyList_SET_ITEM(found, size, target)
            size += 1
        if size < count:
            Py_SET_SIZE(found, size)
            self.groups = groups
        else:
            self.spare = groups
        return found

    cdef bint has_partly(self, const uint32_t* ids, Py_ssize_t count) noexcept:
        """Is one of them a subscription that may have to be left out? No list of such subscriptions is found again."""
        cdef Py_ssize_t i
        if not self.partly:
            return False
        for i in range(count):
            found = <object> PyList_GET_ITEM(self.by_id, ids[i])
            if type(found) is Target and (<Target> found).partly:
                return True
        return False

    cdef list left_in(self, list ids, const char* topic, Py_ssize_t size, unsigned char syntax):
        """Those of them that may have what is published on a topic."""
        cdef list kept = []
        cdef bytes name = PyBytes_FromStringAndSize(topic, size)
        for id in ids:
            found = self.by_id[id]
            if type(found) is not Target or not (<Target> found).partly or self.may_read(found, name, syntax):
                kept.append(id)
        return kept

    def without_denied(self, tuple ids not None, bytes topic not None, unsigned char syntax):
        """`left_in`, for Python."""
        if not self.partly:
            return ids
        return tuple(self.left_in(list(ids), PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic), syntax))

    cdef bint gather_all(self, const uint32_t* ids, Py_ssize_t count, bytes first, bint screens, const char* topic,
                         Py_ssize_t size, unsigned char syntax) except -1:
        """The same in all cases. False: the ids were overwritten meanwhile.

        screens  some ids may be of FilterScreens
        """
        cdef uint64_t asked = self.asked
        cdef list numbers = [], targets, groups, sessions, found
        cdef Py_ssize_t i
        for i in range(count):
            numbers.append(ids[i])
        if self.asked != asked:
            return False
        if self.partly:
            numbers = self.left_in(numbers, topic, size, syntax)
        if screens and self.screened:
            found, numbers = apart(self.by_id, tuple(numbers), first, self.separators)
            if found:
                self.screens = RouteScreens(found, array("I", numbers).tobytes())
        targets, groups, sessions = gather(self.by_id, tuple(numbers), first, self.separators)
        for subscriptions in sessions:
            targets.extend(self.merge(subscriptions))
        self.targets, self.groups = unseen(targets), unseen(groups)
        if screens and self.screens is None and not groups and self.asked == asked:
            self.targets = self.shared(self.targets)
        return True

    cdef list shared(self, list targets):
        """The list that other routes with the same targets have: messages on them are joined into one batch."""
        cdef Target target
        for target in targets:
            if target.merged:    # made for this route
                return targets
        return self.intern(targets)

    # -- one message of a topic that has selectors ------------------------------------------------------------------

    cdef Py_ssize_t choose(self, RouteScreens screens, Message message, object owner) except -1:
        """Set `targets` and `groups` to those who want a message. Returns how many selectors are true of it.

        owner  of its publisher's outbox, or a subscriber; None: the broker itself
        """
        cdef const uint32_t* found = NULL
        cdef uint64_t asked
        cdef Py_ssize_t count, true
        while True:
            true = self.screener.ask(screens, message, owner, &found)
            self.asked += 1
            asked = self.asked
            count = self.put_together(screens.plain, found, true)
            self.groups = self.screens = None
            self.targets = None if self.has_partly(self.chosen, count) else self.list_of_one(self.chosen, count)
            if self.asked == asked and (self.targets is not None or self.gather_all(
                    self.chosen, count, None, False, message.topic_at, message.topic_size, message.syntax)):
                return true

    cdef Py_ssize_t put_together(self, bytes plain, const uint32_t* found, Py_ssize_t count) except -1:
        """Merge ids into `chosen`, ascending as both of them are. Returns how many there are."""
        cdef const uint32_t* others = <const uint32_t*> PyBytes_AS_STRING(plain)
        cdef Py_ssize_t i = 0, j, at = 0, n = PyBytes_GET_SIZE(plain) // <Py_ssize_t> sizeof(uint32_t)
        cdef void* chosen
        if n + count > self.chosen_capacity:
            chosen = reallocate(self.chosen, 2 * (n + count) * sizeof(uint32_t))
            if chosen is NULL:
                raise MemoryError()
            self.chosen, self.chosen_capacity = <uint32_t*> chosen, 2 * (n + count)
        for j in range(count):
            while i < n and others[i] < found[j]:
                self.chosen[at] = others[i]
                i += 1
                at += 1
            self.chosen[at] = found[j]
            at += 1
        while i < n:
            self.chosen[at] = others[i]
            i += 1
            at += 1
        return at

    cdef list intern(self, list targets):
        """The list that has the same targets in the same order: this one, or one that there is already."""
        cdef Py_ssize_t i, count = PyList_GET_SIZE(targets)
        cdef uint64_t hash = count
        cdef list found
        if count > SHARED_MOST:
            return targets
        for i in range(count):
            hash = (hash ^ (<Target> PyList_GET_ITEM(targets, i)).id) * FACTOR
        found = <list> PyList_GET_ITEM(self.interned, hash >> 54)
        if found is not None and PyList_GET_SIZE(found) == count:
            for i in range(count):
                if PyList_GET_ITEM(found, i) != PyList_GET_ITEM(targets, i):
                    break
            else:
                return found
        self.interned[hash >> 54] = targets
        return targets

    cdef list patched(self, list targets, RouteChange change):
        """The targets after a change, in the order of their ids; None: it takes more than one target more or less."""
        cdef Target target, other
        cdef Py_ssize_t i, place, count = PyList_GET_SIZE(targets)
        cdef list made
        if targets is self.patched_from and change is self.patched_by:
            return self.patched_to
        target = change.target
        if change.kind == ADDED:
            place = count
            for i in range(count):
                other = <Target> PyList_GET_ITEM(targets, i)
                if target.window is not None and other.window is target.window:
                    return None
                if place == count and other.id > target.id:
                    place = i
            made = list(targets)
            made.insert(place, target)
        else:
            place = -1
            for i in range(count):
                if <void*> PyList_GET_ITEM(targets, i) == <void*> target:
                    place = i
                    break
            if place < 0:
                return None
            made = list(targets)
            del made[place]
        made = self.intern(unseen(made))
        self.patched_from, self.patched_by, self.patched_to = targets, change, made
        return made

    cdef bint purge(self, Py_ssize_t places) except -1:
        """Drop shared lists with targets that are gone, at some places. True: there are more."""
        cdef Py_ssize_t i, looked_at = 0
        cdef list found
        cdef Target target
        cdef Py_ssize_t ids = PyList_GET_SIZE(self.by_id)
        self.patched_from = self.patched_to = self.targets = self.of_one = None
        self.patched_by = None
        while self.to_purge and looked_at < places:
            self.to_purge -= 1
            looked_at += 1
            found = <list> PyList_GET_ITEM(self.interned, self.to_purge)
            if found is None:
                continue
            looked_at += PyList_GET_SIZE(found)
            for i in range(PyList_GET_SIZE(found)):
                target = <Target> PyList_GET_ITEM(found, i)
                if target.id >= ids or <void*> PyList_GET_ITEM(self.by_id, target.id) != <void*> target:
                    self.interned[self.to_purge] = None
                    break
        return self.to_purge > 0
