# Assertions for a debug build: FANLIGHT_DEBUG=1 in the environment of setup.py. Without it DEBUG is the constant 0, and
# the compiler leaves out what depends on it.
#
# What does not hold ends the process, with what it was: an exception would be taken for a subscriber's fault.

cdef extern from *:
    """
    #ifdef FANLIGHT_DEBUG
    #define FANLIGHT_DEBUG_BUILD 1
    #else
    #define FANLIGHT_DEBUG_BUILD 0
    #endif
    """
    const bint DEBUG "FANLIGHT_DEBUG_BUILD"

cdef int fan_outs    # that are under way: at most one

cdef inline void check(bint holds, const char* what) noexcept:
    if DEBUG and not holds:
        stop(what)

cdef inline void enter_fan_out() noexcept:
    global fan_outs
    if DEBUG:
        fan_outs += 1
        check(fan_outs == 1, b"a message is published while another is fanned out")

cdef inline void leave_fan_out() noexcept:
    global fan_outs
    if DEBUG:
        fan_outs -= 1

cdef void stop(const char* what) noexcept
