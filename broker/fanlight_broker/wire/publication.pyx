# cython: language_level=3
"""One message under way: its copy, its conversions and its shared bodies, each made once and dropped at the end."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

from fanlight_broker.wire.message cimport Format, Message, Variant, uint16_into, uint32_into

publications = 0


cdef void drop(FanoutState* publication) noexcept:
    """`finish`, if the publication owns anything."""
    publication.owns = False
    Py_XDECREF(<PyObject*> publication.copy)
    Py_XDECREF(<PyObject*> publication.translations)
    Py_XDECREF(<PyObject*> publication.shared)
    Py_XDECREF(<PyObject*> publication.bodies)


cdef inline void own_parts(FanoutState* publication) noexcept:
    """Before a part is looked at: `begin` leaves them unset, because few publications have one."""
    if not publication.owns:
        publication.owns = True
        publication.copy = publication.translations = publication.shared = publication.bodies = NULL


cdef void* owned(part) noexcept:
    """A reference to `part`, to be put into the publication."""
    Py_INCREF(part)
    return <void*> part


cdef Message kept(FanoutState* publication):
    """The message, owning its octets: itself, or one copy for everybody who keeps it."""
    cdef Message message = <Message> publication.message
    if message.fields_octets is not None:
        return message
    own_parts(publication)
    if publication.copy is NULL:
        publication.copy = owned(message.kept())
    return <Message> publication.copy


cdef Message for_format(FanoutState* publication, Format format):
    """The message in a format's family, or None if it has no form there."""
    cdef Message message = <Message> publication.message, translation
    cdef dict translations
    if message.format is format or message.format.family == format.family:
        return message
    own_parts(publication)
    if publication.translations is NULL:
        publication.translations = owned({})
    translations = <dict> publication.translations
    if format.family in translations:
        return translations[format.family]
    content = message.format.read(kept(publication))
    translation = format.write(content) if content is not None else None
    if translation is not None:
        translation.qos = message.qos
        translation.retain = message.retain
        translation.expires_at = message.expires_at
    translations[format.family] = translation
    return translation


cdef bint encode(FanoutState* publication, Variant variant, bint again, double now) except -1:
    """Make the template. False if the message has no form in this format.

    again  a copy was sent before, and may have arrived
    now    0 for a message that is published at this moment; else for the seconds that are left of its time
    """
    cdef Message own = <Message> publication.message
    if own.format.family is variant.format.family:    # mostly
        return encode_own(publication, variant, own, again, now)
    own = for_format(publication, variant.format)
    if own is not None:
        return encode_own(publication, variant, own, again, now)
    variant.written = variant.plain = variant.firm = False
    variant.shared = NULL
    variant.serial = publication.serial
    return False


cdef int keep(FanoutState* publication, bytes body) except -1:
    """Keep bytes that a template points into."""
    own_parts(publication)
    if publication.bodies is NULL:
        publication.bodies = owned([])
    (<list> publication.bodies).append(body)
    return 0


cdef int keep_body(FanoutState* publication, Variant variant) except -1:
    """Keep the body of a template that was written in Python."""
    keep(publication, variant.octets)
    variant.octets = None
    return 0


cdef bytes shared_bytes(FanoutState* publication, const char* body, Py_ssize_t size, Message own):
    """A body as bytes that all outboxes share."""
    cdef bytes found
    if own.payload_octets is not None and body == own.payload_at and size == own.payload_size:
        return own.payload_octets
    own_parts(publication)
    if publication.shared is not NULL and body == publication.shared_of \
            and size == PyBytes_GET_SIZE(<bytes> publication.shared):
        return <bytes> publication.shared
    if publication.bodies is not NULL:
        for found in <list> publication.bodies:
            if PyBytes_AS_STRING(found) == body and PyBytes_GET_SIZE(found) == size:
                return found
    if publication.shared is not NULL:
        keep(publication, <bytes> publication.shared)    # other templates point into it
        Py_XDECREF(<PyObject*> publication.shared)
        publication.shared = NULL
    found = PyBytes_FromStringAndSize(body, size)
    publication.shared = owned(found)
    publication.shared_of = body
    return found


cdef int share_body(FanoutState* publication, Variant variant, Message own) except -1:
    """Let outboxes refer to the body in place of copying it; the publication has it until it is finished."""
    cdef bytes shared = shared_bytes(publication, variant.body, variant.body_size, own)
    variant.shared = <void*> shared
    variant.body = PyBytes_AS_STRING(shared)
    return 0


def frame_of(Variant variant not None, Message message not None, *, int number=0, bint again=False, double now=0.0):
    """The whole frame of a message for one variant, its hole filled; None if the message has no form there."""
    cdef FanoutState publication
    cdef bytes frame
    begin(&publication, message)
    try:
        if not encode(&publication, variant, again, now):
            return None
        if variant.hole_size == 4:
            uint32_into(variant.head + variant.hole, number)
        elif variant.hole_size == 2:
            uint16_into(variant.head + variant.hole, number)
        frame = PyBytes_FromStringAndSize(variant.head, variant.head_size)
        frame += PyBytes_FromStringAndSize(variant.body, variant.body_size)
        return frame
    finally:
        finish(&publication)
