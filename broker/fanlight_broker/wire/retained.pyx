# cython: language_level=3
"""Retained messages that no limit refuses, set without Python: see retained.pxd.

`core.Retained` is the table with everything else: messages that clear, refusals, look-ups and expiry. Its `put` is the
oracle of `replace` and `store`.
"""

cimport cython

from libc.math cimport INFINITY

from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.hidden cimport unseen
from fanlight_broker.wire.message cimport HOLDER, Message, Variant
from fanlight_broker.wire.pot_counts cimport PotCounts
from fanlight_broker.wire.target cimport Target
from fanlight_broker.wire.window cimport Window

cdef enum:
    DOLLAR = 0x24            # what reserved topics begin with
    SLASH = 0x2F
    DOT = 0x2E
    WORD = 30                # bytes of a word of a topic, in the index of topics
    PLACE = 32               # of a topic there, beside its words
    PART = 8_192             # topics in one index: looking up a hostile filter among long ones takes 20 ms at most
    AHEAD = 64 * 1024        # unsent bytes beyond which no more are sent: 0.25 ms of a socket's time
    AHEAD_QUEUED = 256       # messages that wait for acknowledgements, from which on no more are sent


TOPICS_IN_PART = PART


cdef bint has_room(Window window) except -1:
    return window.box is not <object> window.ledger.absent and window.box.size <= AHEAD \
        and window.queue.length < AHEAD_QUEUED and not window.queue.over(1)


cdef Py_ssize_t place_of(Message message) noexcept:
    """Bytes of its topic's place in the index."""
    cdef Py_ssize_t i, slashes = 0, dots = 0
    for i in range(message.topic_size):
        slashes += message.topic_at[i] == SLASH
        dots += message.topic_at[i] == DOT
    return PLACE + message.topic_size + WORD * (1 + max(slashes, dots))


def place_bytes(Message message not None):
    """About what its topic takes in the index, independent of other topics, so that it can be subtracted again."""
    return place_of(message)


def sums_of(list found not None):
    """By share, of [(message, share, origin), ...]: how many there are, what they take, and what of it is in the index.
    """
    cdef dict sums = {}
    cdef Message message
    cdef Py_ssize_t place, count = 0, nbytes = 0, places = 0
    cdef object share, last = None
    for message, share, _ in found:
        if share is not last and count:
            add_sums(sums, last, count, nbytes, places)
            count = nbytes = places = 0
        last = share
        place = place_of(message)
        count += 1
        nbytes += message.bytes_held() + HOLDER + place
        places += place
    if count:
        add_sums(sums, last, count, nbytes, places)
    return sums


cdef int add_sums(dict sums, share, Py_ssize_t count, Py_ssize_t nbytes, Py_ssize_t places) except -1:
    known = sums.get(share, (0, 0, 0))
    sums[share] = known[0] + count, known[1] + nbytes, known[2] + places
    return 0


@cython.no_gc
cdef class RetainedEntry:
    """The retained message of one topic."""

    # Not __cinit__, which `extend` would have to pass arguments to, as objects.
    def __init__(self, Message message not None, key, Py_ssize_t id, bint own, origin, share):
        self.begin(message, key, id, own, origin, share)

    cdef int begin(self, Message message, key, Py_ssize_t id, bint own, origin, share) except -1:
        self.message, self.key, self.id, self.own = message, key, id, own
        self.origin, self.share = origin, share
        if share is not None:
            self.account = share.account
        self.deadline = INFINITY
        return 0

    def end(self):
        """Its topic has no retained message any more, or another entry. A route may have this one for a while."""
        self.id = -1
        self.message = None


