# A message, the formats that encode it, and the encoded bytes.
#
#   Message   topic  payload  fields                     as its format wrote them; borrowed from an inbox, or its own
#      |
#      |  Format.encode, once for each Variant that occurs among the subscribers
#      v
#   Variant   head [ ... | hole | ... ]  + body          a template: each copy gets its number, or its tag,
#                                                        into the hole; the body is the same for all
#
# A protocol subclasses Format. Formats of one family read each other's `fields`; between families a message goes
# through what Format.read makes of it.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.ledger cimport Account, Ledger

cdef enum:
    # Bodies from this size on are shared by the outboxes instead of copied: a copy costs more than a second iovec.
    SHARED_BODY = 16 * 1024
    # Bytes of each holder of a message: a flight and its place in a table or queue, an entry of the retained store.
    HOLDER = 96
    OBJECTS = 288             # bytes of a kept message beside its octets: the message, topic and fields as objects
    PAYLOAD_OBJECT = 40       # of the payload, if it has one of its own

cdef enum RetainRule:
    CLEAR = 0             # the retain flag of a copy: never set
    AS_PUBLISHED = 1
    SET = 2               # always: the copy is a retained message

# Over the headers of one message: `Format.walk_headers` begins, `next_header` goes on as long as it is true. A name may
# come several times. What it points at is part of the message.
cdef struct HeaderWalk:
    const unsigned char* at
    const unsigned char* end
    uint32_t left                     # headers to come, in a format that counts them
    const char* name                  # of the header at hand, UTF-8
    Py_ssize_t name_size
    const char* value
    Py_ssize_t value_size
    bint encoded                      # the value is one of msgpack's; else it is text, without a type
    const char* content_type          # of the message: NULL until the walk has passed it
    Py_ssize_t content_type_size

cdef class Format:
    cdef:
        readonly str name
        readonly object family
        readonly bint stateful            # its output depends on earlier output: `sent` reports what was really sent

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1
    cdef int sent(self, Variant variant) except -1
    cdef int address(self, Variant variant, uint32_t number, uint64_t tag, uint32_t attempt) except -1
    cdef Py_ssize_t delivery_size(self, Message message) noexcept
    cdef int write_delivery(self, Message message, char* at, uint32_t number, uint64_t serial) except -1
    cdef bint says_more(self, Message message) noexcept
    cdef int priority(self, Message message) except -1
    cdef void walk_headers(self, Message message, HeaderWalk* walk) noexcept
    cdef bint next_header(self, HeaderWalk* walk) noexcept
    cdef bint text_header(
        self, Message message, const char* name, Py_ssize_t name_size, const char** value, Py_ssize_t* size
    ) noexcept
    cdef Variant steady(self, Message message, Variant variant)

# In no cycle, so hidden from the garbage collector, which would otherwise run every 700 publishes.
@cython.final
@cython.no_gc
cdef class Message:
    cdef:
        readonly Format format
        readonly unsigned char syntax     # of the topic, by its number on the wire
        readonly unsigned char qos
        readonly bint retain
        const char* topic_at
        const char* payload_at
        const char* fields_at             # the rest, in the format's own encoding; may hold topic and payload as well
        Py_ssize_t topic_size, payload_size, fields_size
        readonly Py_ssize_t expiry_hole   # where in `fields` four octets say the seconds it has left; -1: nowhere
        readonly uint32_t format_data     # the format's own
        readonly double expires_at        # NEVER, or a time of the clock that `now` is from
        # What it owns. A borrowed message has no octets of its own, but a topic perhaps: they are good until its inbox
        # changes.
        bytes topic_octets, payload_octets, fields_octets
        # Kept in queues, windows and the retained store.
        Py_ssize_t holders
        public uint64_t number            # that a journal has given it last; 0: none
        # By which principals: each pays for it once. Mostly it is one.
        Account account
        Py_ssize_t account_holders
        dict others                       # Account -> holders, or None

    cdef Message kept(self)
    cdef inline Py_ssize_t bytes_held(self) noexcept:
        """Bytes that it takes while it is kept; of a borrowed one, those that its copy will take."""
        cdef Py_ssize_t at = self.payload_at - self.fields_at, held = OBJECTS + self.topic_size + self.fields_size
        if 0 <= at and at + self.payload_size <= self.fields_size:    # it is in the fields
            return held
        return held + PAYLOAD_OBJECT + self.payload_size

    cpdef int add_holder(self, Ledger ledger, Account account) except -1
    cpdef int drop_holder(self, Ledger ledger, Account account) except -1
    cdef int charge(self, Account account) except -1
    cdef int discharge(self, Account account) except -1

    cdef inline int hold(self, Ledger ledger, Account account) except -1:
        """`add_holder`, inline for one more queue of the same principal."""
        if self.holders == 0 or account is None or account is not self.account or account.root is not None:
            return self.add_holder(ledger, account)
        account.count(HOLDER)
        ledger.stored += HOLDER
        self.account_holders += 1
        self.holders += 1
        return 0

    cdef inline int let_go(self, Ledger ledger, Account account) except -1:
        """`drop_holder`, inline if another queue of the same principal keeps it still."""
        if account is None or account is not self.account or self.account_holders == 1 or account.root is not None:
            return self.drop_holder(ledger, account)
        account.count(-HOLDER)
        ledger.stored -= HOLDER
        self.account_holders -= 1
        self.holders -= 1
        return 0

@cython.final
cdef class Variant:
    cdef:
        readonly Format format
        readonly unsigned char qos        # granted; a copy has the lower of this and the message's
        readonly RetainRule retain
        readonly bytes identifiers        # of the subscriptions, as the format encodes them
        # The template. A format fills it in; valid for the publication of this serial only.
        uint64_t serial
        readonly bint stateful            # its format's
        public bint firm                  # this copy must not be dropped once it is in the outbox: later ones need it
        bint plain                        # nothing special about the copies: no hole or one of 4 bytes, and the body
                                          # inline
        bint written                      # False: the message has no form here
        char* head
        Py_ssize_t head_size, capacity
        Py_ssize_t hole                   # where in the head
        int hole_size                     # 4, 2, or 0 for none
        const char* body
        Py_ssize_t body_size
        void* shared                      # the body as bytes, if it is large; the publication owns it
        bytes octets                      # the body from a format written in Python, until the publication has it
        object __weakref__

    cdef char* reserve(self, Py_ssize_t size) except NULL

cdef Message borrowed(Format format)

cdef inline void uint32_into(char* hole, uint32_t number) noexcept:
    hole[0] = <char> (number >> 24)
    hole[1] = <char> ((number >> 16) & 0xFF)
    hole[2] = <char> ((number >> 8) & 0xFF)
    hole[3] = <char> (number & 0xFF)

cdef inline void uint16_into(char* hole, uint32_t identifier) noexcept:
    hole[0] = <char> (identifier >> 8)
    hole[1] = <char> (identifier & 0xFF)
