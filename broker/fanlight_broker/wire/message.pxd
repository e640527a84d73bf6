# A message, the formats that encode it, and the encoded bytes.
#
#   Message   topic  payload  fields                     as its format wrote them; borrowed from an inbox, or its own
#      |
#      |  Format.encode, once for each Variant that occurs among the subscribers
#      v
#   Variant   head [ ... | hole | ... ]  + body          a template: each copy gets its number, or its tag,
#                                                        into the hole; the body is the same for all
#
# A protocol subclasses Format. Formats of one family read each other's `fields`; between families a message goes through
# what Format.read makes of it.

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from fanlight_broker.wire.ledger cimport Account, Ledger

cdef enum:
    # Bodies from this size on are shared by the outboxes instead of copied: a copy costs more than a second iovec.
    SHARED_BODY = 16 * 1024
    # Bytes of each holder of a message: a flight and its place in a table or queue, an entry of the retained store.
    HOLDER = 96

cdef enum RetainRule:
    CLEAR = 0             # the retain flag of a copy: never set
    AS_PUBLISHED = 1
    SET = 2               # always: the copy is a retained message

cdef class Format:
    cdef:
        readonly str name
        readonly object family
        readonly bint stateful            # its output depends on earlier output: `sent` reports what was really sent

    cdef bint encode(self, Message message, Variant variant, bint again, double now) except -1
    cdef int sent(self, Variant variant) except -1
    cdef bint says_more(self, Message message) noexcept
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
        # What it owns. A borrowed message has no octets of its own: they are good until its inbox changes.
        bytes topic_octets, payload_octets, fields_octets
        # Of the publication under way.
        uint64_t serial                   # no two publications have the same
        bint laden                        # something of the below is there
        Message copy                      # what `keep` made
        dict translations                 # family -> Message, or None if it cannot be written there
        list bodies                       # bytes that the templates of Python formats point into
        bytes shared                      # a large body as bytes, and where it was copied from
        const char* shared_of
        # Kept in queues, windows and the retained store.
        Py_ssize_t holders
        # By which principals: each pays for it once. Mostly it is one.
        Account account
        Py_ssize_t account_holders
        dict others                       # Account -> holders, or None

    cdef void finish(self) noexcept
    cdef Message kept(self)
    cdef Message for_format(self, Format format)
    cdef bytes share(self, const char* body, Py_ssize_t size)
    cdef Py_ssize_t bytes_held(self) noexcept
    cpdef int add_holder(self, Ledger ledger, Account account) except -1
    cpdef int drop_holder(self, Ledger ledger, Account account) except -1
    cdef int charge(self, Account account) except -1
    cdef int discharge(self, Account account) except -1

@cython.final
cdef class Variant:
    cdef:
        readonly Format format
        readonly unsigned char qos        # granted; a copy has the lower of this and the message's
        readonly RetainRule retain
        readonly bytes identifiers        # of the subscriptions, as the format encodes them
        # The template. A format fills it in; valid for the message of this serial only.
        uint64_t serial
        readonly bint stateful            # its format's
        public bint firm                  # this copy must not be dropped once it is in the outbox: later ones need it
        bint plain                        # nothing special about the copies: no hole or one of 4 bytes, and the body inline
        bint written                      # False: the message has no form here
        char* head
        Py_ssize_t head_size, capacity
        Py_ssize_t hole                   # where in the head
        int hole_size                     # 4, 2, or 0 for none
        const char* body
        Py_ssize_t body_size
        void* shared                      # the body as bytes, if it is large; the message owns it
        object __weakref__

    cdef char* reserve(self, Py_ssize_t size) except NULL
    cdef bint encode(self, Message message, bint again, double now) except -1
    cdef int share_body(self, Message own) except -1

cdef uint64_t publications    # so far, in this process

cdef inline void begin(Message message) noexcept:
    """It is published now: what was worked out for an earlier publication is void."""
    global publications
    publications += 1
    message.serial = publications
    if message.laden:
        message.finish()

cdef inline bint prepare(Variant variant, Message message) except -1:
    """Make the template for a message that is published just now, unless it is made. False if it has no form here."""
    if variant.serial == message.serial:
        return variant.written
    if message.format is not variant.format:
        return variant.encode(message, False, 0)
    variant.serial = 0
    variant.shared = NULL
    variant.firm = False
    variant.written = variant.format.encode(message, variant, False, 0)
    if variant.written and variant.body_size >= SHARED_BODY:
        variant.share_body(message)
    variant.plain = variant.written and variant.shared is NULL and variant.hole_size != 2 and not variant.stateful
    variant.serial = message.serial
    return variant.written

# Entering a `try` costs 60 to 100 instructions, as much as a copy. So what runs for each copy is called unchecked: its
# result of -1 says that it has raised, and only then a `try` is entered around `raised`, which passes the exception on.
ctypedef bint (*Prepare)(Variant, Message) noexcept

cdef inline int raised() except -1:
    """Raise the exception that an unchecked call has left. Nothing else may be done between the two."""
    return -1

cdef Message borrowed(Format format)

cdef inline void uint32_into(char* hole, uint32_t number) noexcept:
    hole[0] = <char> (number >> 24)
    hole[1] = <char> ((number >> 16) & 0xFF)
    hole[2] = <char> ((number >> 8) & 0xFF)
    hole[3] = <char> (number & 0xFF)

cdef inline void uint16_into(char* hole, uint32_t identifier) noexcept:
    hole[0] = <char> (identifier >> 8)
    hole[1] = <char> (identifier & 0xFF)
