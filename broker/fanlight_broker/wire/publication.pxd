# One message under way: what is worked out for it once, whoever gets a copy.
#
#   publish      begin          a FanoutState on the stack of the function that publishes, and a new serial
#     copy         prepare      the template of a Variant, made once: it is valid for this serial only
#     copy         kept         the one Message that all queues, windows and the archive keep
#     copy         for_format   the message in another family of formats, converted once
#   published    finish         drops all of that
#
# The message is borrowed: the caller of `begin` has a reference until `finish`. A function that can raise between the
# two calls `finish` in a `finally`. A kept Message has no part of this. One publication may begin during another.

from libc.stdint cimport uint64_t

from fanlight_broker.wire.message cimport SHARED_BODY, Format, Message, Variant

cdef struct FanoutState:
    uint64_t serial               # no two publications have the same
    void* message                 # borrowed
    unsigned char qos             # the message's
    bint owns                     # the following are valid; each is a reference, or NULL
    void* copy                    # Message: what `kept` made
    void* translations            # dict: family -> Message, or None if the message has no form there
    void* shared                  # bytes: a large body, and where it was copied from
    const char* shared_of
    void* bodies                  # list: other bytes that templates point into

cdef uint64_t publications        # so far, in this process

cdef inline void begin(FanoutState* publication, Message message) noexcept:
    global publications
    publications += 1
    publication.serial = publications
    publication.message = <void*> message
    publication.qos = message.qos
    publication.owns = False

cdef inline void finish(FanoutState* publication) noexcept:
    if publication.owns:
        drop(publication)

cdef inline bint prepare(FanoutState* publication, Variant variant) except -1:
    """Make the template for the message, unless it is made. False if the message has no form in this format."""
    if variant.serial == publication.serial:
        return variant.written
    if (<Message> publication.message).format is not variant.format:
        return encode(publication, variant, False, 0)
    return encode_own(publication, variant, <Message> publication.message, False, 0)

cdef inline bint encode_own(FanoutState* publication, Variant variant, Message own, bint again, double now) except -1:
    """`encode` for a message of the format's family."""
    variant.serial = 0
    variant.shared = NULL
    variant.firm = False
    variant.written = variant.format.encode(own, variant, again, now)
    if variant.octets is not None:
        keep_body(publication, variant)
    if variant.written and variant.body_size >= SHARED_BODY:
        share_body(publication, variant, own)
    variant.plain = variant.written and variant.shared is NULL and variant.hole_size != 2 and not variant.stateful
    variant.serial = publication.serial
    return variant.written

# Entering a `try` costs 60 to 100 instructions, as much as a copy. So what runs for each copy is called unchecked: a
# result of -1 says that it has raised, and only then a `try` is entered around `raised`, which passes the exception on.
ctypedef bint (*Prepare)(FanoutState*, Variant) noexcept
ctypedef bint (*EncodeOwn)(FanoutState*, Variant, Message, bint, double) noexcept

cdef inline int raised() except -1:
    """Raise the exception that an unchecked call has left. Nothing else may be done between the two."""
    return -1

cdef bint encode(FanoutState* publication, Variant variant, bint again, double now) except -1
cdef Message kept(FanoutState* publication)
cdef Message for_format(FanoutState* publication, Format format)
cdef inline bint converted(FanoutState* publication) noexcept:
    """Was the message converted for another family of formats?"""
    return publication.owns and publication.translations is not NULL

cdef int share_body(FanoutState* publication, Variant variant, Message own) except -1
cdef int keep_body(FanoutState* publication, Variant variant) except -1
cdef void drop(FanoutState* publication) noexcept
