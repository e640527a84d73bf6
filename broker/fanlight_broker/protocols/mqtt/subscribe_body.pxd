# What is behind the fixed header of a SUBSCRIBE (3.8) and an UNSUBSCRIBE (3.10), checked where it lies and then taken
# a filter at a time: one packet may hold 100,000.
#
#   | packet identifier | property length, properties | filter, options | filter, options | ...
#                                                     ^ at
#
# Sound or not, that is all: what is wrong with one that is not, the codec says, in plain Python.

cdef class Filters:
    cdef:
        bytes body
        const unsigned char* octets
        Py_ssize_t at, end
        bint has_options                  # SUBSCRIBE
        bint has_suffixes                 # a filter ends at its first `?`; behind that is text, not looked at
        readonly int packet_id
        readonly Py_ssize_t count         # of filters
        readonly bytes identifier         # the property Subscription Identifier as it stands there, b"" for none
        readonly list wheres              # the values of the User Properties `where`

    cdef bint take_properties(self, Py_ssize_t* at, Py_ssize_t most) except -1
    cdef bint check(self, bint has_properties, Py_ssize_t user_properties_max) except -1
