# The access keys that a message has: those under which selectors, or rules, may be that are true of it.

from matchcore.access cimport Access
from matchcore.allocator cimport Allocator, Numbers
from matchcore.fields cimport Fields

# Adds the tags of all keys of the message that are of a kind in use. -1: no memory.
cdef int keys_of_message(const Access* access, Fields fields, Allocator* allocator, Numbers* tags) noexcept nogil