cdef class RetainedTable:
    """What `core.Retained` has for the lanes."""

    def __cinit__(self, Ledger ledger not None, *_):
        self.ledger = ledger
        self.entries, self.by_key = unseen([]), unseen({})
        self.free, self.indexes = [], []

    def spell_with(self, tuple syntaxes not None, int canonical, spell not None):
        """syntaxes: names, by number. spell: called with a topic and its syntax; the key of one that is not canonical.
        """
        self.syntaxes, self.canonical, self.spell = syntaxes, canonical, spell

    @property
    def nbytes(self):
        """Bytes of the retained messages of clients."""
        return self.ledger.retained

    def bound(self, bint retains, Py_ssize_t most, Py_ssize_t bytes_max, double bytes_percent, double stored_percent,
              int counted):
        """Apply limits. The percentages are of what others leave, that one principal may take.

        counted  number of the pot of principals that messages are counted in
        """
        self.most, self.counted = most, counted
        self.retains, self.bytes_max = retains, bytes_max
        self.bytes_percent, self.stored_percent = bytes_percent, stored_percent

    def put(self, Message message not None, double now, *, bint own=False, share=None, origin=None):
        """Set the retained message of a topic. False if a limit refuses it."""
        raise NotImplementedError("a table that finds no topic")

    def schedule(self, RetainedEntry entry not None):
        """Look at an entry when its message expires."""
        raise NotImplementedError("a table that expires nothing")

    def extend(self, list found not None, list keys not None, dict ids not None):
        """Append entries for messages on new topics, which have room: [(message, share, origin), ...] and their keys.

        Each id goes into `ids`, by key; nothing is counted but their holders. Returns the entries that expire.
        """
        cdef RetainedEntry entry
        cdef Message message
        cdef list mortal = []
        cdef Py_ssize_t id = len(self.entries)
        for key, (message, share, origin) in zip(keys, found, strict=True):
            entry = RetainedEntry.__new__(RetainedEntry)
            entry.begin(message, key, id, False, origin, share)
            self.revision += 1
            entry.revision = self.revision
            if isinstance(key, tuple):
                unseen(key)
            ids[key] = id
            self.entries.append(entry)
            message.add_holder(self.ledger, entry.account)
            if message.expires_at < INFINITY:
                mortal.append(entry)
            id += 1
        return mortal

    def first_match(self, bytes filter not None, int syntax):
        """Where a cursor over all that a filter matches begins; None if that is nothing, which is the common case.

        (part, ids): the first part to be looked up, behind the ids.
        """
        cdef Py_ssize_t part
        if not self.by_key:
            return None
        if b"#" not in filter and b"+" not in filter and b"*" not in filter:
            id = self.by_key.get(self.key_of(filter, syntax))    # one topic, in either syntax
            return None if id is None else (len(self.indexes), (id,))
        name = self.syntaxes[syntax]
        for part in range(len(self.indexes)):
            if self.indexes[part].may_match(filter, syntax=name):
                return part, ()
        return None

    def has_room(self, Target target not None):
        """May one more message be sent to a session's subscription now? If not, its socket must drain first, or its
        client acknowledge.
        """
        return has_room(target.window)

    def send(self, ids not None, Py_ssize_t at, Py_ssize_t end, Target target not None, Variant variant not None,
             double now, uint64_t since, origin, shown not None, bint always=False):
        """Send the messages with these ids to a subscription, from place `at` up to `end`, while there is room.

        since   later messages are skipped
        origin  what this session has published is skipped; None: nothing is
        shown   called with a message whose topic begins with `$`, or with each (`always`): may the subscriber see it?

        Returns the place of the next, and how many were sent.
        """
        cdef RetainedEntry entry
        cdef Message message
        cdef Py_ssize_t sent = 0
        while at < end and has_room(target.window):
            entry = self.entries[ids[at]]
            at += 1
            if entry is None or entry.revision > since or (origin is not None and entry.origin == origin):
                continue
            message = entry.message
            if message.expires_at <= now or (
                (always or (message.topic_size and message.topic_at[0] == DOLLAR)) and not shown(message)
            ):
                continue
            target.send(message, variant, now)
            sent += 1
        return at, sent

    cdef bint replace(self, RetainedEntry entry, Message new, share, origin, double now) except -1:
        """Set the message of a known topic. False, with nothing done, if Python decides.

        new  owns its octets. share, origin: of its publisher, as in `put`
        """
        cdef Message old
        cdef Ledger ledger = self.ledger
        cdef Account account
        cdef Py_ssize_t more
        if entry is None or entry.id < 0 or entry.own or entry.share is not share or share is None \
                or new.payload_size == 0 or new.expires_at <= now:
            return False
        old, account = entry.message, entry.account
        if account.root is not None or old.syntax != new.syntax or ledger.stored > ledger.stored_limit:
            return False
        more = new.bytes_held() - old.bytes_held()
        if ledger.retained + more > self.bytes_max or (more > 0 and not self.shared(account, more)):
            return False
        self.revision += 1
        ledger.retained += more
        account.retained += more
        old.drop_holder(ledger, account)
        new.add_holder(ledger, account)
        entry.message, entry.revision, entry.origin = new, self.revision, origin
        if new.expires_at < entry.deadline:
            self.schedule(entry)
        if self.journal is not None:
            self.journal.retained(new, share, origin)
        return True

    cdef bint shared(self, Account account, Py_ssize_t more) noexcept:
        """Do so many bytes more fit into a principal's shares? False is for Python, which rounds and counts."""
        cdef Ledger ledger = self.ledger
        return account.retained + more <= account.retained_most and account.stored + more <= account.most \
            and 100 * <double> (account.retained + more) \
            <= self.bytes_percent * (self.bytes_max - ledger.retained + account.retained) \
            and 100 * <double> (account.stored + more) \
            <= self.stored_percent * (ledger.stored_limit - ledger.stored + account.stored)

    def set(self, Message message not None, double now, share, origin):
        """Set the retained message of a topic, as `put`. Returns the topic's entry, or None: it has none."""
        return self.enter(message.kept(), share, origin, now)

    cdef RetainedEntry enter(self, Message new, share, origin, double now):
        """`set`. new: owns its octets."""
        cdef object key = self.key_of(new.topic_octets, new.syntax), id = self.by_key.get(key)
        cdef RetainedEntry entry = None
        if id is None:
            entry = self.store(key, new, share, origin, now)
        elif self.replace(<RetainedEntry> self.entries[id], new, share, origin, now):
            entry = <RetainedEntry> self.entries[id]
        if entry is None:
            self.put(new, now, share=share, origin=origin)
            id = self.by_key.get(key)
            entry = <RetainedEntry> self.entries[id] if id is not None else None
        return entry

    cdef RetainedEntry store(self, key, Message new, share, origin, double now):
        """Set the message of a topic that has none. None, with nothing done, if Python decides."""
        cdef Ledger ledger = self.ledger
        cdef Account account
        cdef PotCounts counts
        cdef RetainedEntry entry
        cdef Py_ssize_t place = place_of(new), nbytes = new.bytes_held() + HOLDER + place, id
        cdef bint reused = len(self.free) > 0
        if share is None or new.payload_size == 0 or new.expires_at <= now or not isinstance(key, bytes):
            return None
        account, counts = share.account, share.counts
        id = self.free[-1] if reused else len(self.entries)
        if id // PART >= len(self.indexes) or not counts.kept or ledger.stored > ledger.stored_limit \
                or len(self.by_key) - self.own >= self.most or ledger.retained + nbytes > self.bytes_max \
                or not counts.fits(self.counted) or not self.shared(account, nbytes):
            return None
        entry = RetainedEntry.__new__(RetainedEntry)
        entry.begin(new, key, id, False, origin, share)
        if not reused:
            self.entries.append(None)
        try:
            self.by_key[key] = id
            self.indexes[id // PART].insert(new.topic_octets, id, syntax=self.syntaxes[new.syntax])
        except BaseException:
            self.by_key.pop(key, None)
            if not reused:
                self.entries.pop()
            raise
        if reused:
            self.free.pop()
        self.entries[id] = entry
        self.revision += 1
        entry.revision = self.revision
        ledger.retained += nbytes
        account.retained += nbytes
        ledger.stored += place
        account.stored += place
        new.add_holder(ledger, account)
        counts.count(self.counted, 1)
        if new.expires_at < INFINITY:
            self.schedule(entry)
        if self.journal is not None:
            self.journal.retained(new, share, origin)
        return entry

    cdef object key_of(self, bytes topic, int syntax):
        """The key of its words: `core.topics.canonical`."""
        return topic if syntax == self.canonical else self.spell(topic, syntax)
