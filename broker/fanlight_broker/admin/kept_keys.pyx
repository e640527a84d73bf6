# cython: language_level=3
"""What the event feed keeps of an event: its keys without secrets, and each value for JSON and not too long.

What a client says of itself may have as many bytes as a frame. Compiled, as there are two events of each connection.
"""

cdef enum:
    TEXT_MAX = 500       # characters of a text
    ITEMS_MAX = 50       # of a list or a mapping

LEFT_OUT = frozenset({"exc_info", "password", "credential"})


def kept(str event not None, dict keys not None):
    """The event, and behind it its keys."""
    cdef dict found = {"event": event}
    for key, value in keys.items():
        if key not in LEFT_OUT:
            found[key] = shown(value)
    return found


cdef object shown(value):
    if type(value) is str:
        return value if len(<str> value) <= TEXT_MAX else (<str> value)[:TEXT_MAX]
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, dict):
        return {str(key)[:TEXT_MAX]: shown(each) for key, each in list(value.items())[:ITEMS_MAX]}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [shown(each) for each in list(value)[:ITEMS_MAX]]
    return str(value)[:TEXT_MAX]
