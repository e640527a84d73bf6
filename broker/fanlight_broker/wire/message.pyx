# cython: language_level=3
"""Messages, formats and variants: what is published, who can write it, and the template of its copies.

A lane has one Message that it points at each PUBLISH in turn; the first window, queue or retained store that wants to
have it calls `keep`, and all of them share the copy. Nothing here knows a protocol: a protocol subclasses Format.
"""

cimport cython

from weakref import WeakValueDictionary

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from fanlight_broker.wire.allocator cimport deallocate, reallocate
from fanlight_broker.wire.ledger cimport Account, Ledger
from fanlight_broker.wire.msgpack cimport MsgpackCursor, octets

cdef enum:
    KEPT_HEAD = 1024          # bytes of a template's buffer that outlive the message

NEVER = INFINITY
HOLDER_BYTES = HOLDER     # that each of those counts who keep a message
RETAIN_CLEAR, RETAIN_AS_PUBLISHED, RETAIN_SET = CLEAR, AS_PUBLISHED, SET


cdef class Format:
    """How a protocol writes messages.

    name    for people
    family  formats of one family read each other's `fields`

    A format may belong to one connection and remember what it wrote (a topic that now has an alias). Such a one is
    `stateful`: it marks a copy that later ones build upon as `variant.firm`, and believes that it went when `went` says
    so.
    """

    def __init__(self, str name not None, family=None, *, bint stateful=False):
        self.name = name
        self.stateful = stateful
        self.family = name if family is None else family

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1:
        """Fill in a variant's template for a message of this family. False if it has no form in this format.

        again  a copy went out before, and may have arrived
        now    0 at once when it is published; else for what is left of its time
        """
        found = self.template(message, variant, bool(again), now)
        if found is None:
            return False
        cdef bytes head, body
        cdef Py_ssize_t hole
        cdef int hole_size
        head, hole, hole_size, body = found
        if hole_size not in (0, 2, 4) or hole < 0 or hole + hole_size > PyBytes_GET_SIZE(head):
            raise ValueError(f"a hole of {hole_size} bytes at {hole} in a head of {PyBytes_GET_SIZE(head)}")
        memcpy(variant.reserve(PyBytes_GET_SIZE(head)), PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head))
        variant.hole = hole
        variant.hole_size = hole_size
        variant.octets = body
        variant.body = PyBytes_AS_STRING(body)
        variant.body_size = PyBytes_GET_SIZE(body)
        return True

    cdef int address(self, Variant variant, uint32_t number, uint64_t tag, uint32_t attempt) except -1:
        """Fill in what one delivery of a named queue alone has: its subscription, its tag, how often it was sent."""
        raise NotImplementedError(f"format {self.name} has no deliveries of named queues")

    cdef Py_ssize_t delivery_size(self, Message message) noexcept:
        """Bytes of the first delivery of a message of this family, to a consumer that acknowledges nothing; -1: it is
        not written by `write_delivery`.
        """
        return -1

    cdef int write_delivery(self, Message message, char* at, uint32_t number, uint64_t serial) except -1:
        """Write such a delivery: the same bytes as by `encode` and `address`, without a template.

        serial  of its publication, in which others may get it too; 0: it is of none
        """
        raise NotImplementedError(f"format {self.name} writes templates")

    cdef bint says_more(self, Message message) noexcept:
        """Do its fields say anything beside topic and payload?"""
        return message.fields_size > 0

    cdef int priority(self, Message message) except -1:
        """Of a message of this family, for a queue with priorities: 0 to 9; 0 if it has none."""
        return 0

    cdef void walk_headers(self, Message message, HeaderWalk* walk) noexcept:
        """Begin to go over the headers of a message of this family. A format written in Python shows none."""
        walk.content_type = NULL

    cdef bint next_header(self, HeaderWalk* walk) noexcept:
        """Put the next header at hand. False: there is none, and `content_type` is what it will be."""
        return False

    cdef bint text_header(
        self, Message message, const char* name, Py_ssize_t name_size, const char** value, Py_ssize_t* size
    ) noexcept:
        """Find the first header of a name, if its value is text. A format with headers of its own kind overrides it."""
        cdef HeaderWalk walk
        cdef MsgpackCursor cursor
        cdef const unsigned char* start = NULL
        cdef bint is_str = False
        self.walk_headers(message, &walk)
        while self.next_header(&walk):
            if walk.name_size != name_size or memcmp(walk.name, name, name_size) != 0:
                continue
            if not walk.encoded:
                value[0], size[0] = walk.value, walk.value_size
                return True
            cursor.at = <const unsigned char*> walk.value
            cursor.end = cursor.at + walk.value_size
            if octets(&cursor, True, False, &start, size, &is_str):
                return False
            value[0] = <const char*> start
            return True
        return False

    def header_text(self, Message message not None, bytes name not None):
        """The first header of a name, as text; None: there is none, or its value is no text. For Python."""
        cdef const char* value = NULL
        cdef Py_ssize_t size = 0
        if not self.text_header(message, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), &value, &size):
            return None
        return value[:size].decode("utf-8", "replace")

    cdef int sent(self, Variant variant) except -1:
        self.went(variant)
        return 0

    cdef Variant steady(self, Message message, Variant variant):
        """A variant of a format without a state, that writes the same as `variant` for all messages on this topic from
        now on; None if there is none. Targets with the same variant get the same bytes. Asked of stateful formats,
        for a message of their family.
        """
        return None

    def went(self, Variant variant):
        """The copy that was encoded last for a variant is in the outbox. Called on stateful formats only."""
        raise NotImplementedError(f"format {self.name} is stateful and does not listen")

    def template(self, Message message, Variant variant, bint again, double now):
        """`encode` for a format written in Python: (head, hole, size of the hole: 0, 2 or 4, body), or None."""
        raise NotImplementedError(f"format {self.name} neither encodes nor has a template")

    def tag_frame(self, tag):
        """The frame that is sent again for a message that has arrived and is given up, and whose tag is still in
        use.
        """
        raise NotImplementedError(f"format {self.name} acknowledges in one step")

    def read(self, Message message):
        """A message of this family as what it says (the core's Content); None if it says too much for that."""
        raise NotImplementedError(f"format {self.name} does not say what its messages mean")

    def rewritten(self, message, bytes topic not None, headers):
        """A message of this family on another topic of the same syntax, with these headers in place of those of the
        same names; None if it says too much to be changed.
        """
        raise NotImplementedError(f"format {self.name} does not change its messages")

    def write(self, content):
        """A message of this family that says `content`, or None if it cannot be said."""
        raise NotImplementedError(f"format {self.name} does not take messages of others")


