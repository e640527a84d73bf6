# Asking a pool: the rows of the message, their bits, and what is left (selector_pool.pxd).

from matchcore.allocator cimport Allocator, Numbers
from matchcore.fields cimport Fields
from matchcore.selector_pool cimport SelectorPool

# Adds the ids of which the selector is true. The fields' views are made. -1: no memory.
cdef int pool_find(const SelectorPool* pool, Fields fields, Allocator* allocator, Numbers* found) noexcept nogil