@cython.no_gc
@cython.freelist(64)
cdef class Message:
    """One message that owns its octets.

    syntax       of the topic, by its number on the wire
    fields       all but topic and payload, in the encoding of `format`
    expires_at   NEVER, or a time of the clock that `now` is from everywhere
    expiry_hole  where in `fields` four octets, big-endian, say how many seconds it has left; -1 if nowhere
    """

    # Not __cinit__, which `new_message` would have to pass arguments to, as objects: 500 instructions a kept message.
    def __init__(self, Format format not None, bytes topic not None, int syntax, bytes payload not None, *,
                 bytes fields not None=b"", int qos=0, bint retain=False, double expires_at=INFINITY,
                 Py_ssize_t expiry_hole=-1, uint32_t format_data=0):
        if not 0 <= qos <= 2:
            raise ValueError(f"QoS {qos}; it is 0, 1 or 2")
        if expiry_hole != -1 and not 0 <= expiry_hole <= len(fields) - 4:
            raise ValueError(f"an expiry at {expiry_hole} in fields of {len(fields)} bytes")
        self.format = format
        self.syntax = syntax
        self.qos = qos
        self.retain = retain
        self.expires_at = expires_at
        self.expiry_hole = expiry_hole
        self.format_data = format_data
        self.topic_octets, self.payload_octets, self.fields_octets = topic, payload, fields
        self.topic_at, self.topic_size = PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic)
        self.payload_at, self.payload_size = PyBytes_AS_STRING(payload), PyBytes_GET_SIZE(payload)
        self.fields_at, self.fields_size = PyBytes_AS_STRING(fields), PyBytes_GET_SIZE(fields)

    @property
    def topic(self):
        if self.topic_octets is not None:
            return self.topic_octets
        return PyBytes_FromStringAndSize(self.topic_at, self.topic_size)

    @property
    def payload(self):
        if self.payload_octets is not None:
            return self.payload_octets
        return PyBytes_FromStringAndSize(self.payload_at, self.payload_size)

    @property
    def fields(self):
        """All but topic and payload, in the format's encoding (which may repeat them)."""
        if self.fields_octets is not None:
            return self.fields_octets
        return PyBytes_FromStringAndSize(self.fields_at, self.fields_size)

    @property
    def nbytes(self):
        """What it takes while it is kept, about."""
        return self.bytes_held()

    def keep(self):
        """This message, if it owns its octets; else a copy that does."""
        return self.kept()

    def postponed(self, double seconds):
        """A copy that owns its octets, and whose time is over so much later."""
        cdef Message copy = self.kept()
        if copy is self:
            copy = Message(
                self.format, self.topic_octets, self.syntax, self.payload, fields=self.fields_octets, qos=self.qos,
                retain=self.retain, expires_at=self.expires_at, expiry_hole=self.expiry_hole,
                format_data=self.format_data,
            )
        copy.expires_at += seconds
        return copy

    def expired(self, double now):
        return self.expires_at <= now

    cdef Message kept(self):
        cdef Message copy
        cdef Py_ssize_t at
        if self.fields_octets is not None:
            return self
        copy = new_message(self.format)
        copy.syntax, copy.qos, copy.retain, copy.format_data = self.syntax, self.qos, self.retain, self.format_data
        copy.expires_at, copy.expiry_hole = self.expires_at, self.expiry_hole
        copy.topic_octets = self.topic_octets    # lent by the lane
        if copy.topic_octets is None:
            copy.topic_octets = PyBytes_FromStringAndSize(self.topic_at, self.topic_size)
        copy.topic_at, copy.topic_size = PyBytes_AS_STRING(copy.topic_octets), self.topic_size
        copy.fields_octets = PyBytes_FromStringAndSize(self.fields_at, self.fields_size)
        copy.fields_at, copy.fields_size = PyBytes_AS_STRING(copy.fields_octets), self.fields_size
        at = self.payload_at - self.fields_at
        if 0 <= at and at + self.payload_size <= self.fields_size:
            copy.payload_at = copy.fields_at + at    # it has no octets of its own
        else:
            copy.payload_octets = PyBytes_FromStringAndSize(self.payload_at, self.payload_size)
            copy.payload_at = PyBytes_AS_STRING(copy.payload_octets)
        copy.payload_size = self.payload_size
        return copy

    # -- kept for long ----------------------------------------------------------------------------------------------

    cpdef int add_holder(self, Ledger ledger, Account account) except -1:
        """One more keeps it. The first enters it in the ledger, the first of an account in that; each counts itself."""
        if account is not None:
            self.charge(account)
        if self.holders == 0:
            ledger.stored += self.bytes_held()
            ledger.stored_messages += 1
        ledger.stored += HOLDER
        self.holders += 1
        return 0

    cpdef int drop_holder(self, Ledger ledger, Account account) except -1:
        self.holders -= 1
        ledger.stored -= HOLDER
        if self.holders == 0:
            ledger.stored -= self.bytes_held()
            ledger.stored_messages -= 1
        if account is not None:
            self.discharge(account)
        return 0

    cdef int charge(self, Account account) except -1:
        if account.root is not None:
            self.charge(account.root)
        account.count(HOLDER)
        if account is self.account:
            self.account_holders += 1
        elif self.others is not None and account in self.others:
            self.others[account] += 1
        else:
            if self.account is None:
                self.account = account
                self.account_holders = 1
            else:
                if self.others is None:
                    self.others = {}
                self.others[account] = 1
            account.count(self.bytes_held())
        return 0

    cdef int discharge(self, Account account) except -1:
        if account.root is not None:
            self.discharge(account.root)
        account.count(-HOLDER)
        if account is self.account:
            self.account_holders -= 1
            if self.account_holders:
                return 0
            self.account = None
        else:
            self.others[account] -= 1
            if self.others[account]:
                return 0
            del self.others[account]
        account.count(-self.bytes_held())
        return 0


cdef inline Message new_message(Format format):
    """A message with nothing in it yet."""
    cdef Message message = Message.__new__(Message)
    message.format = format
    return message


cdef Message borrowed(Format format):
    """A message without octets of its own: a lane points it at each PUBLISH in turn."""
    cdef Message message = new_message(format)
    message.expiry_hole = -1
    message.expires_at = INFINITY
    message.topic_at = message.payload_at = message.fields_at = b""
    return message


cdef class Variant:
    """All that decides the bytes of a copy, but its number. Made by `Variants`, or directly for one connection."""

    def __cinit__(self, Format format not None, int qos=0, RetainRule retain=CLEAR, bytes identifiers not None=b""):
        if not 0 <= qos <= 2:
            raise ValueError(f"QoS {qos}; it is 0, 1 or 2")
        self.format = format
        self.stateful = format.stateful
        self.qos = qos
        self.retain = retain
        self.identifiers = identifiers

    def __dealloc__(self):
        deallocate(self.head)

    cdef char* reserve(self, Py_ssize_t size) except NULL:
        """Room for a head of `size` bytes."""
        cdef Py_ssize_t capacity = self.capacity
        cdef char* head
        if size > capacity or (capacity > KEPT_HEAD and size <= KEPT_HEAD):
            capacity = max(size, 64)
            head = <char*> reallocate(self.head, capacity)
            if head is NULL:
                raise MemoryError()
            self.head = head
            self.capacity = capacity
        self.head_size = size
        return self.head


class Variants:
    """The variants in use, each once: subscribers that want the same bytes share the template."""

    def __init__(self):
        self._known = WeakValueDictionary()

    def __len__(self):
        return len(self._known)

    def of(self, format, qos=0, retain=CLEAR, identifiers=b""):
        """The variant for these options."""
        key = (format, qos, retain, identifiers)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Variant(format, qos, retain, identifiers)
        return found

    def like(self, Variant variant not None, Format format not None):
        """The same options in another format."""
        return self.of(format, variant.qos, <int> variant.retain, variant.identifiers)
